"""Scales, axes and marks as inline SVG. Colours are classes of page.css, for light, dark and print."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 400.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 40.0, 386.0, 26.0, 208.0

Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Scale:
    """From a value to a place on the page, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The place; values beyond the ends stay at the ends."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values within the scale: 1–2–5 steps, or powers of ten where there are many decades."""
        return log_ticks(self.low, self.high) if self.log else linear_ticks(self.low, self.high)


def linear_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round values from low to high.

    >>> linear_ticks(0, 2.3)
    [0.0, 0.5, 1.0, 1.5, 2.0]
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """1, 2 and 5 times powers of ten from low to high, or fewer.

    >>> log_ticks(0.01, 1)
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits, every in (((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 4)):
        ticks = [float(f"{m}e{k}") for k in powers if k % every == 0 for m in digits]
        ticks = [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(ticks) <= most:
            break
    return ticks


def picture(title: str, description: str, body: str, name: str) -> str:
    """One figure that scales with its card and says in words what it shows."""
    return (
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>'
        f"{body}</svg>"
    )


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "middle") -> str:
    """A line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(content)}</text>'


def frame(
    x: Scale, y: Scale, names: tuple[str, str], labels: tuple[Callable[[float], str], Callable[[float], str]]
) -> str:
    """Grid lines, ticks and the axes' names; the y axis is named above its end."""
    parts = [
        f'<line class="grid" x1="{LEFT:g}" x2="{RIGHT:g}" y1="{y(v):.1f}" y2="{y(v):.1f}"/>'
        + text(LEFT - 7, y(v) + 4, labels[1](v), "tick", "end")
        for v in y.ticks()
    ]
    parts += [
        f'<line class="axis" x1="{x(v):.1f}" x2="{x(v):.1f}" y1="{BOTTOM:g}" y2="{BOTTOM + 4:g}"/>'
        + text(x(v), BOTTOM + 17, labels[0](v), "tick")
        for v in x.ticks()
    ]
    parts.append(f'<line class="axis" x1="{LEFT:g}" x2="{RIGHT:g}" y1="{BOTTOM:g}" y2="{BOTTOM:g}"/>')
    parts.append(text(4, 13, names[1], "name", "start"))
    parts.append(text((LEFT + RIGHT) / 2, HEIGHT - 6, names[0], "name"))
    return "".join(parts)


def finite(points: Iterable[tuple[float, float]]) -> Points:
    """The points that can be drawn."""
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def line(x: Scale, y: Scale, points: Points, kind: str) -> str:
    """A line through the points."""
    if len(points) < 2:
        return ""
    path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
    return f'<polyline class="line {kind}" points="{path}"/>'


def area(x: Scale, y: Scale, upper: Points, lower: Points, kind: str) -> str:
    """The area between two lines."""
    if len(upper) < 2:
        return ""
    path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in [*upper, *reversed(lower)])
    return f'<polygon class="area {kind}" points="{path}"/>'


def dots(x: Scale, y: Scale, points: Iterable[tuple[float, float]], kind: str, radius: float = 3.6) -> str:
    """A dot at each point."""
    return "".join(f'<circle class="dot {kind}" cx="{x(a):.1f}" cy="{y(b):.1f}" r="{radius:g}"/>' for a, b in points)


def callout(
    x: Scale, y: Scale, point: tuple[float, float], content: str, kind: str, curve: Points, dots: Points
) -> str:
    """A ring round a point, and its words in the place beside it that a curve and other dots leave the freest."""
    a, b = x(point[0]), y(point[1])
    half = 3.6 * len(content) + 2
    aside = half + 11
    places = [(a + dx, b + dy) for dx, dy in ((0, 20), (0, -20), (aside, 0), (-aside, 0), (aside, -14), (-aside, -14))]
    inside = [p for p in places if p[0] - half >= LEFT and p[0] + half <= RIGHT and p[1] + 7 < BOTTOM]
    others = _along([(x(c), y(d)) for c, d in curve]) + [(x(c), y(d)) for c, d in dots if (c, d) != point]

    def crowd(place: tuple[float, float]) -> int:
        return sum(abs(c - place[0]) < half + 7 and abs(d - place[1]) < 9 for c, d in others)

    across, down = min(inside or places, key=crowd)
    ring = f'<circle class="ring {kind}" cx="{a:.1f}" cy="{b:.1f}" r="7"/>'
    return ring + text(across, down + 4, content, f"callout {kind}")


def _along(points: Points) -> Points:
    """The points, with eight more on the way from each to the next."""
    steps = [k / 9 for k in range(9)]
    pairs = itertools.pairwise(points)
    return points + [(a + t * (c - a), b + t * (d - b)) for (a, b), (c, d) in pairs for t in steps]
