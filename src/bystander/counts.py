"""What games leave behind: a sketch that adds up, or exact ranks; and the counts that either is cut into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bystander._validate import InputError

Matrix = NDArray[np.float64]

BINS = 4096
_LOWEST = (1023 - 24) << 7  # a float's exponent and seven bits of mantissa at 2⁻²⁴: below it all is one bin


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Of the `guesses[k]` strongest of `canaries` rows, `correct[g, k]` were right in game g."""

    canaries: int
    guesses: NDArray[np.int64]
    correct: NDArray[np.int64]

    @property
    def games(self) -> int:
        """How many games were played."""
        return len(self.correct)

    def at(self, guesses: tuple[int, ...]) -> Tally:
        """The same tally at some of its cuts."""
        where = np.searchsorted(self.guesses, guesses)
        if not np.array_equal(self.guesses[np.minimum(where, len(self.guesses) - 1)], guesses):
            raise ValueError(f"not every cut of {guesses} was counted")
        return Tally(self.canaries, self.guesses[where], self.correct[:, where])


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """For each game, how many guesses fell in each bin of |score|, and how many of them were right.

    The bins are fixed (128 to the octave, from 2⁻²⁴ to 2⁸), so sketches of any parts of the rows add up exactly to the
    sketch of the whole. Inside a bin, guesses are ordered at random.
    """

    rows: NDArray[np.int64]  # (games, BINS)
    right: NDArray[np.int64]

    @classmethod
    def empty(cls, games: int) -> Sketch:
        """No rows yet."""
        return cls(np.zeros((games, BINS), dtype=np.int64), np.zeros((games, BINS), dtype=np.int64))

    @property
    def canaries(self) -> int:
        """How many rows every game was played on."""
        return int(self.rows[0].sum())

    def __add__(self, other: Sketch) -> Sketch:
        return Sketch(self.rows + other.rows, self.right + other.right)

    def absorb(self, bins: NDArray[np.uint64]) -> None:
        """Add a batch's packed bins in place: rows in the low half, right guesses in the high one."""
        np.add(self.rows, (bins & np.uint64(0xFFFFFFFF)).view(np.int64), out=self.rows)
        np.add(self.right, (bins >> np.uint64(32)).view(np.int64), out=self.right)

    def tally(self, cuts: Sequence[int], games: NDArray[np.uint64]) -> Tally:
        """Cut every game at every c'; `games` are the games' keys."""
        from bystander._play import cut_sketch

        guesses = np.asarray(cuts, dtype=np.int64)
        correct = np.zeros((len(games), len(guesses)), dtype=np.int64)
        for g, key in enumerate(games):
            cut_sketch(key, self.rows[g], self.right[g], guesses, correct[g])
        return Tally(self.canaries, guesses, correct)


def codes(scores: Matrix) -> NDArray[np.uint64]:
    """The bin of each |score|, doubled, and in the lowest bit the guess: its sign."""
    bins = (np.abs(scores).view(np.int64) >> np.int64(45)) - _LOWEST
    np.clip(bins, 0, BINS - 1, out=bins)
    bins <<= 1
    bins |= scores > 0
    return bins.view(np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Every possible (row, version) of a game, placed by |score| on [0, 2³²), the strongest highest: for exact counts.

    Versions of one |score| share an interval as wide as their expected number; a game spreads its rows over it by a
    hash that does not read b. So ranks are nearly uniform, and a histogram of their high bits cuts almost exactly.
    """

    place: NDArray[np.uint32]  # (rows, versions): where the interval begins
    spread: NDArray[np.uint32]  # (rows, versions): half its width, doubled; the lowest bit is the guess "true"


def rank(scores: Matrix, weights: Matrix) -> Ranking:
    """Rank versions by |score|; the guess is its sign. `weights` says how often a version is expected."""
    size = np.abs(scores).ravel()
    if size.size > 2**30:
        raise InputError(f"{size.size:,} scores are too many to sort exactly: use the sketch")
    order = np.argsort(size)
    size = size[order]
    first = np.flatnonzero(np.concatenate(([True], size[1:] != size[:-1])))
    expected = np.add.reduceat(weights.ravel()[order], first)
    width = 2 + (expected * ((2**32 - 1 - 2 * len(first)) / expected.sum())).astype(np.int64)
    begin = np.concatenate(([0], np.cumsum(width)[:-1]))
    runs = np.diff(np.append(first, len(size)))
    place = np.empty(len(size), dtype=np.uint32)
    spread = np.empty(len(size), dtype=np.uint32)
    place[order] = np.repeat(begin, runs)
    spread[order] = np.repeat(width >> 1 << 1, runs)
    spread |= (scores.ravel() > 0).astype(np.uint32)
    return Ranking(place.reshape(scores.shape), spread.reshape(scores.shape))
