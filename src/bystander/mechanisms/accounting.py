"""What has been spent on a set of labels, and how much noise or how many answers a budget buys.

ε(δ) comes from closed forms where there are any, else from dp-accounting's privacy loss distributions, which round to
the safe side. Searches end on the safe side too: what they return has been checked to stay within the budget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bystander._validate import InputError, fraction, inside, whole
from bystander.mechanisms.base import Guarantee, Mechanism, Neighbours, Release, guarantee, relation
from bystander.mechanisms.losses import GaussianLoss, Losses, dp, merged


def epsilon(spent: Mechanism | Release | Guarantee, *, delta: float = 0.0, neighbours: Neighbours = "replace") -> float:
    """ε(δ) of a mechanism, a release (its prior's cost included) or a guarantee, which has its own neighbours."""
    return _promise(spent, neighbours).epsilon_at(delta)


def rdp_epsilon(spent: Mechanism | Release | Guarantee, *, delta: float, neighbours: Neighbours = "replace") -> float:
    """ε(δ) by dp-accounting's Rényi accountant, of Gaussian noise: looser than the exact one; papers report it."""
    losses = _promise(spent, neighbours).losses
    if not all(isinstance(loss, GaussianLoss) for loss, _ in losses):
        raise InputError("rdp_epsilon was given noise that is not Gaussian: use epsilon(), which is exact or by PLD")
    accountant = dp("rdp").RdpAccountant()
    for loss, times in losses:
        accountant.compose(loss.event(), times)
    return float(accountant.get_epsilon(fraction("delta", delta)))


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One release of the labels of some rows; `rows` None is all of them."""

    spent: Mechanism | Release | Guarantee
    rows: NDArray[np.int64] | None
    name: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """All that one label set has paid: sequentially on the same rows, in parallel over disjoint ones.

    Which rows an entry covers must not depend on the labels. A frozen value: `add` returns a new ledger.

    >>> from bystander.mechanisms import RandomizedResponse
    >>> rr = RandomizedResponse(epsilon=1, classes=2)
    >>> ledger = Ledger().add(rr, rows=[0, 1, 2]).add(rr, rows=[3, 4])
    >>> ledger.epsilon()
    1.0
    >>> ledger.add(rr).epsilon()
    2.0
    """

    entries: tuple[Entry, ...] = field(default=())

    def add(self, spent: Mechanism | Release | Guarantee, *, rows: ArrayLike | None = None, name: str = "") -> Ledger:
        """One more release: of all rows, or of those with these numbers. The same Release twice is drawn once."""
        if not hasattr(spent, "guarantee") and not isinstance(spent, Guarantee):
            raise InputError(f"spent is {spent!r}: give a mechanism, a Release or a Guarantee")
        if (
            isinstance(spent, Release)
            and rows is None
            and any(e.spent is spent and e.rows is None for e in self.entries)
        ):
            return self
        held: NDArray[np.int64] | None = None
        if rows is not None:
            given = np.asarray(rows)
            if given.ndim != 1 or given.dtype.kind not in "iu" or given.min(initial=0) < 0:
                raise InputError(f"rows has shape {given.shape} of {given.dtype}: give the rows' whole numbers from 0")
            held = np.unique(given.astype(np.int64))
            held.setflags(write=False)
        return Ledger((*self.entries, Entry(spent, held, name or type(spent).__name__)))

    def guarantee(self, neighbours: Neighbours, delta: float = 0.0) -> Guarantee:
        """What the row that has paid the most has paid."""
        delta, side = fraction("delta", delta, zero=True), relation(neighbours)
        losses = [_promise(entry.spent, side).losses for entry in self.entries]
        found = [
            guarantee(side, self._together(losses, kind), delta=delta, bottom="as each entry's")
            for kind in self._kinds()
        ]
        return max(found, key=lambda one: one.epsilon)

    def epsilon(self, *, delta: float = 0.0, neighbours: Neighbours = "replace") -> float:
        """ε(δ) of all entries together, for the row that has paid the most."""
        return self.guarantee(neighbours, delta).epsilon

    def _kinds(self) -> NDArray[np.bool_]:
        """Which entries the rows of each kind are in; the first kind is of rows in no list."""
        lists = [entry.rows for entry in self.entries]
        rows = [held for held in lists if held is not None]
        everyone = np.unique(np.concatenate(rows)) if rows else np.zeros(0, dtype=np.int64)
        inside_ = np.ones((len(everyone) + 1, len(lists)), dtype=bool)
        for column, held in enumerate(lists):
            if held is not None:
                inside_[:, column] = np.append(False, np.isin(everyone, held, assume_unique=True))
        return np.unique(inside_, axis=0) if lists else inside_

    @staticmethod
    def _together(losses: list[Losses], kind: NDArray[np.bool_]) -> Losses:
        return merged([losses[i] for i in np.flatnonzero(kind)])


def least_noise(
    make: Callable[[float], Mechanism],
    *,
    epsilon: float,
    delta: float = 0.0,
    neighbours: Neighbours = "replace",
    most: float = 1e6,
) -> float:
    """The least noise (σ, b) whose mechanism stays within (ε, δ), to 1e-6 and on the safe side; `make` takes the noise.

    >>> from bystander.mechanisms import ConfidentGnmax
    >>> from bystander.mechanisms.accounting import least_noise
    >>> make = lambda sigma: ConfidentGnmax(classes=10, sigma2=sigma, answers=250)
    >>> round(least_noise(make, epsilon=10, delta=1e-5), 1)
    11.2
    """
    low, high, epsilon = 0.0, 1.0, inside("epsilon", epsilon, 0, 1e6)
    while not _within(make(high), epsilon, delta, neighbours):
        low, high = high, 2 * high
        if high > most:
            raise InputError(f"epsilon is {epsilon:g}: no noise up to {most:g} is enough; give a larger ε, δ or `most`")
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _within(make(middle), epsilon, delta, neighbours) else (middle, high)
        if high < 1e-12:
            break
    return high


def most_answers(
    make: Callable[[int], Mechanism],
    *,
    epsilon: float,
    delta: float = 0.0,
    neighbours: Neighbours = "replace",
    most: int = 10**7,
) -> int:
    """The largest number of answers within (ε, δ), exactly; 0 where not even one is. `make` takes the number."""
    low, high, epsilon = 0, 1, inside("epsilon", epsilon, 0, 1e6)
    while high <= most and _within(make(high), epsilon, delta, neighbours):
        low, high = high, 2 * high
    high = min(high, whole("most", most, 1) + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _within(make(middle), epsilon, delta, neighbours) else (low, middle)
    return low


def largest_epsilon(
    make: Callable[[float], Mechanism], *, epsilon: float, delta: float = 0.0, neighbours: Neighbours = "replace"
) -> float:
    """The largest own ε of a mechanism (randomized response, ALIBI) within (ε, δ): more than ε where δ > 0 or for ⊥.

    >>> from bystander.mechanisms import RandomizedResponse
    >>> make = lambda e: RandomizedResponse(epsilon=e, classes=2)
    >>> round(largest_epsilon(make, epsilon=1.434, neighbours="label"), 2)
    2.0
    """
    low, high = 0.0, min(600.0, 2 * inside("epsilon", epsilon, 0, 600))
    while high < 600 and _within(make(high), epsilon, delta, neighbours):
        low, high = high, min(600.0, 2 * high)
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(make(middle), epsilon, delta, neighbours) else (low, middle)
    return low


def _within(mechanism: Mechanism, budget: float, delta: float, neighbours: Neighbours) -> bool:
    return epsilon(mechanism, delta=delta, neighbours=neighbours) <= budget


def _promise(spent: Mechanism | Release | Guarantee, neighbours: Neighbours) -> Guarantee:
    if not isinstance(spent, Guarantee):
        return spent.guarantee(relation(neighbours))
    if spent.neighbours != relation(neighbours):
        raise InputError(
            f'neighbours is "{neighbours}" and a guarantee is for "{spent.neighbours}": give the mechanism'
        )
    return spent
