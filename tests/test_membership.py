"""The membership games are their naive twins, and their guesses read scores alone."""

import numpy as np
import pytest

from bystander import Above, Centred, InputError, Tails
from bystander.games import membership
from bystander.games.label import game_keys
from bystander.games.membership import Pairs, Scored
from tests import reference

CUTS = (1, 2, 7, 50, 99, 180)


def rows(rng, count, coarse=False):
    scores = rng.integers(0, 5, count) / 4 if coarse else rng.normal(0, 1, count)
    return Scored(scores.astype(float), rng.integers(0, 2**64, count, dtype=np.uint64))


def plain(scored):
    return list(zip(scored.scores.tolist(), scored.keys.tolist(), strict=True))


def centred(played, cut, at):
    """The naive count of `Centred`: ties of |score − at| keep the order of `played`, so only without ties."""
    strongest = sorted(played, key=lambda row: -abs(row[0] - at))[:cut]
    return sum((score > at) == member for score, member in strongest)


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("sizes", [(200, 200), (180, 260), (300, 180)])
def test_paired_games_are_their_naive_twin(sizes, coarse):
    rng = np.random.default_rng(sizes[0])
    members, others = (rows(rng, size, coarse) for size in sizes)
    pairs = Pairs.of(members, others, seed=3)
    games = game_keys(11, 5)
    naive = reference.pairs(plain(members), plain(others), 3)
    assert len(naive) == len(pairs.keys) == min(sizes)
    for upper in (0.0, 0.5, 0.9, 1.0):
        tally = membership.paired(pairs, Tails(upper), games, CUTS)
        expected = [[reference.tails(reference.shown(naive, int(g)), c, upper) for c in CUTS] for g in games]
        assert tally.correct.tolist() == expected
    tally = membership.paired(pairs, Above(0.5), games, CUTS)
    assert tally.correct.tolist() == [
        [reference.above(reference.shown(naive, int(g)), c, 0.5) for c in CUTS] for g in games
    ]
    if not coarse:
        tally = membership.paired(pairs, Centred(0.2), games, CUTS)
        assert tally.correct.tolist() == [
            [centred(reference.shown(naive, int(g)), c, 0.2) for c in CUTS] for g in games
        ]
    assert tally.canaries == min(sizes)


@pytest.mark.parametrize("coarse", [False, True])
def test_the_game_with_coins_given_is_its_naive_twin(coarse):
    rng = np.random.default_rng(2)
    held = rows(rng, 180, coarse)
    member = rng.random(180) < 0.5
    kinds = [[row for row, inside in zip(plain(held), member, strict=True) if inside == kind] for kind in (True, False)]
    naive = reference.tossed(*kinds, 7)
    for guess, expected in (
        (Tails(), [reference.tails(naive, c) for c in CUTS]),
        (Tails(1.0), [reference.tails(naive, c, 1.0) for c in CUTS]),
        (Above(0.3), [reference.above(naive, c, 0.3) for c in CUTS]),
    ):
        tally = membership.given(held, member, guess, 7, CUTS)
        assert tally.correct.tolist() == [expected]
    if not coarse:
        tally = membership.given(held, member, Centred(-0.1), 7, CUTS)
        assert tally.correct.tolist() == [[centred(naive, c, -0.1) for c in CUTS]]


def test_half_of_the_pairs_show_a_member_and_no_game_is_like_another():
    """1,000 games of 400 pairs: the standard error of the share shown is √(.25/400,000) = .0008."""
    rng = np.random.default_rng(0)
    pairs = Pairs.of(rows(rng, 400), rows(rng, 400), 0)
    correct = membership.paired(pairs, Tails(1.0), game_keys(0, 1000), (400,)).correct[:, 0]
    assert abs(correct.mean() / 400 - 0.5) < 4 * 0.0008
    assert abs(correct.std() / np.sqrt(100) - 1) < 4 / np.sqrt(2000)  # binomial: variance 400/4


def test_equal_scores_are_guessed_in_an_order_that_knows_no_bit():
    """All scores equal, 4,000 seeds: of 11 guesses "member" 5.5 are right, standard error √(11/4/4000) = .026."""
    found = []
    for seed in range(4000):
        same = Scored(np.zeros(40), np.repeat(np.arange(20, dtype=np.uint64), 2))
        member = np.arange(40) % 2 == 0  # pairs of equal keys, one of each kind: the order of rows may not leak
        found.append(int(membership.given(same, member, Tails(1.0), seed, (11,)).correct[0, 0]))
    assert abs(np.mean(found) - 5.5) < 4 * 0.026


def test_a_cut_below_what_passes_loses_nothing_and_one_above_abstains():
    scores, member = np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, True, False, True])
    assert Above(1.0).correct(scores, member, np.array([1, 2, 3, 4])).tolist() == [1, 2, 2, 2]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Tails(1.5), "upper is 1.5: give a number at least 0 and at most 1"),
        (lambda: Above(float("nan")), "threshold is nan: give a finite number"),
        (lambda: Centred("x"), "at is 'x': give a number"),
    ],
)
def test_guesses_refuse_what_is_no_rule(make, told):
    with pytest.raises(InputError) as raised:
        make()
    assert str(raised.value) == told
