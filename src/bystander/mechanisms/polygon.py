"""Trade-off functions of finite mechanisms, exactly: polygons, and the lower envelope of many."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Polygon:
    """A piecewise linear trade-off function: knots (α, β) from α = 0 to α = 1, convex and falling.

    >>> f = polygon([0.8, 0.2], [0.2, 0.8])
    >>> [round(float(b), 3) for b in f([0.0, 0.2, 0.5, 1.0])]
    [1.0, 0.2, 0.125, 0.0]
    >>> round(f.epsilon(), 3)  # ln 4
    1.386
    """

    alpha: Numbers
    beta: Numbers

    def __call__(self, alpha: ArrayLike) -> Numbers:
        """f(α): the least type II error at type I error α."""
        return np.asarray(np.interp(np.asarray(alpha, dtype=np.float64), self.alpha, self.beta))

    def delta(self, epsilon: float) -> float:
        """δ(ε) = 1 + f*(−e^ε) (Dong, Roth and Su 2019, Proposition 2.12), of the first distribution's side."""
        return float(max(0.0, np.max(1 - self.beta - math.exp(epsilon) * self.alpha)))

    def epsilon(self, delta: float = 0.0) -> float:
        """The least ε with δ(ε) ≤ δ, both ways: knot by knot, δ(ε) ≤ δ says e^ε ≥ (1 − δ − β)/α."""
        return max(0.0, _log_ratio(1 - delta - self.beta, self.alpha), _log_ratio(1 - delta - self.alpha, self.beta))

    def masses(self) -> tuple[Numbers, Numbers]:
        """The finite pair (P, Q) whose trade-off function this is; Q's mass where P has none comes first."""
        p = np.diff(self.alpha, prepend=0.0)
        q = np.diff(-self.beta, prepend=-1.0)
        return p, q

    def mirrored(self) -> Polygon:
        """f⁻¹: the pair in the other order."""
        return Polygon(self.beta[::-1].copy(), self.alpha[::-1].copy())

    def pld(self) -> Any:
        """dp-accounting's privacy loss distribution of the pair, rounded to the safe side."""
        from bystander.mechanisms.losses import dp

        p, q = self.masses()
        logs = [{i: math.log(x) for i, x in enumerate(side) if x > 0} for side in (p, q)]
        losses = dp("pld.privacy_loss_distribution")
        return losses.from_two_probability_mass_functions(*logs, pessimistic_estimate=True, symmetric=False)

    def event(self) -> Any:
        """dp-accounting has no event for a general channel: use `pld()`."""
        return None


def polygon(p: ArrayLike, q: ArrayLike) -> Polygon:
    """T(P, Q) of two finite distributions: reject P on the outcomes of the largest Q/P first (Neyman and Pearson)."""
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(p > 0, q / p, np.inf)
    some = (p > 0) | (q > 0)
    order = np.argsort(-ratio[some], kind="stable")
    alpha = np.concatenate([[0.0], np.cumsum(p[some][order])])
    beta = np.concatenate([[0.0], np.cumsum(q[some][order][::-1])])[::-1]
    return hull(alpha / alpha[-1], beta / beta[0])


def hull(alpha: Numbers, beta: Numbers) -> Polygon:
    """The lower convex hull of points (α, β), joined by (1, 0)."""
    alpha = np.append(np.clip(alpha, 0, 1), 1.0)
    beta = np.append(np.clip(beta, 0, 1), 0.0)
    order = np.lexsort((beta, alpha))
    kept: list[tuple[float, float]] = []
    for x, y in zip(alpha[order].tolist(), beta[order].tolist(), strict=True):
        if kept and x == kept[-1][0]:
            continue  # the same α with a larger β
        while len(kept) > 1:
            (x0, y0), (x1, y1) = kept[-2], kept[-1]
            if (x1 - x0) * (y - y0) > (y1 - y0) * (x - x0):
                break
            kept.pop()
        kept.append((x, y))
    points = np.array(kept)
    return Polygon(points[:, 0].copy(), points[:, 1].copy())


def envelope(functions: Iterable[Polygon]) -> Polygon:
    """The largest convex, symmetric f below all of these, both ways: the mechanism's f if they are all its pairs."""
    some = list(functions)
    return hull(
        np.concatenate([x for f in some for x in (f.alpha, f.beta)]),
        np.concatenate([x for f in some for x in (f.beta, f.alpha)]),
    )


def pairs(channel: ArrayLike, bottom: ArrayLike | None = None) -> Polygon:
    """The exact f of a channel (rows: label, columns: output): over all pairs of rows, or of a row and ⊥'s."""
    rows = np.asarray(channel, dtype=np.float64)
    if bottom is not None:
        return envelope(polygon(row, bottom) for row in rows)
    return envelope(polygon(rows[i], rows[j]) for i in range(len(rows)) for j in range(i))


def _log_ratio(up: Numbers, down: Numbers) -> float:
    above = up > 1e-15  # what cumulative sums leave of zero
    if (above & (down <= 0)).any():
        return math.inf
    return float(np.max(np.log(up[above] / down[above]))) if above.any() else 0.0
