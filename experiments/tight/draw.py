"""The waterfall from the best attack to the default bound, from the record."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from experiments._draw import SCALE, VALID, footer, grid, legend, markdown, number
from experiments._record import Record

COLOURS = (*SCALE[1:], "#c9a227")


def figures(record: Record) -> dict[str, Any]:
    """One bar a (target, ε): what the default reaches, and what each step takes."""
    attacks = list(next(iter(record.cells.values()))["attacks"])
    figure, axes = grid(1, len(attacks), 11, 4.6, sharey=True)
    for ax, attack in zip(axes[0], attacks, strict=True):
        for at, cell in enumerate(record.cells.values()):
            steps = list(cell["attacks"][attack]["steps"].items())
            best, left = steps[0][1], steps[-1][1] / steps[0][1]
            ax.barh(at, left, color=VALID, alpha=0.85, label="the default bound" if at == 0 else None)
            ax.text(left / 2, at, f"{left:.1%}", ha="center", va="center", color="white", fontsize=9)
            pairs = list(pairwise(steps))
            for colour, ((_, before), (name, after)) in zip(COLOURS, reversed(pairs), strict=True):
                lost = max(0.0, (before - after) / best)
                ax.barh(at, lost, left=left, color=colour, alpha=0.75, label=f"lost: {name}" if at == 0 else None)
                left += lost
        ax.axvline(0.85, color="black", linestyle="--", linewidth=1)
        ax.set_yticks(range(len(record.cells)), [f"{c['target']}, ε = {c['epsilon']:g}" for c in record.cells.values()])
        ax.set_xlim(0, 1.08)
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        ax.set_title(f"attack: {attack}, on the posterior", fontsize=10.5)
        ax.set_xlabel("of the best attack's log-odds at the same c'")
    axes[0, 0].invert_yaxis()
    figure.suptitle(f"What the valid default reaches at n = {record.settings['rows']:,}; dashed: 85 %", fontsize=11.5)
    legend(figure, axes[0, 0], 4)
    return {"tight": figure}


def tables(record: Record) -> dict[str, str]:
    """Every step's value."""
    cells = list(record.cells.values())
    steps = list(next(iter(cells[0]["attacks"].values()))["steps"])
    head = ["target, ε", "attack", "c'", *steps[:-1], f"{steps[-1]} = default", "reached", "of the best c'", "SIM ε"]
    rows = []
    for cell in cells:
        for attack, found in cell["attacks"].items():
            values = [number(found["steps"][step], 3) for step in steps]
            reached = f"**{found['reached']:.1%}**" if attack == "log-ratio" else f"{found['reached']:.1%}"
            name = f"{cell['target']}, {cell['epsilon']:g}"
            rows.append(
                [
                    name,
                    attack,
                    f"{found['share']:.0%}",
                    *values,
                    reached,
                    f"{found['reached_of_best_share']:.1%}",
                    number(cell["sim_rows"]),
                ]
            )
    return {"tight": markdown(head, rows) + "\n" + footer(record)}
