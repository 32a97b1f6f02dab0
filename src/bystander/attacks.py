"""The adversary: for each row and each label that may be shown, a score. Its sign is the guess
(positive: the true label), its size the confidence. Any score is valid; it only decides power.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from bystander._validate import InputError, at_least, inside

Matrix = NDArray[np.float64]
_TINY = 1e-9
_RATIO_KNOTS = np.array([0.001, 0.005, 0.02, 0.06, 0.15, 0.3, 0.5, 0.7, 0.85, 0.94, 0.98, 0.995, 0.999])
_REFERENCE_KNOTS = np.array([0.005, 0.05, 0.2, 0.5, 0.8, 0.95, 0.995])


class Attack(Protocol):
    """How the attacker scores the label it is shown."""

    @property
    def share(self) -> float:
        """The share of the rows that it is fitted on before the game; these are not audited."""

    @property
    def name(self) -> str:
        """How reports call it."""

    def fit(self, labels: NDArray[np.int64], target: Matrix, reference: Matrix) -> Attack:
        """The same attack, fitted on rows that are not audited."""

    def scores(self, target: Matrix, reference: Matrix) -> Matrix:
        """(rows, classes): the score of each label, were it the one shown."""


@dataclass(frozen=True, slots=True)
class PaperScore:
    """The paper's s₁·s₂^t with s₁ = M(x)[y] − M'(x)[y] and s₂ = 1 − M'(x)[y] (§5.2)."""

    t: float = 2.0
    share: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        at_least("t", self.t, 0)

    @property
    def name(self) -> str:
        """The score and its weight."""
        return f"paper (t = {self.t:g})"

    def fit(self, labels: NDArray[np.int64], target: Matrix, reference: Matrix) -> PaperScore:
        """Nothing to fit."""
        return self

    def scores(self, target: Matrix, reference: Matrix) -> Matrix:
        """s₁·s₂^t."""
        return np.asarray((target - reference) * np.maximum(0.0, 1 - reference) ** self.t)


@dataclass(frozen=True, slots=True)
class LogRatio:
    """log M(x)[y] − log M'(x)[y], weighted by (1 − M'(x)[y])^t: optimal at t = 0 where M(x) is a posterior."""

    t: float = 0.0
    share: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        at_least("t", self.t, 0)

    @property
    def name(self) -> str:
        """The score and its weight."""
        return "log-ratio" if self.t == 0 else f"log-ratio (t = {self.t:g})"

    def fit(self, labels: NDArray[np.int64], target: Matrix, reference: Matrix) -> LogRatio:
        """Nothing to fit."""
        return self

    def scores(self, target: Matrix, reference: Matrix) -> Matrix:
        """The weighted log-likelihood ratio; probabilities below 1e-9 count as 1e-9."""
        ratio = _log_ratio(target, reference)
        return ratio if self.t == 0 else np.asarray(ratio * np.maximum(0.0, 1 - reference) ** self.t)


@dataclass(frozen=True, slots=True)
class Learned:
    """P(b = 0) as a small calibrated model of (M(x)[y], M'(x)[y], K), fitted on rows that are not audited.

    Logistic regression on a grid of linear hats over (log M[y] − log M'[y], logit M'[y]): smooth, and free to find
    that a large ratio means little where the target is over-confident. `share` of the rows are set aside for it, at
    most 50,000.
    """

    share: float = 0.25
    model: _Surface | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        inside("share", self.share, 0, 1)

    @property
    def name(self) -> str:
        """The score and how it was fitted."""
        return "learned"

    def fit(self, labels: NDArray[np.int64], target: Matrix, reference: Matrix) -> Learned:
        """Fit on these rows; they must not be audited."""
        return Learned(self.share, _Surface.fit(labels, target, reference))

    def scores(self, target: Matrix, reference: Matrix) -> Matrix:
        """The fitted log-odds of b = 0."""
        if self.model is None:
            raise InputError("the learned attack is not fitted: call fit() on rows that are not audited")
        flat = self.model.log_odds(target.ravel(), reference.ravel())
        return flat.reshape(target.shape)


def _log_ratio(target: Matrix, reference: Matrix) -> Matrix:
    return np.asarray(np.log(np.maximum(target, _TINY) / np.maximum(reference, _TINY)))


def _log(p: Matrix) -> Matrix:
    return np.asarray(np.log(np.maximum(p, _TINY)))


def _features(target: Matrix, reference: Matrix) -> tuple[Matrix, Matrix]:
    return _log_ratio(target, reference), _log(reference) - _log(1 - reference)  # ratio; logit M'


@dataclass(frozen=True, slots=True, eq=False)
class _Surface:
    """A piecewise bilinear surface of log-odds over two features."""

    knots: tuple[Matrix, Matrix]
    height: Matrix

    @classmethod
    def fit(
        cls, labels: NDArray[np.int64], target: Matrix, reference: Matrix, *, pairs: int = 100_000, ridge: float = 2.0
    ) -> _Surface:
        classes = target.shape[1]
        rows = min(len(labels), pairs // classes)  # rows come in hash order: the first are a random part
        labels, target, reference = labels[:rows], target[:rows], reference[:rows]
        law = reference / 2  # of a shown counterfactual label; the true one has weight ½
        truth = np.zeros_like(law)
        truth[np.arange(rows), labels] = 0.5
        a, b = _features(target.ravel(), reference.ravel())
        weight = (law + truth).ravel()
        aim = np.divide(truth.ravel(), weight, out=np.zeros_like(weight), where=weight > 0)
        keep = weight > 1e-6
        a, b, weight, aim = a[keep], b[keep], weight[keep], aim[keep]
        knots = (_knots(a, weight, _RATIO_KNOTS), _knots(b, weight, _REFERENCE_KNOTS))
        design = _tensor(a, b, knots)
        start = np.minimum(3.0, np.maximum(-3.0, knots[0]))  # the posterior's own log-odds, bounded
        prior = np.repeat(start, len(knots[1])) * 0.5
        height = prior.copy()
        for _ in range(25):
            p = 1 / (1 + np.exp(-(design @ height)))
            gradient = design.T @ (weight * (p - aim)) + ridge * (height - prior)
            curvature = (design * (weight * p * (1 - p))[:, None]).T @ design
            step = np.linalg.solve(curvature + ridge * np.eye(len(height)), gradient)
            height = height - step
            if np.max(np.abs(step)) < 1e-6:
                break
        return cls(knots, height)

    def log_odds(self, target: Matrix, reference: Matrix) -> Matrix:
        out = np.empty(len(target))
        for start in range(0, len(target), 1 << 16):
            part = slice(start, start + (1 << 16))
            a, b = _features(target[part], reference[part])
            out[part] = _tensor(a, b, self.knots) @ self.height
        return out


def _knots(x: Matrix, weight: Matrix, quantiles: Matrix) -> Matrix:
    order = np.argsort(x)
    mass = np.cumsum(weight[order]) / weight.sum()
    where = np.searchsorted(mass, quantiles)
    knots = np.unique(x[order][np.minimum(where, len(x) - 1)])
    return knots if len(knots) > 1 else np.array([knots[0] - 1, knots[0] + 1])


def _hats(x: Matrix, knots: Matrix) -> Matrix:
    """(len(x), len(knots)): linear hats that add up to 1, flat beyond the ends."""
    x = np.clip(x, knots[0], knots[-1])
    left = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    part = (x - knots[left]) / (knots[left + 1] - knots[left])
    hats = np.zeros((len(x), len(knots)))
    rows = np.arange(len(x))
    hats[rows, left] = 1 - part
    hats[rows, left + 1] = part
    return hats


def _tensor(a: Matrix, b: Matrix, knots: tuple[Matrix, Matrix]) -> Matrix:
    first, second = _hats(a, knots[0]), _hats(b, knots[1])
    return np.asarray((first[:, :, None] * second[:, None, :]).reshape(len(a), -1))
