"""The table and the figure of the corrections, from the record: log-loss beside what it is to beat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from experiments._draw import INK, PALE, SCALE, footer, grid, legend, markdown, number
from experiments._record import Record
from experiments.corrections import CORRECTIONS, OWN_CONSTANT, PLAIN


def held(record: Record) -> Iterator[dict[str, Any]]:
    """The cells of the ε."""
    return (cell for cell in record.cells.values() if "epsilon" in cell)


def tables(record: Record) -> dict[str, str]:
    """Mean log-loss over the releases, with the worst of them in brackets; below, what it is to be compared with."""
    cells, plain = list(held(record)), record.cells[PLAIN]
    rows = [[kind, *(_shown(cell, kind) for cell in cells)] for kind in CORRECTIONS]
    rows.append([f"constant: {OWN_CONSTANT}", *(_both(cell["log_loss"][OWN_CONSTANT]) for cell in cells)])
    for told, key in (("constant: the best", "constant"), (PLAIN, "log_loss"), ("the true probabilities", "truth")):
        rows.append([told, *[number(plain[key], 4)] * len(cells)])
    head = ["log-loss", *(f"ε = {cell['epsilon']:g}" for cell in cells)]
    return {"corrections": markdown(head, rows) + "\n" + footer(record)}


def no_worse(cell: dict[str, Any], kind: str) -> bool:
    """In no release worse than the constant that can be known, to the four digits that are shown."""
    losses, own = cell["log_loss"][kind], cell["log_loss"][OWN_CONSTANT]
    return all(round(loss, 4) <= round(constant, 4) for loss, constant in zip(losses, own, strict=True))


def _shown(cell: dict[str, Any], kind: str) -> str:
    """Bold where it is no worse than the constant."""
    told = _both(cell["log_loss"][kind])
    return f"**{told}**" if no_worse(cell, kind) else told


def _both(losses: list[float]) -> str:
    """Mean (worst)."""
    return f"{number(sum(losses) / len(losses), 4)} ({number(max(losses), 4)})"


def figures(record: Record) -> dict[str, Any]:
    """Log-loss by ε, a line a correction, between the constant and training without a mechanism."""
    figure, axes = grid(1, 1, 8, 4.6)
    ax, cells, plain = axes[0, 0], list(held(record)), record.cells[PLAIN]
    x = [cell["epsilon"] for cell in cells]
    for color, kind in zip(SCALE, CORRECTIONS, strict=True):
        losses = [cell["log_loss"][kind] for cell in cells]
        mean = [sum(each) / len(each) for each in losses]
        ax.plot(x, mean, color=color, marker="o", markersize=4, label=kind)
        ax.fill_between(x, [min(each) for each in losses], [max(each) for each in losses], color=color, alpha=0.15)
    own = [cell["log_loss"][OWN_CONSTANT] for cell in cells]
    ax.plot(x, [sum(each) / len(each) for each in own], color=INK, linewidth=0.8, label=f"constant: {OWN_CONSTANT}")
    ax.axhline(plain["constant"], color=INK, linestyle="--", linewidth=1.2, label="constant: the best")
    ax.axhline(plain["log_loss"], color=PALE, linestyle=":", linewidth=1.4, label=PLAIN)
    ax.set_xscale("log", base=2)
    ax.set_xticks(x, [f"{epsilon:g}" for epsilon in x], minor=False)
    ax.set_ylim(0.95 * plain["log_loss"], 1.6 * plain["constant"])
    ax.set_xlabel("ε of randomized response (replacement)")
    ax.set_ylabel("log-loss on fresh rows")
    legend(figure, ax, 4)
    return {"corrections": figure}
