"""The paper's Algorithm 1: every privacy game in four steps, of which one alone can touch what is trained on.

S ~ D_prior are the artifacts, G_data(D, S) is trained on, G_hint(M, D, S) is told to the attacker, who gives every
canary a score. `play` follows it line by line; audits of logs do the same faster, and tests hold them to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bystander._keys import mix64
from bystander._validate import InputError

Bits = NDArray[np.bool_]
Keys = NDArray[np.uint64]
Vector = NDArray[np.float64]
S = TypeVar("S")
H = TypeVar("H", covariant=True)
O = TypeVar("O")  # noqa: E741
_TIE = np.uint64(0xD1B54A32D192ED03)


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Rows (x, y): what is public of each, what is protected of it, and a key that is its own."""

    x: NDArray[Any]
    y: NDArray[Any]
    keys: Keys

    def __post_init__(self) -> None:
        if not len(self.x) == len(self.y) == len(self.keys):
            raise InputError(
                f"x has {len(self.x):,} rows, y {len(self.y):,} and keys {len(self.keys):,}: give as many of each"
            )

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.keys)

    def take(self, rows: NDArray[Any]) -> Data:
        """These rows."""
        return Data(self.x[rows], self.y[rows], self.keys[rows])

    def copy(self) -> Data:
        """The same rows in arrays of their own."""
        return Data(self.x.copy(), self.y.copy(), self.keys.copy())

    def same(self, other: Data) -> bool:
        """Whether the other holds the same rows in the same order."""
        pairs = ((self.x, other.x), (self.y, other.y), (self.keys, other.keys))
        return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


class Game(Protocol[S, H]):
    """What the challenger does. Each method is a pure function of its arguments."""

    @property
    def name(self) -> str:
        """How results call it."""

    @property
    def stand_in(self) -> str | None:
        """What stands for the truth where the attacker is shown something else; None where nothing does."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What its bound rests on, in sentences."""

    def artifacts(self, data: Data, key: np.uint64) -> S:
        """S ~ D_prior: a fair bit for every canary, and whatever else is drawn."""

    def data(self, data: Data, drawn: S) -> Data:
        """G_data: what the mechanism is trained on."""

    def hint(self, output: Any, data: Data, drawn: S) -> H:
        """G_hint: what the attacker is told beside the mechanism's output."""

    def bits(self, drawn: S) -> Bits:
        """What the attacker guesses, one bit a canary."""


Attack = Callable[[O, H], Vector]
"""(output, hint) → a score a canary: positive guesses bit 0, the larger its size the surer."""


@dataclass(frozen=True, slots=True, eq=False)
class Ended:
    """One game: a (score, bit) for every canary, and whether the training data came back unchanged."""

    scores: Vector
    bits: Bits
    observational: bool
    key: np.uint64

    def __len__(self) -> int:
        """The number of canaries."""
        return len(self.bits)

    def correct(self, cuts: Sequence[int]) -> NDArray[np.int64]:
        """How many of the c' surest guesses are right, at each c'. Ties are broken by a hash that knows no bit."""
        ties = mix64(mix64(np.arange(len(self), dtype=np.uint64) ^ _TIE) + self.key)
        order = np.lexsort((ties, -np.abs(self.scores)))
        right = ((self.scores > 0) == ~self.bits)[order]
        return np.concatenate(([0], np.cumsum(right)))[np.asarray(cuts, dtype=np.int64)]


def play(game: Game[S, H], mechanism: Callable[[Data], O], attack: Attack[O, H], data: Data, key: np.uint64) -> Ended:
    """Algorithm 1. Whether it was observational is seen here: nobody is asked."""
    before, drawn = data.copy(), game.artifacts(data, key)
    used = game.data(data, drawn)
    left_alone = before.same(data) and before.same(used)
    output = mechanism(used)
    scores = np.asarray(attack(output, game.hint(output, data, drawn)), dtype=np.float64)
    bits = game.bits(drawn)
    if scores.shape != bits.shape or not np.isfinite(scores).all():
        raise InputError(
            f"the attack gave scores of shape {scores.shape}: give a finite one for {len(bits):,} canaries"
        )
    return Ended(scores, bits, left_alone, key)


def observational(game: Game[S, H], data: Data, keys: Keys) -> bool:
    """Whether the game, played with these keys, hands the training data back unchanged (the paper's Definition 4)."""
    before = data.copy()
    return all(before.same(game.data(data, game.artifacts(data, key))) and before.same(data) for key in keys)


def coins(keys: Keys, game: np.uint64) -> tuple[Bits, Vector]:
    """A fair bit and, apart from it, a number in [0, 1) for every row: those that the label game tosses."""
    h = mix64(keys + game)
    return (h & np.uint64(1)).astype(np.bool_), np.asarray((h >> np.uint64(11)) * 2.0**-53, dtype=np.float64)
