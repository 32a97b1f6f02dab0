"""Interventional games as Algorithm 1: coins that decide before training who is in it, or which label is planted.

Everything is a pure function of (key, row key): a training pipeline of any number of workers can ask for its own rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bystander._keys import mix64
from bystander._validate import InputError, fraction, whole
from bystander.games.game import Bits, Data, Keys, Vector, coins

_CHOSEN, _FIRST, _SECOND = np.uint64(0xA24BAED4963EE407), np.uint64(0x9FB21C651E98DF25), np.uint64(0xC2B2AE3D27D4EB4F)
# Salts of the two games: under one seed they share neither canaries nor coins.
LEFT_OUT, PLANTED = np.uint64(0x27D4EB2F165667C5), np.uint64(0x165667B19E3779F9)


def chosen(keys: Keys, salt: np.uint64, share: float) -> Bits:
    """Which rows are canaries: about that share of them, the same ones in every game."""
    return np.asarray(_uniform(keys, salt, _CHOSEN) < share)


@dataclass(frozen=True, slots=True)
class Inclusion:
    """Membership in one run (Steinke et al. 2023): a fair coin for each canary decides whether it is trained on.

    Rows that are no canaries are always trained on.
    """

    share: float = 1.0
    name: str = "membership-one-run"
    stand_in: None = None

    def __post_init__(self) -> None:
        fraction("share", self.share, one=True)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What Lemma 1 asks for: docs/games/membership.md."""
        return (
            "A fair coin, tossed independently for every canary before training, decided whether it was trained on.",
        )

    def artifacts(self, data: Data, key: np.uint64) -> tuple[Bits, Bits]:
        """(canary?, left out?) of every row."""
        canary = chosen(data.keys, LEFT_OUT, self.share)
        return canary, canary & coins(data.keys, key)[0]

    def data(self, data: Data, drawn: tuple[Bits, Bits]) -> Data:
        """All rows but those left out."""
        return data.take(~drawn[1])

    def hint(self, output: Any, data: Data, drawn: tuple[Bits, Bits]) -> Data:
        """The canaries."""
        return data.take(drawn[0])

    def bits(self, drawn: tuple[Bits, Bits]) -> Bits:
        """Whether each canary was left out."""
        canary, out = drawn
        return out[canary]


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Canaries and two labels for each, of which one was planted."""

    rows: Data
    first: NDArray[np.int64]
    second: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Planting:
    """Label canaries (Malek et al. 2021): of two random labels, a fair coin decides which the canary is trained with.

    With three classes or more both are wrong: a model that generalises likes neither. With two they are 0 and 1.
    """

    classes: int
    share: float
    name: str = "label-canaries"
    stand_in: None = None

    def __post_init__(self) -> None:
        whole("classes", self.classes, 2)
        fraction("share", self.share, one=True)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What Lemma 1 asks for: docs/games/label-canaries.md."""
        return (
            "A fair coin, tossed independently for every canary before training, decided which of two labels it was "
            "trained with.",
        )

    def artifacts(self, data: Data, key: np.uint64) -> tuple[Bits, Bits, NDArray[np.int64], NDArray[np.int64]]:
        """(canary?, the second planted?, first label, second label) of every row."""
        y, k = data.y.astype(np.int64), self.classes
        if len(y) and not (y.min() >= 0 and y.max() < k):
            raise InputError(f"labels hold {int(y.max() if y.max() >= k else y.min())}: give whole numbers 0…{k - 1}")
        key = mix64(np.array([key]) ^ PLANTED)[0]
        b, canary = coins(data.keys, key)[0], chosen(data.keys, PLANTED, self.share)
        if k == 2:
            return canary, b, np.zeros_like(y), np.ones_like(y)
        one = (_uniform(data.keys, key, _FIRST) * (k - 1)).astype(np.int64)  # a place among the wrong labels
        two = (_uniform(data.keys, key, _SECOND) * (k - 2)).astype(np.int64)  # among those but the first
        two += two >= one
        first, second = (place + (place >= y) for place in (one, two))
        return canary, b, first, second

    def data(self, data: Data, drawn: tuple[Bits, Bits, NDArray[np.int64], NDArray[np.int64]]) -> Data:
        """All rows; canaries with the label that was planted."""
        canary, b, first, second = drawn
        planted = np.where(canary, np.where(b, second, first), data.y)
        return Data(data.x, planted.astype(data.y.dtype), data.keys)

    def hint(self, output: Any, data: Data, drawn: tuple[Bits, Bits, NDArray[np.int64], NDArray[np.int64]]) -> Pair:
        """The canaries with both labels; which is their own is no secret."""
        canary, _, first, second = drawn
        return Pair(data.take(canary), first[canary], second[canary])

    def bits(self, drawn: tuple[Bits, Bits, NDArray[np.int64], NDArray[np.int64]]) -> Bits:
        """Whether the second label was planted."""
        return drawn[1][drawn[0]]


def _uniform(keys: Keys, key: np.uint64, salt: np.uint64) -> Vector:
    """A number in [0, 1) a row: apart from its coin."""
    return np.asarray((mix64(mix64(keys + key) ^ salt) >> np.uint64(11)) * 2.0**-53)
