"""Privacy losses that mechanisms are made of, and their composition, always rounded to the safe side."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bystander._validate import InputError
from bystander.mechanisms.polygon import Polygon, hull
from bystander.tradeoff import gaussian_delta, gaussian_epsilon


class Loss(Protocol):
    """One draw of noise, as a pair of neighbours sees it at worst."""

    def epsilon(self, delta: float = 0.0) -> float:
        """ε(δ), exact."""

    def pld(self) -> Any:
        """dp-accounting's privacy loss distribution."""

    def event(self) -> Any:
        """dp-accounting's event, or None."""


Losses = tuple[tuple[Loss, int], ...]


def dp(module: str = "") -> Any:
    """dp-accounting, imported when first needed."""
    try:
        return importlib.import_module(f"dp_accounting.{module}" if module else "dp_accounting")
    except ImportError:
        raise InputError("dp-accounting is not installed: pip install 'bystander[train]' composes privacy") from None


@dataclass(frozen=True, slots=True)
class LaplaceLoss:
    """Laplace noise on one number; ratio is sensitivity / scale."""

    ratio: float

    def epsilon(self, delta: float = 0.0) -> float:
        """δ(ε) = 1 − exp((ε − ratio)/2), solved for ε."""
        return max(0.0, self.ratio + 2 * math.log1p(-delta))

    def pld(self) -> Any:
        """By dp-accounting."""
        return dp("pld.privacy_loss_distribution").from_laplace_mechanism(1 / self.ratio)

    def event(self) -> Any:
        """LaplaceDpEvent of sensitivity 1."""
        return dp().LaplaceDpEvent(1 / self.ratio)


@dataclass(frozen=True, slots=True)
class GaussianLoss:
    """Gaussian noise: μ is the L2 sensitivity / σ."""

    mu: float

    def epsilon(self, delta: float = 0.0) -> float:
        """ε(δ) of μ-GDP, from above."""
        return gaussian_epsilon_above(self.mu, delta)

    def pld(self) -> Any:
        """By dp-accounting."""
        return dp("pld.privacy_loss_distribution").from_gaussian_mechanism(1 / self.mu)

    def event(self) -> Any:
        """GaussianDpEvent of sensitivity 1."""
        return dp().GaussianDpEvent(1 / self.mu)


@dataclass(frozen=True, slots=True)
class ResponseLoss:
    """k-ary randomized response: between two labels, or between a label and the uniform output."""

    parameter: float
    classes: int
    uniform: bool = False

    def polygon(self) -> Polygon:
        """The exact, symmetric f: knots at (1 − p, q) or (1 − p, 1/k) and their mirror images."""
        if self.classes == 1:  # a constant output
            return hull(np.zeros(1), np.ones(1))
        q = response(self.parameter, self.classes)[1]
        a = (self.classes - 1) * q
        b = 1 / self.classes if self.uniform else q
        return hull(np.array([0.0, min(a, b), max(a, b)]), np.array([1.0, max(a, b), min(a, b)]))

    def epsilon(self, delta: float = 0.0) -> float:
        """ε(δ), exact; at δ = 0 between labels it is the parameter itself."""
        return self.parameter if delta == 0 and not self.uniform else self.polygon().epsilon(delta)

    def pld(self) -> Any:
        """Of the polygon."""
        return self.polygon().pld()

    def event(self) -> Any:
        """RandomizedResponseDpEvent; account REPLACE_ONE between labels, REPLACE_SPECIAL against the uniform output."""
        noise = self.classes * response(self.parameter, self.classes)[1]
        return dp().RandomizedResponseDpEvent(noise, self.classes)


def response(epsilon: float, k: int) -> tuple[float, float]:
    """p = e^ε/(e^ε + k − 1) and q = 1/(e^ε + k − 1), without overflow."""
    odds = math.exp(-epsilon)
    total = 1 + (k - 1) * odds
    return 1 / total, odds / total


def gaussian_epsilon_above(mu: float, delta: float) -> float:
    """ε(δ) of μ-GDP, rounded up: its δ has been checked to be at most δ."""
    if delta <= 0:
        raise InputError(f"delta is {delta:g}: Gaussian noise has no ε without a δ; give a number above 0")
    found = float(gaussian_epsilon(mu, delta))
    if found == 0.0:
        return 0.0
    step = 1e-10 * max(1.0, found)
    while float(gaussian_delta(np.array(mu), np.array(found))) > delta:
        found += step
        step *= 2
    return found


def composed_mu(losses: Losses) -> float | None:
    """μ of Gaussian losses alone: √Σμ² (Dong et al. 2019, Corollary 3.3); None where another loss is among them."""
    if not all(isinstance(loss, GaussianLoss) for loss, _ in losses):
        return None
    return math.sqrt(sum(times * loss.mu**2 for loss, times in losses if isinstance(loss, GaussianLoss)))


def compose(losses: Losses, delta: float) -> float:
    """ε(δ) of all of these on the same label: exact where there is a closed form, else by dp-accounting's PLD."""
    losses = tuple((loss, times) for loss, times in losses if times > 0)
    if not losses:
        return 0.0
    mu = composed_mu(losses)
    if mu is not None:
        return gaussian_epsilon_above(mu, delta)
    gaussian = any(isinstance(loss, GaussianLoss) for loss, _ in losses)
    if delta <= 0 and gaussian:
        raise InputError(f"delta is {delta:g}: Gaussian noise has no ε without a δ; give a number above 0")
    basic = math.inf if gaussian else sum(times * loss.epsilon() for loss, times in losses)
    if delta <= 0:
        return basic
    if len(losses) == 1 and losses[0][1] == 1:
        return losses[0][0].epsilon(delta)
    return min(basic, float(composed_pld(losses).get_epsilon_for_delta(delta)))


def composed_pld(losses: Losses) -> Any:
    """dp-accounting's PLD of all of these, pessimistic."""
    total = None
    for loss, times in losses:
        one = loss.pld()
        many = one.self_compose(times) if times > 1 else one
        total = many if total is None else total.compose(many)
    if total is None:
        return dp("pld.privacy_loss_distribution").identity()
    return total


def composed_event(losses: Losses) -> Any:
    """dp-accounting's event of all of these; None where one of them has none."""
    events = [(loss.event(), times) for loss, times in losses]
    if any(event is None for event, _ in events):
        return None
    many = [event if times == 1 else dp().SelfComposedDpEvent(event, times) for event, times in events]
    return many[0] if len(many) == 1 else dp().ComposedDpEvent(many)


def merged(parts: Sequence[Losses]) -> Losses:
    """The losses of several releases, equal ones counted together."""
    count: dict[Any, int] = {}
    for loss, times in (item for part in parts for item in part):
        count[loss] = count.get(loss, 0) + times
    return tuple(count.items())
