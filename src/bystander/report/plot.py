"""The main figure in matplotlib: ε against the fraction guessed, members beside control."""

from __future__ import annotations

import io
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from bystander._validate import InputError
from bystander.report import words
from bystander.report.files import check, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bystander.result import Result

SUFFIXES = (".png", ".svg", ".pdf")
SIZE = (6.4, 4.6)
MEMBERS, CONTROL = "#0b6e75", "#b45309"


def draw(result: Result, ax: Axes | None = None) -> Axes:
    """Draw ε against the fraction guessed on `ax`, or on a figure of its own that no GUI knows of."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=SIZE, layout="constrained").add_subplot()
    _side(result, ax, "members", MEMBERS, "-", 4)
    if result.control is not None:
        _side(result.control, ax, "control", CONTROL, "--", 3)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: words.percent(share, 4)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_ylim(bottom=0)
    ax.set_xlabel("Share of the rows guessed")
    ax.set_ylabel("ε")
    ax.set_title(f"{words.headline(result)}  ({words.terms(result)})", loc="left", fontsize="medium")
    ax.grid(axis="y", alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    columns = 1 if result.control is None else 2
    ax.legend(frameon=False, fontsize="small", ncols=columns, loc="upper left", bbox_to_anchor=(0, -0.16))
    return ax


def save(result: Result, path: str | os.PathLike[str]) -> None:
    """Write the main figure as PNG, SVG or PDF, by the path's suffix, whole or not at all."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise InputError(f"the plot's file is {str(path)!r}: end it in .png, .svg or .pdf")
    check(path)

    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    draw(result, figure.add_subplot())
    date = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}[kind]
    content = io.BytesIO()
    with rc_context({"svg.hashsalt": "bystander"}):
        figure.savefig(content, format=kind[1:], dpi=200, metadata=date)
    write(path, content.getvalue())


def _side(result: Result, ax: Axes, who: str, colour: str, style: str, order: float) -> None:
    pictures = result.pictures
    if pictures is not None and pictures.guesses.x:
        curve = pictures.guesses
        ax.plot(
            curve.x,
            curve.y,
            style,
            color=colour,
            lw=1.6,
            zorder=order,
            label=f"{who}: mean ± sd (descriptive)",
        )
        if curve.other:
            pairs = list(zip(curve.y, curve.other, strict=True))
            low, high = [max(0.0, y - sd) for y, sd in pairs], [y + sd for y, sd in pairs]
            ax.fill_between(curve.x, low, high, color=colour, alpha=0.14, lw=0)
    if pictures is not None and pictures.bounds.x:
        label = f"{who}: candidate bounds" if result.valid else f"{who}: candidates, not bounds"
        ax.plot(
            pictures.bounds.x,
            pictures.bounds.y,
            "o",
            color=colour,
            ms=5,
            label=label,
            zorder=order,
            clip_on=False,
        )
    if result.guesses and math.isfinite(result.epsilon):
        label = f"{who}: {words.relation(result)}"
        chosen = [result.guesses / result.canaries], [result.epsilon]
        ax.plot(*chosen, "o", color=colour, ms=11, mfc="none", mew=1.8, label=label, zorder=order)
