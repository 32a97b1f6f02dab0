"""What each noise correction is worth: log-loss of CatBoost on labels that went through randomized response.

Rows are made up in Criteo's shape (`_clicks`), 3 % positive, so the true P(click | x) is known too. The labels of one
training set are released several times, with new noise; fresh rows of the same day grade the models. One model serves
all corrections of its predictions; `HeldOut` and `Forward` change the training, and have their own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bystander.calibration import constant_loss
from bystander.mechanisms import RandomizedResponse
from bystander.training import (
    Boosted,
    Forward,
    HeldOut,
    Inverse,
    LabelDPClassifier,
    NoCorrection,
    NothingLearned,
    Posterior,
    WuClip,
)
from bystander.training.corrections import Correction
from experiments import _audits as audits
from experiments import _clicks
from experiments._label_dp import corrected
from experiments._record import Record
from experiments._spec import Experiment

NONE, WU, INVERSE, POSTERIOR, HELD_OUT, FORWARD = CORRECTIONS = (
    "none", "Wu's clip", "inverse + floor", "posterior", "held out", "forward",
)  # fmt: skip
AFTER: Mapping[str, Correction] = {NONE: NoCorrection(), WU: WuClip(), INVERSE: Inverse(), POSTERIOR: Posterior()}
IN_TRAINING: Mapping[str, Correction] = {HELD_OUT: HeldOut(), FORWARD: Forward()}
OWN_CONSTANT = "the release's base rate"
PLAIN = "no mechanism"

_COMMON = {"seed": 0, "rate": 0.03, "fresh": 50_000, "epsilons": [0.1, 0.5, 1, 2, 4, 8]}
PROFILES = {
    "small": {
        **_COMMON, "rows": 50_000, "releases": 3,
        "catboost": {"iterations": 60, "learning_rate": 0.1, "depth": 4, "settings": {"thread_count": 1}},
    },
    "few": {
        **_COMMON, "seed": 1_000, "rows": 8_000, "fresh": 20_000, "releases": 12, "epsilons": [0.1, 0.3, 0.5, 1, 2, 4],
        "catboost": {"iterations": 30, "learning_rate": 0.1, "depth": 4, "settings": {"thread_count": 1}},
    },
    "paper": {
        **_COMMON, "rows": 800_000, "fresh": 200_000, "releases": 5,
        "catboost": {"iterations": 100, "learning_rate": 0.1, "depth": 6},
    },
}  # fmt: skip


def run(record: Record) -> None:
    """What there is to compare with, then a cell for every ε."""
    settings = record.settings
    names = [name(epsilon) for epsilon in settings["epsilons"]]
    if all(key in record.cells for key in (PLAIN, *names)):
        return
    clicks = _clicks.draw(settings["rows"] + settings["fresh"], seed=settings["seed"], rate=settings["rate"])
    record.cell(PLAIN, partial(plain, clicks, settings))
    for key, epsilon in zip(names, settings["epsilons"], strict=True):
        record.cell(key, partial(cell, clicks, epsilon, settings))


def name(epsilon: float) -> str:
    """The key of a cell."""
    return f"eps={epsilon:g}"


def plain(clicks: _clicks.Clicks, settings: dict[str, Any]) -> dict[str, Any]:
    """Log-loss without a mechanism, of the best constant, and of the truth."""
    labels, grade = fresh(clicks, settings)
    truth = audits.two_columns(clicks.truth[settings["rows"] :])
    model = fitted(clicks, None, None, settings, 0)
    return {
        "rate": labels.mean(),
        "log_loss": grade(model.predict_proba),
        "constant": constant_loss(labels, 2),
        "truth": audits.log_loss(labels, truth),
    }


def cell(clicks: _clicks.Clicks, epsilon: float, settings: dict[str, Any]) -> dict[str, Any]:
    """Every correction of every release's models: log-losses on fresh rows, one a release."""
    labels, grade = fresh(clicks, settings)
    found: dict[str, list[float]] = {kind: [] for kind in (*CORRECTIONS, OWN_CONSTANT)}
    for release in range(settings["releases"]):
        raw = fitted(clicks, epsilon, NoCorrection(), settings, release)
        for kind, how in AFTER.items():
            found[kind].append(grade(partial(corrected, raw, how)))
        for kind, how in IN_TRAINING.items():
            found[kind].append(grade(fitted(clicks, epsilon, how, settings, release).predict_proba))
        known = np.tile(raw.base_rate_, (len(labels), 1))
        found[OWN_CONSTANT].append(audits.log_loss(labels, known))
    return {"epsilon": epsilon, "log_loss": found}


def fresh(
    clicks: _clicks.Clicks, settings: dict[str, Any]
) -> tuple[NDArray[np.int64], Callable[[Callable[[Any], NDArray[np.float64]]], float]]:
    """Labels of the rows that no model was fitted on, and what grades a prediction of them."""
    frame, labels = clicks.frame.iloc[settings["rows"] :], clicks.labels[settings["rows"] :]
    return labels, lambda predict: audits.log_loss(labels, predict(frame))


def fitted(
    clicks: _clicks.Clicks, epsilon: float | None, how: Correction | None, settings: dict[str, Any], release: int
) -> LabelDPClassifier:
    """One training; the same `release` is the same noise whatever the correction."""
    mechanism = None if epsilon is None else RandomizedResponse(epsilon=epsilon, classes=2)
    base, rows = Boosted(**settings["catboost"]), settings["rows"]
    model = LabelDPClassifier(base, mechanism, classes=2, correction=how, seed=settings["seed"] + release)
    with warnings.catch_warnings(action="ignore", category=NothingLearned):  # the record shows where
        return model.fit(clicks.frame.iloc[:rows], clicks.labels[:rows])


EXPERIMENT = Experiment("Noise corrections of label-DP training, beside the constant predictor", PROFILES, run)
