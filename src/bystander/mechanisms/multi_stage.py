"""LP-MST's release schedule (Ghazi et al. 2021): each stage's model is the next stage's prior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bystander._validate import InputError, inside, whole
from bystander.mechanisms.base import (
    Guarantee,
    Labels,
    Matrix,
    Neighbours,
    Prior,
    Release,
    Rng,
    generator,
    read_labels,
    read_prior,
)
from bystander.mechanisms.losses import response
from bystander.mechanisms.polygon import Polygon
from bystander.mechanisms.priors import normalised, sharpened
from bystander.mechanisms.rr_with_prior import RRWithPrior, draw, posterior


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """What a stage's model may see: the noisy labels of the rows so far, and the rows to predict next."""

    number: int
    seen: Labels
    noisy: Labels
    rows: Labels


Predict = Callable[[Stage], ArrayLike]


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiStage:
    """Rows split without looking at y; stage 0 by RR(ε), stage t by RRWithPrior(ε) on fresh rows alone.

    `shares` are the stages' parts of the rows (two of them: LP-2ST). `denoise` takes stage 0's noise out of the first
    prediction, p̃·T⁻¹, before the temperature: a calibrated model of noisy labels never reaches k = 1 otherwise.
    ⊥: uniform on the row's top k* (all labels, in stage 0).
    """

    epsilon: float
    classes: int
    shares: tuple[float, ...] = (0.6, 0.4)
    temperature: float = 0.5
    denoise: bool = True
    min_k: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", inside("epsilon", self.epsilon, 0, 700))
        object.__setattr__(self, "classes", whole("classes", self.classes, 2, 1_000_000))
        object.__setattr__(self, "min_k", whole("min_k", self.min_k, 1, self.classes))
        if not isinstance(self.shares, (tuple, list)):
            raise InputError(f"shares is {self.shares!r}: give a tuple of each stage's share of the rows")
        object.__setattr__(self, "shares", tuple(inside("shares", share, 0, 1) for share in self.shares))
        inside("temperature", self.temperature, 0, 1e6)
        if abs(sum(self.shares) - 1) > 1e-9:
            raise InputError(
                f"shares is {self.shares}, which adds up to {sum(self.shares):g}: give shares that add up to 1"
            )

    @property
    def one_stage(self) -> RRWithPrior:
        """What a row of any later stage goes through."""
        return RRWithPrior(epsilon=self.epsilon, classes=self.classes, min_k=self.min_k)

    def split(self, rows: int, rng: Rng = None) -> Labels:
        """The stage of each row, drawn without the labels."""
        ends = np.round(np.cumsum(self.shares) * rows).astype(np.int64)
        stages = np.empty(rows, dtype=np.int64)
        stages[generator(rng).permutation(rows)] = np.searchsorted(ends, np.arange(rows), side="right")
        return np.minimum(stages, len(self.shares) - 1)

    def channel(self, prior: ArrayLike | Prior | None = None) -> Matrix:
        """A row's channel given its prior; without one, stage 0's: plain RR."""
        return self.one_stage.channel(prior)

    def randomize(self, y: object, prior: Predict | None = None, rng: Rng = None) -> Release:
        """Stage by stage; `prior` is called with a `Stage` and returns probabilities, one row for each of its `rows`.

        It must not see y: only the stage's noisy labels and the public features. Without it every stage is plain RR.
        """
        if prior is not None and not callable(prior):
            told = "give a function that predicts a Stage's rows, or use RRWithPrior"
            raise InputError(f"prior is a {type(prior).__name__}: {told}")
        labels, random = read_labels(y, self.classes), generator(rng)
        n, k = len(labels), self.classes
        stages = self.split(n, random)
        priors, sizes = np.full((n, k), 1 / k), np.full(n, k)
        output = np.full(n, -1)
        for number in range(len(self.shares)):
            rows = np.flatnonzero(stages == number)
            if len(rows) == 0:
                continue
            if number > 0 and prior is not None:
                seen = np.flatnonzero(stages < number)
                priors[rows] = self.sharpen(prior(Stage(number, seen, output[seen].copy(), rows)), len(rows), number)
                sizes[rows] = self.one_stage.sizes(priors[rows])
            output[rows] = draw(labels[rows], priors[rows], sizes[rows], self.epsilon, random)
        self.one_stage.check(sizes)
        return Release(output, self, n, Prior(priors, source="earlier stages"), sizes, stages)

    def sharpen(self, predicted: ArrayLike, rows: int, number: int = 1) -> Matrix:
        """The prior made of a prediction: stage 0's noise taken out (before stage 1), then the temperature."""
        p = read_prior(predicted, self.classes, rows).probabilities
        if self.denoise and number == 1:
            yes, no = response(self.epsilon, self.classes)
            p = normalised((p - no) / (yes - no))
        return sharpened(p, self.temperature)

    def posterior(self, release: Release, prior: ArrayLike | Prior | None = None) -> Matrix:
        """As RRWithPrior's; without a belief, the prior that each row was drawn with."""
        return posterior(release, prior, self.classes, self.epsilon)

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """A row's own stage alone (parallel composition): RRWithPrior's, k = K of stage 0 included."""
        return self.one_stage.guarantee(neighbours)

    def tradeoff(self, neighbours: Neighbours) -> Polygon:
        """As RRWithPrior's, over the worst priors."""
        return self.one_stage.tradeoff(neighbours)
