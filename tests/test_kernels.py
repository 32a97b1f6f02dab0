import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtri

from bystander import (
    ApproxDP,
    Gaussian,
    Laplace,
    LogRatio,
    PaperScore,
    Pure,
    RandomizedResponse,
    Steinke,
    TwoSidedShift,
)
from bystander._kernels import (
    largest_rejected,
    normal_quantile,
    rejects,
    sweep,
)
from bystander._kernels import steinke_p_value as fast_p_value
from bystander._play import (
    RANKS,
    cut,
    hypergeometric,
    mix64,
)
from bystander.counts import Sketch
from bystander.games.label import game_keys, play, play_exactly
from bystander.records import from_arrays
from tests import makers, reference

FAMILIES = {
    "approx": (ApproxDP(1e-3), reference.approx),
    "gaussian": (Gaussian(), reference.gaussian),
    "laplace": (Laplace(), reference.laplace),
    "rr2": (RandomizedResponse(2), reference.response),
    "rr10": (RandomizedResponse(10), reference.response),
}
families = pytest.mark.parametrize("name", FAMILIES)


@st.composite
def a_count(draw, most=40):
    guesses = draw(st.integers(1, most))
    correct = draw(st.integers(guesses // 2, guesses))
    m = draw(st.sampled_from([guesses, 3 * guesses, 1000 + guesses]))
    return m, guesses, correct, draw(st.sampled_from([0.05, 0.0131, 0.3]))


# ---------------------------------------------------------------- bounds


@given(st.floats(1e-300, 1, exclude_max=True))
def test_normal_quantile_is_scipys(p):
    assert normal_quantile(p) == pytest.approx(ndtri(p), rel=1e-14, abs=1e-15)


def test_normal_quantile_at_the_ends():
    assert (normal_quantile(0.0), normal_quantile(0.5), normal_quantile(1.0)) == (-math.inf, 0.0, math.inf)


@families
@settings(max_examples=40)
@given(count=a_count(), theta=st.floats(0, 5), tau=st.sampled_from([0.0, 0.0, 1e-4, 0.03]))
def test_rejects_as_the_naive_algorithm_does(name, count, theta, tau):
    family, f = FAMILIES[name]
    for before, after in ((0.0, tau), (tau / 2, tau / 2)):
        fast = rejects(family.kind, theta, family.constant, before, after, float(count[0]), *count[1:])
        assert fast == reference.algorithm3(f, theta, family.constant, *count, before, after)


@families
@pytest.mark.parametrize("count", [(1000, 50, 47, 0.05), (200, 60, 45, 0.05), (30, 30, 27, 0.01), (500, 40, 40, 0.025)])
def test_largest_rejected_is_the_naive_one(name, count):
    family, f = FAMILIES[name]
    fast = largest_rejected(family.kind, family.constant, 0.0, 0.0, float(count[0]), *count[1:])
    slow = reference.largest(lambda theta: reference.algorithm3(f, theta, family.constant, *count))
    assert fast == pytest.approx(slow, abs=1e-6)


@given(count=a_count(200))
def test_pure_is_the_exact_binomial(count):
    m, guesses, correct, gamma = count
    fast = largest_rejected(Pure.kind, 0.0, 0.0, 0.0, float(m), guesses, correct, gamma)
    assert fast == pytest.approx(reference.exact_binomial(guesses, correct, gamma), abs=1e-8)


@pytest.mark.parametrize("z", [-3.0, 0.0, 1.6, 5.0])
def test_a_p_value_keeps_its_digits_at_10_to_the_12_guesses(z):
    from scipy.special import betainc

    n, q = 10**12, 0.6
    correct = round(n * q + z * np.sqrt(n * q * (1 - q)))
    fast = fast_p_value(np.log(q / (1 - q)), 0.0, float(n), n, correct)
    assert fast == pytest.approx(betainc(correct, n - correct + 1, q), rel=1e-6)


@settings(max_examples=50)
@given(count=a_count(120), epsilon=st.floats(0, 6), delta=st.sampled_from([0.0, 1e-6, 1e-3]))
def test_steinke_p_value_is_the_naive_one(count, epsilon, delta):
    m, guesses, correct, _ = count
    fast = fast_p_value(epsilon, delta, float(m), guesses, correct)
    assert fast == pytest.approx(reference.steinke_p_value(epsilon, delta, m, guesses, correct), rel=1e-9, abs=1e-300)


@families
@given(count=a_count(300), tau=st.sampled_from([0.0, 1e-3]))
def test_the_reported_parameter_is_rejected_and_a_little_more_is_not(name, count, tau):
    family, _ = FAMILIES[name]
    m, *rest = count
    args = (family.constant, 0.0, tau, float(m), *rest)
    found = largest_rejected(family.kind, *args)
    if found > 0:
        assert rejects(family.kind, found, *args)
    assert not rejects(family.kind, found + 1e-6 * max(1.0, found), *args)


@families
@given(data=st.data())
def test_rejection_falls_with_the_parameter(name, data):
    """Algorithm 3's answer is monotone: the search by halving misses nothing."""
    family, _ = FAMILIES[name]
    m, *rest = data.draw(a_count(300))
    answers = [rejects(family.kind, t / 4, family.constant, 0.0, 0.0, float(m), *rest) for t in range(24)]
    assert answers == sorted(answers, reverse=True)


@given(correct=st.lists(st.lists(st.integers(0, 20), min_size=4, max_size=4), min_size=1, max_size=5))
def test_a_sweep_finds_the_largest_of_each_game(correct):
    """Also where the last game's best misleads: the search only starts from it."""
    guesses = np.array([20, 25, 30, 35])
    args = (ApproxDP.kind, 1e-5, 0.0, 0.0, 1000.0)
    best, which = np.empty(len(correct)), np.empty(len(correct), dtype=np.int64)
    sweep(*args, guesses, np.array(correct), 0.05, best, which)
    for game, row in enumerate(correct):
        each = [largest_rejected(*args, g, c, 0.05) for g, c in zip(guesses, row, strict=True)]
        assert best[game] == pytest.approx(max(each), abs=2e-7 * max(1, max(each)))
        assert each[which[game]] == pytest.approx(max(each), abs=2e-7)


def test_a_family_of_delta_keeps_its_root_where_r_passes_one():
    """Without the early rejection r passes 1 and the search finds .054 (statistics.md §1)."""
    assert largest_rejected(ApproxDP.kind, 1e-5, 0.0, 0.0, 1e6, 1000, 1000, 0.05) == pytest.approx(5.74025, abs=5e-6)


def test_counts_of_nothing_reject_nothing():
    for kind in (ApproxDP.kind, Gaussian.kind, Laplace.kind, Pure.kind, Steinke.kind):
        assert largest_rejected(kind, 0.0, 0.0, 0.0, 100.0, 50, 0, 0.05) == 0.0


# ---------------------------------------------------------------- the game


@given(st.integers(0, 2**64 - 1))
def test_mix64_is_splitmix64(x):
    assert int(mix64(np.uint64(x))) == reference.mix(x)


@given(seed=st.integers(0, 2**70), games=st.integers(1, 20))
def test_game_keys_are_mixed_twice(seed, games):
    start = reference.mix((seed + 1) & reference.MASK)
    slow = [reference.mix((start + (g + 1) * reference.GOLDEN) & reference.MASK) for g in range(games)]
    assert game_keys(seed, games).tolist() == slow


def rows(n, classes, kind, seed):
    rng = np.random.default_rng(seed)
    reference_law = rng.dirichlet(np.ones(classes), n)
    target = {
        "distinct": lambda: rng.dirichlet(np.ones(classes), n),
        "tied": lambda: rng.dirichlet(np.ones(classes), 3)[rng.integers(0, 3, n)],
        "constant": lambda: np.full((n, classes), 1 / classes),
        "reference": lambda: reference_law,
    }[kind]()
    if kind == "tied":
        reference_law = np.full((n, classes), 1 / classes)
    return makers.draw(rng, reference_law), target, reference_law


def both(arrays, attack, seed, games, cuts):
    """The library's exact counts and its sketch's, and the twins' of each."""
    records = from_arrays(*arrays)
    scores = attack.scores(records.target, records.reference)
    keys = game_keys(seed, games)
    sketch = Sketch.empty(games)
    play(records, scores, keys, sketch)
    played = [reference.answers(int(k), records.keys, records.labels, records.reference, scores) for k in keys]
    exact = play_exactly(records, scores, keys, cuts).correct.tolist()
    assert exact == [[reference.count(rows, cut) for cut in cuts] for rows in played]
    sketched = sketch.tally(cuts, keys).correct.tolist()
    assert sketched == [reference.sketched(int(k), rows, cuts) for k, rows in zip(keys, played, strict=True)]


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("kind", ["distinct", "tied", "constant", "reference"])
@pytest.mark.parametrize("n", [1, 2, 7, 400])
def test_counts_are_those_of_the_naive_game(n, kind, classes):
    cuts = tuple(sorted({1, max(1, n // 100), max(1, n // 3), n}))
    both(rows(n, classes, kind, n), PaperScore() if kind == "distinct" else LogRatio(), seed=n, games=5, cuts=cuts)


@pytest.mark.parametrize(("kind", "classes"), [("distinct", 2), ("tied", 3)])
def test_counts_are_those_of_the_naive_game_where_rows_are_many(kind, classes):
    both(rows(20_000, classes, kind, 1), LogRatio(), seed=3, games=1, cuts=(1, 37, 400, 4_000, 19_999, 20_000))


@settings(max_examples=60)
@given(data=st.data())
def test_hypergeometric_has_its_law(data):
    """Over a fine lattice of u, each value is drawn as often as its probability says."""
    size = data.draw(st.integers(1, 60))
    good, need = data.draw(st.integers(0, size)), data.draw(st.integers(0, size))
    lattice = (np.arange(4000) + 0.5) / 4000
    drawn = [hypergeometric(u, size, good, need) for u in lattice]
    law = stats.hypergeom(size, good, need)
    found = np.bincount(drawn, minlength=size + 1) / 4000
    assert found == pytest.approx(law.pmf(np.arange(size + 1)), abs=1 / 2000)


@pytest.mark.parametrize(
    ("size", "good", "need"), [(10**9, 5 * 10**8, 10**6), (10**7, 10, 10**6), (10**6, 10**6 - 3, 5)]
)
def test_hypergeometric_of_many_rows_stays_in_its_range_and_has_its_mean(size, good, need):
    drawn = np.array([hypergeometric((k + 0.5) / 400, size, good, need) for k in range(400)])
    assert ((max(0, need - size + good) <= drawn) & (drawn <= min(need, good))).all()
    law = stats.hypergeom(size, good, need)
    assert drawn.mean() == pytest.approx(law.mean(), abs=0.03 * law.std() + 0.01)


def counted(ranks, cuts):
    ranks = np.array(ranks, dtype=np.uint64)
    bins = np.zeros(RANKS, dtype=np.int64)
    for r in ranks.tolist():
        bins[r >> 48] += 1 + ((r & 1) << 32)
    out = np.zeros(len(cuts), dtype=np.int64)
    cut(ranks, bins, np.array(cuts, dtype=np.int64), out)
    return out.tolist()


@given(data=st.data())
def test_cut_counts_the_highest_and_guesses_no_tie_that_straddles(data):
    shape = st.sampled_from([0, 1 << 48, 5 << 48, (1 << 64) - (1 << 48)])
    rank = st.builds(lambda high, low, right: high + 2 * low + right, shape, st.integers(0, 3), st.integers(0, 1))
    ranks = data.draw(st.lists(rank, min_size=1, max_size=30))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(ranks)), min_size=1, max_size=5)))
    ordered = [(r >> 1, r & 1) for r in sorted(ranks, reverse=True)]
    expected = [reference.count(ordered, c) for c in cuts]
    assert counted(ranks, cuts) == expected
    assert counted(data.draw(st.permutations(ranks)), cuts) == expected


def test_cut_on_ranks_that_are_all_equal_guesses_all_or_none():
    assert counted([7] * 10, [1, 5, 9, 10]) == [0, 0, 0, 10]
    assert counted([7, 7, 7, 6], [3, 4]) == [0, 3]  # 7 and 6 differ in the answer alone: one tie


def test_no_two_sided_shift_is_the_same_as_no_shift():
    assert TwoSidedShift(0.0).offsets(10) == (0.0, 0.0)
