"""How one number a row becomes guesses: which rows are guessed first, and what is guessed of them.

A guess reads the scores alone, never a bit, and the guesses at c' are fixed by c': so every rule is valid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bystander._validate import fraction, inside

Vector = NDArray[np.float64]
Counts = NDArray[np.int64]


class Guess(Protocol):
    """A rule that orders rows by their scores and guesses "member" or "other"."""

    @property
    def name(self) -> str:
        """How reports call it."""

    def order(self, scores: Vector, ties: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The rows in the order in which `correct` wants them; `ties` orders equal scores."""

    def correct(self, scores: Vector, member: NDArray[np.bool_], cuts: Counts) -> Counts:
        """Of rows in that order: how many of the c' strongest guesses are right, at each c'."""


@dataclass(frozen=True, slots=True)
class Tails:
    """The highest scores are guessed "member" and the lowest "other"; `upper` is the share of the former.

    This is what Steinke et al. (2023) do with k₊ and k₋. It reads ranks alone: the scores' scale is of no matter.
    """

    upper: float = 0.5

    def __post_init__(self) -> None:
        fraction("upper", self.upper, zero=True, one=True)

    @property
    def name(self) -> str:
        """Which ends are guessed."""
        if self.upper == 0.5:
            return "both ends of the scores"
        return f"the ends of the scores, {self.upper:.0%} of the guesses at the upper one"

    def order(self, scores: Vector, ties: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The highest score first."""
        return np.lexsort((ties, -scores))

    def correct(self, scores: Vector, member: NDArray[np.bool_], cuts: Counts) -> Counts:
        """⌈upper·c'⌉ from the top, the rest from the bottom."""
        top = np.array([math.ceil(self.upper * int(c) - 1e-9) for c in cuts], dtype=np.int64)
        return np.asarray(_cumulative(member)[top] + _cumulative(~member[::-1])[cuts - top])


@dataclass(frozen=True, slots=True)
class Centred:
    """Scores above `at` are guessed "member", others "other"; the farther from it, the earlier.

    `at` is fixed before the game: 0 is right for a log-likelihood ratio.
    """

    at: float = 0.0

    def __post_init__(self) -> None:
        inside("at", self.at, -math.inf, math.inf)

    @property
    def name(self) -> str:
        """The centre."""
        return f"distance of the score from {self.at:g}"

    def order(self, scores: Vector, ties: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The farthest from the centre first."""
        return np.lexsort((ties, -np.abs(scores - self.at)))

    def correct(self, scores: Vector, member: NDArray[np.bool_], cuts: Counts) -> Counts:
        """The first c'."""
        return np.asarray(_cumulative((scores > self.at) == member)[cuts])


@dataclass(frozen=True, slots=True)
class Above:
    """ "Member" for scores of at least `threshold`, the highest first; the rest are never guessed.

    How many pass is random, so c' is a cap that is fixed before: where fewer pass, the missing guesses are abstentions
    and the bound is that of c' (docs/math/algorithm3.md). Where the cap is what passes, nothing is lost.
    """

    threshold: float

    def __post_init__(self) -> None:
        inside("threshold", self.threshold, -math.inf, math.inf)

    @property
    def name(self) -> str:
        """The threshold."""
        return f"score of at least {self.threshold:g}"

    def order(self, scores: Vector, ties: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The highest score first."""
        return np.lexsort((ties, -scores))

    def correct(self, scores: Vector, member: NDArray[np.bool_], cuts: Counts) -> Counts:
        """The first c', or as many as pass."""
        passing = int(np.count_nonzero(scores >= self.threshold))
        return np.asarray(_cumulative(member)[np.minimum(cuts, passing)])


def _cumulative(right: NDArray[np.bool_]) -> Counts:
    """How many of the first 0, 1, 2 … are right."""
    total = np.zeros(len(right) + 1, dtype=np.int64)
    np.cumsum(right, out=total[1:])
    return total
