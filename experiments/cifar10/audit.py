"""Every target's cell of the record: the label game, calibrated membership and RMIA, from the predictions alone.

The label game is played twice: with M' as trained, like the paper, and with M' after one temperature, fitted on the
15,000 rows of the targets' half that are not audited. M' saw neither those rows nor the audited ones.
"""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bystander.calibration import Temperature
from bystander.rivals import at_label, rmia_scores
from experiments import _audits as audits
from experiments._record import Record
from experiments.cifar10 import plan
from experiments.cifar10.cells import Data

_POPULATION = 2000  # control rows that RMIA compares with; the others are audited


def every(record: Record, data: Path, out: Path) -> None:
    """A cell for the reference, each target, and each way of training on few labels."""
    settings, held = record.settings, Data.load(data, record.settings)
    for cell in plan.cells(settings):
        body = json.loads((out / f"{cell.name}.json").read_text())
        if record.cells.get(cell.name, {}).get("training") not in (None, _training(body)):
            del record.cells[cell.name]  # trained anew since
        if cell.kind in plan.KINDS:
            record.cell(cell.name, partial(target, cell, body, settings, held, out))
        elif cell.name == "reference":
            record.cell(cell.name, partial(_reference, body, settings, held, out))
        else:
            record.cell(cell.name, partial(_plain, body))


def target(cell: plan.Cell, body: dict[str, Any], settings: plan.Settings, data: Data, out: Path) -> dict[str, Any]:
    """The audit of one target."""
    seed, canaries, games = settings["seed"], settings["canaries"], settings["games"]
    truth = {"members": data.labels[data.members], "control": data.test_labels}
    mine, theirs = (_probabilities(out / f"{name}.npz") for name in (cell.name, "reference"))
    milder = calibrated(theirs, data, settings)
    rows, mended = (
        {part: audits.records(y, mine[part], each[part], seed=seed) for part, y in truth.items()}
        for each in (theirs, {part: milder.transform(p) for part, p in theirs.items()})
    )
    notes = body["notes"]
    found = audits.cell(
        rows["members"],
        rows["control"],
        canaries=canaries,
        games=games,
        seed=seed,
        epsilon_true=notes.get("epsilon_replace"),
        epsilon_label=notes.get("epsilon_label"),
    )
    found["calibrated"] = {
        part: audits.label_game(audits.some(each, canaries, seed), games=games, seed=seed)
        for part, each in mended.items()
    }
    members, control = audits.some(rows["members"], canaries, seed), rows["control"]
    at = {
        part: [at_label(p, each.labels) for p in (each.target, each.reference)]
        for part, each in (("members", members), ("control", control))
    }
    order = np.random.default_rng([seed, 60]).permutation(len(control))
    population, others = order[:_POPULATION], order[_POPULATION:]
    against = [p[population] for p in at["control"]]
    scores = rmia_scores(*at["members"], *against), rmia_scores(*(p[others] for p in at["control"]), *against)
    return {**found, "rmia": audits.membership_game(*scores, games=games, seed=seed), **_plain(body)}


def calibrated(reference: dict[str, audits.Matrix], data: Data, settings: plan.Settings) -> Temperature:
    """M''s one temperature, fitted on the members that are not audited."""
    aside = audits.others(len(data.members), settings["canaries"], settings["seed"])
    return Temperature().fit(data.labels[data.members][aside], reference["members"][aside])


def _reference(body: dict[str, Any], settings: plan.Settings, data: Data, out: Path) -> dict[str, Any]:
    """M' before and after its temperature, on the control rows."""
    p = _probabilities(out / "reference.npz")
    milder = calibrated(p, data, settings)
    losses = [audits.log_loss(data.test_labels, each) for each in (p["control"], milder.transform(p["control"]))]
    return {**_plain(body), "temperature": milder.temperature, "log_loss": losses[0], "calibrated_log_loss": losses[1]}


def _plain(body: dict[str, Any]) -> dict[str, Any]:
    """What the training says of itself."""
    kept = ("kind", "epsilon", "test_accuracy", "members_accuracy", "device", "notes")
    return {key: body.get(key) for key in kept} | {"training": _training(body)}


def _training(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "seconds": body["seconds"],
        "seed": body["seed"],
        "settings": body["settings"],
        "versions": body["versions"],
    }


def _probabilities(path: Path) -> dict[str, audits.Matrix]:
    with np.load(path) as held:
        logs = {part: held[part].astype(np.float64) for part in ("members", "control")}
    exact = {part: np.exp(each) for part, each in logs.items()}
    return {part: np.ascontiguousarray(p / p.sum(axis=1, keepdims=True)) for part, p in exact.items()}


def epsilon(name: str) -> float:
    """The ε in a target's name."""
    return math.inf if name.endswith("inf") else float(name.rpartition("-")[2])
