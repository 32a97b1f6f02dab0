"""The paper's tables on Criteo: ε found by mechanism and ε, log-loss, and calibrated membership inference.

Day 0 trains the reference, 80 % of day 1 the target; the other 20 % (4 % validation, 16 % test) are the control. The
profiles `small` and `paper` run on made-up rows in Criteo's shape (`_clicks`), whose true P(click | x) is known: every
target is audited with that flawless reference too. `real` reads day_0.gz and day_1.gz from cache/ or BYSTANDER_DATA;
`sample` 8,000 real rows of the Kaggle challenge, which know no day: the first half is "day 0".

Choices where the paper is silent: the domain prior's column (C14), ε_p = .05, LP-2ST's shares (60/40).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bystander import datasets
from bystander.training import Boosted
from experiments import _audits as audits
from experiments import _clicks, _data
from experiments import _label_dp as label_dp
from experiments._record import Record
from experiments._spec import Experiment

_MADE_UP = "rows made up in Criteo's shape (experiments/_clicks.py) for Criteo's day 0 and day 1"
_COMMON = {
    "stand_in": _MADE_UP, "seed": 0, "games": 100, "delta": audits.DELTA, "confidence": 1 - audits.LEVEL,
    "rows": 1_000_000, "fresh": 0, "canaries": 200_000, "parts": {"train": 0.8, "validation": 0.04, "test": 0.16},
    "domain": "C14", "domain_epsilon": 0.05, "teachers": 100, "answers": 200,
    "epsilons": [8, 4, 2, 1, 0.1], "catboost": {"iterations": 100, "learning_rate": 0.4, "depth": 8},
}  # fmt: skip
PROFILES = {
    "small": {
        **_COMMON, "rows": 250_000, "fresh": 150_000,
        "catboost": {"iterations": 60, "learning_rate": 0.4, "depth": 6},
    },
    "paper": _COMMON,
    "real": {**_COMMON, "stand_in": None},
    "sample": {
        **_COMMON, "stand_in": None, "file": "criteo_8000.tsv.gz", "rows": 4_000, "teachers": 20,
        "catboost": {"iterations": 30, "learning_rate": 0.1, "depth": 4},
    },
    "tiny": {
        **_COMMON, "rows": 6_000, "canaries": 1_200, "games": 20, "teachers": 10, "answers": 60, "epsilons": [4],
        "catboost": {"iterations": 10, "learning_rate": 0.4, "depth": 4},
    },
}  # fmt: skip


def run(record: Record) -> None:
    """A cell for every mechanism and ε."""
    label_dp.run(record, partial(open_day, record.settings))


def open_day(settings: dict[str, Any]) -> label_dp.Day:
    """Both days; the reference is trained here."""
    before, target = (read(day, settings) for day in (0, 1))
    rows, parts = settings["rows"], settings["parts"]
    ends = np.cumsum([round(parts[part] * rows) for part in ("train", "validation")])
    order = np.random.default_rng([settings["seed"], rows, 91]).permutation(rows)
    members, held, test = np.sort(order[: ends[0]]), order[ends[0] :], np.sort(order[ends[1] :])
    control = np.sort(np.concatenate((held, np.arange(rows, len(target.labels)))))
    learner = Boosted(**settings["catboost"], classes=2, seed=settings["seed"] + 1000)
    learner.fit(before.frame.iloc[members], before.labels[members])
    reference = learner.predict_proba(target.frame)
    truth = None if settings["stand_in"] is None else audits.two_columns(target.truth)
    own = np.sort(held)
    about = {
        "day 0": label_dp.graded(before.labels[own], learner.predict_proba(before.frame.iloc[own])),
        "day 1": label_dp.graded(target.labels[control], reference[control], None if truth is None else truth[control]),
    }
    return label_dp.Day(target.frame, target.labels, members, control, test, reference, about, truth)


def read(day: int, settings: dict[str, Any]) -> _clicks.Clicks:
    """Made-up rows, or real ones (whose truth nobody knows)."""
    rows = settings["rows"] + settings["fresh"]
    if settings["stand_in"] is not None:
        return _clicks.draw(rows, day=day, seed=settings["seed"])
    if "file" in settings:
        table = datasets.criteo.load(_data.criteo_sample(settings["file"]), rows=rows, skip=day * rows)
    else:
        name = f"day_{day}"
        table = datasets.criteo.load(_data.folder(f"{name}.gz", name, f"{name}.first.gz"), day=day, rows=rows)
    labels = table.pop("label").to_numpy(np.int64)
    return _clicks.Clicks(table, labels, np.full(len(labels), np.nan))


EXPERIMENT = Experiment("Tables and figure on Criteo: mechanisms by ε, log-loss, membership", PROFILES, run)
