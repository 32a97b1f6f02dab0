"""Which attack is strongest? Six attacks over synthetic and trained targets; the product's default is chosen from it.

The rule, written before any number was looked at: for every (target, rows), the default valid bound (δ =
1e-5, 95 %, doubling grid, median of the games) on the members, averaged over the seeds, divided by the best
attack's on that (target, rows). An attack's score is the mean of that share over all (target, rows) where
some attack finds more than 0. The strongest is the default. Its check: the same with the excess over the
control, max(0, members − control), in place of the members' bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from bystander import Grid, Learned, LogRatio, PaperScore, Records
from bystander.attacks import Attack
from experiments import _audits as audits
from experiments import _synthetic as synthetic
from experiments._record import HERE, Record
from experiments._spec import Experiment

LOGS = HERE.parent / "cache" / "targets"
ATTACKS: dict[str, Attack] = {
    "paper t=2": PaperScore(2.0),
    "paper t=0": PaperScore(0.0),
    "log-ratio": LogRatio(),
    "log-ratio t=1": LogRatio(1.0),
    "log-ratio t=2": LogRatio(2.0),
    "learned": Learned(),
}
_FEW = 2_000
_COMMON = {"games": 100, "delta": audits.DELTA, "confidence": 1 - audits.LEVEL, "few": _FEW}
PROFILES = {
    "small": {**_COMMON, "seeds": [0, 1, 2], "synthetic_rows": [_FEW, 20_000], "trained": []},
    "paper": {**_COMMON, "seeds": [0, 1, 2], "synthetic_rows": [_FEW, 20_000, 200_000], "trained": "all"},
}
Pair = tuple[Records, Records]


def run(record: Record) -> None:
    """A cell for every (target, rows)."""
    settings = record.settings
    for name, k, epsilon in _synthetic_targets():
        for m in settings["synthetic_rows"]:
            pairs = (_randomized_response(k, epsilon, m, seed) for seed in settings["seeds"])
            record.cell(f"{name} m={m}", partial(compare, name, pairs, settings))
    folders = sorted(path.parent for path in LOGS.glob("*/info.json")) if settings["trained"] else []
    for folder in (path for path in folders if path.suffix != ".partial"):
        if all(f"{folder.name} {size}" in record.cells for size in ("all", f"m={_FEW}")):
            continue
        members, control = (_read(folder / f"{part}.parquet") for part in ("members", "control"))
        for size, m in (("all", None), (f"m={_FEW}", _FEW)):
            pairs = ((_some(members, m, seed), _some(control, m, seed)) for seed in settings["seeds"])
            record.cell(f"{folder.name} {size}", partial(compare, folder.name, pairs, settings))


def compare(target: str, pairs: Iterator[Pair], settings: dict[str, Any]) -> dict[str, Any]:
    """Every attack's bound on members and control, by seed."""
    out: dict[str, Any] = {
        "target": target,
        "rows": 0,
        "classes": 0,
        "attacks": {name: {"members": [], "control": []} for name in ATTACKS},
    }
    for seed, (members, control) in zip(settings["seeds"], pairs, strict=True):
        out["rows"], out["classes"] = len(members), members.classes
        for name, attack in ATTACKS.items():
            audited, fitted = _fit(members, attack, seed)
            for part, rows in (("members", audited), ("control", control)):
                tally = audits.play(rows, fitted, games=settings["games"], seed=seed)
                out["attacks"][name][part].append(audits.ask(tally, Grid(), audits.question(rows.classes)))
    return out


def _fit(rows: Records, attack: Attack, seed: int) -> tuple[Records, Attack]:
    """As bystander.audit does: an attack that needs fitting gives up its share of the rows."""
    if not attack.share:
        return rows, attack
    order = synthetic.rng(seed, 77).permutation(len(rows))
    own, rest = rows.take(order[: round(attack.share * len(rows))]), rows.take(order[round(attack.share * len(rows)) :])
    return rest, attack.fit(own.labels, own.target, own.reference)


def _synthetic_targets() -> Iterator[tuple[str, int, float]]:
    yield "rr-flat eps=4", 0, 4.0
    for k in (2, 10):
        for epsilon in (1.0, 2.0, 4.0):
            yield f"rr-mixture k={k} eps={epsilon:g}", k, epsilon


def _randomized_response(k: int, epsilon: float, m: int, seed: int) -> Pair:
    """Members: the posterior given their noisy label. Control: given the noisy label of another draw of the label."""
    classes, parts = max(k, 2), []
    for part in (0, 1):
        key = (seed, 100 * k + part, m, round(1000 * epsilon))
        if k:
            data = synthetic.Mixture.draw(m, k, *key)
            labels, prior = data.labels, data.posterior
        else:
            labels, prior = synthetic.rng(*key).integers(0, 2, m), np.full((m, 2), 0.5)
        source = labels
        if part:
            source = (synthetic.rng(*key, 1).random((m, 1)) > prior.cumsum(axis=1)[:, :-1]).sum(axis=1)
        z = synthetic.randomized(source, classes, epsilon, *key, 2)
        parts.append(audits.records(labels, synthetic.posterior(z, prior, epsilon), prior, seed=seed))
    return parts[0], parts[1]


def _read(path: Any) -> Records:
    """One log, as trained_targets.py writes it."""
    from bystander.records import Columns, from_files

    return from_files(str(path), Columns("label", ("target",), ("reference",), "id"))


def _some(rows: Records, m: int | None, seed: int) -> Records:
    """m rows at random, or all; keyed anew, so that every seed plays other games."""
    chosen = slice(None) if m is None else np.sort(synthetic.rng(seed, 55).choice(len(rows), m, replace=False))
    return rows.take(np.arange(len(rows))[chosen])


EXPERIMENT = Experiment("Which attack is strongest, over synthetic and trained targets", PROFILES, run)
