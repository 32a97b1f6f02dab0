import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bystander import LogRatio
from bystander.counts import Sketch, Tally, codes, rank
from bystander.games.label import game_keys, play, play_exactly
from bystander.records import from_arrays
from tests import makers, reference


def test_a_tally_at_some_cuts_keeps_their_columns():
    tally = Tally(100, np.array([1, 5, 9]), np.array([[1, 4, 6], [0, 3, 7]]))
    some = tally.at((5, 9))
    assert (some.canaries, some.games) == (100, 2)
    assert some.guesses.tolist() == [5, 9]
    assert some.correct.tolist() == [[4, 6], [3, 7]]


@given(
    scores=st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=40),
    scale=st.sampled_from([1e-300, 1.0, 1e300]),
)
def test_ranks_rise_with_the_size_of_the_score_and_ties_share_an_interval(scores, scale):
    scores = np.array(scores, dtype=float) * scale
    found = rank(scores, np.full(scores.shape, 0.5))
    begin = found.place.astype(np.int64).ravel()
    end = begin + (found.spread.astype(np.int64) >> 1 << 1).ravel()
    size = np.abs(scores).ravel()
    assert ((found.spread & 1).astype(bool).ravel() == (scores.ravel() > 0)).all()
    assert (begin < end).all()
    assert end.max() <= 2**32
    for i in range(len(size)):
        same, above = size == size[i], size > size[i]
        assert (begin[same] == begin[i]).all()
        assert (end[same] == end[i]).all()
        assert (begin[above] >= end[i]).all()


@given(size=st.floats(0, 1e6), sign=st.sampled_from([-1.0, 1.0]))
def test_codes_are_the_bin_and_the_guess(size, sign):
    (code,) = codes(np.array([sign * size])).tolist()
    assert code >> 1 == reference.sketch_bin(size)
    assert code & 1 == (sign * size > 0)


def test_codes_of_scores_beyond_every_bin():
    found = codes(np.array([0.0, 1e-30, 2.0**-24, 1.0, 255.9, 256.0, 1e30, np.inf]))
    assert (found >> 1).tolist() == [0, 0, 0, 24 * 128, 4095, 4095, 4095, 4095]


def sketched(records, games=4):
    scores = LogRatio().scores(records.target, records.reference)
    sketch = Sketch.empty(games)
    play(records, scores, game_keys(2, games), sketch)
    return sketch


def same(a, b):
    return (a.rows == b.rows).all() and (a.right == b.right).all()


@given(owner=st.lists(st.integers(0, 3), min_size=150, max_size=150), classes=st.sampled_from([2, 3]))
def test_sketches_of_any_partition_add_up_to_the_whole(owner, classes):
    arrays = makers.learned_nothing("noise", np.random.default_rng(0), 150, classes)
    records = from_arrays(*arrays)
    parts = [sketched(records.take(np.array(owner) == k)) for k in range(4)]
    whole = sketched(records)
    assert whole.canaries == 150
    assert same(parts[0] + parts[1] + (parts[2] + parts[3]), whole)
    assert same(((parts[3] + parts[1]) + parts[0]) + parts[2], whole)


def game(arrays, order, ids):
    records = from_arrays(*(a[order] for a in arrays), ids=None if ids is None else ids[order])
    scores = LogRatio().scores(records.target, records.reference)
    cuts, keys = (1, 10, 33, 150), game_keys(2, 4)
    return [
        sketched(records).tally(cuts, keys).correct.tolist(),
        play_exactly(records, scores, keys, cuts).correct.tolist(),
    ]


@given(order=st.permutations(range(150)), named=st.booleans(), kind=st.sampled_from(["noise", "constant"]))
def test_counts_do_not_depend_on_the_order_of_rows(order, named, kind):
    arrays = makers.learned_nothing(kind, np.random.default_rng(0), 150, 3)
    ids = np.array([f"row {i}" for i in range(150)]) if named else None
    assert game(arrays, np.array(order), ids) == game(arrays, np.arange(150), ids)


def test_seeds_and_games_play_unlike_each_other():
    arrays = makers.learned_nothing("noise", np.random.default_rng(0), 2000, 2)
    first = makers.tally(arrays, (1000,), games=50, seed=0).correct.ravel()
    other = makers.tally(arrays, (1000,), games=50, seed=1).correct.ravel()
    assert (first != other).mean() > 0.8
    # Fair coins: mean 500, sd √(1000/4) = 15.8 a game; 100 games: 5 standard errors are 8.
    assert abs(np.concatenate([first, other]).mean() - 500) < 8


def test_more_games_begin_with_the_fewer():
    arrays = makers.learned_nothing("noise", np.random.default_rng(0), 500, 2)
    few, many = (makers.tally(arrays, (50, 500), games=g).correct for g in (3, 7))
    assert many[:3].tolist() == few.tolist()


def test_the_bit_and_the_counterfactual_have_their_laws():
    """One class never true but likely in the reference: it is shown as often as b = 1 and M' say."""
    n = 200_000
    law = np.tile([0.3, 0.7], (n, 1))
    records = from_arrays(np.zeros(n, int), law[:, 1], law[:, 1])
    scores = np.tile([0.0, 1.0], (n, 1))  # guess "true" where 1 is shown: always wrong; else "false"
    sketch, keys = Sketch.empty(1), game_keys(0, 1)
    play(records, scores, keys, sketch)
    tally = sketch.tally((n,), keys)
    # Right: shown 0 and b = 1, so ½·.3 of the rows; standard error √(.15·.85/n) = .0008.
    assert tally.correct[0, 0] / n == pytest.approx(0.15, abs=4 * 0.0008)
