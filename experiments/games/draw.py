"""Many games, one bound, from the record: what is kept and how often it is wrong."""

from __future__ import annotations

from typing import Any

from experiments._draw import INK, PAPER, SCALE, VALID, footer, grid, markdown, number
from experiments._record import Record


def _split(record: Record) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    cells = list(record.cells.values())
    pure = [cell for cell in cells if not cell.get("delta")]
    return [cell for cell in pure if cell["truth"] > 0], [cell for cell in pure if cell["truth"] == 0]


def figures(record: Record) -> dict[str, Any]:
    """Left: ε kept, relative to one game. Right: false positives of the nulls."""
    power, null = _split(record)
    figure, axes = grid(1, 2, 11.5, 5.2)
    left, right = axes[0]
    shares = [name for name in power[0]["methods"] if name.startswith("quantile") and "δ" not in name]
    x = [float(name.split()[1]) for name in shares]
    sizes = sorted({cell["rows"] for cell in power})
    targets = list(dict.fromkeys(cell["target"] for cell in power))
    for cell in power:
        one = cell["methods"]["one game"]["mean"]
        colour, style = SCALE[targets.index(cell["target"])], ("-", "--", ":")[sizes.index(cell["rows"])]
        y = [cell["methods"][name]["mean"] / one for name in shares]
        left.plot(x, y, color=colour, linestyle=style, marker=".", label=f"{cell['target']}, m = {cell['rows']:,}")
    left.axhline(1, color=INK, linewidth=0.8)
    left.axvline(0.5, color=VALID, linewidth=5, alpha=0.15)
    left.set_xscale("log")
    left.set_xticks(x, [f"{share:g}" for share in x], minor=False)
    left.minorticks_off()
    left.set_xlabel("share of the games that must reject")
    left.set_ylabel("mean ε kept / that of one game")
    left.legend(frameon=False, fontsize=7.5, ncols=2, loc="lower left")
    names = list(null[0]["methods"])
    for at, name in enumerate(names):
        for k, cell in enumerate(null):
            found = cell["methods"][name]
            colour = PAPER if name.startswith("paper") else VALID
            height = at + (k - (len(null) - 1) / 2) * 0.12
            right.errorbar(
                found["above_truth"],
                height,
                xerr=2 * found["above_se"],
                fmt="o",
                markersize=3.5,
                color=colour,
                linewidth=0.9,
            )
    right.axvline(0.05, color=INK, linestyle="--", linewidth=0.9)
    right.set_xscale("symlog", linthresh=0.1)
    right.set_xlim(-0.005, 1.3)
    right.set_xticks([0, 0.05, 0.1, 0.3, 1], ["0", "5 %", "10 %", "30 %", "100 %"])
    right.minorticks_off()
    right.set_yticks(range(len(names)), names)
    right.invert_yaxis()
    right.set_xlabel("share of null runs with ε > 0 (± 2 standard errors)")
    figure.suptitle("Combining 100 games (95 %, doubling grid): power and false positives", fontsize=11.5)
    return {"games": figure}


def tables(record: Record) -> dict[str, str]:
    """Mean ε kept, and false positives, by method."""
    power, null = _split(record)
    names = list(power[0]["methods"])
    head = ["method", *(f"{cell['target']}, m = {cell['rows']:,}" for cell in power)]
    kept = [[name, *(number(cell["methods"][name]["mean"], 3) for cell in power)] for name in names]
    kept.append(["*SIM ε (supremum over the rows)*", *(number(cell["truth"], 3) for cell in power)])
    kept.append(["*runs*", *(cell["repeats"] for cell in power)])
    heads = ["method", *(f"{cell['target'].removeprefix('null ')}, m = {cell['rows']:,}" for cell in null)]
    heads += ["above the truth where ε > 0 (worst target)"]
    wrong = []
    for name in names:
        shown = [f"{c['methods'][name]['above_truth']:.3f} ± {c['methods'][name]['above_se']:.3f}" for c in null]
        worst = max(power, key=lambda c: c["methods"][name]["above_truth"])["methods"][name]
        wrong.append([name, *shown, f"{worst['above_truth']:.2f} ± {worst['above_se']:.2f}"])
    wrong.append(["*runs*", *(cell["repeats"] for cell in null), ""])
    small = [cell for cell in record.cells.values() if cell.get("delta")]
    last = [["method", *(f"{cell['target']}, m = {cell['rows']:,}" for cell in small)]]
    names = list(small[0]["methods"]) if small else []
    last += [[name, *(number(cell["methods"][name]["mean"], 3) for cell in small)] for name in names]
    tables = {"games-delta": markdown(last[0], last[1:])} if small else {}
    return tables | {"games": markdown(head, kept) + "\n" + footer(record), "games-null": markdown(heads, wrong)}
