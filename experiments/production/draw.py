"""The recommended use, from the record: ε step after step on members and control, by reference; what it costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments._draw import DEFAULT, INK, PAPER, floor, footer, grid, legend, markdown, number, spread
from experiments._record import Record
from experiments.production import REFERENCES

_TOLD = {
    "checkpoint": "the checkpoint before (the paper's)",
    "calibrated": "the same, calibrated on rows set aside",
    "twin": "the same, trained on on rows set aside",
}


def figures(record: Record) -> dict[str, Any]:
    """A panel a reference: bounds on members and control."""
    cells = list(record.cells.values())
    many = len(cells) > 100  # points that would hide each other
    figure, axes = grid(len(REFERENCES), 1, 14 if many else 9, 7.2, sharex=True, sharey=True)
    x = np.arange(1, len(cells) + 1)
    size, width = (0.0, 0.8) if many else (3.5, 1.3)
    for ax, reference in zip(axes[:, 0], REFERENCES, strict=True):
        found = [cell[reference] for cell in cells]
        mean, sd = (np.array([one["members"]["paper"][part] for one in found]) for part in ("mean", "sd"))
        ax.fill_between(x, mean - sd, mean + sd, color=PAPER, alpha=0.15, linewidth=0)
        ax.plot(x, mean, color=PAPER, linewidth=0.6 if many else 1.0,
                label="members, paper's rule (mean ± sd, not a bound)")  # fmt: skip
        ax.plot(x, [one["members"]["valid"] for one in found], color=DEFAULT, marker="v", markersize=size,
                linewidth=width, label="members, valid bound")  # fmt: skip
        ax.plot(x, [one["control"]["valid"] for one in found], color=INK, marker="x", linestyle="-" if many else ":",
                markersize=size, linewidth=width, label="control, valid bound")  # fmt: skip
        ax.set_title(f"reference: {_TOLD[reference]}", fontsize=9.5)
        ax.set_ylabel("ε found")
    axes[-1, 0].set_xlabel("step: weeks since January" if record.settings["days"] == 7 else "step: days since January")
    figure.suptitle("Flights, a model trained on step after step (stand-in for a production log)", fontsize=11)
    legend(figure, axes[0, 0], 3)
    return {"production": figure}


def tables(record: Record) -> dict[str, str]:
    """Means over the steps by reference; every step; and the costs."""
    cells = list(record.cells.values())
    rows = []
    for reference in REFERENCES:
        found = [cell[reference] for cell in cells]
        members, control = (np.array([one[part]["valid"] for one in found]) for part in ("members", "control"))
        few = np.array([one["as_many"] for one in found])
        stars = [one["members"]["tau_star"] or 0.0 for one in found]
        loss = np.mean([cell["log_loss"]["control"][reference] for cell in cells])
        rows.append([
            _TOLD[reference], number(loss, 3), *(number(_mean(found, part), 2) for part in ("members", "control")),
            f"**{floor(members.mean())}**", floor(few.mean()), floor(control.mean()),
            f"{(control > 0).sum()} of {len(cells)}", f"{(few > control).sum()} of {len(cells)}",
            f"{np.median(stars):.1e}",
        ])  # fmt: skip
    head = ["reference", "its log-loss on control", "paper's rule, not a bound: members", "control",
            "**valid: members**", "as many members as control rows", "control", "control above 0",
            "as many members above control", "median τ*"]  # fmt: skip
    spent = {key: float(np.median([cell["train_seconds"][key] for cell in cells])) for key in cells[0]["train_seconds"]}
    cost = [[key, f"{seconds:.2f} s"] for key, seconds in spent.items()]
    return {
        "production": markdown(head, rows) + "\n" + footer(record),
        "production-steps": _steps(cells),
        "production-cost": markdown(["of a step, median", "seconds"], cost),
    }


def _steps(cells: list[dict[str, Any]]) -> str:
    """A line a step: what the audit reads by the paper's reference and by the twin, and what it costs."""
    rows = []
    for step, cell in enumerate(cells, 1):
        before, twin, spent = cell["checkpoint"], cell["twin"], cell["train_seconds"]
        rows.append([
            step, f"{cell['rows']['members']:,}", f"{cell['rate']:.0%}", spread(before["members"]["paper"]),
            *(f"**{floor(one['members']['valid'])}** / {floor(one['as_many'])} / {floor(one['control']['valid'])}"
              for one in (before, twin)),
            *(f"{one['members']['tau_star'] or 0.0:.1e}" for one in (before, twin)),
            f"{spent['train'] + spent['predict']:.1f} s", f"{spent['audit checkpoint']:.1f} s",
        ])  # fmt: skip
    head = ["step", "members", "late", "checkpoint before: paper's rule", "**valid** / as many / control",
            "trained on on rows set aside: **valid** / as many / control", "τ*, checkpoint", "τ*, trained on",
            "training and prediction", "audit with control"]  # fmt: skip
    return markdown(head, rows)


def _mean(found: list[dict[str, Any]], part: str) -> float:
    return float(np.mean([one[part]["paper"]["mean"] for one in found]))
