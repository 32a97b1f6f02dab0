"""ALIBI: Laplace noise on the one-hot label, and Bayes (Malek et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bystander._validate import inside, whole
from bystander.mechanisms.base import (
    Guarantee,
    Matrix,
    Neighbours,
    Prior,
    Release,
    Rng,
    generator,
    guarantee,
    read_labels,
    read_prior,
    relation,
    softmax,
)
from bystander.mechanisms.families import TwoLaplace
from bystander.mechanisms.losses import LaplaceLoss
from bystander.tradeoff import Laplace


@dataclass(frozen=True, slots=True, kw_only=True)
class Alibi:
    """o = onehot(y) + Laplace(b) on each coordinate, b = 2/ε, released once. ⊥: the zero vector.

    >>> Alibi(epsilon=2, classes=10).guarantee("label").epsilon
    1.0
    """

    epsilon: float
    classes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", inside("epsilon", self.epsilon, 0, 700))
        object.__setattr__(self, "classes", whole("classes", self.classes, 2, 1_000_000))

    @property
    def scale(self) -> float:
        """b."""
        return 2 / self.epsilon

    def randomize(self, y: object, prior: ArrayLike | Prior | None = None, rng: Rng = None) -> Release:
        """(rows, classes) noisy vectors. A prior changes nothing here: it is kept for the posterior."""
        labels = read_labels(y, self.classes)
        output = generator(rng).laplace(0.0, self.scale, (len(labels), self.classes))
        output[np.arange(len(labels)), labels] += 1
        held = None if prior is None else read_prior(prior, self.classes, len(labels))
        return Release(output, self, len(labels), held)

    def posterior(self, release: Release, prior: ArrayLike | Prior | None = None) -> Matrix:
        """softmax((|o_i| − |o_i − 1|)/b + log prior_i) (Malek et al. 2021); a prior of 0 counts as 1e-12."""
        logits = (np.abs(release.output) - np.abs(release.output - 1)) / self.scale
        held = release.prior if prior is None else read_prior(prior, self.classes, release.rows)
        if held is not None:
            logits = logits + np.log(np.maximum(held.probabilities, 1e-12))
        return softmax(logits)

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """ε = 2/b between labels: two coordinates move by 1; 1/b against ⊥: one does, a Laplace f. Both f are exact."""
        ratio = self.epsilon / 2
        if relation(neighbours) == "label":
            family = Laplace()
            loss = ((LaplaceLoss(ratio), 1),)
            return guarantee(neighbours, loss, family=family, parameter=ratio, exact=True, bottom="the zero vector")
        return guarantee(
            neighbours, ((TwoLaplaceLoss(ratio), 1),), family=TwoLaplace(), parameter=self.epsilon, exact=True
        )

    def tradeoff(self, neighbours: Neighbours) -> Callable[[ArrayLike], Matrix]:
        """The exact f: one Laplace coordinate against ⊥, two between labels."""
        if relation(neighbours) == "replace":
            return TwoLaplaceLoss(self.epsilon / 2).tradeoff
        theta = self.epsilon / 2

        def one(alpha: ArrayLike) -> Matrix:
            """Dong, Roth and Su 2019, §A.3."""
            a, down = np.asarray(alpha, dtype=np.float64), math.exp(-theta)
            middle = down / (4 * np.maximum(a, down / 4))
            return np.where(a < down / 2, 1 - math.exp(theta) * a, np.where(a <= 0.5, middle, down * (1 - a)))

        return one


@dataclass(frozen=True, slots=True)
class TwoLaplaceLoss:
    """Laplace noise on two coordinates that each move by ratio·scale: L(θ) ⊗ L(θ), in closed form.

    Its loss S = log(Q/P) under P has atoms 1/4, e^−θ/2, e^−2θ/4 at −2θ, 0, 2θ, and between them the density
    e^−(s+2θ)/2·(1/4 + (2θ − |s|)/16). Under Q it is the law of −S. Proof: docs/mechanisms/alibi.md.
    """

    ratio: float

    def upper(self, t: Matrix, *, closed: bool) -> Matrix:
        """P(S > t), or P(S ≥ t)."""
        top = 2 * self.ratio
        t = np.asarray(t, dtype=np.float64)
        inner = np.clip(t, -top, top)
        right = _integral(np.maximum(inner, 0.0), top, top)
        left = _integral(np.minimum(inner, 0.0), 0.0, top)
        at = np.less_equal if closed else np.less
        atoms = at(t, -top) / 4 + at(t, 0.0) * math.exp(-self.ratio) / 2 + at(t, top) * math.exp(-top) / 4
        return np.asarray(right + left + atoms)

    def delta(self, epsilon: float) -> float:
        """δ(ε) = Q(S > ε) − e^ε P(S > ε)."""
        e = np.array(epsilon)
        below = 1 - self.upper(-e, closed=True)
        return max(0.0, float(below - math.exp(epsilon) * self.upper(e, closed=False)))

    def epsilon(self, delta: float = 0.0) -> float:
        """ε(δ), from above."""
        low, high = 0.0, 2 * self.ratio
        if delta <= 0:
            return high
        if self.delta(0.0) <= delta:
            return 0.0
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high

    def tradeoff(self, alpha: ArrayLike) -> Matrix:
        """f(α) = 1 − Q(S > t) − e^t (α − P(S > t)) at the t with P(S > t) ≤ α ≤ P(S ≥ t)."""
        a = np.clip(np.asarray(alpha, dtype=np.float64), 0.0, 1.0)
        top = 2 * self.ratio
        low, high = np.full(a.shape, -top), np.full(a.shape, top)
        for _ in range(60):
            middle = (low + high) / 2
            more = self.upper(middle, closed=False) > a
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        missed = self.upper(-high, closed=True)  # 1 − Q(S > t) = P(S ≥ −t)
        return np.asarray(np.maximum(0.0, missed - np.exp(high) * (a - self.upper(high, closed=False))))

    def pld(self) -> Any:
        """Two Laplace ones, by dp-accounting."""
        return LaplaceLoss(self.ratio).pld().self_compose(2)

    def event(self) -> Any:
        """Two LaplaceDpEvents: dp-accounting has none for REPLACE_ONE."""
        from bystander.mechanisms.losses import dp

        return dp().SelfComposedDpEvent(LaplaceLoss(self.ratio).event(), 2)


def _integral(start: Matrix, end: float, top: float) -> Matrix:
    """∫ e^−(s+top)/2·(1/4 + (top − |s|)/16) ds from start to end, both on one side of 0."""
    sign = np.where(start + end > 0, 1.0, -1.0)

    def primitive(s: Matrix) -> Matrix:
        # of e^(−s/2)(c − sign·s/16), c = 1/4 + top/16:  e^(−s/2)·(−2c + sign·(s/8 + 1/4))
        return np.exp(-(s + top) / 2) * (-2 * (0.25 + top / 16) + sign * (s / 8 + 0.25))

    return np.asarray(primitive(np.full_like(start, end)) - primitive(start))
