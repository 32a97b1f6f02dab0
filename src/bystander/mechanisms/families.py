"""Families of trade-off functions that one mechanism has and no other: what `bound` and `audit` take for it.

Each is exact for its mechanism. The formulas stand in `_kernels.f_inverse`, their proofs in docs/mechanisms/.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from bystander._validate import whole
from bystander.tradeoff import RESPONSE, TOP_K, TWO_LAPLACE


@dataclass(frozen=True, slots=True)
class Response:
    """Randomized response's shape of f with any real number of classes: the family of a label against ⊥.

    f joins (0, 1), (q, 1 − p), (1 − p, q), (1, 0); q = 1/(e^parameter + classes − 1), p = e^parameter·q.
    """

    classes: float
    name: ClassVar[str] = "rr-label"
    kind: ClassVar[int] = RESPONSE
    delta: ClassVar[float] = 0.0
    assumption: ClassVar[str] = (
        "ε assumes randomized response's trade-off between a label and none: a lower bound for that mechanism alone."
    )

    @property
    def constant(self) -> float:
        """The number of classes."""
        return self.classes

    def epsilon(self, parameter: float) -> float:
        """The parameter is ε."""
        return parameter


@dataclass(frozen=True, slots=True)
class TwoLaplace:
    """ALIBI's f between two labels: Laplace noise on two coordinates, which both move; its parameter is ε.

    >>> TwoLaplace().epsilon(2.0)
    2.0
    """

    name: ClassVar[str] = "alibi"
    kind: ClassVar[int] = TWO_LAPLACE
    delta: ClassVar[float] = 0.0
    constant: ClassVar[float] = 0.0
    assumption: ClassVar[str] = (
        "ε assumes ALIBI's trade-off, Laplace noise on a one-hot label: it is a lower bound on the replacement ε of "
        "that mechanism alone."
    )

    def epsilon(self, parameter: float) -> float:
        """The parameter is the replacement ε."""
        return parameter


@dataclass(frozen=True, slots=True)
class TopK:
    """RRWithPrior's f of a label against none, at the worst of all priors; its parameter is the replacement ε.

    f joins (0, 1), the points (u/(e^parameter + u), 1/(1 + u)) and (1, 0), for u = k − 1 and u = e^parameter/(k − 1),
    k from `least` to `classes`.

    >>> round(TopK(least=2, classes=10).epsilon(2.0), 3)
    1.506
    """

    least: int
    classes: int
    name: ClassVar[str] = "rr-with-prior"
    kind: ClassVar[int] = TOP_K
    delta: ClassVar[float] = 0.0
    assumption: ClassVar[str] = (
        "ε assumes RRWithPrior's trade-off between a label and none: a lower bound for that mechanism alone."
    )

    def __post_init__(self) -> None:
        whole("classes", self.classes, 2, 1_000_000)
        whole("least", self.least, 2, self.classes)

    @property
    def constant(self) -> float:
        """Both numbers in one, as the kernel takes them apart: there are fewer than 2²⁰ classes."""
        return float(self.least * 2**20 + self.classes)

    def epsilon(self, parameter: float) -> float:
        """ε against ⊥, of the steepest side of f: u is its first point's."""
        first = min(self.least - 1.0, math.exp(parameter) / (self.classes - 1))
        return parameter + math.log((1 + first * math.exp(-parameter)) / (1 + first))
