"""A lower bound on f from a privacy profile δ(ε), for compositions that have no closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bystander.mechanisms.base import Guarantee, Matrix


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """f(α) ≥ max over ε of max(1 − δ(ε) − e^ε α, e^−ε(1 − δ(ε) − α), 0) (Dong, Roth and Su 2019, Proposition 2.12)."""

    epsilons: Matrix
    deltas: Matrix

    @classmethod
    def of(cls, guarantee: Guarantee, points: int = 400) -> Profile:
        """By dp-accounting, at equally spaced ε, until δ is negligible."""
        pld = guarantee.pld()
        epsilons = np.linspace(0, float(pld.get_epsilon_for_delta(1e-9)), points)
        return cls(epsilons, np.asarray(pld.get_delta_for_epsilon(epsilons), dtype=np.float64))

    def __call__(self, alpha: ArrayLike) -> Matrix:
        """The lower bound on f(α)."""
        a = np.asarray(alpha, dtype=np.float64)[..., None]
        one, other = 1 - self.deltas - np.exp(self.epsilons) * a, np.exp(-self.epsilons) * (1 - self.deltas - a)
        return np.asarray(np.maximum(0.0, np.maximum(one, other).max(axis=-1)))
