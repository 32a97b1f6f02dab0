import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bystander import (
    ApproxDP,
    EProcess,
    FixedFraction,
    Gaussian,
    Grid,
    InputError,
    PaperSweep,
    Pure,
    Quantile,
    Shift,
    Steinke,
    bound,
)
from bystander.counts import Tally
from tests import makers, reference


def a_tally(m, cuts, *, games, accuracy, seed=0):
    rights = np.random.default_rng(seed).random((games, m)) < accuracy
    guesses = np.array(cuts)
    return Tally(m, guesses, np.cumsum(rights, axis=1)[:, guesses - 1])


# ---------------------------------------------------------------- combinations


@pytest.mark.parametrize(
    ("share", "games", "needed", "level"),
    [
        (0.5, 1, 1, 0.05),  # one game pays nothing
        (0.5, 2, 1, 0.025),
        (0.5, 3, 2, 0.05 * 2 / 3),
        (0.5, 100, 50, 0.025),
        (0.25, 20, 5, 0.0125),
        (0.25, 7, 2, 0.05 * 2 / 7),
        (1.0, 9, 9, 0.05),
        (0.1, 10, 1, 0.005),
        (0.3, 10, 3, 0.015),  # .3 · 10 is 3.0000000000000004 in floating point
        (1e-9, 50, 1, 0.001),
    ],
)
def test_what_a_quantile_needs_and_pays(share, games, needed, level):
    quantile = Quantile(share)
    assert quantile.needed(games) == needed
    assert quantile.level(0.05, games) == pytest.approx(level, rel=1e-12)


@given(share=st.floats(0.001, 1), games=st.integers(1, 300))
def test_a_quantile_is_what_that_many_games_reach(share, games):
    quantile = Quantile(share)
    values = np.random.default_rng(games).integers(0, 20, (games, 2))
    found = quantile.of(values)
    need = quantile.needed(games)
    assert need - 1 < share * games + 1e-6
    assert need >= share * games - 1e-6
    for k in range(2):
        assert (values[:, k] >= found[k]).sum() >= need > (values[:, k] > found[k]).sum()


# ---------------------------------------------------------------- cuts


def test_cuts_of_each_selection():
    assert FixedFraction(0.01).cuts(2000) == (20,)
    assert FixedFraction(0.01).cuts(20) == (1,)  # at least one
    assert Grid().cuts(10_000) == (100, 200, 400, 800, 1600, 3200, 6400, 10_000)
    assert Grid().cuts(3) == (1, 2, 3)
    assert Grid((0.5, 0.1)).cuts(100) == (10, 50)
    assert PaperSweep().cuts(1000) == tuple(range(10, 1001, 10))
    assert EProcess().cuts(400) == tuple(range(1, 401))
    cuts = EProcess().cuts(100_000)
    assert cuts[:500] == tuple(range(1, 501))
    assert cuts[-1] == 100_000
    assert max(b / a for a, b in itertools.pairwise(cuts[500:])) < 1.012


# ---------------------------------------------------------------- choices


@pytest.mark.parametrize("family", [ApproxDP(), Pure(), Gaussian(), Steinke()], ids=lambda f: f.name)
@pytest.mark.parametrize("selection", [FixedFraction(0.02), FixedFraction(0.3), Grid(), Grid((0.05, 0.5))])
@pytest.mark.parametrize(("games", "share"), [(1, 0.5), (20, 0.5), (21, 0.25)])
def test_a_choice_is_the_best_bound_at_the_level_it_paid_for(selection, family, games, share):
    m, cuts = 5000, selection.cuts(5000)
    tally = a_tally(m, cuts, games=games, accuracy=0.8)
    choice = selection.choose(tally, makers.question(family, share=share))
    need = max(1, math.ceil(share * games))
    level = 0.05 * need / games / len(cuts)
    middle = np.sort(tally.correct, axis=0)[::-1][need - 1]
    bounds = [
        bound(canaries=m, guesses=g, correct=int(c), family=family, confidence=1 - level)
        for g, c in zip(cuts, middle, strict=True)
    ]
    best = max(bounds, key=lambda b: b.epsilon)
    assert choice.level == pytest.approx(level, rel=1e-12)
    assert choice.epsilon == pytest.approx(best.epsilon, abs=1e-8)
    assert (choice.guesses, choice.correct) == (best.guesses, best.correct)
    assert choice.epsilons == pytest.approx([b.epsilon for b in bounds], abs=1e-8)
    assert choice.fractions == tuple(g / m for g in cuts)
    if isinstance(family, Steinke):
        assert choice.tau_star is None
    else:
        assert choice.tau_star == pytest.approx(max(b.tau_star for b in bounds), rel=1e-3)


def test_a_choice_that_rejects_nothing_shows_the_largest_count():
    choice = Grid().choose(a_tally(1000, Grid().cuts(1000), games=1, accuracy=0.4), makers.question(ApproxDP()))
    assert (choice.epsilon, choice.guesses, choice.tau_star) == (0.0, 1000, 0.0)


def test_tau_star_is_the_same_whatever_tau_is_granted():
    tally = a_tally(20_000, Grid().cuts(20_000), games=1, accuracy=0.7)
    plain = Grid().choose(tally, makers.question(ApproxDP()))
    assert 0 < plain.tau_star < 0.5
    for granted in (0.5 * plain.tau_star, 2 * plain.tau_star):
        choice = Grid().choose(tally, makers.question(ApproxDP(), shift=Shift(granted)))
        assert choice.tau_star == plain.tau_star
        assert (choice.epsilon > 0) == (granted < plain.tau_star)


# ---------------------------------------------------------------- the e-process


@settings(max_examples=25)
@given(rights=st.lists(st.booleans(), min_size=1, max_size=60), gamma=st.sampled_from([0.05, 0.2]))
def test_the_e_process_is_a_product_of_bets(rights, gamma):
    m = len(rights)
    tally = Tally(m, np.arange(1, m + 1), np.cumsum([rights], axis=1))
    choice = EProcess().choose(tally, makers.question(Pure(), level=gamma))
    assert choice.epsilon == pytest.approx(reference.e_process(rights, gamma), abs=2e-6)


@settings(max_examples=25)
@given(rights=st.lists(st.booleans(), min_size=5, max_size=60), data=st.data())
def test_the_e_process_rises_with_right_answers_and_falls_with_confidence(rights, data):
    m = len(rights)
    better = list(rights)
    better[data.draw(st.integers(0, m - 1))] = True

    def epsilon(rights, level):
        tally = Tally(m, np.arange(1, m + 1), np.cumsum([rights], axis=1))
        return EProcess().choose(tally, makers.question(Pure(), level=level)).epsilon

    assert epsilon(rights, 0.05) <= epsilon(better, 0.05) + 1e-6
    assert epsilon(rights, 0.05) <= epsilon(rights, 0.1) + 1e-6


def test_the_e_process_of_many_games_is_the_quantile_of_its_bounds():
    rights = np.random.default_rng(0).random((5, 200)) < 0.85
    tally = Tally(200, np.arange(1, 201), np.cumsum(rights, axis=1))
    choice = EProcess().choose(tally, makers.question(Pure(), share=0.5))
    each = sorted((reference.e_process(row, 0.05 * 3 / 5) for row in rights.tolist()), reverse=True)
    assert choice.epsilon == pytest.approx(each[2], abs=2e-6)
    assert choice.level is None  # no one count gives it again


def test_the_e_process_of_a_sure_winner():
    """All right, t games: Π (p_d/q) alone, so ε solves mean_d ((1 + e^−ε)/(1 + e^−ε−d))^t = 20."""
    tally = Tally(100, np.arange(1, 101), np.arange(1, 101)[None])
    epsilon = EProcess().choose(tally, makers.question(Pure())).epsilon
    bets = [0.04 * 60 ** (k / 7) for k in range(8)]
    mean = sum(((1 + math.exp(-epsilon)) / (1 + math.exp(-epsilon - d))) ** 100 for d in bets) / 8
    assert mean == pytest.approx(20, rel=1e-4)


@pytest.mark.parametrize(("family", "shift"), [(ApproxDP(), None), (Pure(), Shift(0.1))])
def test_the_e_process_is_for_pure_epsilon_without_shift(family, shift):
    tally = a_tally(100, EProcess().cuts(100), games=1, accuracy=0.9)
    with pytest.raises(InputError, match="the e-process holds for pure ε without shift"):
        EProcess().choose(tally, makers.question(family, shift=shift))


# ---------------------------------------------------------------- the paper's sweep, and what it costs


def test_the_paper_sweep_is_a_mean_of_maxima_and_no_bound():
    tally = a_tally(1000, PaperSweep().cuts(1000), games=3, accuracy=0.6)
    choice = PaperSweep().choose(tally, makers.question(Gaussian()))
    best = [
        max(
            bound(canaries=1000, guesses=int(g), correct=int(c), family=Gaussian()).epsilon
            for g, c in zip(tally.guesses, row, strict=True)
        )
        for row in tally.correct
    ]
    assert choice.epsilon == pytest.approx(np.mean(best), abs=2e-6)
    assert choice.level is None
    assert not PaperSweep().valid
    assert Grid().valid
    assert FixedFraction().valid
    assert EProcess().valid


@pytest.mark.parametrize(
    ("selection", "family", "published"),
    [
        (FixedFraction(0.16), Pure(), 0.047),
        (PaperSweep(), Pure(), 0.297),
        (Grid((0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0)), Pure(), 0.035),
        (EProcess(), Pure(), 0.029),
    ],
    ids=["fixed", "sweep", "grid", "eprocess"],
)
def test_what_choosing_costs_on_fair_coins(selection, family, published):
    """statistics.md §4, m = 10⁴: 800 runs, compared within three standard errors (.023 at .05, .048 at .3)."""
    runs, m = 800, 10_000
    guesses = np.array(selection.cuts(m))
    rng, found = np.random.default_rng(4), 0
    for _ in range(runs):
        rights = np.cumsum(rng.random(m) < 0.5)
        choice = selection.choose(Tally(m, guesses, rights[None, guesses - 1]), makers.question(family))
        found += choice.epsilon > 0
    assert found / runs == pytest.approx(published, abs=3 * math.sqrt(published * (1 - published) / runs))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FixedFraction(0.0), "guesses is 0.0: give a number above 0 and at most 1"),
        (lambda: FixedFraction(1.5), "guesses is 1.5: give a number above 0 and at most 1"),
        (lambda: Grid(()), "the grid of guess fractions is empty: give at least one"),
        (lambda: Grid((0.1, -1)), "guesses is -1: give a number above 0 and at most 1"),
        (lambda: Quantile(0), "share is 0: give a number above 0 and at most 1"),
    ],
)
def test_wrong_choices_are_refused(make, words):
    with pytest.raises(InputError) as error:
        make()
    assert str(error.value) == words
