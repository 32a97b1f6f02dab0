"""Randomized response on synthetic data: the paper's two figures (0.1 % and 1 % of guesses), and valid bounds beside.

Choices where the paper is silent. d = max(5, k). The audited "model" publishes the noisy label z, so M(x)
is read in three ways: the indicator of z and the channel P(z | ·), both under the paper's score (t = 2),
and the attacker's posterior P(y | x, z) under the log-ratio. Logistic regression trains on as many fresh
rows as are audited.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bystander import FixedFraction, Grid, LogRatio, PaperScore
from bystander.attacks import Attack
from experiments import _audits as audits
from experiments import _synthetic as synthetic
from experiments._record import Record
from experiments._spec import Experiment

SHARES = (0.001, 0.01)
ATTACKS: dict[str, tuple[synthetic.Predict, Attack]] = {
    "indicator": (synthetic.indicator, PaperScore(2.0)),
    "channel": (synthetic.channel, PaperScore(2.0)),
    "posterior": (synthetic.posterior, LogRatio()),
}
_COMMON = {"seed": 0, "classes": [2, 5, 10], "delta": audits.DELTA, "confidence": 1 - audits.LEVEL}
PROFILES = {
    "small": {**_COMMON, "rows": 100_000, "games": 30, "epsilons": [0.5, 1, 2, 4]},
    "paper": {**_COMMON, "rows": 1_000_000, "games": 100, "epsilons": [0.25, 0.5, 1, 2, 3, 4, 5, 6]},
}


def run(record: Record) -> None:
    """A cell for every (k, counterfactuals, ε)."""
    settings = record.settings
    n, seed = settings["rows"], settings["seed"]
    for k in settings["classes"]:
        todo = [
            (source, epsilon)
            for source in ("truth", "logistic")
            for epsilon in settings["epsilons"]
            if name(k, source, epsilon) not in record.cells
        ]
        if not todo:
            continue
        data = synthetic.Mixture.draw(n, k, seed, k)
        references = {"truth": data.posterior}
        if any(source == "logistic" for source, _ in todo):
            fitted = synthetic.logistic_regression(n, k, seed, k, 1)
            references["logistic"] = fitted.predict_proba(data.features)
        for source, epsilon in todo:
            record.cell(
                name(k, source, epsilon),
                partial(cell, data, references[source], epsilon, settings, truth=source == "truth"),
            )


def name(k: int, source: str, epsilon: float) -> str:
    """The key of a cell."""
    return f"k={k} {source} eps={epsilon:g}"


def cell(
    data: synthetic.Mixture, reference: np.ndarray, epsilon: float, settings: dict[str, Any], *, truth: bool
) -> dict[str, Any]:
    """Every rule on one output of randomized response, with the truths beside."""
    n, k = reference.shape
    z = synthetic.randomized(data.labels, k, epsilon, settings["seed"], k, 2, round(1000 * epsilon))
    some = reference[: 4_000_000 // k**2]
    best = synthetic.limit(some, epsilon, synthetic.posterior, LogRatio().scores, SHARES)
    out: dict[str, Any] = {
        "k": k, "source": "truth" if truth else "logistic", "epsilon": epsilon,
        "sim_uniform": synthetic.sim_uniform(epsilon, k),
        "sim_rows": synthetic.sim_rows(epsilon, reference),
        "best_attack": dict(zip(map(str, SHARES), map(synthetic.log_odds, best), strict=True)),
    }  # fmt: skip
    tv = np.abs(reference - data.posterior).sum(axis=1) / 2
    out["reference_tv"] = {"mean": tv.mean(), "max": tv.max()}
    for reading, (predict, attack) in ATTACKS.items():
        if reading == "channel" and not truth:
            continue
        rows = audits.records(data.labels, predict(z, reference, epsilon), reference, seed=settings["seed"])
        tally = audits.play(rows, attack, shares=SHARES, games=settings["games"], seed=settings["seed"])
        out[reading] = {"grid": audits.ask(tally, Grid(), audits.question(k))}
        for share in SHARES:
            gaussian = audits.paper(tally, share, classes=k)
            counts = tally.at((audits.cut(share, n),)).correct
            out[reading][str(share)] = {
                "gaussian_mean": gaussian.mean(),
                "gaussian_sd": gaussian.std(ddof=1),
                "valid": audits.ask(tally, FixedFraction(share), audits.question(k)),
                "accuracy": counts.mean() / audits.cut(share, n),
            }
    return out


EXPERIMENT = Experiment(
    "Figures on randomized response: 0.1 % and 1 % of guesses (section 5.6, appendix C)", PROFILES, run
)
