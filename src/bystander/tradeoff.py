"""Trade-off functions f: what a mechanism may claim, as one-parameter families.

A family answers three questions: which kernel evaluates f⁻¹(1 − r) (`kind`, `constant`), which ε(δ) a
rejected parameter stands for (`epsilon`), and what a reader must believe for that ε to be a bound
(`assumption`). The formulas themselves stand in `_kernels.f_inverse`, each beside its equation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from bystander._validate import fraction, whole

Numbers = NDArray[np.float64]

APPROX, GAUSSIAN, LAPLACE, RESPONSE, STEINKE, PURE, TWO_LAPLACE, TOP_K = range(8)


class Family(Protocol):
    """A one-parameter family of trade-off functions, the larger parameter the weaker privacy."""

    name: ClassVar[str]
    kind: ClassVar[int]

    @property
    def delta(self) -> float:
        """The δ at which `epsilon` is stated."""

    @property
    def constant(self) -> float:
        """What the kernel needs beside the parameter (δ, or the number of classes)."""

    @property
    def assumption(self) -> str:
        """What must hold of the mechanism for the ε to be a lower bound on its ε."""

    def epsilon(self, parameter: float) -> float:
        """ε(δ) of the member with this parameter."""


@dataclass(frozen=True, slots=True)
class ApproxDP:
    """f_{ε,δ}: any (ε, δ)-differentially private mechanism. The default.

    >>> ApproxDP(delta=1e-6).delta
    1e-06
    """

    delta: float = 1e-5
    name: ClassVar[str] = "approx"
    kind: ClassVar[int] = APPROX

    def __post_init__(self) -> None:
        fraction("delta", self.delta, zero=True)

    @property
    def constant(self) -> float:
        """δ."""
        return self.delta

    @property
    def assumption(self) -> str:
        """None beyond (ε, δ) itself."""
        return f"The bound holds for every (ε, δ = {short(self.delta)}) mechanism: it assumes no shape of noise."

    def epsilon(self, parameter: float) -> float:
        """The parameter is ε."""
        return parameter


@dataclass(frozen=True, slots=True)
class Pure:
    """f_{ε,0}: pure ε-differential privacy. Without a shift the bound is the exact binomial one."""

    name: ClassVar[str] = "pure"
    kind: ClassVar[int] = PURE
    delta: ClassVar[float] = 0.0
    constant: ClassVar[float] = 0.0
    assumption: ClassVar[str] = "The bound is on pure ε-differential privacy (δ = 0)."

    def epsilon(self, parameter: float) -> float:
        """The parameter is ε."""
        return parameter


@dataclass(frozen=True, slots=True)
class Gaussian:
    """G_μ: the Gaussian mechanism, the paper's choice. Its ε(δ) bounds no other mechanism."""

    delta: float = 1e-5
    name: ClassVar[str] = "gaussian"
    kind: ClassVar[int] = GAUSSIAN
    constant: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        fraction("delta", self.delta)

    @property
    def assumption(self) -> str:
        """The trade-off function is a Gaussian mechanism's."""
        return (
            f"ε(δ = {short(self.delta)}) assumes a Gaussian trade-off: it is a lower bound only if the mechanism is "
            "a Gaussian one. What is rejected is μ-GDP."
        )

    def epsilon(self, parameter: float) -> float:
        """ε(δ) of μ-GDP (Dong et al. 2019, Corollary 2.13)."""
        return float(gaussian_epsilon(parameter, self.delta))


@dataclass(frozen=True, slots=True)
class Laplace:
    """The Laplace mechanism's exact trade-off function; its parameter is sensitivity / scale."""

    delta: float = 0.0
    name: ClassVar[str] = "laplace"
    kind: ClassVar[int] = LAPLACE
    constant: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        fraction("delta", self.delta, zero=True)

    @property
    def assumption(self) -> str:
        """The trade-off function is a Laplace mechanism's."""
        return "ε assumes a Laplace trade-off: it is a lower bound only if the mechanism is a Laplace one."

    def epsilon(self, parameter: float) -> float:
        """δ(ε) = 1 − exp((ε − parameter)/2), solved for ε."""
        return max(0.0, parameter + 2 * math.log1p(-self.delta))


@dataclass(frozen=True, slots=True)
class RandomizedResponse:
    """k-ary randomized response's exact trade-off function between two labels; its parameter is ε.

    It also bounds the pair (label, imputed label), whatever the labels' law: see docs/math/families.md.
    """

    classes: int = 2
    name: ClassVar[str] = "rr"
    kind: ClassVar[int] = RESPONSE
    delta: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        whole("classes", self.classes, 2, 1_000_000)

    @property
    def constant(self) -> float:
        """The number of classes."""
        return float(self.classes)

    @property
    def assumption(self) -> str:
        """The trade-off function is randomized response's."""
        return (
            f"ε assumes randomized response on {self.classes} values: it is a lower bound on the replacement ε of that "
            "mechanism alone."
        )

    def epsilon(self, parameter: float) -> float:
        """The parameter is the replacement ε."""
        return parameter


@dataclass(frozen=True, slots=True)
class Steinke:
    """The published (ε, δ) baseline: Steinke, Nasr & Jagielski 2023, Theorem 5.2. No trade-off function."""

    delta: float = 1e-5
    name: ClassVar[str] = "steinke"
    kind: ClassVar[int] = STEINKE

    def __post_init__(self) -> None:
        fraction("delta", self.delta, zero=True)

    @property
    def constant(self) -> float:
        """δ."""
        return self.delta

    @property
    def assumption(self) -> str:
        """None beyond (ε, δ) itself."""
        return (
            f"The bound is Steinke et al.'s (2023) for every (ε, δ = {short(self.delta)}) mechanism: "
            "the published baseline."
        )

    def epsilon(self, parameter: float) -> float:
        """The parameter is ε."""
        return parameter


@dataclass(frozen=True, slots=True)
class Shift:
    """How far the reference may stand from the truth: total variation at most τ, as Theorem 1 spends it.

    f̄⁻¹(r) = max(0, f⁻¹(1 − r) − τ).
    """

    tau: float = 0.0
    name: ClassVar[str] = "theorem"

    def __post_init__(self) -> None:
        fraction("tau", self.tau, zero=True)

    def offsets(self, classes: int) -> tuple[float, float]:
        """What is taken from r before f⁻¹, and from f⁻¹ after it."""
        return 0.0, self.tau

    def at(self, tau: float) -> Shift:
        """The same form at another τ."""
        return type(self)(tau)


@dataclass(frozen=True, slots=True)
class TwoSidedShift(Shift):
    """The same, with the shown label's own law counted: f̄⁻¹(r) = max(0, f⁻¹(1 − r + τ₂/2) − τ₂/2).

    τ₂ = TV(D×D', D'×D) is τ for binary labels and at most 2τ − τ² for more; τ is the average over the
    canaries, not the supremum. Proved in docs/math/shift.md.
    """

    name: ClassVar[str] = "two-sided"

    def offsets(self, classes: int) -> tuple[float, float]:
        """Half of τ₂ on each side."""
        tau2 = self.tau if classes == 2 else self.tau * (2 - self.tau)
        return tau2 / 2, tau2 / 2


def short(number: float) -> str:
    """1e-5, not 1e-05."""
    return f"{number:g}".replace("e-0", "e-")


def gaussian_delta(mu: Numbers, epsilon: Numbers) -> Numbers:
    """δ(ε) of μ-GDP: Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2), in logs (Dong et al. 2019, Corollary 2.13)."""
    from scipy.special import log_ndtr

    first = log_ndtr(-epsilon / mu + mu / 2)
    second = epsilon + log_ndtr(-epsilon / mu - mu / 2)
    return np.asarray(np.exp(first) * -np.expm1(np.minimum(0.0, second - first)))


def gaussian_epsilon(mu: Numbers | float, delta: float) -> Numbers:
    """The ε at which μ-GDP has this δ, found from below; 0 where δ(0) is already no more than δ."""
    from scipy.special import erf

    mu = np.asarray(mu, dtype=np.float64)
    some = erf(mu / np.sqrt(8.0)) > delta  # δ(0) = 2Φ(μ/2) − 1
    mu = np.where(some, mu, 1.0)
    low, high = np.zeros_like(mu), np.where(some, np.maximum(1.0, mu * mu), 0.0)
    while (more := some & (gaussian_delta(mu, high) > delta)).any():
        low, high = np.where(more, high, low), np.where(more, 2 * high, high)
    while (high - low > 1e-10 * np.maximum(1.0, low)).any():
        middle = (low + high) / 2
        more = gaussian_delta(mu, middle) > delta
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.where(some, low, 0.0)
