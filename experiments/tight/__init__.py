"""How much of what the best attack could show does the valid default reach at n = 10⁶, and where is the rest lost?

The yardstick: the log-odds of the best attack's accuracy (posterior known) at the same c', with infinitely
many rows, exact. The steps from it to the default: attack, sample (these rows, this output), confidence
(f_{ε,0}, one game, that c' alone), many games (median of 100 at half the level), choice of c' (Bonferroni
over the grid), and δ = 1e-5 in place of 0. δ comes last, since what it costs depends on the level: the
smaller the level, the more (mδ = 10 rows may be given away altogether).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bystander import ApproxDP, Grid, LogRatio, PaperScore, Shift
from bystander.attacks import Attack
from bystander.bound import rejected
from experiments import _audits as audits
from experiments import _synthetic as synthetic
from experiments._record import Record
from experiments._spec import Experiment

ATTACKS: dict[str, Attack] = {"log-ratio": LogRatio(), "paper t=2": PaperScore(2.0)}
_COMMON = {"seed": 4, "delta": audits.DELTA, "confidence": 1 - audits.LEVEL, "epsilons": [1, 2, 4]}
_TARGETS = {"flat k=2": 0, "mixture k=2": 2, "mixture k=10": 10}
PROFILES = {
    "small": {**_COMMON, "rows": 100_000, "games": 30, "targets": {"flat k=2": 0, "mixture k=2": 2}},
    "paper": {**_COMMON, "rows": 1_000_000, "games": 100, "targets": _TARGETS},
}


def run(record: Record) -> None:
    """A cell for every (target, ε)."""
    settings = record.settings
    for name, k in settings["targets"].items():
        for epsilon in settings["epsilons"]:
            record.cell(f"{name} eps={epsilon:g}", partial(cell, name, k, epsilon, settings))


def cell(name: str, k: int, epsilon: float, settings: dict[str, Any]) -> dict[str, Any]:
    """The waterfall of one target, for each attack."""
    n, seed = settings["rows"], settings["seed"]
    if k:
        data = synthetic.Mixture.draw(n, k, seed, k)
        labels, prior = data.labels, data.posterior
    else:
        k, labels, prior = 2, synthetic.rng(seed).integers(0, 2, n), np.full((n, 2), 0.5)
    z = synthetic.randomized(labels, k, epsilon, seed, k, round(1000 * epsilon))
    rows = audits.records(labels, synthetic.posterior(z, prior, epsilon), prior, seed=seed)
    fresh = synthetic.Mixture.draw(1_500_000 // k**2, k, seed, 9).posterior if "mixture" in name else prior[:1]
    grid = Grid().fractions
    out: dict[str, Any] = {
        "target": name, "epsilon": epsilon, "sim_rows": synthetic.sim_rows(epsilon, prior), "grid": grid, "attacks": {}
    }  # fmt: skip
    best = [
        synthetic.log_odds(a) for a in synthetic.limit(fresh, epsilon, synthetic.posterior, LogRatio().scores, grid)
    ]
    out["best_by_share"] = best
    for attack_name, attack in ATTACKS.items():
        mine = [
            synthetic.log_odds(a) for a in synthetic.limit(fresh, epsilon, synthetic.posterior, attack.scores, grid)
        ]
        tally = audits.play(rows, attack, games=settings["games"], seed=seed)
        choice = Grid().choose(tally.at(Grid().cuts(n)), audits.question(k))
        at = Grid().cuts(n).index(choice.guesses)
        count = tally.at((choice.guesses,))
        accuracy = count.correct.mean() / choice.guesses

        def at_zero(correct: float, level: float | None, guesses: int = choice.guesses) -> float:
            """The bound at δ = 0 that this count alone gives at this level."""
            return rejected(ApproxDP(0.0), Shift(0.0), k, n, guesses, int(correct), level or audits.LEVEL)

        median = choice.correct
        steps = [
            ("best attack", best[at]), ("attack", mine[at]), ("sample", synthetic.log_odds(accuracy)),
            ("confidence", at_zero(count.correct.mean(), audits.LEVEL)),
            ("many games", at_zero(median, audits.LEVEL / 2)), ("choice of c'", at_zero(median, choice.level)),
            ("δ", choice.epsilon),
        ]  # fmt: skip
        out["attacks"][attack_name] = {
            "share": grid[at], "default": choice.epsilon, "steps": dict(steps),
            "reached": choice.epsilon / best[at], "reached_of_best_share": choice.epsilon / max(best),
        }  # fmt: skip
    return out


EXPERIMENT = Experiment("Tightness on randomized response: what each step of the default bound loses", PROFILES, run)
