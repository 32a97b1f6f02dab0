"""What all figures and tables share: one palette with fixed meanings, plain axes, Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

INK, PALE = "#333333", "#9a9a9a"
VALID, DEFAULT = "#0b6e75", "#174ea6"  # bounds
PAPER, PROXY = "#b45309", "#d98324"  # the paper's rule: not a bound
SCALE = ("#0b6e75", "#174ea6", "#7a3e9d", "#b45309", "#a61b29", "#5b6770")


def grid(rows: int, columns: int, width: float, height: float, **share: Any) -> tuple[Any, Any]:
    """A light figure and its axes, always as a two-dimensional array."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    axes = figure.subplots(rows, columns, squeeze=False, **share)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.22, linewidth=0.6)
        ax.set_axisbelow(True)
    return figure, axes


def legend(figure: Any, ax: Any, columns: int) -> None:
    """One legend below all panels."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8.5)


def markdown(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; the first column to the left, numbers to the right."""
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join(lines)


def number(value: float | None, digits: int = 2) -> str:
    """A number as a table shows it."""
    return "–" if value is None else f"{value:.{digits}f}"


def footer(record: Any) -> str:
    """Where a table's numbers come from."""
    name, profile, runs = record.body["experiment"], record.body["profile"], record.body["runs"]
    commit = ", ".join(sorted({run["commit"][:7] for run in runs}))
    where = record.path.relative_to(record.path.parents[3])
    return (
        f"\n`python -m experiments run {name} --profile {profile}` → `{where}`"
        f" ({record.seconds:,.0f} s in all; package at commit {commit})."
    )


AUDIT_HEAD = (
    "paper's number", "paper's rule, not a bound", "the same at 1 %", "**valid bound**", "valid at 1 %", "control", "τ*"
)  # fmt: skip


def spread(found: Mapping[str, float] | None, digits: int = 2) -> str:
    """Mean ± sd over the games."""
    return "–" if found is None else f"{found['mean']:.{digits}f} ± {found['sd']:.{digits}f}"


def audit_row(found: Mapping[str, Any], control: float | None, paper: str | None = None) -> list[str]:
    """The columns of AUDIT_HEAD: what `_audits.label_game` or `membership_game` found; a control's valid bound."""
    star = found["tau_star"]
    return [
        paper or "–",
        spread(found["paper"]),
        spread(found["paper_one_percent"]),
        f"**{floor(found['valid'])}**",
        floor(found["fixed"]),
        "–" if control is None else floor(control),
        "–" if star is None else f"{star:.1e}" if 0 < star < 1e-3 else f"{star:.3f}" if star else "0",
    ]


def brief(rows: Iterable[tuple[str, str | None, Mapping[str, Any], float | None, Mapping[str, Any]]]) -> str:
    """For the overview: (name, the paper's number, label game on members, bound on as many, label game on control)."""
    lines = [
        [name, paper or "–", spread(members["paper"]), spread(control["paper"]), f"**{floor(members['valid'])}**",
         floor(members["valid"] if few is None else few), floor(control["valid"])]
        for name, paper, members, few, control in rows
    ]  # fmt: skip
    head = ["", "paper's number", "paper's rule, not a bound: members", "control", "**valid bound: members**",
            "as many members as control rows", "control"]  # fmt: skip
    return markdown(head, lines)


def audit_table(
    first: Sequence[str], cells: Iterable[tuple[Sequence[str], Mapping[str, Any], str | None]], *, mia: bool = False
) -> str:
    """A table of `_audits.cell`s: (what names the cell, the cell, the paper's number). `first` heads the names.

    With `mia`, the rows are the cells' calibrated membership inference.
    """
    rows = []
    for names, cell, paper in cells:
        held = cell["control"]
        if mia:
            rows.append([*names, *audit_row(cell["mia"], cell["mia"]["control"], paper)])
        else:
            rows.append([*names, *audit_row(cell["members"], None if held is None else held["valid"], paper)])
    return markdown([*first, *AUDIT_HEAD], rows)


def floor(value: float | None, digits: int = 2) -> str:
    """A lower bound, rounded down."""
    return "–" if value is None else f"{math.floor(value * 10**digits + 1e-9) / 10**digits:.{digits}f}"
