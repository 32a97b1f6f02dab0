"""From a count (m canaries, c' guesses, c correct) and a family to a lower bound on ε: Algorithm 3, corrected."""

from __future__ import annotations

import math

from bystander._validate import InputError, a_choice, fraction, whole
from bystander.result import Bound
from bystander.tradeoff import ApproxDP, Family, Gaussian, Shift, Steinke, TwoSidedShift


def rejected(
    family: Family, shift: Shift, classes: int, canaries: int, guesses: int, correct: int, level: float
) -> float:
    """The largest parameter of the family that the count rejects at this level; 0 where it rejects none."""
    from bystander._kernels import largest_rejected

    before, after = offsets(family, shift, classes)
    return float(
        largest_rejected(family.kind, family.constant, before, after, float(canaries), guesses, correct, level)
    )


def tolerated(
    family: Family, form: Shift, classes: int, canaries: int, guesses: int, correct: int, level: float
) -> float:
    """τ*: the largest shift at which the count still rejects perfect privacy. A larger one explains it away."""
    from bystander._kernels import rejects

    if correct <= 0:
        return 0.0

    def stands(tau: float) -> bool:
        before, after = form.at(tau).offsets(classes)
        return bool(rejects(family.kind, 0.0, family.constant, before, after, float(canaries), guesses, correct, level))

    if not stands(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high - low > 1e-4 * high and high > 1e-15:
        middle = math.sqrt(low * high) if low > 0 else high / 8
        low, high = (middle, high) if stands(middle) else (low, middle)
    return low


def offsets(family: Family, shift: Shift, classes: int) -> tuple[float, float]:
    """What the shift takes off before and after f⁻¹; refused where a family has no shifted form."""
    if shift.tau > 0 and isinstance(family, Steinke):
        raise InputError(f"tau is {shift.tau:g}: Steinke's bound has no shifted form; use another family or tau = 0")
    return shift.offsets(classes)


def as_shift(tau: float | Shift, classes: int) -> Shift:
    """A plain number means Theorem 1's form for two classes, and the two-sided form, which is proved, for more."""
    if isinstance(tau, Shift):
        return tau
    tau = fraction("tau", tau, zero=True)
    return Shift(tau) if classes == 2 else TwoSidedShift(tau)


def shift_assumption(shift: Shift, classes: int, stand_in: str = "counterfactual", values: str = "values") -> str:
    """What is believed of what stands for the truth, in words."""
    if shift.tau == 0:
        return (
            f"The {stand_in} stands for the truth: without the target, its {values} cannot be told from true ones "
            "(τ = 0). Where it falls short, its error reads like memorisation."
        )
    if isinstance(shift, TwoSidedShift):
        return f"On average the {stand_in} is within total variation τ = {shift.tau:g} of the truth (two-sided form)."
    told = f"On every row the {stand_in} is within total variation τ = {shift.tau:g} of the truth (Theorem 1's form"
    return told + ("; with more than two classes it is not proved: see docs/math/shift.md)." if classes > 2 else ").")


def bound(
    *,
    canaries: int,
    guesses: int,
    correct: int,
    family: Family | None = None,
    confidence: float = 0.95,
    tau: float | Shift = 0.0,
    classes: int = 2,
) -> Bound:
    """The lower bound on ε that `correct` right answers among `guesses`, of `canaries` rows, give.

    `guesses` must have been fixed before the game; `classes` matters to τ alone: its form, and what that costs.

    >>> from bystander import ApproxDP, Gaussian, bound
    >>> round(bound(canaries=1_000_000, guesses=1_000, correct=1_000, family=ApproxDP(delta=1e-5)).epsilon, 5)
    5.74025
    >>> round(bound(canaries=10_000, guesses=100, correct=95, family=Gaussian(delta=1e-5)).epsilon, 5)
    2.60045
    """
    family = ApproxDP() if family is None else a_choice("family", family, "kind", "ApproxDP(delta=1e-5)")
    canaries = whole("canaries", canaries, 1, 10**12)
    guesses = whole("guesses", guesses, 1, canaries)
    correct = whole("correct", correct, 0, guesses)
    classes = whole("classes", classes, 2, 1_000_000)
    confidence, shift = fraction("confidence", confidence), as_shift(tau, classes)
    level = 1 - confidence
    count = (canaries, guesses, correct, level)
    parameter = rejected(family, shift, classes, *count)
    return Bound(
        epsilon=family.epsilon(parameter),
        confidence=confidence,
        family=family,
        mu=parameter if isinstance(family, Gaussian) else None,
        canaries=canaries,
        guesses=guesses,
        correct=correct,
        tau=shift.tau,
        tau_form=shift.name,
        tau_star=None if isinstance(family, Steinke) else tolerated(family, shift, classes, *count),
        assumptions=(
            "The number of guesses was fixed before the game.",
            family.assumption,
            shift_assumption(shift, classes),
        ),
    )
