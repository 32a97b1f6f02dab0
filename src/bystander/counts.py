"""What a game leaves behind: ranks on the way, counts at the end. Nothing here knows what was guessed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
        return Tally(self.canaries, self.guesses[where], self.correct[:, where])


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Every possible (row, version) of a game, placed by |score| on [0, 2³²), the strongest highest.

    Versions of one |score| share an interval as wide as their expected number; a game spreads its rows over it by a
    hash that does not read b. So ranks are nearly uniform, and a histogram of their high bits cuts almost exactly.
    """

    place: NDArray[np.uint32]  # (rows, versions): where the interval begins
    spread: NDArray[np.uint32]  # (rows, versions): half its width, doubled; the lowest bit is the guess "true"


def rank(scores: NDArray[np.float64], weights: NDArray[np.float64]) -> Ranking:
    """Rank versions by |score|; the guess is its sign. `weights` says how often a version is expected."""
    size = np.abs(scores).ravel()
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
