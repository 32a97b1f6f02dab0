"""Many games on one model, one bound: what each way to combine them keeps, and how often it is wrong.

Power: randomized response with known posterior. Null: three targets that learned nothing from the audited
labels, whose scores are nevertheless far from flat. All bounds here but one are on pure ε (f_{ε,0}), so
that the e-values can be compared.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bystander import ApproxDP, Grid, LogRatio
from bystander.counts import Tally
from experiments import _audits as audits
from experiments import _synthetic as synthetic
from experiments._evalues import averaged
from experiments._record import Record
from experiments._spec import Experiment

SHARES = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
POWER = {"flat eps=1": (0, 1.0), "flat eps=2": (0, 2.0), "mixture eps=1": (2, 1.0), "mixture eps=4": (2, 4.0)}
NULLS = ("rare", "shuffled k=2", "shuffled k=10")
_COMMON = {"seed": 3, "games": 100, "delta": 0.0, "confidence": 1 - audits.LEVEL}
PROFILES = {
    "small": {**_COMMON, "power": {"2000": 10}, "null": {"2000": 40}},
    "paper": {**_COMMON, "power": {"2000": 60, "20000": 30, "200000": 6}, "null": {"2000": 400, "20000": 400}},
}


def run(record: Record) -> None:
    """A cell for every (target, rows)."""
    settings = record.settings
    for m, repeats in settings["null"].items():
        for name in NULLS:
            record.cell(f"null {name} m={m}", partial(many, f"null {name}", int(m), repeats, settings))
    for m, repeats in settings["power"].items():
        for name in POWER:
            record.cell(f"power {name} m={m}", partial(many, name, int(m), repeats, settings))
        for name in POWER:  # the same games at δ = 1e-5, where small levels cost more
            record.cell(f"delta {name} m={m}", partial(many, name, int(m), repeats, settings, audits.DELTA))


def many(name: str, m: int, repeats: int, settings: dict[str, Any], delta: float = 0.0) -> dict[str, Any]:
    """Mean ε kept, and how often it is above the truth, over seeded runs of one target."""
    truth = 0.0
    found: dict[str, list[float]] = {}
    for repeat in range(repeats):
        labels, target, reference, truth = draw(name, m, settings["seed"], repeat)
        rows = audits.records(labels, target, reference, seed=repeat)
        shares = tuple(p / 100 for p in range(1, 101))
        tally = audits.play(rows, LogRatio(), shares=shares, games=settings["games"], seed=repeat)
        for method, epsilon in ways(tally, reference.shape[1], delta).items():
            found.setdefault(method, []).append(epsilon)
    methods = {}
    for method, values in found.items():
        above = float(np.mean(np.array(values) > truth))
        error = (max(above * (1 - above), 0.05 * 0.95 if above < 0.05 else 0) / repeats) ** 0.5
        methods[method] = {"mean": np.mean(values), "se": np.std(values, ddof=1) / repeats**0.5}
        methods[method] |= {"above_truth": above, "above_se": error}
    return {"target": name, "delta": delta, "rows": m, "repeats": repeats, "truth": truth, "methods": methods}


def ways(tally: Tally, classes: int, delta: float) -> dict[str, float]:
    """One ε by each way to combine the games."""
    first = Tally(tally.canaries, tally.guesses, tally.correct[:1])
    family = ApproxDP(delta)
    out = {"one game": audits.ask(first, Grid(), audits.question(classes, family=family))}
    for share in SHARES:
        out[f"quantile {share:g}"] = audits.ask(tally, Grid(), audits.question(classes, share=share, family=family))
    if delta:
        return out
    out["averaged e-values"] = averaged(tally.at(Grid().cuts(tally.canaries)), audits.LEVEL)
    out["quantile 0.5, δ = 1e-5"] = audits.ask(tally, Grid(), audits.question(classes, family=ApproxDP(audits.DELTA)))
    out["paper: mean of the sweeps"] = float(audits.paper_sweep(tally, classes).mean())
    return out


Drawn = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], float]


def draw(name: str, m: int, *key: int) -> Drawn:
    """Labels, target, reference, and the true SIM ε: 0 for the nulls, the supremum over the rows for the others."""
    if name == "null rare":  # clicks at 3 %; the target always says ½, so every shown 1 is guessed to be true
        reference = np.tile([0.97, 0.03], (m, 1))
        labels = (synthetic.rng(*key).random(m) < 0.03).astype(np.int64)
        return labels, np.full((m, 2), 0.5), reference, 0.0
    k, epsilon = (int(name.rpartition("=")[2]), 2.0) if name.startswith("null") else POWER[name]
    if k:
        data = synthetic.Mixture.draw(m, k, *key)
        labels, prior = data.labels, data.posterior
    else:
        k, labels, prior = 2, synthetic.rng(*key).integers(0, 2, m), np.full((m, 2), 0.5)
    null = name.startswith("null")
    source = labels
    if null:  # the target knows another draw of the label, given x
        source = (synthetic.rng(*key, 1).random((m, 1)) > prior.cumsum(axis=1)[:, :-1]).sum(axis=1)
    z = synthetic.randomized(source, k, epsilon, *key, 2)
    truth = 0.0 if null else synthetic.sim_rows(epsilon, prior)
    return labels, synthetic.posterior(z, prior, epsilon), prior, truth


EXPERIMENT = Experiment("Many games, one bound: what each combination keeps, and how often it is wrong", PROFILES, run)
