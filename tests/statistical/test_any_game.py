"""Algorithm 1 as it is played for any game: nothing where an attack reads what was shown, and nothing was learned.

A rate over 400 seeded audits has a standard error of 1.09 %: valid bounds stay below 7.18 %.
"""

import numpy as np
import pytest

from bystander import ApproxDP, EProcess, FixedFraction, Grid, Pure
from bystander.counts import Tally
from bystander.games.game import play
from bystander.games.interventional import Inclusion, Planting
from bystander.games.label import game_keys
from bystander.games.observational import Beside, Imputed, by_law
from tests import makers
from tests.statistical.test_null import AUDITS, LIMIT
from tests.test_games import flat, rows

SELECTIONS = ((FixedFraction(0.1), ApproxDP()), (Grid(), ApproxDP()), (EProcess(), Pure()))
GAMES = {
    "label": (lambda rng: Imputed(by_law(flat)), lambda told: told.x[:, 0] * (told.y - 1)),
    "membership": (lambda rng: Beside(rows(rng, start=10_000)), lambda told: told.x[:, 0]),
    "membership in one run": (lambda rng: Inclusion(), lambda told: told.x[:, 0]),
    "label canaries": (lambda rng: Planting(3, 0.9), lambda told: told.rows.x[:, 0] * (told.first - told.second)),
}


@pytest.mark.parametrize("name", GAMES)
def test_no_bound_where_nothing_was_learned(name):
    make, score = GAMES[name]
    found = dict.fromkeys((selection.name for selection, _ in SELECTIONS), 0)
    for seed in range(AUDITS):
        rng = np.random.default_rng([seed, 21])
        data = rows(rng)
        ended = play(make(rng), len, lambda output, told: score(told), data, game_keys(seed, 1)[0])
        for selection, family in SELECTIONS:
            cuts = selection.cuts(len(ended))
            tally = Tally(len(ended), np.asarray(cuts), ended.correct(cuts)[None])
            found[selection.name] += selection.choose(tally, makers.question(family, classes=3)).epsilon > 0
    assert max(found.values()) / AUDITS <= LIMIT, found
