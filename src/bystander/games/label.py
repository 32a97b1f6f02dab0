"""The paper's Algorithm 2 for labels: a fair bit b, y¹ ~ Multinoulli(M'(x)), shown label y^b.

Every coin is a hash of (seed, game, row key): any order, any partition and any engine toss the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bystander.counts import BINS, Ranking, Sketch, Tally, codes, rank
from bystander.records import Records

_MASK = (1 << 64) - 1


def game_keys(seed: int, games: int) -> NDArray[np.uint64]:
    """The keys under which games hash their rows."""

    def mix(x: int) -> int:
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
        return x ^ (x >> 31)

    start = mix((seed + 1) & _MASK)
    return np.array([mix((start + (g + 1) * 0x9E3779B97F4A7C15) & _MASK) for g in range(games)], dtype=np.uint64)


def thresholds(reference: NDArray[np.float64]) -> NDArray[np.uint64]:
    """(classes − 1, rows): cumulative M'(x) in units of 2⁻⁵³; y¹ is how many of them a 53-bit coin reaches."""
    if reference.shape[1] == 2:
        return np.ceil(reference[:, 0] * 2.0**53).astype(np.uint64)[None]
    return np.ascontiguousarray(np.ceil(np.cumsum(reference[:, :-1], axis=1).T * 2.0**53).astype(np.uint64))


def play(records: Records, scores: NDArray[np.float64], games: NDArray[np.uint64], into: Sketch) -> None:
    """Play every game on a batch and add what came of it to a sketch."""
    from bystander._play import tally_binary, tally_classes

    bins = np.zeros((len(games), BINS), dtype=np.uint64)
    labels, coded, cumulative = records.labels.astype(np.uint64), codes(scores), thresholds(records.reference)
    if records.classes == 2:
        zero, one = np.ascontiguousarray(coded[:, 0]), np.ascontiguousarray(coded[:, 1])
        tally_binary(games, records.keys, cumulative[0], labels, zero, zero ^ one, bins)
    else:
        tally_classes(games, records.keys, cumulative, labels, coded, bins)
    into.absorb(bins)


@dataclass(frozen=True, slots=True, eq=False)
class ExactGame:
    """The game with its scores sorted exactly, for rows that fit in memory."""

    keys: NDArray[np.uint64]
    labels: NDArray[np.int64]
    thresholds: NDArray[np.uint64]
    ranking: Ranking

    @classmethod
    def of(cls, records: Records, scores: NDArray[np.float64]) -> ExactGame:
        """Rank every (row, shown label); how often each is expected is guessed without reading labels."""
        expected = (records.target + records.reference) / 2
        return cls(records.keys, records.labels, thresholds(records.reference), rank(scores, expected))

    def play(self, cuts: tuple[int, ...], game: np.uint64, tally: NDArray[np.int64]) -> None:
        """Play one game and count, at every cut, how many of the strongest guesses are right."""
        from bystander._play import RANKS
        from bystander._play import play as kernel

        kernel(
            game, self.keys, self.labels, self.thresholds, self.ranking.place, self.ranking.spread,
            np.asarray(cuts, dtype=np.int64), np.empty(len(self.keys), dtype=np.uint64),
            np.empty(RANKS, dtype=np.int64), tally,
        )  # fmt: skip


def play_exactly(
    records: Records, scores: NDArray[np.float64], games: NDArray[np.uint64], cuts: tuple[int, ...]
) -> Tally:
    """Every game in turn, exactly."""
    game = ExactGame.of(records, scores)
    correct = np.zeros((len(games), len(cuts)), dtype=np.int64)
    for g, key in enumerate(games):
        game.play(cuts, key, correct[g])
    return Tally(len(records), np.asarray(cuts, dtype=np.int64), correct)
