"""The charts of the page, one function each: what a result holds, as SVG. None where it holds nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from bystander.report import svg, words
from bystander.report.games import game
from bystander.report.svg import BOTTOM, LEFT, RIGHT, TOP, Scale

if TYPE_CHECKING:
    from bystander.result import Curve, Result


def _height(values: Iterable[float], least: float = 0.5) -> Scale:
    top = max([least, *(value for value in values if math.isfinite(value))])
    return Scale(0.0, 1.08 * top, BOTTOM, TOP)


def _points(curve: Curve) -> svg.Points:
    return svg.finite(zip(curve.x, curve.y, strict=True))


def _short(value: float) -> str:
    return f"{value:g}"


def _power(value: float) -> str:
    """A tick of a scale of powers of ten: `3e-4`."""
    digits, power = f"{value:.0e}".split("e")
    return f"{digits}e{int(power)}"


def gauge(result: Result) -> str:
    """ε on a scale from nothing to everything, with the accuracy that each permits. Text keeps its size."""
    numbers = [part.epsilon for part in (result, result.control) if part and math.isfinite(part.epsilon)]
    top = max(5, math.ceil(max([0.0, *numbers]) + 0.5))
    step = 1 if top <= 6 else 2 if top <= 12 else math.ceil(top / 6)

    def place(value: float) -> str:
        return f"{100 * min(value, top) / top:.2f}%"

    def at(value: float, y: float, content: str, kind: str) -> str:
        share = min(value, top) / top
        anchor = "start" if share < 0.2 else "end" if share > 0.8 else "middle"
        where = f'x="{place(value)}" y="{y:g}" text-anchor="{anchor}"'
        return f'<text {where} class="{kind}">{escape(content)}</text>'

    ticks = "".join(
        f'<line class="axis" x1="{place(v)}" x2="{place(v)}" y1="52" y2="57"/>'
        + at(v, 71, f"{v}" if v else "ε = 0", "tick")
        + at(v, 87, words.best_guess(v), "tick strong")
        for v in range(0, top + 1, step)
    )
    marks = at(result.epsilon, 16, words.relation(result), "callout members")
    end = place(result.epsilon)
    marks += f'<line class="mark members" x1="{end}" x2="{end}" y1="22" y2="52"/>'
    if result.control is not None:
        where = place(result.control.epsilon)
        for kind in ("edge", "control"):
            marks += f'<line class="mark {kind}" x1="{where}" x2="{where}" y1="28" y2="52"/>'
    said = f"A scale of ε from 0 to {top}; values below {words.epsilon(result.epsilon)} are ruled out."
    return (
        '<svg class="gauge" width="100%" height="94" role="img" aria-labelledby="gauge-title gauge-desc">'
        f'<title id="gauge-title">What this ε permits</title><desc id="gauge-desc">{escape(said)}</desc>'
        '<rect class="track" x="0" y="34" width="100%" height="16" rx="3"/>'
        f'<rect class="bar members" x="0" y="34" width="{end}" height="16" rx="3"/>'
        f"{ticks}{marks}</svg>"
    )


def guesses(result: Result) -> str | None:
    """ε against the share of rows guessed: mean ± sd as a line, candidates as dots, the chosen ringed."""
    if result.pictures is None or not (result.pictures.guesses.x or result.pictures.bounds.x):
        return None
    both = [(result, "members"), *([(result.control, "control")] if result.control is not None else [])]
    drawn = [(part, part.pictures, kind) for part, kind in both if part.pictures is not None]
    shares = [v for _, p, _ in drawn for v in (*p.guesses.x, *p.bounds.x) if v > 0]
    tops = [v for _, p, _ in drawn for v in (*p.bounds.y, *_upper(p.guesses))] + [result.epsilon]
    x = Scale(min([0.01, *shares]), 1.0, LEFT + 8, RIGHT - 8, log=True)
    y = _height(tops)
    body = svg.frame(x, y, ("share of the rows guessed", "ε"), (lambda v: words.percent(v, 4), _short))
    for _, pictures, kind in reversed(drawn):
        curve = pictures.guesses
        if curve.other:
            spread = svg.finite(zip(curve.x, _upper(curve), strict=True))
            lower = svg.finite((a, b - sd) for a, b, sd in zip(curve.x, curve.y, curve.other, strict=True))
            body += svg.area(x, y, spread, lower, kind)
        body += svg.line(x, y, _points(curve), kind)
        body += svg.dots(x, y, _points(pictures.bounds), kind)
    if result.guesses and result.canaries and math.isfinite(result.epsilon):
        chosen = (result.guesses / result.canaries, result.epsilon)
        avoid = _points(result.pictures.guesses), _points(result.pictures.bounds)
        body += svg.callout(x, y, chosen, words.relation(result), "members", *avoid)
    title = "ε against the share of rows guessed"
    said = f"The selected count gives {words.relation(result)} with {words.accuracy(result)} correct."
    return svg.picture(title, said, body, "guesses")


def _upper(curve: Curve) -> list[float]:
    return [a + b for a, b in zip(curve.y, curve.other, strict=True)] if curve.other else list(curve.y)


def scores(result: Result) -> str | None:
    """The score's distribution for the truth and for what stood for it."""
    if result.pictures is None or not result.pictures.scores.y:
        return None
    curve = result.pictures.scores
    low, high = curve.x[0], curve.x[-1]
    if not low < high:
        return None
    called = game(result)
    x, y = Scale(low, high, LEFT, RIGHT), _height([*curve.y, *curve.other], 1e-9)
    body = svg.frame(x, y, (called.axis, "density"), (_short, _short))
    floor = [(low, 0.0), (high, 0.0)]
    for values, kind in ((curve.other, "other"), (curve.y, "members")):
        steps = [(low, 0.0)]
        for left, right, value in zip(curve.x, curve.x[1:], values, strict=False):
            steps += [(left, value), (right, value)]
        steps = svg.finite([*steps, (high, 0.0)])
        body += svg.area(x, y, steps, floor, kind) + svg.line(x, y, steps, kind)
    return svg.picture(f"Scores of {called.true} and {called.other}", called.parted, body, "scores")


def shift(result: Result) -> str | None:
    """ε against the assumed shift τ, with τ* marked."""
    if result.pictures is None:
        return None
    points = [(a, b) for a, b in _points(result.pictures.shift) if a > 0]
    if len(points) < 2 or points[0][0] >= points[-1][0] or words.nothing(result):
        return None
    star = result.tau_star if result.tau_star and result.tau_star > 0 else None
    ends = [points[0][0], points[-1][0], *([star] if star else [])]
    x, y = Scale(min(ends), max(ends), LEFT + 8, RIGHT - 8, log=True), _height([b for _, b in points])
    body = svg.frame(x, y, (f"assumed shift τ of the {result.stand_in}", "ε"), (_power, _short))
    control = result.control.pictures if result.control is not None else None
    if control is not None:
        body += svg.line(x, y, [(a, b) for a, b in _points(control.shift) if a > 0], "control")
    body += svg.line(x, y, points, "members")
    if star is not None:
        where = f'x1="{x(star):.1f}" x2="{x(star):.1f}" y1="{TOP:g}" y2="{BOTTOM:g}"'
        body += f'<line class="mark members thin" {where}/>'
        anchor = "end" if x(star) > (LEFT + RIGHT) / 2 else "start"
        offset = -6 if anchor == "end" else 6
        body += svg.text(x(star) + offset, TOP + 8, f"τ* = {words.small(star)}", "callout members", anchor)
    return svg.picture("ε against the assumed shift", words.tau_star(result), body, "shift")


def reliability(result: Result) -> str | None:
    """How often the truth was what its stand-in said, against how sure that was."""
    if result.pictures is None or not result.pictures.reliability.x:
        return None
    curve = result.pictures.reliability
    x, y = Scale(0.0, 1.0, LEFT, RIGHT - 8), Scale(0.0, 1.0, BOTTOM, TOP)
    names = (f"probability that the {result.stand_in} gave", "observed rate")
    body = svg.frame(x, y, names, (_short, _short)) + svg.line(x, y, [(0.0, 0.0), (1.0, 1.0)], "ideal")
    body += svg.line(x, y, _points(curve), "members faint")
    most = max([1.0, *curve.other])
    rows = curve.other or (most,) * len(curve.x)
    for a, b, count in zip(curve.x, curve.y, rows, strict=True):
        if math.isfinite(a) and math.isfinite(b) and count > 0:
            body += svg.dots(x, y, [(a, b)], "members", round(2 + 4.5 * math.sqrt(count / most), 1))
    said = f"Dots on the diagonal mean a calibrated {result.stand_in}; larger dots hold more rows."
    return svg.picture(f"Reliability of the {result.stand_in}", said, body, "reliability")
