"""What every label-DP mechanism is: keyword-built, drawn once into a Release, with its Guarantee beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bystander._validate import InputError, fraction
from bystander.mechanisms.losses import (
    Losses,
    ResponseLoss,
    compose,
    composed_event,
    composed_mu,
    composed_pld,
)
from bystander.tradeoff import ApproxDP, Family, Gaussian, Pure

Neighbours = Literal["replace", "label"]
Rng = np.random.Generator | int | None
Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a mechanism promises about one label.

    `neighbours`: "replace" is (x, y) → (x, y′); "label" is (x, y) → (x, ⊥), and `bottom` says what ⊥ is. `parameter` is
    the mechanism's own in `family`: where `exact`, its f is that member; elsewhere its f lies above it.
    """

    neighbours: Neighbours
    epsilon: float
    delta: float
    family: Family
    parameter: float
    exact: bool
    losses: Losses
    bottom: str = ""

    def epsilon_at(self, delta: float) -> float:
        """ε at another δ; never understated."""
        return compose(self.losses, fraction("delta", delta, zero=True))

    def pld(self) -> Any:
        """dp-accounting's privacy loss distribution (pessimistic)."""
        return composed_pld(self.losses)

    def event(self) -> Any:
        """dp-accounting's event, or None where it has none (then use `pld()`).

        Randomized response's is for REPLACE_ONE (neighbours "replace") or REPLACE_SPECIAL ("label"). Laplace's and
        Gaussian's already hold the sensitivity: account them under ADD_OR_REMOVE_ONE, whatever the neighbours.
        """
        return composed_event(self.losses)


def guarantee(
    neighbours: Neighbours,
    losses: Losses,
    *,
    delta: float = 0.0,
    family: Family | None = None,
    parameter: float | None = None,
    exact: bool = False,
    bottom: str = "",
) -> Guarantee:
    """A Guarantee whose ε is composed here; without a family it is the (ε, δ) or, for Gaussian noise, the μ one."""
    epsilon, mu = compose(losses, delta), composed_mu(losses)
    if family is None and mu and delta > 0 and losses:
        family, parameter = Gaussian(delta), mu
    if family is None:
        family = Pure() if delta == 0 else ApproxDP(delta)
    told = bottom if neighbours == "label" else ""
    return Guarantee(
        neighbours, epsilon, delta, family, epsilon if parameter is None else parameter, exact, losses, told
    )


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """What is believed of each label before it is released: (rows, classes), and what learning it has cost.

    `epsilon` is the replacement ε paid on the *same* labels: 0 for a model that never saw them. Where it was counted on
    them, `counted` says on how many, for each row: without that, no correction believes it.
    """

    probabilities: Matrix
    epsilon: float = 0.0
    source: str = "given"
    counted: Labels | None = None

    def losses(self, neighbours: Neighbours) -> Losses:
        """ε, or half of it against ⊥ (the row leaves the histogram: L1 sensitivity 1, not 2)."""
        if self.epsilon == 0:
            return ()
        return ((ResponseLoss(self.epsilon if neighbours == "replace" else self.epsilon / 2, 2), 1),)


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """What has left the private side, drawn once. All that is done with it later is free; to draw again is not.

    `output` and `prior` are read-only. `sizes` (k of each row) and `stages` are there where the mechanism has them.
    """

    output: NDArray[Any]
    mechanism: Mechanism
    rows: int
    prior: Prior | None = None
    sizes: Labels | None = None
    stages: Labels | None = None

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        held = (self.output, self.sizes, self.stages, None if self.prior is None else self.prior.probabilities)
        for array in held:
            if array is not None:
                array.setflags(write=False)

    def posterior(self, prior: ArrayLike | Prior | None = None) -> Matrix:
        """(rows, classes): the law of each label given the output."""
        return self.mechanism.posterior(self, prior)

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """The mechanism's, and what the prior has cost on the same labels."""
        mine = self.mechanism.guarantee(neighbours)
        if self.prior is None or self.prior.epsilon == 0:
            return mine
        told = f"{mine.bottom}; the row left out of the prior's histogram"
        return guarantee(neighbours, mine.losses + self.prior.losses(neighbours), delta=mine.delta, bottom=told)


class Mechanism(Protocol):
    """A label-DP mechanism: a frozen value, built by keyword."""

    def randomize(self, y: Any, prior: Any = None, rng: Rng = None) -> Release:
        """Draw the release. Without `rng`, from the operating system's entropy."""

    def posterior(self, release: Release, prior: ArrayLike | Prior | None = None) -> Matrix:
        """(rows, classes): the law of each label given what was released."""

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """Its privacy under this relation."""

    def tradeoff(self, neighbours: Neighbours) -> Callable[[ArrayLike], Matrix]:
        """Its trade-off function f(α)."""


def relation(neighbours: str) -> Neighbours:
    """Check the name of a neighbouring relation."""
    if neighbours == "replace":
        return "replace"
    if neighbours == "label":
        return "label"
    raise InputError(f'neighbours is {neighbours!r}: give "replace" ((x, y) → (x, y′)) or "label" ((x, y) → (x, ⊥))')


def read_labels(y: object, classes: int) -> Labels:
    """The private labels, read once: whole numbers from 0 to classes − 1."""
    given = np.asarray(y)
    if given.ndim != 1 or given.size == 0:
        raise InputError(f"y has shape {given.shape}: give one label a row")
    try:
        with np.errstate(invalid="ignore"):
            labels = given.astype(np.int64)
        same = given.dtype.kind in "biuf" and bool((labels == given).all())
    except (TypeError, ValueError):
        same = False
    if not same or labels.min() < 0 or labels.max() >= classes:
        raise InputError(f"y has labels that are not among the {classes} classes: give whole numbers 0…{classes - 1}")
    return labels


def read_prior(prior: ArrayLike | Prior, classes: int, rows: int | None = None) -> Prior:
    """A prior as (rows, classes) that adds up to 1; one row of it stands for all."""
    try:
        held = prior if isinstance(prior, Prior) else Prior(np.asarray(prior, dtype=np.float64))
        p = np.atleast_2d(np.asarray(held.probabilities, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError(
            f"prior is a {type(prior).__name__} of no numbers: give (rows, {classes}) probabilities"
        ) from None
    if p.ndim != 2 or p.shape[1] != classes or (rows is not None and p.shape[0] not in (1, rows)):
        raise InputError(f"prior has shape {p.shape}: give {'one row' if rows is None else rows} × {classes} classes")
    total = p.sum(axis=1)
    bad = ~((p >= 0).all(axis=1) & (np.abs(total - 1) <= 1e-4))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"prior, row {row} adds up to {total[row]:g}: give probabilities of at least 0 that add up to 1"
        )
    p = np.where(np.abs(total - 1)[:, None] > 1e-9, p / total[:, None], p)  # twice the same: ties stay ties
    if held.counted is not None and np.shape(held.counted) != p.shape[:1]:
        raise InputError(f"counted has shape {np.shape(held.counted)}: give one number for each of {len(p)} rows")
    whole = np.repeat(p, rows, axis=0) if rows is not None and len(p) == 1 else p
    return Prior(whole, held.epsilon, held.source, held.counted)


def generator(rng: Rng) -> np.random.Generator:
    """The caller's generator or seed; else the operating system's entropy. Never the global state."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputError(f"rng is {rng!r}: give a NumPy Generator, a whole number of at least 0, or None") from None


def softmax(logits: Matrix) -> Matrix:
    """Along the last axis, without overflow."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


__all__ = ["Guarantee", "Mechanism", "Neighbours", "Prior", "Release", "guarantee"]
