"""One 64-bit key per row, whatever the file format, the order of the rows or the files they sit in."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_FNV_START = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)
_TEN = np.uint64(10)
_ZERO, _MINUS_ZERO = np.uint64(0), np.uint64(2**63)  # the bits of 0.0 and of -0.0
_INT64_MAX = np.uint64(2**63 - 1)


def mix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble each number one to one: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014)."""
    z = x ^ (x >> _S30)
    z *= _MIX_1
    z ^= z >> _S27
    z *= _MIX_2
    z ^= z >> _S31
    return z


def _hash_rows(data: NDArray[np.uint8], offsets: NDArray[np.int64], out: NDArray[np.uint64]) -> None:
    # FNV-1a over the bytes, then SplitMix64's finalizer. Compiled by Numba, so every operand is a uint64.
    for i in range(out.size):
        start, end = offsets[i], offsets[i + 1]
        minus = end > start and data[start] == 45
        first = start + 1 if minus else start
        h, whole = _FNV_START, np.uint64(0)
        # A text that Python's str() of an int64 would give is that number: "0", "-12", not "+1" or "007".
        decimal = 0 < end - first <= 19 and (data[first] != 48 or (end - first == 1 and not minus))
        for j in range(start, end):
            h = (h ^ np.uint64(data[j])) * _FNV_PRIME
            if j >= first:
                decimal &= 48 <= data[j] <= 57
                whole = whole * _TEN + np.uint64(data[j] - 48)
        if decimal and whole <= _INT64_MAX + np.uint64(minus):
            h = (~whole + np.uint64(1) if minus else whole) + _GOLDEN
        h = (h ^ (h >> _S30)) * _MIX_1
        h = (h ^ (h >> _S27)) * _MIX_2
        out[i] = h ^ (h >> _S31)


def _mix_rows(values: NDArray[np.uint64], out: NDArray[np.uint64]) -> None:
    for i in range(out.size):
        h = values[i] + _GOLDEN
        h = (h ^ (h >> _S30)) * _MIX_1
        h = (h ^ (h >> _S27)) * _MIX_2
        out[i] = h ^ (h >> _S31)


def _hash_contents(
    labels: NDArray[np.uint64], target: NDArray[np.uint64], reference: NDArray[np.uint64], out: NDArray[np.uint64]
) -> None:
    for i in range(out.size):
        h = labels[i] + _GOLDEN
        h = (h ^ (h >> _S30)) * _MIX_1
        h = (h ^ (h >> _S27)) * _MIX_2
        h ^= h >> _S31
        for k in range(target.shape[1] + reference.shape[1]):
            bits = target[i, k] if k < target.shape[1] else reference[i, k - target.shape[1]]
            h = (h ^ (bits if bits != _MINUS_ZERO else _ZERO)) + _GOLDEN
            h = (h ^ (h >> _S30)) * _MIX_1
            h = (h ^ (h >> _S27)) * _MIX_2
            h ^= h >> _S31
        out[i] = h


@cache
def _compiled(rows: Callable[..., None]) -> Callable[..., None]:
    from numba import njit

    kernel: Callable[..., None] = njit(cache=True, nogil=True)(rows)
    return kernel


def id_keys(ids: Any) -> NDArray[np.uint64]:
    """A key per id, of int64 or text without nulls: 17 and "17" have the same."""
    import pyarrow as pa

    if not pa.types.is_int64(ids.type):
        return text_keys(ids)
    return integer_keys(ids.to_numpy())


def integer_keys(values: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Scramble whole numbers one to one."""
    out = np.empty(values.size, np.uint64)
    _compiled(_mix_rows)(values.view(np.uint64), out)
    return out


def text_keys(texts: Any) -> NDArray[np.uint64]:
    """Hash each text of a LargeStringArray without nulls, byte by byte; one that spells an int64, as that number."""
    out = np.empty(len(texts), np.uint64)
    if len(texts) == 0:
        return out
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    # Bytes, not a buffer, where all texts are empty: the kernel is compiled for read-only arrays.
    _compiled(_hash_rows)(np.frombuffer(data if data is not None else b"\0", np.uint8), starts, out)
    return out


def place_keys(file: int, start: int, rows: int) -> NDArray[np.uint64]:
    """Keys of rows without ids, by where they stand: all different below 2²³ files of 2⁴⁰ rows."""
    return integer_keys(np.arange(start, start + rows, dtype=np.int64) + (file << 40))


def content_keys(
    labels: NDArray[np.int64],
    target: NDArray[np.float64],
    reference: NDArray[np.float64],
    ties: NDArray[np.int32] | None = None,
) -> NDArray[np.uint64]:
    """Hash each row's content, and its occurrence among equal rows, so equal rows differ in key.

    `ties` orders equal rows (by their slice, say); nothing else tells them apart.
    """
    h = np.empty(labels.size, np.uint64)
    blocks = (np.ascontiguousarray(block).view(np.uint64) for block in (target, reference))
    _compiled(_hash_contents)(labels.view(np.uint64), *blocks, h)
    occurrence = _occurrence(h, ties)
    if occurrence is not None:
        h += _GOLDEN * occurrence
    return mix64(h)


def _occurrence(h: NDArray[np.uint64], ties: NDArray[np.int32] | None) -> NDArray[np.uint64] | None:
    """The number of equal rows before each; None where all differ."""
    ranked = np.sort(h)
    if not (ranked[1:] == ranked[:-1]).any():
        return None
    order = np.argsort(h) if ties is None else np.lexsort((ties, h))
    ranked = h[order]
    first = np.ones(h.size, np.bool_)
    np.not_equal(ranked[1:], ranked[:-1], out=first[1:])
    place = np.arange(h.size)
    number = np.empty(h.size, np.uint64)
    number[order] = place - np.maximum.accumulate(np.where(first, place, 0))
    return number


def alike(ids: list[Any]) -> list[Any]:
    """Arrays of ids in one type: as they are, or all as text."""
    if all(part.type == ids[0].type for part in ids):
        return ids
    import pyarrow as pa

    return [part.cast(pa.large_string()) for part in ids]


def first_repeat(keys: NDArray[np.uint64], ids: Any) -> tuple[int, int] | None:
    """The first row whose id an earlier row has, after that earlier row; None where all differ."""
    ranked = np.sort(keys)
    if not (ranked[1:] == ranked[:-1]).any():
        return None
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    twin = ranked[1:] == ranked[:-1]
    # Equal hashes may still be different ids, so the ids themselves decide.
    suspects = np.unique(np.concatenate([order[1:][twin], order[:-1][twin]]))
    seen: dict[str | int, int] = {}
    for row, text in zip(suspects.tolist(), ids.take(suspects).to_pylist(), strict=True):
        if text in seen:
            return seen[text], row
        seen[text] = row
    return None


def match_rows(
    left: NDArray[np.uint64], left_ids: Any, right: NDArray[np.uint64], right_ids: Any
) -> tuple[NDArray[np.int64], list[int], list[int]]:
    """For each left row the right row of the same id, and the rows of each side that have none.

    Ids are unique on each side. Where some row has no partner, the first answer is empty.
    """
    left_ids, right_ids = alike([left_ids, right_ids])
    a, b = np.argsort(left), np.argsort(right)
    if left.size == right.size and (left[a] == right[b]).all() and left_ids.take(a).equals(right_ids.take(b)):
        partner = np.empty(left.size, np.int64)
        partner[a] = b
        return partner, [], []
    # An id is missing, or two ids share a hash: settle it by the ids themselves.
    here, there = left_ids.to_pylist(), {text: row for row, text in enumerate(right_ids.to_pylist())}
    lonely = [row for row, text in enumerate(here) if text not in there]
    known = set(here)
    extra = [row for text, row in there.items() if text not in known]
    found = [] if lonely or extra else [there[text] for text in here]
    return np.array(found, np.int64), lonely, extra


def one_per_group(keys: NDArray[np.uint64], groups: NDArray[np.int32]) -> NDArray[np.int64]:
    """Of each group the row with the smallest mixed key, as ascending row numbers; no label is read."""
    order = np.lexsort((mix64(keys ^ _GOLDEN), groups))
    ranked = groups[order]
    first = np.ones(ranked.size, np.bool_)
    np.not_equal(ranked[1:], ranked[:-1], out=first[1:])
    return np.sort(order[first])
