"""Every game on one trained model: labels, protected attributes, membership three ways, planted labels; every attack.

CatBoost, overfitted on purpose, learns whether a flight arrives more than 15 minutes late. 40,000 flights are given to
it. Before training, coins (`RowCoins`) are tossed for half of them, and half of those are left out; of the other half a
quarter gets a planted label (`LabelCanaries`). Members of the observational games are the rows that were trained on
with their own label. Beside them stand two held-out sets, of which one is the control. Flights on which the model did
not train make what attackers need: a reference M' (more rows, milder settings, calibrated), references of the target's
own recipe, a population, the samplers of the protected columns, and a generator of whole records.

All sets are drawn at random from one year, so that no set differs from another but by chance. The day of the month,
the flight and the aircraft are no features. A second target saw labels through randomized response; its references too.

The control of the coins' games is a placebo: the same coins, tossed for rows of the control after training.
"""

from __future__ import annotations

from functools import partial

from experiments import _audits as audits
from experiments._record import Record
from experiments._spec import Experiment

_COMMON = {
    "data": "flights (real): 327,346 of one year", "label": "arr_delay > 15", "seed": 0, "games": 100,
    "delta": audits.DELTA, "confidence": 1 - audits.LEVEL, "epsilons": [None, 1], "protected": ["weekday", "origin"],
    "coins": 0.5, "planted": 0.25, "references": 8,
    "parts": {
        "given": 40_000, "held": 25_000, "control": 25_000, "aside": 20_000, "population": 20_000, "pool": 150_000,
    },
    "target": {"iterations": 300, "learning_rate": 0.4, "depth": 8,
               "settings": {"l2_leaf_reg": 1, "one_hot_max_size": 120}},
    "reference": {"iterations": 300, "learning_rate": 0.15, "depth": 8, "settings": {"one_hot_max_size": 120}},
    "sampler": {"iterations": 200}, "generator": {"rows": 40_000, "iterations": 40},
}  # fmt: skip
PROFILES = {
    "small": _COMMON,
    "tiny": {
        **_COMMON, "games": 10, "references": 2, "epsilons": [None],
        "parts": {"given": 2_400, "held": 1_200, "control": 1_200, "aside": 600, "population": 600, "pool": 3_000},
        "target": {"iterations": 60, "learning_rate": 0.4, "depth": 6, "settings": {"l2_leaf_reg": 1}},
        "reference": {"iterations": 20, "learning_rate": 0.15, "depth": 4},
        "sampler": {"iterations": 10}, "generator": {"rows": 1_000, "iterations": 4},
    },
}  # fmt: skip


def run(record: Record) -> None:
    """A cell for what the attackers have, and one for every target and game."""
    from experiments.onemodel.games import GAMES, about_reference, about_target
    from experiments.onemodel.problem import Problem, Target

    problem = Problem(record.settings)
    record.cell("reference", lambda: about_reference(problem))
    for epsilon in record.settings["epsilons"]:
        target = Target(problem, epsilon)
        told = "inf" if epsilon is None else f"{epsilon:g}"
        record.cell(f"eps={told} target", partial(about_target, target))
        for name, game in GAMES.items():
            record.cell(f"eps={told} {name}", partial(game, target))


EXPERIMENT = Experiment("Every game and every attack on one trained model (CatBoost on flights)", PROFILES, run)
