import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bystander import _keys

MASK = 2**64 - 1


def naive_mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def naive_text_key(text):
    try:
        number = int(text)
    except ValueError:
        number = None
    if number is not None and str(number) == text and -(2**63) <= number < 2**63:
        return naive_mix((number + 0x9E3779B97F4A7C15) & MASK)
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return naive_mix(h)


def texts(values):
    return pa.array(values, pa.large_string())


def test_mix64_is_splitmix64s_finalizer():
    x = np.random.default_rng(0).integers(0, 2**64, 100, dtype=np.uint64)
    before = x.copy()
    assert _keys.mix64(x).tolist() == [naive_mix(v) for v in x.tolist()]
    assert (x == before).all()
    # The first output of the reference SplitMix64 with seed 0.
    assert _keys.mix64(np.array([0x9E3779B97F4A7C15], np.uint64))[0] == 0xE220A8397B1DCDAF


def test_text_keys_equal_their_naive_twin():
    values = ["", "a", "b", "007", "7", "ü–漢", "x" * 1000]
    assert _keys.text_keys(texts(values)).tolist() == [naive_text_key(v) for v in values]
    assert _keys.text_keys(texts(["", ""])).tolist() == [naive_text_key("")] * 2
    assert _keys.text_keys(texts([])).size == 0


EDGES = [0, 1, -1, 7, -7, 17, 10**18, -(10**18), 2**63 - 1, -(2**63), 9 * 10**18, -(9 * 10**18), 10**9]


def test_a_text_that_spells_an_int64_has_its_key():
    rng = np.random.default_rng(0)
    numbers = np.array(EDGES + rng.integers(-(2**63), 2**63 - 1, 1000).tolist() + list(range(-200, 200)))
    keys = _keys.id_keys(pa.array(numbers))
    assert (keys == _keys.text_keys(texts([str(i) for i in numbers]))).all()
    assert keys[5] == naive_mix((17 + 0x9E3779B97F4A7C15) & MASK)
    assert len(set(keys.tolist())) == len(set(numbers.tolist()))
    assert _keys.id_keys(pa.array(numbers).slice(3, 4)).tolist() == keys[3:7].tolist()
    assert _keys.id_keys(texts(["17"]))[0] == keys[5]


def test_other_texts_are_hashed_byte_by_byte():
    odd = ["+1", "007", "-0", "-", "--1", "-01", "00", "1 ", " 1", "1.0", "1e3", "0x1", "1_0", "١", "²", "/", ":"]
    odd += [str(2**63), str(-(2**63) - 1), str(2**64), str(2**64 + 5), str(10**19), "9" * 19, "1" * 40]
    odd += ["-" + "9" * 19, "1-", "12-3"]
    plain = [naive_text_key("x" + text) for text in odd]
    assert [int(k) for k in _keys.text_keys(texts(["x" + text for text in odd]))] == plain

    def fnv(text):
        h = 0xCBF29CE484222325
        for byte in text.encode():
            h = ((h ^ byte) * 0x100000001B3) & MASK
        return naive_mix(h)

    assert _keys.text_keys(texts(odd)).tolist() == [fnv(text) for text in odd]


@given(st.text("-0123456789+x", max_size=22))
def test_any_text_has_the_key_of_its_naive_twin(text):
    assert _keys.text_keys(texts([text]))[0] == naive_text_key(text)


def test_text_keys_read_a_sliced_array():
    values = [f"user-{i}" for i in range(50)]
    assert (_keys.text_keys(texts(values).slice(7, 20)) == _keys.text_keys(texts(values[7:27]))).all()


def test_keys_stay_as_they_are():
    # A changed key changes every audit ever run: these are the keys of the first release.
    assert _keys.text_keys(texts(["17", "user-1"])).tolist() == [
        naive_text_key("17"),
        naive_text_key("user-1"),
    ]
    p = np.array([[0.75, 0.25], [0.5, 0.5]])
    h = []
    for label, row in ((0, p[0]), (1, p[1])):
        k = naive_mix((label + 0x9E3779B97F4A7C15) & MASK)
        for value in [*row, *row]:
            k = naive_mix(((k ^ int(np.float64(value).view(np.uint64))) + 0x9E3779B97F4A7C15) & MASK)
        h.append(naive_mix(k))
    assert _keys.content_keys(np.array([0, 1]), p, p).tolist() == h


def test_equal_rows_get_different_keys_in_any_order():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 300)
    p = rng.integers(0, 3, (300, 2)) / 2
    keys = _keys.content_keys(labels, p, p)
    assert len(set(keys.tolist())) == 300
    order = rng.permutation(300)
    again = _keys.content_keys(labels[order], p[order], p[order])
    rows = sorted(zip(keys.tolist(), labels.tolist(), p.tolist(), strict=True))
    assert rows == sorted(zip(again.tolist(), labels[order].tolist(), p[order].tolist(), strict=True))


def test_ties_settle_which_of_equal_rows_gets_which_key():
    labels, p, ties = np.zeros(4, np.int64), np.full((4, 2), 0.5), np.array([0, 1, 2, 3], np.int32)
    order = np.array([2, 0, 3, 1])
    keys = _keys.content_keys(labels, p, p, ties)
    assert (_keys.content_keys(labels, p, p, ties[order]) == keys[order]).all()


def test_negative_zero_is_zero():
    one = np.ones((1, 1))
    key = _keys.content_keys(np.zeros(1, np.int64), one * 0.0, one)
    assert key == _keys.content_keys(np.zeros(1, np.int64), one * -0.0, one)


def test_each_part_of_a_row_changes_its_key():
    def key(y=0, a=0.25, b=0.5):
        return _keys.content_keys(np.array([y]), np.array([[a]]), np.array([[b]])).item()

    assert len({key(), key(y=1), key(a=0.5), key(b=0.25), key(a=0.5, b=0.25)}) == 5


def test_a_repeat_is_a_repeat_of_the_id_not_of_the_hash():
    same = np.zeros(3, np.uint64)
    assert _keys.first_repeat(same, texts(["a", "b", "c"])) is None
    assert _keys.first_repeat(same, texts(["a", "b", "a"])) == (0, 2)
    assert _keys.first_repeat(np.arange(3, dtype=np.uint64), texts(["a", "b", "c"])) is None


def test_a_repeat_of_numbers():
    ids = pa.array([5, -5, 7, -5])
    assert _keys.first_repeat(_keys.id_keys(ids), ids) == (1, 3)
    assert _keys.first_repeat(_keys.id_keys(ids[:3]), ids[:3]) is None


def test_places_are_all_different():
    parts = [_keys.place_keys(file, start, 100) for file in (0, 1, 2, 10**6) for start in (0, 100, 2**40 - 100)]
    assert len(set(np.concatenate(parts).tolist())) == 1200
    assert (_keys.place_keys(3, 0, 100)[40:] == _keys.place_keys(3, 40, 60)).all()


def test_match_rows_finds_partners_and_the_lonely():
    left, right = texts(["a", "b", "c"]), texts(["c", "a", "b"])

    def match(x, y):
        return _keys.match_rows(_keys.text_keys(x), x, _keys.text_keys(y), y)

    assert match(left, right)[0].tolist() == [1, 2, 0]
    assert match(left, texts(["c", "x", "b"]))[1:] == ([0], [1])
    same = np.zeros(3, np.uint64)
    assert _keys.match_rows(same, left, same, right)[0].tolist() == [1, 2, 0]


def test_one_row_per_group_whatever_the_order():
    rng = np.random.default_rng(2)
    keys = rng.integers(0, 2**64, 100, dtype=np.uint64)
    groups = rng.integers(0, 10, 100).astype(np.int32)
    rows = _keys.one_per_group(keys, groups)
    assert sorted(groups[rows].tolist()) == list(range(10))
    assert (np.diff(rows) > 0).all()
    order = rng.permutation(100)
    again = order[_keys.one_per_group(keys[order], groups[order])]
    assert set(again.tolist()) == set(rows.tolist())


@pytest.mark.parametrize("heavy", ["numba", "pandas", "polars", "scipy", "pyarrow", "narwhals"])
def test_importing_records_loads_nothing_heavy(heavy):
    # Before bystander/__init__ runs, so that this module alone is on trial.
    folder = str(Path(_keys.__file__).parent)
    code = (
        "import sys, types; p = types.ModuleType('bystander'); "
        f"p.__path__ = [{folder!r}]; sys.modules['bystander'] = p; "
        f"import bystander.records, bystander.stream; sys.exit({heavy!r} in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
