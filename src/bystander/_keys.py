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
        h = _FNV_START
        for j in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[j])) * _FNV_PRIME
        h = (h ^ (h >> _S30)) * _MIX_1
        h = (h ^ (h >> _S27)) * _MIX_2
        out[i] = h ^ (h >> _S31)


@cache
def _hash_kernel() -> Callable[..., None]:
    from numba import njit

    kernel: Callable[..., None] = njit(cache=True, nogil=True)(_hash_rows)
    return kernel


def text_keys(texts: Any) -> NDArray[np.uint64]:
    """Hash each text of a LargeStringArray without nulls, byte by byte."""
    out = np.empty(len(texts), np.uint64)
    if len(texts) == 0:
        return out
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    # Bytes, not a buffer, where all texts are empty: the kernel is compiled for read-only arrays.
    _hash_kernel()(np.frombuffer(data if data is not None else b"\0", np.uint8), starts, out)
    return out


def content_keys(
    labels: NDArray[np.int64],
    target: NDArray[np.float64],
    reference: NDArray[np.float64],
    ties: NDArray[np.int32] | None = None,
) -> NDArray[np.uint64]:
    """Hash each row's content, and its occurrence among equal rows, so equal rows differ in key.

    `ties` orders equal rows (by their slice, say); nothing else tells them apart.
    """
    h = mix64(labels.view(np.uint64) + _GOLDEN)
    for block in (target, reference):
        for k in range(block.shape[1]):
            # Adding 0.0 makes -0.0 the same bits as 0.0.
            h = mix64((h ^ (block[:, k] + 0.0).view(np.uint64)) + _GOLDEN)
    return mix64(h + _GOLDEN * _occurrence(h, ties))


def _occurrence(h: NDArray[np.uint64], ties: NDArray[np.int32] | None) -> NDArray[np.uint64]:
    order = np.argsort(h) if ties is None else np.lexsort((ties, h))
    ranked = h[order]
    first = np.ones(h.size, np.bool_)
    np.not_equal(ranked[1:], ranked[:-1], out=first[1:])
    place = np.arange(h.size)
    number = np.empty(h.size, np.uint64)
    number[order] = place - np.maximum.accumulate(np.where(first, place, 0))
    return number


def first_repeat(keys: NDArray[np.uint64], ids: Any) -> tuple[int, int] | None:
    """The first row whose id an earlier row has, after that earlier row; None where all differ."""
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    twin = ranked[1:] == ranked[:-1]
    if not twin.any():
        return None
    # Equal hashes may still be different ids, so the ids themselves decide.
    suspects = np.unique(np.concatenate([order[1:][twin], order[:-1][twin]]))
    seen: dict[str, int] = {}
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
