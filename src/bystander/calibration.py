"""Calibration of a reference's probabilities, fitted on rows outside the audit: temperature, isotonic, vector scaling.

A counterfactual is drawn from the reference, so the audit rests on its probabilities, not on its ranking.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bystander._validate import InputError, inside
from bystander.result import Curve

Matrix = NDArray[np.float64]
_TINY = 1e-12


class Calibration(Protocol):
    """A map of probabilities, fitted on rows whose labels are known and which are not audited."""

    @property
    def name(self) -> str:
        """How reports call it."""

    def fit(self, labels: ArrayLike, probabilities: ArrayLike) -> Calibration:
        """The same map, fitted; `probabilities` are of label 1 (n,), or of each class (n, K)."""

    def transform(self, probabilities: ArrayLike) -> Matrix:
        """The calibrated probabilities, in the shape they came in."""


@dataclass(frozen=True, slots=True)
class Temperature:
    """p^(1/T), normalised (Guo et al. 2017). T above 1 makes an over-confident reference milder.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> y = rng.random(20_000) < p
    >>> sharp = p**2 / (p**2 + (1 - p) ** 2)  # twice too confident
    >>> round(Temperature().fit(y, sharp).temperature, 1)
    2.0
    """

    temperature: float = 1.0

    def __post_init__(self) -> None:
        inside("temperature", self.temperature, 0, 1e6)

    @property
    def name(self) -> str:
        """The one number."""
        return f"temperature {self.temperature:.3g}"

    def fit(self, labels: ArrayLike, probabilities: ArrayLike) -> Temperature:
        """The T of the largest likelihood, from 1/20 to 20."""
        from scipy.optimize import minimize_scalar

        y, p = _checked(labels, probabilities)
        logits = _log(p)

        def loss(log_temperature: float) -> float:
            scaled = logits / np.exp(log_temperature)
            return float((_log_sum_exp(scaled) - scaled[np.arange(len(y)), y]).mean())

        best = minimize_scalar(loss, bounds=(-np.log(20), np.log(20)), method="bounded", options={"xatol": 1e-4})
        return Temperature(float(np.exp(best.x)))

    def transform(self, probabilities: ArrayLike) -> Matrix:
        """p^(1/T), normalised."""
        p, one = _matrix(probabilities)
        return _shaped(_softmax(_log(p) / self.temperature), one)


@dataclass(frozen=True, slots=True, eq=False)
class VectorScaling:
    """softmax(w·log p + b), a weight and an offset for each class (Guo et al. 2017): also mends wrong base rates.

    `ridge` holds w near 1 and b near 0; its weight is that of so many rows.
    """

    ridge: float = 1.0
    weights: Matrix | None = field(default=None, repr=False)
    offsets: Matrix | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        inside("ridge", self.ridge, 0, 1e9)

    @property
    def name(self) -> str:
        """How it is called."""
        return "vector scaling"

    def fit(self, labels: ArrayLike, probabilities: ArrayLike) -> VectorScaling:
        """The weights and offsets of the largest penalised likelihood."""
        from scipy.optimize import minimize

        y, p = _checked(labels, probabilities)
        logits, classes = _log(p), p.shape[1]
        truth = np.zeros_like(p)
        truth[np.arange(len(y)), y] = 1.0

        def loss(point: Matrix) -> tuple[float, Matrix]:
            w, b = point[:classes], point[classes:]
            scaled = logits * w + b
            total = _log_sum_exp(scaled)
            gap = np.exp(scaled - total[:, None]) - truth
            value = (total - (scaled * truth).sum(axis=1)).sum()
            value += self.ridge / 2 * (((w - 1) ** 2).sum() + (b**2).sum())
            slope = np.concatenate(((gap * logits).sum(axis=0), gap.sum(axis=0))) + self.ridge * np.concatenate(
                (w - 1, b)
            )
            return value / len(y), slope / len(y)

        start = np.concatenate((np.ones(classes), np.zeros(classes)))
        best = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
        return VectorScaling(self.ridge, best.x[:classes], best.x[classes:])

    def transform(self, probabilities: ArrayLike) -> Matrix:
        """softmax(w·log p + b)."""
        p, one = _matrix(probabilities)
        weights, offsets = _fitted(self.weights, self.name), _fitted(self.offsets, self.name)
        if p.shape[1] != len(weights):
            raise InputError(f"probabilities have {p.shape[1]} classes; {self.name} was fitted on {len(weights)}")
        return _shaped(_softmax(_log(p) * weights + offsets), one)


@dataclass(frozen=True, slots=True, eq=False)
class Isotonic:
    """For each class a rising map of its probability (Zadrozny and Elkan 2002), then normalised.

    Fitted values stay 1/(n + 2) away from 0 and 1: a counterfactual that cannot occur would be won by any attack.
    """

    maps: tuple[tuple[Matrix, Matrix], ...] = field(default=(), repr=False)

    @property
    def name(self) -> str:
        """How it is called."""
        return "isotonic"

    def fit(self, labels: ArrayLike, probabilities: ArrayLike) -> Isotonic:
        """Pool adjacent violators, one class against the rest; with two classes, class 1 alone."""
        y, p = _checked(labels, probabilities)
        which = [1] if p.shape[1] == 2 else range(p.shape[1])
        return Isotonic(tuple(_rising(p[:, k], y == k) for k in which))

    def transform(self, probabilities: ArrayLike) -> Matrix:
        """Each class through its map."""
        p, one = _matrix(probabilities)
        maps = _fitted(self.maps or None, self.name)
        classes = 2 if len(maps) == 1 else len(maps)
        if p.shape[1] != classes:
            raise InputError(f"probabilities have {p.shape[1]} classes; {self.name} was fitted on {classes}")
        if classes == 2:
            second = np.interp(p[:, 1], *maps[0])
            return _shaped(np.column_stack((1 - second, second)), one)
        mapped = np.column_stack([np.interp(p[:, k], *knots) for k, knots in enumerate(maps)])
        return _shaped(mapped / mapped.sum(axis=1, keepdims=True), one)


def log_loss(labels: ArrayLike, probabilities: ArrayLike) -> float:
    """The mean of −log p[y]; a probability below 1e-12 counts as 1e-12."""
    y, p = _checked(labels, probabilities)
    return float(-_log(p)[np.arange(len(y)), y].mean())


def constant_loss(labels: ArrayLike, classes: int) -> float:
    """The log-loss of the best constant on these rows: the entropy of their labels."""
    rates = np.bincount(np.asarray(labels, dtype=np.int64), minlength=classes) / np.size(labels)
    return float(-(rates * np.log(np.where(rates > 0, rates, 1.0))).sum())


def reliability(labels: NDArray[np.int64], probabilities: Matrix) -> Curve:
    """Probability against observed rate, in 15 bins of equal size over (row, class); binary: class 1."""
    if probabilities.shape[1] == 2:
        p, hit = probabilities[:, 1], labels == 1
    else:
        p = probabilities.ravel()
        hit = (np.arange(probabilities.shape[1]) == labels[:, None]).ravel()
    order = np.argsort(p, kind="stable")
    parts = [part for part in np.array_split(order, 15) if len(part)]
    return Curve(
        tuple(float(p[part].mean()) for part in parts),
        tuple(float(hit[part].mean()) for part in parts),
        tuple(float(len(part)) for part in parts),
    )


def _rising(x: Matrix, hit: NDArray[np.bool_]) -> tuple[Matrix, Matrix]:
    """Knots of the isotonic fit: flat on each block, linear between blocks."""
    from scipy.optimize import isotonic_regression

    values, place, rows = np.unique(x, return_inverse=True, return_counts=True)
    rates = np.bincount(place, weights=hit) / rows
    fitted = isotonic_regression(rates, weights=rows).x
    edge = 1 / (len(x) + 2)
    ends = np.flatnonzero(np.diff(fitted) > 0)
    keep = np.unique(np.concatenate(([0, len(values) - 1], ends, ends + 1)))
    return values[keep], np.clip(fitted[keep], edge, 1 - edge)


def _matrix(probabilities: ArrayLike) -> tuple[Matrix, bool]:
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim not in (1, 2) or (p.ndim == 2 and p.shape[1] < 2):
        raise InputError(f"probabilities have shape {p.shape}: give one number a row, or rows × classes")
    if not (p.min(initial=0.0) >= 0 and p.max(initial=0.0) <= 1 + 1e-9):  # NaN fails both
        raise InputError("probabilities are not all from 0 to 1: give probabilities, not scores or logits")
    return (np.column_stack((1 - p, p)), True) if p.ndim == 1 else (p, False)


def _checked(labels: ArrayLike, probabilities: ArrayLike) -> tuple[NDArray[np.int64], Matrix]:
    p, _ = _matrix(probabilities)
    y = np.asarray(labels)
    if y.shape != (len(p),):
        raise InputError(f"labels have shape {y.shape} and probabilities {len(p)} rows: give one label a row")
    if len(y) == 0:
        raise InputError("labels are empty: give rows outside the audit to fit on")
    y = y.astype(np.int64)
    if y.min() < 0 or y.max() >= p.shape[1]:
        raise InputError(f"labels reach from {y.min()} to {y.max()}: give 0…{p.shape[1] - 1}")
    return y, p


def _fitted(value: Any, name: str) -> Any:
    if value is None:
        raise InputError(f"{name} is not fitted: call fit() on rows that are not audited")
    return value


def _shaped(p: Matrix, one: bool) -> Matrix:
    return p[:, 1] if one else p


def _log(p: Matrix) -> Matrix:
    return np.asarray(np.log(np.maximum(p, _TINY)))


def _log_sum_exp(x: Matrix) -> Matrix:
    top = x.max(axis=1)
    return np.asarray(top + np.log(np.exp(x - top[:, None]).sum(axis=1)))


def _softmax(x: Matrix) -> Matrix:
    return np.exp(x - _log_sum_exp(x)[:, None])
