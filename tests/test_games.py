"""Algorithm 1: which games are observational; line by line against the engine's counts; a user's own game."""

from dataclasses import dataclass

import numpy as np
import pytest

from bystander import Centred, FixedFraction, Gaussian, Grid, InputError, LogRatio, audit_game
from bystander.games import membership
from bystander.games.game import Data, observational, play
from bystander.games.interventional import Inclusion, Planting
from bystander.games.label import game_keys, play_exactly
from bystander.games.membership import Pairs, Scored
from bystander.games.observational import Beside, Imputed, by_law
from bystander.games.versions import Versions
from bystander.records import from_arrays
from tests import makers

ROWS = 400
KEYS = game_keys(5, 6)


def rows(rng, count=ROWS, classes=3, start=0):
    ids = np.arange(start, start + count)
    keys = from_arrays(np.zeros(count), np.full(count, 0.5), np.full(count, 0.5), ids=ids).keys
    return Data(rng.normal(0, 1, (count, 4)), rng.integers(0, classes, count), keys)


def flat(x):
    return np.full((len(x), 3), 1 / 3)


def record(x, coin):
    """A protected part of two columns."""
    return np.column_stack((coin, 1 - coin))


DATA = rows(np.random.default_rng(0))
WIDE = Data(DATA.x, np.random.default_rng(1).random((ROWS, 2)), DATA.keys)
FRESH = rows(np.random.default_rng(2), start=10_000)
GAMES = {
    "label": (Imputed(by_law(flat), name="label", stand_in="reference"), DATA, True),
    "attribute": (Imputed(record), WIDE, True),
    "membership": (Beside(FRESH), DATA, True),
    "membership-one-run": (Inclusion(), DATA, False),
    "membership-one-run, some": (Inclusion(0.3), DATA, False),
    "label-canaries": (Planting(3, 0.3), DATA, False),
}


@pytest.mark.parametrize("name", GAMES)
def test_which_games_are_observational_is_seen_and_not_said(name):
    game, data, expected = GAMES[name]
    assert observational(game, data, KEYS) is expected
    canaries = len(game.bits(game.artifacts(data, KEYS[0])))
    assert play(game, len, lambda output, told: np.ones(canaries), data, KEYS[0]).observational is expected


@dataclass(frozen=True)
class Sly:
    """A game that calls itself what it is not: it writes into the training data."""

    name: str = "observational, honestly"
    stand_in: str = "reference"
    assumptions: tuple[str, ...] = ("None of it holds.",)

    def artifacts(self, data, key):
        return np.zeros(len(data), dtype=bool)

    def data(self, data, drawn):
        data.y[0] += 1
        return data

    def hint(self, output, data, drawn):
        return data

    def bits(self, drawn):
        return drawn


def test_data_that_was_written_into_is_noticed():
    assert not observational(Sly(), DATA.copy(), KEYS[:1])
    assert not play(Sly(), len, lambda output, told: np.ones(ROWS), DATA.copy(), KEYS[0]).observational


@pytest.mark.parametrize("name", GAMES)
def test_bits_are_fair_and_games_differ(name):
    """300 games of at least 90 canaries: the standard error of the share of ones is below √(.25/27000) = .003."""
    game, data, _ = GAMES[name]
    bits = [game.bits(game.artifacts(data, key)) for key in game_keys(9, 300)]
    assert abs(np.mean(np.concatenate(bits)) - 0.5) < 4 * 0.003
    assert len({each.tobytes() for each in bits}) == 300
    assert abs(np.corrcoef(np.stack(bits)[:, :2].T)[0, 1]) < 4 / np.sqrt(300)


# ---- the engine's counts, from Algorithm 1 played line by line


CUTS = (1, 5, 40, 150, ROWS)


def test_labels():
    """Exact counts; the scores are continuous, so no tie is broken."""
    rng = np.random.default_rng(3)
    law, target = (makers.softmax(rng.normal(0, 1, (ROWS, 3))) for _ in range(2))
    records = from_arrays(DATA.y, target, law, ids=np.arange(ROWS))
    assert (records.keys == DATA.keys).all()
    scores = LogRatio().scores(records.target, records.reference)
    tally = play_exactly(records, scores, KEYS, CUTS)
    game = Imputed(by_law(lambda x: records.reference), name="label")

    def attack(output, told):
        return output[np.arange(ROWS), told.y]

    for key, expected in zip(KEYS, tally.correct, strict=True):
        assert play(game, lambda data: scores, attack, DATA, key).correct(CUTS).tolist() == expected.tolist()


def test_drawn_records():
    """The attribute game of attributes.py: the true record or one of three draws. A sketch counts all rows exactly."""
    rng = np.random.default_rng(4)
    true, drawn = rng.normal(0.5, 1, ROWS), rng.normal(0, 1, (ROWS, 3))
    versions = np.column_stack((true, drawn))
    tally = Versions.drawn(true, drawn, DATA.keys).play(KEYS).tally((ROWS,), KEYS)
    data = Data(np.arange(ROWS), np.zeros(ROWS, np.int64), DATA.keys)
    game = Imputed(lambda x, coin: 1 + np.floor(3 * coin).astype(np.int64))

    def attack(output, told):
        return versions[told.x, told.y]

    found = [play(game, len, attack, data, key).correct((ROWS,)).tolist() for key in KEYS]
    assert found == tally.correct.tolist()


def test_paired_membership():
    rng = np.random.default_rng(5)
    kinds = ((90, 0), (70, 500))
    members, others = (Data(rng.normal(0, 1, n), np.zeros(n), rows(rng, n, start=start).keys) for n, start in kinds)
    sides = (Scored(each.x, each.keys) for each in (members, others))
    tally = membership.paired(Pairs.of(*sides, 3), Centred(0.0), KEYS, (1, 9, 70))
    for key, expected in zip(KEYS, tally.correct, strict=True):
        ended = play(Beside(others, seed=3), len, lambda output, told: told.x, members, key)
        assert ended.correct((1, 9, 70)).tolist() == expected.tolist()


def test_membership_in_one_run():
    rng = np.random.default_rng(6)
    game, values = Inclusion(0.5), rng.normal(0, 1, ROWS)
    data = Data(values, np.arange(ROWS), DATA.keys)
    canary, out = game.artifacts(data, KEYS[0])
    kept = np.flatnonzero(~out)
    m = int(canary.sum())
    seen = []
    ended = play(game, lambda used: seen.append(used.y), lambda output, told: told.x, data, KEYS[0])
    assert seen[0].tolist() == kept.tolist()
    assert (~canary & out).sum() == 0
    expected = membership.given(Scored(values[canary], data.keys[canary]), ~out[canary], Centred(0.0), 0, (3, 50, m))
    assert ended.correct((3, 50, m)).tolist() == expected.correct[0].tolist()


def test_planted_labels():
    game = Planting(3, 0.3)
    drawn = game.artifacts(DATA, KEYS[0])
    canary, second, one, two = drawn
    planted = game.data(DATA, drawn).y
    assert (planted[~canary] == DATA.y[~canary]).all()
    assert (planted[canary] == np.where(second, two, one)[canary]).all()
    assert ((one != two) & (one != DATA.y) & (two != DATA.y)).all()
    ended = play(game, lambda used: used.y, lambda y, told: np.where(y[canary] == told.first, 1.0, -1.0), DATA, KEYS[0])
    assert ended.correct((len(ended),)).tolist() == [len(ended)]


def test_ties_are_broken_without_the_bit():
    """All scores equal, 2,000 games: of 11 guesses "0" 5.5 are right, standard error √(11/4/2000) = .037."""
    found = [play(GAMES["label"][0], len, lambda output, told: np.ones(ROWS), DATA, k).correct((11,))[0]
             for k in game_keys(1, 2000)]  # fmt: skip
    assert abs(np.mean(found) - 5.5) < 4 * 0.037


# ---- any game, judged as every audit


def test_an_observational_game_trains_once_however_often_it_is_played():
    trained = []

    def mechanism(data):
        trained.append(len(data))
        return data.y

    def attack(remembered, told):
        return np.where(remembered == told.y, 1.0, -1.0)

    game = GAMES["label"][0]
    result = audit_game(game, DATA, mechanism, attack, games=20, selection=FixedFraction(0.2))
    assert len(trained) == 1
    assert result.notes[:2] == (
        "Training was left alone: every game handed the training data back unchanged.", "Trained 1 time.",
    )  # fmt: skip
    assert (result.game, result.attack, result.canaries, result.games) == ("label", "attack", ROWS, 20)
    assert result.epsilon > 0.5
    again = audit_game(Planting(3, 1.0), DATA, mechanism, lambda y, told: np.where(y == told.first, 1.0, -1.0), games=3)
    assert len(trained) == 4
    assert again.notes[0].startswith("Training was intervened in")
    assert again.stand_in is None
    assert again.tau_star is None


@dataclass(frozen=True)
class Halves:
    """A user's own game: which half of a row's secret was published?"""

    name: str = "halves"
    stand_in: None = None
    assumptions: tuple[str, ...] = ("A fair coin chose the half.",)

    def artifacts(self, data, key):
        return np.random.default_rng(int(key)).random(len(data)) < 0.5

    def data(self, data, drawn):
        return Data(data.x, np.where(drawn, data.y[:, 1], data.y[:, 0]), data.keys)

    def hint(self, output, data, drawn):
        return data

    def bits(self, drawn):
        return drawn


def test_a_users_own_game_and_nothing_of_labels_in_its_report():
    rng = np.random.default_rng(0)
    data = Data(np.zeros(2000), rng.normal(0, 1, (2000, 2)), rows(rng, 2000).keys)

    def closer(published, told):
        return np.abs(published - told.y[:, 1]) - np.abs(published - told.y[:, 0])

    result = audit_game(Halves(), data, lambda used: used.y, closer, selection=Grid(), family=Gaussian(1e-5))
    assert result.epsilon > 3
    page = result.to_html()
    words = page[page.index("<body") :].replace("aria-labelledby", "").replace('aria-label="', "").replace("<label", "")
    for text in (str(result), words):
        assert "label" not in text
        assert "reference" not in text
    assert "halves" in str(result.as_dict())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"tau": 0.1}, "tau is 0.1: nothing stands for the truth in membership-one-run; use tau 0"),
        ({"attack": lambda output, told: np.zeros(3)}, r"the attack gave scores of shape \(3,\): give a finite one"),
        ({"attack": lambda output, told: np.full(ROWS, np.nan)}, "give a finite one for 400 canaries"),
        ({"games": 0}, "games is 0"),
    ],
)
def test_errors_name_the_value(change, told):
    given = {"game": Inclusion(), "data": DATA, "mechanism": len, "attack": lambda output, told: np.zeros(ROWS)}
    with pytest.raises(InputError, match=told):
        audit_game(**(given | change))


class Fickle(Halves):
    """Its number of canaries hangs on the coins."""

    def bits(self, drawn):
        return drawn[: 100 + int(drawn[0]) + int(drawn[1])]

    def hint(self, output, data, drawn):
        return self.bits(drawn)


def test_a_game_whose_canaries_change_is_refused():
    data = Data(np.zeros(ROWS), np.zeros((ROWS, 2)), DATA.keys)
    with pytest.raises(InputError, match=r"halves has 1\d\d canaries in one game and 1\d\d in another"):
        audit_game(Fickle(), data, len, lambda output, told: np.zeros(len(told)), games=20)


def test_data_of_unlike_lengths_is_refused():
    with pytest.raises(InputError, match="x has 3 rows, y 2 and keys 3: give as many of each"):
        Data(np.zeros(3), np.zeros(2), np.zeros(3, np.uint64))


def test_planting_refuses_a_label_that_is_none():
    with pytest.raises(InputError, match=r"labels hold 2: give whole numbers 0…1"):
        Planting(2, 0.5).artifacts(DATA, KEYS[0])
