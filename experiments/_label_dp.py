"""The paper's table of label-DP mechanisms on tabular data: a cell for every mechanism and ε, whatever the data.

LP-1ST is plain randomized response (as in Wu et al. 2022); its domain prior costs ε_p of the same ε; noise correction
is Wu's clip of the same model; LP-2ST splits the rows; PATE's noise is what the accounting of two counts asks for, its
teachers are the same at every ε, and its student learns the noisy shares of 200 public rows. Without privacy the first
four are one and the same model; PATE's is the student of votes without noise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bystander import Grid, InputError, LogRatio
from bystander.calibration import constant_loss
from bystander.mechanisms import MultiStage, Pate, RandomizedResponse, RRWithPrior
from bystander.training import (
    Boosted,
    DomainPrior,
    Inverse,
    LabelDPClassifier,
    MultiStageClassifier,
    NoCorrection,
    PateClassifier,
    WuClip,
)
from experiments import _audits as audits
from experiments._record import Record

ONE_STAGE, PRIOR, CORRECTED, TWO_STAGE, PATE = MECHANISMS = (
    "LP-1ST", "LP-1ST (domain prior)", "LP-1ST (noise correction)", "LP-2ST", "PATE",
)  # fmt: skip
PLAIN = "no privacy"
EPSILONS = ("inf", 8, 4, 2, 1, 0.1)
Matrix = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Day:
    """The target's data: features, labels, who is what, and what the reference says of every row."""

    frame: pd.DataFrame
    labels: NDArray[np.int64]
    members: Rows
    control: Rows  # validation, test, and whatever else the target never sees
    test: Rows
    reference: Matrix
    about: Mapping[str, Any]  # how the reference does
    truth: Matrix | None = None


@dataclass
class Trained:
    """Models that more than one cell needs."""

    one_stage: dict[float, LabelDPClassifier] = field(default_factory=dict)
    teachers: dict[bytes, Any] = field(default_factory=dict)


def name(mechanism: str, epsilon: float | str) -> str:
    """The key of a cell."""
    return f"{mechanism} eps={epsilon}"


def run(record: Record, open_day: Callable[[], Day]) -> None:
    """Every cell that is not there yet."""
    settings = record.settings
    wanted = [(PLAIN, "inf"), (PATE, "inf")]
    wanted += [(mechanism, epsilon) for epsilon in settings["epsilons"] for mechanism in MECHANISMS]
    todo = [pair for pair in wanted if name(*pair) not in record.cells]
    if not todo:
        return
    day, shared = open_day(), Trained()
    record.cell("reference", lambda: day.about)
    for mechanism, epsilon in todo:
        record.cell(name(mechanism, epsilon), partial(cell, day, mechanism, float(epsilon), settings, shared))


def cell(day: Day, mechanism: str, epsilon: float, settings: dict[str, Any], shared: Trained) -> dict[str, Any]:
    """Train, grade, audit. Where no output depends on a label, or all are the same: the reason, and no numbers."""
    out: dict[str, Any] = {"mechanism": mechanism, "epsilon": None if np.isinf(epsilon) else epsilon}
    start = time.perf_counter()
    try:
        model, predict, more = train(day, mechanism, epsilon, settings, shared)
    except InputError as error:
        return {**out, "nothing": str(error)}
    trained = time.perf_counter()
    p = predict(day.frame)
    predicted = time.perf_counter()
    private = model.privacy_.replace is not None and np.isfinite(epsilon)
    out |= more | {
        "log_loss": {part: audits.log_loss(day.labels[rows], p[rows])
                     for part, rows in (("test", day.test), ("members", day.members))},
        "share_of_one": model.privacy_.share_of_one,
        **audits.cell(
            logs(day, day.members, p, day.reference, settings["seed"]),
            logs(day, day.control, p, day.reference, settings["seed"] + 1),
            canaries=settings["canaries"], games=settings["games"], seed=settings["seed"],
            epsilon_true=model.privacy_.replace.epsilon if private else None,
            epsilon_label=model.privacy_.label.epsilon if private else None,
        ),
    }  # fmt: skip
    few = min(len(day.control), settings["canaries"])
    if few < out["canaries"]:
        members = logs(day, day.members, p, day.reference, settings["seed"])
        out["as_many"] = valid(audits.some(members, few, settings["seed"]), settings)
    if day.truth is not None:
        out["truth"] = {
            part: valid(logs(day, rows, p, day.truth, settings["seed"] + 2), settings)
            for part, rows in (("members", day.members), ("control", day.control))
        }
    spent = {"train": trained - start, "predict": predicted - trained, "audit": time.perf_counter() - predicted}
    return {**out, "seconds_of": spent}


def logs(day: Day, rows: Rows, p: Matrix, reference: Matrix, seed: int) -> Any:
    """What an auditor gets of these rows."""
    return audits.records(day.labels[rows], p[rows], reference[rows], seed=seed)


def valid(rows: Any, settings: dict[str, Any]) -> float:
    """The default bound alone."""
    held = audits.some(rows, settings["canaries"], settings["seed"])
    tally = audits.play(held, LogRatio(), games=settings["games"], seed=settings["seed"])
    return audits.ask(tally, Grid(), audits.question(2))


# ---- mechanisms -------------------------------------------------------------------------------------------

Predict = Callable[[pd.DataFrame], Matrix]


def train(
    day: Day, mechanism: str, epsilon: float, settings: dict[str, Any], shared: Trained
) -> tuple[Any, Predict, dict[str, Any]]:
    """A fitted classifier, how it predicts, and what else is to be noted."""
    base, seed = Boosted(**settings["catboost"], classes=2), settings["seed"]
    X, y = day.frame.iloc[day.members], day.labels[day.members]
    if mechanism == PLAIN:
        model = LabelDPClassifier(base, None, classes=2, seed=seed).fit(X, y)
        return model, model.predict_proba, {}
    if mechanism in (ONE_STAGE, CORRECTED):
        if epsilon not in shared.one_stage:
            response = RandomizedResponse(epsilon=epsilon, classes=2)
            model = LabelDPClassifier(base, response, classes=2, correction=NoCorrection(), seed=seed)
            shared.one_stage[epsilon] = model.fit(X, y)
        model = shared.one_stage[epsilon]
        if mechanism == ONE_STAGE:
            return model, model.predict_proba, {}
        return model, partial(corrected, model, WuClip()), {"log_loss_inverse": ours(day, model)}
    if mechanism == PRIOR:
        prior = DomainPrior(settings["domain"], epsilon=settings["domain_epsilon"])
        left = RRWithPrior(epsilon=epsilon - settings["domain_epsilon"], classes=2)
        model = LabelDPClassifier(base, left, classes=2, prior=prior, correction=NoCorrection(), seed=seed).fit(X, y)
        return model, model.predict_proba, {}
    if mechanism == TWO_STAGE:
        stages = MultiStage(epsilon=epsilon, classes=2)
        two = MultiStageClassifier(base, stages, classes=2, correction=NoCorrection(), seed=seed).fit(X, y)
        return two, two.predict_proba, {}
    votes = pate(epsilon, settings)
    once = Once(base, shared.teachers)
    student = PateClassifier(once, votes, classes=2, student=base, soft=True, seed=seed).fit(X, y)
    return student, student.predict_proba, {"pate": {"teachers": votes.teachers, "scale": votes.scale}}


def corrected(model: LabelDPClassifier, how: Any, frame: pd.DataFrame) -> Matrix:
    """The one-stage model's predictions, its noise taken out: post-processing of the same training."""
    channel = RandomizedResponse(epsilon=model.mechanism.epsilon, classes=2).channel()
    return np.asarray(how.correct(model.predict_proba(frame), channel, model.base_rate_))


def ours(day: Day, model: LabelDPClassifier) -> float:
    """The test log-loss by `Inverse()`."""
    return audits.log_loss(day.labels[day.test], corrected(model, Inverse(), day.frame.iloc[day.test]))


def pate(epsilon: float, settings: dict[str, Any]) -> Pate:
    """The least noise, to within 1 %, that this ε of replacing a label allows; nearly none without privacy."""
    fixed = {"classes": 2, "teachers": settings["teachers"], "answers": settings["answers"], "delta": audits.DELTA}
    if np.isinf(epsilon):
        return Pate(**fixed, scale=0.5)
    low, high = 1.0, 1e5
    while high / low > 1.01:
        middle = float(np.sqrt(low * high))
        enough = Pate(**fixed, scale=middle).guarantee("replace").epsilon <= epsilon
        low, high = (low, middle) if enough else (middle, high)
    return Pate(**fixed, scale=high)


class Once:
    """A learner that trains on the same rows with the same seed only once."""

    def __init__(self, base: Any, held: dict[bytes, Any], seed: int | None = None) -> None:
        self.base, self.held, self.seed = base, held, seed

    def __deepcopy__(self, memo: Any) -> Once:
        return Once(self.base, self.held, self.seed)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The one setting."""
        return {"seed": self.seed}

    def set_params(self, **params: Any) -> Once:
        """Change it."""
        self.seed = params["seed"]
        return self

    def fit(self, X: pd.DataFrame, y: NDArray[np.int64]) -> Once:
        """Train, or remember."""
        key = X.index.to_numpy().tobytes() + str(self.seed).encode()
        if key not in self.held:
            fresh = type(self.base)(**self.base.get_params(deep=False) | {"seed": self.seed})
            self.held[key] = fresh.fit(X, y)
        self.fitted = self.held[key]
        self.classes_ = self.fitted.classes_
        return self

    def predict_proba(self, X: pd.DataFrame) -> Matrix:
        """The trained model's."""
        return np.asarray(self.fitted.predict_proba(X))


def graded(labels: NDArray[np.int64], p: Matrix, truth: Matrix | None = None) -> dict[str, float]:
    """A reference on some rows: log-loss beside a constant's, and how far it is from the truth, where that is known."""
    out = {"log_loss": audits.log_loss(labels, p), "constant": constant_loss(labels, 2), "rate": float(labels.mean())}
    if truth is not None:
        out |= {"truth": audits.log_loss(labels, truth), "tau": float(np.abs(p - truth).sum(axis=1).mean() / 2)}
    return out
