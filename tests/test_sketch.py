"""The sketch: it adds up, it holds what the naive game holds, and its cuts have their law."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy import special, stats

from bystander import FixedFraction, LogRatio, audit
from bystander._play import cut_sketch, hypergeometric
from bystander.counts import BINS, Sketch, codes
from bystander.games.label import game_keys, play
from bystander.records import from_arrays
from tests import makers, reference


def played(records, games, seed=0):
    sketch = Sketch.empty(games)
    play(records, LogRatio().scores(records.target, records.reference), game_keys(seed, games), sketch)
    return sketch


def same(a, b):
    return np.array_equal(a.rows, b.rows) and np.array_equal(a.right, b.right)


# ---------------------------------------------------------------- it adds up


@settings(max_examples=40)
@given(
    owner=st.lists(st.integers(0, 4), min_size=300, max_size=300),
    order=st.permutations(range(5)),
    classes=st.sampled_from([2, 3, 10]),
)
def test_any_partition_added_in_any_order_is_one_pass(owner, order, classes):
    records = from_arrays(*makers.learned_nothing("noise", np.random.default_rng(classes), 300, classes))
    parts = [played(records.take(np.array(owner) == k), 3) for k in order]
    whole = played(records, 3)
    assert whole.canaries == 300
    a, b, c, d, e = parts
    assert same((((a + b) + c) + d) + e, whole)
    assert same(a + (b + (c + (d + e))), whole)
    assert same(e + d + c + b + a, whole)
    at_once = Sketch.empty(3)
    for k in order:
        part = records.take(np.array(owner) == k)
        play(part, LogRatio().scores(part.target, part.reference), game_keys(0, 3), at_once)
    assert same(at_once, whole)


def test_adding_changes_neither_side():
    records = from_arrays(*makers.learned_nothing("noise", np.random.default_rng(0), 50, 2))
    one, two = played(records.take(slice(0, 20)), 2), played(records.take(slice(20, 50)), 2)
    assert (one + two).canaries == 50
    assert (one.canaries, two.canaries) == (20, 30)
    assert same(one + Sketch.empty(2), one)


# ---------------------------------------------------------------- it is the naive twin's, bin by bin


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("n", [1, 500, 5000])
def test_every_bin_holds_what_the_naive_game_puts_there(n, classes):
    rng = np.random.default_rng(n + classes)
    law = rng.dirichlet(np.ones(classes), n)
    target = rng.dirichlet(np.full(classes, 0.2), n)
    target[::7] = law[::7]  # a score of 0
    target[1::7] = np.eye(classes)[rng.integers(0, classes, len(target[1::7]))]  # the largest and the smallest
    records = from_arrays(makers.draw(rng, law), target, law)
    scores = LogRatio().scores(records.target, records.reference)
    sketch = played(records, 2, seed=5)
    for g, key in enumerate(game_keys(5, 2)):
        rows, right = np.zeros(BINS, dtype=int), np.zeros(BINS, dtype=int)
        answers = reference.answers(int(key), records.keys, records.labels, records.reference, scores)
        for (size, _), hit in answers:
            rows[reference.sketch_bin(size)] += 1
            right[reference.sketch_bin(size)] += hit
        assert sketch.rows[g].tolist() == rows.tolist()
        assert sketch.right[g].tolist() == right.tolist()


# ---------------------------------------------------------------- codes


@given(
    a=st.floats(allow_nan=False), b=st.floats(allow_nan=False), small=st.floats(0, 300), more=st.floats(1.0079, 10.0)
)
def test_codes_rise_with_the_size_and_their_lowest_bit_is_the_sign(a, b, small, more):
    found = codes(np.array([a, b, small, small * more])).astype(int)
    assert (found & 1).tolist() == [int(s > 0) for s in (a, b, small, small * more)]
    bins = found >> 1
    assert bins[0] <= bins[1] if abs(a) <= abs(b) else bins[0] >= bins[1]
    if 2.0**-23 < small < 25:  # scores .79 % apart are told apart
        assert bins[3] > bins[2]
    assert bins.min() >= 0
    assert bins.max() < BINS


def test_codes_of_the_ends():
    ends = np.array([0.0, -0.0, 5e-324, -5e-324, 2.0**-24, 2.0**-23, 255.99, 256.0, 1e300, np.inf, -np.inf])
    found = codes(ends).astype(int)
    assert (found >> 1).tolist() == [0, 0, 0, 0, 0, 128, 4095, 4095, 4095, 4095, 4095]
    assert (found & 1).tolist() == [0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0]


def test_a_bin_is_128th_of_an_octave():
    edges = 2.0 ** np.arange(-24, 8)[:, None] * (1 + np.arange(128) / 128)
    assert (codes(edges.ravel()) >> 1).tolist() == list(range(BINS))
    assert (codes(np.nextafter(edges.ravel().astype(np.float32)[1:], np.float32(0)).astype(float)) >> 1).tolist() == (
        list(range(BINS - 1))
    )


# ---------------------------------------------------------------- its cuts


def cut(key, rows, right, cuts):
    out = np.zeros(len(cuts), dtype=np.int64)
    cut_sketch(np.uint64(key), np.array(rows), np.array(right), np.array(cuts, dtype=np.int64), out)
    return out.tolist()


@st.composite
def bins(draw):
    held = draw(st.lists(st.integers(0, 30), min_size=1, max_size=8).filter(any))
    return held, [draw(st.integers(0, size)) for size in held]


@given(held=bins(), key=st.integers(0, 2**64 - 1))
def test_cuts_at_the_edges_of_bins_are_exact(held, key):
    rows, right = np.array(held[0]), np.array(held[1])
    edges, sums = np.cumsum(rows[::-1]), np.cumsum(right[::-1])
    known = {int(edge): int(total) for edge, total in zip(edges, sums, strict=True) if edge}
    assert cut(key, rows, right, sorted(known)) == [known[edge] for edge in sorted(known)]
    # And they stay so where other cuts fall inside bins.
    every = list(range(1, int(rows.sum()) + 1))
    found = dict(zip(every, cut(key, rows, right, every), strict=True))
    assert {edge: found[edge] for edge in known} == known


@given(held=bins(), key=st.integers(0, 2**64 - 1), data=st.data())
def test_nested_cuts_rise_and_take_no_more_than_there_is(held, key, data):
    rows, right = np.array(held[0]), np.array(held[1])
    n = int(rows.sum())
    cuts = sorted(data.draw(st.sets(st.integers(1, n), min_size=1)))
    found = cut(key, rows, right, cuts)
    steps = np.diff([0, *found])
    assert (steps >= 0).all()
    assert (steps <= np.diff([0, *cuts])).all()
    # Bounds by the bins: all wrong first, or all right first, inside each.
    best = np.concatenate([[1] * g + [0] * (s - g) for s, g in zip(rows[::-1], right[::-1], strict=True)])
    worst = np.concatenate([[0] * (s - g) + [1] * g for s, g in zip(rows[::-1], right[::-1], strict=True)])
    for c, count in zip(cuts, found, strict=True):
        assert worst[:c].sum() <= count <= best[:c].sum()
    assert cut(key, rows, right, cuts) == found


def fits(drawn, law):
    """Chi-square of draws against probabilities, cells of few expected draws taken together."""
    expected, seen = law * len(drawn), np.bincount(drawn, minlength=len(law))
    held = expected > 5
    assert seen[law == 0].sum() == 0
    cells = [np.append(part[held], part[~held].sum()) for part in (seen, expected)]
    some = cells[1] > 0.5
    return (((cells[0] - cells[1]) ** 2)[some] / cells[1][some]).sum() < stats.chi2.isf(1e-3, some.sum() - 1)


def test_a_cut_inside_a_bin_has_the_hypergeometric_law_alone_and_after_another():
    rows, right = [7, 40, 5], [3, 25, 4]
    keys = game_keys(1, 20_000)
    alone = np.array([cut(key, rows, right, [20])[0] for key in keys])
    first, second = np.array([cut(key, rows, right, [12, 20]) for key in keys]).T
    for drawn, need in ((alone, 15), (first, 7), (second, 15)):
        assert fits(drawn - 4, stats.hypergeom(40, 25, need).pmf(np.arange(need + 1)))
    # Given the first cut (4 of the first bin and 4 of 7), the next draws 8 from what is left: 33 rows, 21 right.
    assert fits(second[first == 8] - 8, stats.hypergeom(33, 21, 8).pmf(np.arange(9)))


def masses(size, good, need):
    """Values within 12 standard deviations of the mode and their probabilities, by ratios: no logarithm of 10⁹!."""
    low, high = max(0, need - size + good), min(need, good)
    spread = int(12 * stats.hypergeom(size, good, need).std()) + 60
    mode = min(high, max(low, (need + 1) * (good + 1) // (size + 2)))
    k = np.arange(max(low, mode - spread), min(high, mode + spread) + 1)
    up = (
        np.log(good - k[:-1]) + np.log(need - k[:-1]) - np.log(k[1:]) - np.log(size - good - need + k[1:].astype(float))
    )
    log = np.concatenate([[0.0], np.cumsum(up)])
    p = np.exp(log - log.max())
    return k, p / p.sum()


@pytest.mark.parametrize(
    ("size", "good", "need"),
    [
        (20, 9, 6),
        (10**4, 9_500, 777),
        (10**6, 600_000, 500_000),
        (10**9, 6 * 10**8, 5 * 10**8),
        (10**9, 10**9 - 40, 10**8),
    ],
)
def test_hypergeometric_inverts_its_law_on_a_grid(size, good, need):
    """Every value has an interval of u as wide as its probability: mode, mode + 1, mode − 1, … in turn."""
    k, p = masses(size, good, need)
    u = (np.arange(2000) + 0.5) / 2000
    drawn = np.array([hypergeometric(x, size, good, need) for x in u])
    assert drawn.min() >= k[0]
    assert drawn.max() <= k[-1]
    # 1e-4: logarithms of 10⁹! are known to 1e-5.
    mode = min(need, good, max(0, need - size + good, (need + 1) * (good + 1) // (size + 2)))
    turn = np.argsort(np.abs(k - mode) * 2 - (k > mode), kind="stable")
    place, upto = np.empty(len(k), dtype=int), np.cumsum(p[turn])
    place[turn] = np.arange(len(k))
    at = place[drawn - k[0]]
    assert (u < upto[at] + 1e-4).all()
    assert (u > upto[at] - p[turn][at] - 1e-4).all()
    law = np.cumsum(p)
    draws = np.array([hypergeometric(x, size, good, need) for x in np.random.default_rng(1).random(4000)])
    cells = np.unique(np.searchsorted(law, np.linspace(0.05, 0.95, 19)))
    edges = np.concatenate([[-np.inf], k[cells] + 0.5, [np.inf]])
    expected = np.diff(np.concatenate([[0.0], law[cells], [1.0]])) * len(draws)
    seen = np.histogram(draws, edges)[0]
    held = expected > 5
    assert (
        stats.chisquare(
            np.append(seen[held], seen[~held].sum() + 1e-9),
            np.append(expected[held], expected[~held].sum() + 1e-9) * 1.0,
            sum_check=False,
        ).pvalue
        > 1e-3
    )


@pytest.mark.parametrize("size", [1, 10, 10**9])
def test_hypergeometric_where_nothing_is_left_to_chance(size):
    for u in (0.0, 0.5, 1 - 2.0**-53):
        assert hypergeometric(u, size, size, size) == size
        assert hypergeometric(u, size, 0, size) == 0
        assert hypergeometric(u, size, size, 1) == 1
        assert hypergeometric(u, size, size // 2, size) == size // 2
        assert hypergeometric(u, size, size // 2, 0) == 0


# ---------------------------------------------------------------- the bound it gives


def responses(rng, m, classes):
    """Half of the rows at ε = 3, half at 1."""
    parts = [makers.response(rng, m // 2, classes, epsilon) for epsilon in (3.0, 1.0)]
    return [np.concatenate(side) for side in zip(*parts, strict=True)]


def flat(rng, m, classes):
    labels, target, law = makers.response(rng, m, classes, 2.0)
    return labels, target, law


def smooth(rng, m, classes):
    """No two scores alike."""
    labels = rng.integers(0, classes, m)
    z = rng.normal(0, 1, (m, classes))
    z[np.arange(m), labels] += 1.0
    return labels, makers.softmax(z), np.full((m, classes), 1 / classes)


@pytest.mark.parametrize("kind", [responses, flat, smooth])
@pytest.mark.parametrize(
    ("m", "classes", "seeds"), [(20_000, 2, 16), (200_000, 2, 3), (20_000, 10, 8), (60_000, 10, 4)]
)
def test_its_bound_is_that_of_the_exact_sort(kind, m, classes, seeds):
    """The mean over seeds is within .5 %: a single one differs by the coins of the cut bin."""
    found = []
    for seed in range(seeds):
        labels, target, law = kind(np.random.default_rng(seed), m, classes)
        given = {"labels": labels, "target": target, "reference": law, "games": 15, "seed": seed}
        given["selection"] = FixedFraction(0.4)
        found.append([audit(**given).epsilon, audit(**given, exact=True).epsilon])
    sketched, exact = np.mean(found, axis=0)
    assert exact > 0.5
    assert sketched == pytest.approx(exact, rel=0.005)


# ---------------------------------------------------------------- memory

STREAM = """
import resource, sys
from bystander import audit
result = audit(sys.argv[1], labels="y", target="p", reference="q", id="id", games=2, stream_above=0)
assert result.canaries == int(sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_ten_times_the_rows_take_no_more_memory(tmp_path):
    """Two million rows against 200,000, both read batch by batch: peaks of the whole process."""
    rng, peaks = np.random.default_rng(0), []
    for n in (200_000, 2_000_000):
        y, path = rng.integers(0, 2, n), tmp_path / f"{n}.parquet"
        p = special.expit(rng.normal(0, 1, n) + 2.0 * y - 1)
        table = pa.table({"id": np.arange(n), "y": y, "p": p, "q": np.full(n, 0.5)})
        parquet.write_table(table, path, row_group_size=100_000)
        done = subprocess.run(
            [sys.executable, "-c", STREAM, path, str(n)], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout))
    assert peaks[1] < 1.15 * peaks[0]
