"""What is made of a summary where it lies, so that no row travels: counts, curves of the sample, a fitted attack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bystander._validate import InputError
from bystander.attacks import Attack
from bystander.calibration import reliability
from bystander.counts import Sketch
from bystander.quality import of_probabilities
from bystander.result import Curve, Quality
from bystander.summary import Summary


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What the pictures of any game show beside its counts. Curves may be empty."""

    scores: Curve
    reliability: Curve
    auc: float


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """One audit's sketches, and what its sample of rows shows."""

    sketch: Sketch
    slices: Mapping[str, Sketch]
    classes: int
    impossible: int
    seen: Seen
    quality: Quality | None = None


def conclude(attack: Attack, source: str, summary: Summary, test: float | None = None) -> Outcome:
    """The counts, and the curves of the sampled rows; of control rows the reference's quality at confidence `test`."""
    summary.check_ids(source)
    sample = summary.sample
    if sample is None:
        raise InputError(f"{source} has no rows to audit: give at least one row")
    scores = attack.scores(sample.target, sample.reference)
    labels, reference = sample.labels, sample.reference
    return Outcome(
        summary.sketch,
        summary.slices,
        sample.classes,
        summary.impossible,
        saw(labels, reference, scores),
        None if test is None else of_probabilities(labels, sample.target, reference, sample.keys, test),
    )


def saw(labels: NDArray[np.int64], reference: NDArray[np.float64], scores: NDArray[np.float64]) -> Seen:
    """The curves of some rows: true labels against the ones that the reference would draw."""
    return Seen(_densities(labels, reference, scores), reliability(labels, reference), _auc(labels, reference, scores))


def saw_two(members: NDArray[np.float64], others: NDArray[np.float64]) -> Seen:
    """Densities of two kinds of score over the middle 99.8 %, and the AUC: of games that end as scores and bits."""
    one, two = np.sort(members), np.sort(others)
    if not len(one) or not len(two):
        return Seen(Curve((), (), ()), Curve((), (), ()), 0.5)
    low = min(float(np.quantile(one, 0.001)), float(np.quantile(two, 0.001)))
    high = max(float(np.quantile(one, 0.999)), float(np.quantile(two, 0.999)))
    if not high - low > 1e-12 * max(1.0, abs(high), abs(low)):
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, 61)

    def density(values: NDArray[np.float64]) -> tuple[float, ...]:
        count, _ = np.histogram(np.clip(values, low, high), edges)
        return tuple((count / count.sum() / (edges[1] - edges[0])).tolist())

    below, upto = np.searchsorted(two, one, "left"), np.searchsorted(two, one, "right")
    auc = float((below + upto).mean() / (2 * len(two)))
    return Seen(Curve(tuple(edges.tolist()), density(one), density(two)), Curve((), (), ()), auc)


def fit(attack: Attack, source: str, summary: Summary) -> tuple[Attack, int]:
    """The attack fitted on the collected rows, and on how many."""
    some = summary.sample
    if some is None or min(len(some), summary.seen - len(some)) < 100:
        raise InputError(
            f"{source}: {summary.seen:,} rows are too few to fit the attack on {attack.share:.0%} of them: "
            "use log-ratio"
        )
    return attack.fit(some.labels, some.target, some.reference), len(some)


def _pairs(
    labels: NDArray[np.int64], reference: NDArray[np.float64], scores: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Scores of true labels; scores of counterfactual ones, with their probabilities."""
    return scores[np.arange(len(labels)), labels], scores.ravel(), reference.ravel()


def _auc(labels: NDArray[np.int64], reference: NDArray[np.float64], scores: NDArray[np.float64]) -> float:
    """P(a true label outscores a counterfactual one), ties counting half, counterfactuals in expectation."""
    true, false, weight = _pairs(labels, reference, scores)
    order, true = np.argsort(false), np.sort(true)
    false, mass = false[order], np.concatenate(([0.0], np.cumsum(weight[order])))
    below, upto = np.searchsorted(false, true, "left"), np.searchsorted(false, true, "right")
    return float((mass[below] + mass[upto]).mean() / (2 * mass[-1]))


def _densities(labels: NDArray[np.int64], reference: NDArray[np.float64], scores: NDArray[np.float64]) -> Curve:
    """Densities of the scores of true and of counterfactual labels, over the middle 99.8 %."""
    true, false, weight = _pairs(labels, reference, scores)
    low, high = np.quantile(true, (0.001, 0.999))
    likely = false[weight > 0.01]
    if len(likely):
        low, high = min(low, np.quantile(likely, 0.001)), max(high, np.quantile(likely, 0.999))
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, 61)
    here, _ = np.histogram(np.clip(true, low, high), edges)
    there, _ = np.histogram(np.clip(false, low, high), edges, weights=weight)
    step = edges[1] - edges[0]
    return Curve(
        tuple(edges.tolist()), tuple((here / here.sum() / step).tolist()), tuple((there / there.sum() / step).tolist())
    )
