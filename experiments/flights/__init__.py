"""The Criteo tables on real rows: does a flight arrive more than 15 minutes late? Real, in time order, 24 % positive.

Flights of January to June train the reference; those of July to December are split as Criteo's day 1 is: 80 % train the
target, 20 % are the control. The date is no feature: it lies outside all that the reference has seen. Mechanisms, ε and
learner are those of the Criteo experiment; the domain prior's column is the carrier.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bystander.training import Boosted
from experiments import _audits as audits
from experiments import _data
from experiments import _label_dp as label_dp
from experiments._record import Record
from experiments._spec import Experiment

_COMMON = {
    "stand_in": "flights (real, in time order) for Criteo's days", "seed": 0, "games": 100, "delta": audits.DELTA,
    "confidence": 1 - audits.LEVEL, "label": "arr_delay > 15", "reference_months": 6, "most": None,
    "canaries": 200_000, "parts": {"train": 0.8, "validation": 0.04, "test": 0.16},
    "domain": "carrier", "domain_epsilon": 0.05, "teachers": 100, "answers": 200,
    "epsilons": [8, 4, 2, 1, 0.1], "catboost": {"iterations": 100, "learning_rate": 0.4, "depth": 8},
}  # fmt: skip
PROFILES = {
    "small": {**_COMMON, "catboost": {"iterations": 60, "learning_rate": 0.4, "depth": 6}},
    "paper": _COMMON,
    "tiny": {
        **_COMMON, "most": 6_000, "canaries": 1_200, "games": 20, "teachers": 10, "answers": 60, "epsilons": [4],
        "catboost": {"iterations": 10, "learning_rate": 0.4, "depth": 4},
    },
}  # fmt: skip


def run(record: Record) -> None:
    """A cell for every mechanism and ε."""
    label_dp.run(record, partial(open_day, record.settings))


def open_day(settings: dict[str, Any]) -> label_dp.Day:
    """Earlier and later flights; the reference is trained here."""
    table = _data.flights()
    late = (table["arr_delay"] > 15).to_numpy(np.int64)
    earlier = (table["month"] <= settings["reference_months"]).to_numpy()
    frame = table.drop(columns=["arr_delay", "month", "day"])
    rng = np.random.default_rng([settings["seed"], 92])
    first, later = (rng.permutation(np.flatnonzero(kind))[: settings["most"]] for kind in (earlier, ~earlier))
    target, labels = frame.iloc[later].reset_index(drop=True), late[later]
    ends = np.cumsum([round(settings["parts"][part] * len(later)) for part in ("train", "validation")])
    members, control, test = np.arange(ends[0]), np.arange(ends[0], len(later)), np.arange(ends[1], len(later))
    learner = Boosted(**settings["catboost"], classes=2, seed=settings["seed"] + 1000)
    own, fitted = np.split(first, [len(first) // 5])
    learner.fit(frame.iloc[fitted], late[fitted])
    reference = learner.predict_proba(target)
    about = {
        "earlier": label_dp.graded(late[own], learner.predict_proba(frame.iloc[own])),
        "later": label_dp.graded(labels[control], reference[control]),
    }
    return label_dp.Day(target, labels, members, control, test, reference, about)


EXPERIMENT = Experiment("The Criteo tables on real flights: earlier months against later ones", PROFILES, run)
