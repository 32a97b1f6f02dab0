"""Attacks side by side, from the record: the share of the best attack's bound that each reaches."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments._draw import DEFAULT, VALID, footer, grid, markdown, number
from experiments._record import Record


def means(cell: dict[str, Any], attack: str) -> tuple[float, float]:
    """An attack's mean bound on members and on control over the seeds."""
    found = cell["attacks"][attack]
    return float(np.mean(found["members"])), float(np.mean(found["control"]))


def shares(record: Record, *, excess: bool, few: bool | None = None) -> dict[str, list[float]]:
    """The rule: every attack's share of the best attack's bound, on each (target, rows) where one finds anything."""
    out: dict[str, list[float]] = {}
    for cell in record.cells.values():
        if few is not None and few != (cell["rows"] == record.settings["few"]):
            continue
        value = {}
        for attack in cell["attacks"]:
            members, control = means(cell, attack)
            value[attack] = max(0.0, members - control) if excess else members
        if (best := max(value.values())) > 0:
            for attack, found in value.items():
                out.setdefault(attack, []).append(found / best)
    return out


def figures(record: Record) -> dict[str, Any]:
    """A dot for every (target, rows), a bar for the mean."""
    figure, axes = grid(1, 2, 10, 4.6, sharey=True)
    for ax, excess, title in (
        (axes[0, 0], False, "bound on the members"),
        (axes[0, 1], True, "excess over the control"),
    ):
        found = shares(record, excess=excess)
        for at, (attack, values) in enumerate(found.items()):
            spread = np.linspace(-0.22, 0.22, len(values))
            ax.barh(at, np.mean(values), height=0.62, color=DEFAULT if attack == "log-ratio" else VALID, alpha=0.32)
            ax.plot(values, at + spread, ".", color="#333333", markersize=4, alpha=0.75)
            ax.text(1.03, at, f"{np.mean(values):.3f}", va="center", fontsize=9)
        ax.set_yticks(range(len(found)), list(found))
        ax.set_xlim(0, 1.14)
        ax.set_xticks(np.linspace(0, 1, 6))
        ax.set_xlabel("share of the best attack's on the same rows")
        ax.set_title(title, fontsize=10.5)
    axes[0, 0].invert_yaxis()
    figure.suptitle("Six attacks: one dot a (target, rows); bar and number: the mean", fontsize=11.5)
    return {"attacks": figure}


def tables(record: Record) -> dict[str, str]:
    """Every (target, rows): members / control by attack; then the ranking under the rule."""
    names = list(next(iter(record.cells.values()))["attacks"])
    rows = []
    for key, cell in record.cells.items():
        pairs = {name: means(cell, name) for name in names}
        best = max(members for members, _ in pairs.values())
        shown = []
        for members, control in pairs.values():
            text = f"{number(members)} / {number(control)}"
            shown.append(f"**{text}**" if best > 0 and members == best else text)
        target = cell["target"] if cell["target"] in key else key
        rows.append([target, f"{cell['rows']:,}", *shown])
    ranking = []
    for name in names:
        line = [name]
        for excess in (False, True):
            for few in (None, True, False):
                values = shares(record, excess=excess, few=few).get(name, [])
                line.append(number(float(np.mean(values)) if values else None, 3))
        ranking.append(line)
    head = ["attack", "members: all", "few rows", "many rows", "excess over control: all", "few rows", "many rows"]
    ranking.sort(key=lambda line: -float(line[1]))
    return {
        "attacks": markdown(["target", "rows", *names], rows) + "\n" + footer(record),
        "attacks-ranking": markdown(head, ranking),
    }
