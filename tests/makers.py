"""Makers of the data that tests share: targets with something known about them."""

import io
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

import numpy as np

from bystander import LogRatio, Quantile, Shift
from bystander.cli import main
from bystander.counts import Sketch
from bystander.games.label import game_keys, play
from bystander.records import from_arrays
from bystander.selection import Question


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def draw(rng, law):
    """One label a row, by its law."""
    return (rng.random((len(law), 1)) >= np.cumsum(law, axis=1)[:, :-1]).sum(axis=1)


def truths(rng, m, classes):
    """Log-odds of the labels' true law: 3 % positives, unlike each other; or ten uneven classes."""
    if classes == 2:
        return np.column_stack([np.zeros(m), rng.normal(-4.2, 1.3, m)])
    return rng.normal(0, 1.5, (m, classes))


def learned_nothing(kind, rng, m, classes):
    """Labels, target and reference where the target saw no label and the counterfactuals are as good as true."""
    odds = truths(rng, m, classes)
    truth = softmax(odds)
    labels = draw(rng, truth)
    if kind == "reference":  # even a bad one, since the target knows no more than it
        wrong = softmax(odds + rng.normal(0, 1, odds.shape))
        return labels, wrong, wrong
    target = {
        "truth": truth,
        "constant": np.tile(truth.mean(axis=0), (m, 1)),
        "noise": softmax(odds + rng.normal(0, 0.5, odds.shape)),
    }[kind]
    return labels, target, truth


def response(rng, m, classes, epsilon):
    """k-ary randomized response on flat labels, its posterior as the target, the truth as the reference."""
    p = np.exp(epsilon) / (np.exp(epsilon) + classes - 1)
    labels = rng.integers(0, classes, m)
    released = np.where(rng.random(m) < p, labels, (labels + rng.integers(1, classes, m)) % classes)
    target = np.full((m, classes), (1 - p) / (classes - 1))
    target[np.arange(m), released] = p
    return labels, target, np.full((m, classes), 1 / classes)


def tally(arrays, cuts, *, games=1, seed=0, attack=None):
    """The counts of these games on these rows."""
    records = from_arrays(*arrays)
    scores = (attack or LogRatio()).scores(records.target, records.reference)
    sketch, keys = Sketch.empty(games), game_keys(seed, games)
    play(records, scores, keys, sketch)
    return sketch.tally(sorted(cuts), keys)


def question(family, *, classes=2, level=0.05, share=0.5, shift=None):
    return Question(family, shift or Shift(), classes, level, Quantile(share))


def invoke(*args):
    """The command line in this process: arguments → (status, standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with (
            redirect_stdout(out),
            redirect_stderr(err),
            mock.patch.object(sys, "argv", ["bystander", *map(str, args)]),
        ):
            main()
    except SystemExit as left:
        return left.code, out.getvalue(), err.getvalue()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    raise AssertionError("the command line did not leave by SystemExit")
