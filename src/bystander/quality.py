"""Are counterfactuals as good as true? A two-sample test on control rows, exact for any number of them.

A set A of (row, version) is learned on one half of the rows. On the other half, the share of true versions in A less
the share that the stand-in gives it is at most the mean total variation between the two. See docs/games/quality.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bystander._keys import mix64
from bystander.attacks import Learned
from bystander.calibration import Calibration, Isotonic, Temperature, VectorScaling, constant_loss, log_loss
from bystander.result import Quality, Result

Matrix = NDArray[np.float64]
_SALT = np.uint64(0x9FB21C651E98DF25)
_CELLS = 2_000_000  # rows × versions that are tested at most
LEAST = 200  # rows without which a test is not worth its name


def interval(hits: int, trials: int, level: float) -> tuple[float, float]:
    """Clopper and Pearson's, widened to hold for trials of unlike chances too: of their mean (Hoeffding 1956)."""
    from scipy.special import betaincinv

    low = float(betaincinv(hits, trials - hits + 1, level / 2)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - level / 2)) if hits < trials else 1.0
    return max(0.0, min(low, (hits - 1) / trials)), min(1.0, max(high, (hits + 1) / trials))


def halves(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to learn on, and rows to test on, by a hash of their keys."""
    first = (mix64(keys ^ _SALT) >> np.uint64(63)).astype(bool)
    return np.flatnonzero(first), np.flatnonzero(~first)


def of_probabilities(
    labels: NDArray[np.int64], target: Matrix, reference: Matrix, keys: NDArray[np.uint64], confidence: float
) -> Quality | None:
    """Where the stand-in gives each version's probability: A by a learned score, its share known exactly."""
    most = max(LEAST, _CELLS // reference.shape[1])
    if len(labels) > most:
        some = np.argsort(mix64(keys ^ _SALT), kind="stable")[:most]
        labels, target, reference, keys = labels[some], target[some], reference[some], keys[some]
    learn, test = halves(keys)
    if len(labels) < LEAST or min(len(learn), len(test)) < LEAST // 4:
        return None
    attack = Learned().fit(labels[learn], target[learn], reference[learn])
    inside = attack.scores(target[test], reference[test]) > 0
    y, p = labels[test], reference[test]
    hits = int(np.count_nonzero(inside[np.arange(len(y)), y]))
    expected = float((p * inside).sum() / len(y))
    low, high = interval(hits, len(y), 1 - confidence)
    before = log_loss(y, p)
    return Quality(
        rows=len(y),
        confidence=confidence,
        shift=hits / len(y) - expected,
        low=low - expected,
        high=high - expected,
        log_loss=before,
        constant=constant_loss(y, p.shape[1]),
        calibrated=_calibrated(labels[learn], reference[learn], y, p, before),
    )


def of_draws(truth: Matrix, drawn: Matrix, keys: NDArray[np.uint64], confidence: float) -> Quality | None:
    """Where versions are only drawn (rows × draws): A by a threshold of their scores, both shares with an interval."""
    learn, test = halves(keys)
    if len(truth) < LEAST or min(len(learn), len(test)) < LEAST // 4:
        return None
    threshold = _best(truth[learn], drawn[learn].ravel())
    level = (1 - confidence) / 2  # half for each share
    hits, misses = int((truth[test] > threshold).sum()), int((drawn[test] > threshold).sum())
    trials = drawn[test].size
    low, high = interval(hits, len(test), level)
    under, over = interval(misses, trials, level)
    return Quality(len(test), confidence, hits / len(test) - misses / trials, low - over, high - under)


def _best(truth: Matrix, drawn: Matrix) -> float:
    """The threshold above which the share of true versions exceeds that of drawn ones the most."""
    at = np.unique(np.concatenate((truth, drawn)))
    above = 1 - np.searchsorted(np.sort(truth), at, "right") / len(truth)
    gap = above - (1 - np.searchsorted(np.sort(drawn), at, "right") / len(drawn))
    return float(at[int(np.argmax(gap))])


def _calibrated(
    labels: NDArray[np.int64], learned: Matrix, y: NDArray[np.int64], p: Matrix, before: float
) -> dict[str, float]:
    """The log-loss of the tested rows after each calibration that was fitted on the others; no worse ones."""
    tools: Sequence[Calibration] = (Temperature(), VectorScaling(), Isotonic())
    if p.shape[1] > 50:
        tools = tools[:1]
    after = {}
    for tool in tools:
        fitted = tool.fit(labels, learned)
        mended = fitted.transform(p)
        gains = np.log(np.maximum(mended, 1e-12) / np.maximum(p, 1e-12))[np.arange(len(y)), y]
        if gains.mean() > 3 * gains.std() / math.sqrt(len(y)) > 0:
            after[fitted.name] = before - float(gains.mean())
    return after


def advice(quality: Quality, result: Result) -> tuple[str, ...]:
    """What follows from it, in sentences."""
    who, sure = result.stand_in or "stand-in", f"{100 * quality.confidence:g} %"
    told = []
    if quality.low > 0:
        least = _down(quality.low)
        first = (
            f"The {who} is off: on {quality.rows:,} control rows what it draws differs from the truth by a total "
            f"variation of at least {least:g} on average ({sure}), so a bound should grant τ ≥ {least:g}"
        )
        if (
            result.tau < quality.low
            and result.epsilon > 0
            and result.tau_star is not None
            and quality.low > result.tau_star
        ):
            told.append(
                f"{first}. That is more than τ* = {result.tau_star:.2g}: an error of this size can explain what the "
                f"members read. Use a better {who}."
            )
        else:
            told.append(f"{first}. This one grants {result.tau:g}.")
    else:
        told.append(
            f"No error of the {who} is shown on {quality.rows:,} control rows ({sure}). That rules none out: the test "
            f"sees one kind of error, and of that kind there may be up to {max(0.0, quality.high):.2g}."
        )
    if quality.calibrated and quality.log_loss is not None:
        name = min(quality.calibrated, key=lambda each: quality.calibrated[each])
        told.append(
            f"Calibration helps: {name}, fitted on other control rows, lowers the {who}'s log-loss from "
            f"{quality.log_loss:.4g} to {quality.calibrated[name]:.4g}. Calibrate it on rows that are not audited."
        )
    if quality.log_loss is not None and quality.constant is not None and quality.log_loss > quality.constant:
        told.append(
            f"The {who}'s log-loss, {quality.log_loss:.4g}, is above that of a constant, {quality.constant:.4g}: it "
            "predicts nothing here."
        )
    return tuple(told)


def _down(value: float) -> float:
    """Three digits, rounded down."""
    if value <= 0:
        return 0.0
    scale = 10.0 ** (2 - math.floor(math.log10(value)))
    return math.floor(value * scale) / scale
