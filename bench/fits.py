"""How recorded seconds grow with size."""

from __future__ import annotations

import numpy as np


def exponents(sizes: list[int], seconds: list[float | None]) -> dict[str, float]:
    """The slope of log seconds against log size: over all sizes, and over the upper half of them."""
    points = [(size, each) for size, each in zip(sizes, seconds, strict=True) if each is not None]
    x, y = np.log(np.array(points)).T
    half = len(points) // 2
    return {"all": float(np.polyfit(x, y, 1)[0]), "upper_half": float(np.polyfit(x[half:], y[half:], 1)[0])}


def off_line(sizes: list[int], seconds: list[float | None]) -> float:
    """How far the worst size lies from the line a + b·size, relative to it; the line weighs relative errors alike.

    An exponent cannot tell a fixed cost from a cost that grows too slowly; this can.
    """
    points = [(size, each) for size, each in zip(sizes, seconds, strict=True) if each is not None]
    x, y = np.array(points).T
    design = np.column_stack((1 / y, x / y))
    fitted = design @ np.linalg.lstsq(design, np.ones(len(y)), rcond=None)[0]
    return float(np.abs(fitted - 1).max())
