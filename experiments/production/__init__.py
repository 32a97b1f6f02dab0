"""The paper's recommended use: a model trained on, step after step, audited each time with its last checkpoint.

A booster learns whether a flight arrives more than 15 minutes late. Each step (a week, or a day) adds trees fitted on
that step's rows alone (CatBoost's `init_model`); the checkpoint before is the reference. Half of a step's rows are
members, a quarter is the control, and a quarter is set aside for better references:

checkpoint   the checkpoint before, as the paper has it: it has not seen this step's weather
calibrated   the same, with its probabilities scaled on the rows set aside (vector scaling)
twin         the checkpoint before, trained on on the rows set aside as the target was on the members

The date is no feature. What a step costs stands beside: training, predicting for the logs, the audit with its control.
"""

from __future__ import annotations

import shutil
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bystander import Grid, LogRatio, audit
from bystander.calibration import VectorScaling, constant_loss
from experiments import _audits as audits
from experiments._data import CACHE, flights
from experiments._record import Record
from experiments._spec import Experiment

REFERENCES = ("checkpoint", "calibrated", "twin")
_COMMON = {
    "stand_in": "flights (real, in time order) for a production model's log", "seed": 0, "games": 100,
    "delta": audits.DELTA, "confidence": 1 - audits.LEVEL, "label": "arr_delay > 15", "first_days": 28,
    "parts": {"members": 0.5, "control": 0.25, "aside": 0.25},
    "first": {"iterations": 60, "learning_rate": 0.1, "depth": 6},
    "step": {"iterations": 15, "learning_rate": 0.05, "depth": 6},
}  # fmt: skip
PROFILES = {
    "small": {**_COMMON, "days": 7, "steps": 48},
    "daily": {**_COMMON, "days": 1, "steps": 336},
    "tiny": {**_COMMON, "days": 7, "steps": 2, "games": 20},
}


def run(record: Record) -> None:
    """A cell a step. Checkpoints stay in the cache, so that a run resumes; where they are gone, from the start."""
    settings = record.settings
    folder = CACHE / "production" / record.body["profile"]
    done = len(record.cells)
    if done == settings["steps"]:
        return
    if not (folder / f"{done:03d}.cbm").exists():
        record.cells.clear()
    if not record.cells:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    table = flights()
    labels = (table["arr_delay"] > 15).to_numpy(np.int64)
    date = pd.to_datetime(table[["month", "day"]].assign(year=2013))
    since = (date - date.iloc[0]).dt.days.to_numpy()
    frame = table.drop(columns=["arr_delay", "month", "day"])
    part = np.random.default_rng([settings["seed"], 81]).random(len(labels))
    first, days = settings["first_days"], settings["days"]
    before = folder / "000.cbm"
    if not before.exists():
        rows = np.flatnonzero((since < first) & (part < settings["parts"]["members"]))
        fit(frame, labels, rows, settings["first"], 0, None, before)
    for step in range(1, settings["steps"] + 1):
        here = np.flatnonzero((since >= first + (step - 1) * days) & (since < first + step * days))
        after = folder / f"{step:03d}.cbm"
        todo = partial(cell, frame, labels, here, part[here], settings, step, (before, after))
        record.cell(f"step {step:03d}", todo)
        before = after


def cell(
    frame: pd.DataFrame,
    labels: NDArray[np.int64],
    here: NDArray[np.int64],
    part: NDArray[np.float64],
    settings: dict[str, Any],
    step: int,
    checkpoints: tuple[Path, Path],
) -> dict[str, Any]:
    """Train on, predict, audit against every reference."""
    before, after = checkpoints
    share = settings["parts"]
    cut = (share["members"], share["members"] + share["control"])
    members, control, aside = here[part < cut[0]], here[(part >= cut[0]) & (part < cut[1])], here[part >= cut[1]]
    seconds = {"train": fit(frame, labels, members, settings["step"], step, before, after)}
    twin = after.with_name("twin.cbm")
    seconds["twin"] = fit(frame, labels, aside, settings["step"], step + 100_000, before, twin)
    start = time.perf_counter()
    logs = {
        rows: {model: predict(frame.iloc[where], path) for model, path in (("target", after), ("checkpoint", before))}
        for rows, where in (("members", members), ("control", control))
    }
    seconds["predict"] = time.perf_counter() - start
    scaling = VectorScaling().fit(labels[aside], predict(frame.iloc[aside], before))
    for rows, where in (("members", members), ("control", control)):
        logs[rows]["calibrated"] = scaling.transform(logs[rows]["checkpoint"])
        logs[rows]["twin"] = predict(frame.iloc[where], twin)
    out: dict[str, Any] = {
        "rows": {"members": len(members), "control": len(control), "aside": len(aside)},
        "rate": labels[members].mean(),
        "log_loss": {
            rows: {model: audits.log_loss(labels[where], p) for model, p in logs[rows].items()}
            | {"constant": constant_loss(labels[where], 2)}
            for rows, where in (("members", members), ("control", control))
        },
    }
    for reference in REFERENCES:
        start = time.perf_counter()
        valid = product(labels, members, control, logs, reference, settings)
        seconds[f"audit {reference}"] = time.perf_counter() - start
        by_rule = {
            rows: audits.label_game(
                audits.records(labels[where], logs[rows]["target"], logs[rows][reference], seed=step),
                games=settings["games"],
                seed=step,
            )
            for rows, where in (("members", members), ("control", control))
        }
        held = audits.records(labels[members], logs["members"]["target"], logs["members"][reference], seed=step)
        few = audits.play(audits.some(held, len(control), step), LogRatio(), games=settings["games"], seed=step)
        out[reference] = {**by_rule, "as_many": audits.ask(few, Grid(), audits.question(2)), "product": valid}
    return {**out, "train_seconds": seconds}


def product(
    labels: NDArray[np.int64],
    members: NDArray[np.int64],
    control: NDArray[np.int64],
    logs: dict[str, dict[str, NDArray[np.float64]]],
    reference: str,
    settings: dict[str, Any],
) -> dict[str, float | None]:
    """One call of `bystander.audit`, control included: what it costs is what is timed."""
    result = audit(
        labels=labels[members],
        target=logs["members"]["target"],
        reference=logs["members"][reference],
        control={"labels": labels[control], "target": logs["control"]["target"],
                 "reference": logs["control"][reference]},
        games=settings["games"],
        seed=settings["seed"],
    )  # fmt: skip
    held = result.control
    return {"epsilon": result.epsilon, "control": None if held is None else held.epsilon}


def fit(
    frame: pd.DataFrame,
    labels: NDArray[np.int64],
    rows: NDArray[np.int64],
    settings: dict[str, Any],
    seed: int,
    before: Path | None,
    after: Path,
) -> float:
    """Train on from a checkpoint, or from nothing; the new checkpoint is written. The seconds of training."""
    import catboost

    categories = list(frame.select_dtypes("category").columns)
    fixed = {"max_ctr_complexity": 1, "thread_count": 2, "verbose": False, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(**settings, **fixed, random_seed=seed)
    start = time.perf_counter()
    model.fit(frame.iloc[rows], labels[rows], cat_features=categories, init_model=None if before is None else before)
    seconds = time.perf_counter() - start
    model.save_model(after)
    return seconds


def predict(frame: pd.DataFrame, path: Path) -> NDArray[np.float64]:
    """(rows, 2), by a checkpoint."""
    import catboost

    model = catboost.CatBoostClassifier().load_model(path)
    return np.asarray(model.predict_proba(frame), dtype=np.float64)


EXPERIMENT = Experiment("The recommended use: a model trained on week by week, each checkpoint audited", PROFILES, run)
