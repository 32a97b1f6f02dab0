"""The one spelling of every input check. Each error names the value and says what to do."""

from __future__ import annotations

import math
from typing import TypeVar

T = TypeVar("T")


class InputError(ValueError):
    """Bad input, told in one line: where it is, what it is, and what to do about it."""


def _number(name: str, value: object) -> float:
    try:
        number = float("nan") if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{name} is {value!r}: give a number") from None
    except OverflowError:
        raise InputError(f"{name} is an integer of {len(str(value))} digits: give a smaller number") from None
    if not math.isfinite(number):
        raise InputError(f"{name} is {value}: give a finite number")
    return number


def inside(name: str, value: object, low: float, high: float) -> float:
    """A number strictly between low and high."""
    number = _number(name, value)
    if not low < number < high:
        raise InputError(f"{name} is {value}: give a number above {low:g} and below {high:g}")
    return number


def at_least(name: str, value: object, low: float) -> float:
    """A finite number from low on."""
    number = _number(name, value)
    if number < low:
        raise InputError(f"{name} is {value}: give a number of at least {low:g}")
    return number


def fraction(name: str, value: object, *, zero: bool = False, one: bool = False) -> float:
    """A number between 0 and 1; the ends belong to it where asked for."""
    number = _number(name, value)
    if not 0 <= number <= 1 or (number == 0 and not zero) or (number == 1 and not one):
        low, high = ("at least" if zero else "above"), ("at most" if one else "below")
        raise InputError(f"{name} is {value}: give a number {low} 0 and {high} 1")
    return number


def whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """A whole number from low to high."""
    number = value if isinstance(value, int) and not isinstance(value, bool) else _number(name, value)
    if number != int(number):
        raise InputError(f"{name} is {value}: give a whole number")
    if number < low or (high is not None and number > high):
        span = f"from {low:,} to {high:,}" if high is not None else f"of at least {low:,}"
        told = str(value) if abs(number) < 1e30 else f"a number of {len(str(value))} digits"
        raise InputError(f"{name} is {told}: give a whole number {span}")
    return int(number)


def a_choice(name: str, value: T, has: str, example: str) -> T:
    """A value of the kind that has this attribute: not its name, as the command line takes it, and not its class."""
    if isinstance(value, type) or not hasattr(value, has):
        raise InputError(f"{name} is {value!r}: give a value such as {example}")
    return value
