"""Observational games as Algorithm 1: labels, any protected attribute, membership beside fresh rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bystander.games.game import Bits, Data, Vector, coins
from bystander.games.membership import Pairs, Scored

Draw = Callable[[NDArray[Any], Vector], NDArray[Any]]
"""(x, a coin in [0, 1) a row) → y¹ ~ D'(·|x), one a row."""


def by_law(law: Callable[[NDArray[Any]], NDArray[np.float64]]) -> Draw:
    """Values 0…K−1 by their law: x → (rows, K). With a reference model it makes the label game."""

    def draw(x: NDArray[Any], coin: Vector) -> NDArray[Any]:
        return np.asarray((coin[:, None] >= np.cumsum(law(x), axis=1)[:, :-1]).sum(axis=1))

    return draw


@dataclass(frozen=True, slots=True)
class Imputed:
    """Algorithm 2: the true y, or one drawn given x, by a fair coin. Labels are the case where y is the label."""

    draw: Draw
    name: str = "attribute"
    stand_in: str = "sampler"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What Lemma 1 asks for: docs/games/attribute.md."""
        return (
            "Given what is public of it, what is protected of one row is drawn independently of the other rows.",
            f"The {self.stand_in} stands for the truth: without the target, what it draws cannot be told from true "
            "values (τ = 0). Where it falls short, its error reads like memorisation.",
        )

    def artifacts(self, data: Data, key: np.uint64) -> tuple[Bits, NDArray[Any]]:
        """(b, y¹)."""
        b, coin = coins(data.keys, key)
        return b, np.asarray(self.draw(data.x, coin))

    def data(self, data: Data, drawn: tuple[Bits, NDArray[Any]]) -> Data:
        """What was there."""
        return data

    def hint(self, output: Any, data: Data, drawn: tuple[Bits, NDArray[Any]]) -> Data:
        """(x, yᵇ)."""
        b, other = drawn
        shown = np.where(b.reshape(-1, *(1,) * (data.y.ndim - 1)), other, data.y)
        return Data(data.x, shown, data.keys)

    def bits(self, drawn: tuple[Bits, NDArray[Any]]) -> Bits:
        """b."""
        return drawn[0]


@dataclass(frozen=True, slots=True)
class Beside:
    """Membership: each row of the training set has a fresh row beside it, and a fair coin shows one of the two."""

    fresh: Data
    seed: int = 0
    name: str = "membership"
    stand_in: str = "held-out set"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What Lemma 1 asks for: docs/games/membership.md."""
        return (
            "Members and others were drawn independently, or are a random split of one set. They were paired at "
            "random, and a coin tossed after training shows one of each pair.",
        )

    def artifacts(self, data: Data, key: np.uint64) -> tuple[Bits, NDArray[np.int64], NDArray[np.int64]]:
        """(b, the member, the fresh row) of every pair."""
        members, others = (Scored(np.arange(len(each), dtype=np.float64), each.keys) for each in (data, self.fresh))
        pairs = Pairs.of(members, others, self.seed)
        mine, other = pairs.scores.astype(np.int64)
        return coins(pairs.keys, key)[0], mine, other

    def data(self, data: Data, drawn: object) -> Data:
        """What was there."""
        return data

    def hint(self, output: Any, data: Data, drawn: tuple[Bits, NDArray[np.int64], NDArray[np.int64]]) -> Data:
        """The rows shown."""
        b, mine, other = drawn
        one, two = data.take(mine), self.fresh.take(other)

        def pick(name: str) -> NDArray[Any]:
            first, second = getattr(one, name), getattr(two, name)
            return np.asarray(np.where(b.reshape(-1, *(1,) * (first.ndim - 1)), second, first))

        return Data(pick("x"), pick("y"), pick("keys"))

    def bits(self, drawn: tuple[Bits, NDArray[np.int64], NDArray[np.int64]]) -> Bits:
        """b."""
        return drawn[0]
