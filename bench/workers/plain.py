"""Algorithm 3 for the Gaussian family, written again step by step: no block, no kernel, no quantile of the project's.

What a bound at 10⁹ canaries is checked against; its values are as exact as its bisections (1e-8).
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from bench.workers import meter


@njit
def cdf(x: float) -> float:
    """Φ(x)."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@njit
def quantile(p: float) -> float:
    """Φ⁻¹(p) by bisection of Φ."""
    low, high = -40.0, 40.0
    for _ in range(70):
        middle = 0.5 * (low + high)
        if cdf(middle) < p:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@njit
def rejects(mu: float, m: int, guesses: int, correct: int, level: float) -> tuple[bool, int]:
    """Whether μ is rejected, and after how many steps."""
    r, h = level * correct / m, level * (guesses - correct) / m
    for i in range(correct - 1, -1, -1):
        if r + h >= guesses / m or r >= 1.0:
            return True, correct - 1 - i
        up = cdf(quantile(r) - mu)
        if up <= h:
            return False, correct - i
        r, h = r + i / (guesses - i) * (up - h), up
    return r + h >= guesses / m, correct


def largest(canaries: int, guesses: int, correct: int) -> dict[str, Any]:
    """The largest rejected μ, and the steps that all evaluations took together."""
    low, high, steps = 0.0, 1.0, 0

    def rejected(mu: float) -> bool:
        nonlocal steps
        verdict, count = rejects(mu, canaries, guesses, correct, 0.05)
        steps += count
        return bool(verdict)

    while rejected(high):
        low, high = high, 2 * high
    while high - low > 1e-8:
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return {"mu": low, "steps": steps}


if __name__ == "__main__":
    meter.main({"largest": largest}, ("numba",))
