"""Confident-GNMax: answer only what the teachers agree on (Papernot et al. 2018, Algorithm 1), for PATE-FM."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bystander._validate import InputError, fraction, inside, whole
from bystander.mechanisms.base import (
    Guarantee,
    Matrix,
    Neighbours,
    Prior,
    Release,
    Rng,
    generator,
    guarantee,
    read_prior,
    relation,
)
from bystander.mechanisms.losses import GaussianLoss, Losses
from bystander.mechanisms.pate import read_votes


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidentGnmax:
    """If max_j n_j + N(0, σ₁²) ≥ T, answer argmax_j (n_j + N(0, σ₂²)); until the queries or answers run out.

    ONE Gaussian falls on the maximum. Without `sigma1` every query is answered. The ε is data-independent: it charges
    all `queries` thresholds and all `answers`. ⊥: the teacher that holds the row abstains. -1 is no answer.
    """

    classes: int
    sigma2: float
    answers: int
    sigma1: float | None = None
    threshold: float = 0.0
    queries: int | None = None
    teachers: int | None = None
    delta: float = 1e-5

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", whole("classes", self.classes, 2, 1_000_000))
        object.__setattr__(self, "sigma2", inside("sigma2", self.sigma2, 0, 1e150))
        object.__setattr__(self, "answers", whole("answers", self.answers, 1))
        if self.sigma1 is not None:
            object.__setattr__(self, "sigma1", inside("sigma1", self.sigma1, 0, 1e150))
            if self.queries is None:
                raise InputError("queries is None: give the number of queries whose threshold is paid for, with sigma1")
        queries = self.answers if self.queries is None else self.queries
        object.__setattr__(self, "queries", whole("queries", queries, self.answers))
        if self.teachers is not None:
            object.__setattr__(self, "teachers", whole("teachers", self.teachers, 1))
        inside("threshold", self.threshold, -1e300, 1e300)
        fraction("delta", self.delta)

    def randomize(self, y: ArrayLike, prior: ArrayLike | Prior | None = None, rng: Rng = None) -> Release:
        """`y` is the votes, (queries, classes) counts; the output is a label for each query, or -1."""
        votes = read_votes(y, self.classes, self.teachers)
        assert self.queries is not None
        if len(votes) > self.queries:
            raise InputError(f"votes has {len(votes)} queries: give at most the {self.queries} queries paid for")
        held = None if prior is None else read_prior(prior, self.classes, len(votes))
        random = generator(rng)
        passed = np.ones(len(votes), dtype=bool)
        if self.sigma1 is not None:
            passed = votes.max(axis=1) + random.normal(0.0, self.sigma1, len(votes)) >= self.threshold
        passed &= np.cumsum(passed) <= self.answers
        output = np.full(len(votes), -1)
        noisy = votes[passed] + random.normal(0.0, self.sigma2, (int(passed.sum()), self.classes))
        output[passed] = np.argmax(noisy, axis=1)
        return Release(output, self, len(votes), held)

    def posterior(self, release: Release, prior: ArrayLike | Prior | None = None) -> Matrix:
        """One-hot where there is an answer; else the prior, or uniform."""
        held = release.prior if prior is None else read_prior(prior, self.classes, release.rows)
        shape = (release.rows, self.classes)
        out = np.full(shape, 1 / self.classes) if held is None else held.probabilities.copy()
        answered = release.output >= 0
        out[answered] = np.eye(self.classes)[release.output[answered]]
        return out

    def losses(self, neighbours: Neighbours) -> Losses:
        """Thresholds: the maximum moves by at most 1, μ = 1/σ₁. Answers: the counts move by √2 in L2 (⊥: by 1)."""
        answer = GaussianLoss((math.sqrt(2) if relation(neighbours) == "replace" else 1.0) / self.sigma2)
        if self.sigma1 is None:
            return ((answer, self.answers),)
        assert self.queries is not None
        return ((GaussianLoss(1 / self.sigma1), self.queries), (answer, self.answers))

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """μ-GDP, μ² = queries/σ₁² + 2·answers/σ₂² (1·answers against ⊥), and its ε(δ). f lies above G_μ."""
        told = "the teacher that holds the row abstains"
        return guarantee(neighbours, self.losses(neighbours), delta=self.delta, bottom=told)

    def rdp(self, neighbours: Neighbours, order: float) -> float:
        """Rényi DP of this order: order·(queries/(2σ₁²) + answers/σ₂²) under "replace" (Papernot et al. 2018)."""
        return order * sum(
            times * loss.mu**2 / 2 for loss, times in self.losses(neighbours) if isinstance(loss, GaussianLoss)
        )

    def tradeoff(self, neighbours: Neighbours) -> Callable[[ArrayLike], Matrix]:
        """G_μ(α) = Φ(Φ⁻¹(1 − α) − μ): a lower bound on f, since only maxima leave."""
        mu = self.guarantee(neighbours).parameter

        def gaussian(alpha: ArrayLike) -> Matrix:
            from scipy.special import ndtr, ndtri

            return np.asarray(ndtr(-ndtri(np.asarray(alpha, dtype=np.float64)) - mu))

        return gaussian
