"""The figure on τ, from the record."""

from __future__ import annotations

from typing import Any

from experiments._draw import DEFAULT, PALE, SCALE, footer, grid, legend, markdown, number
from experiments._record import Record


def figures(record: Record) -> dict[str, Any]:
    """Above the paper's rule, below the valid bounds; a panel for every ε."""
    epsilons, shares = record.settings["epsilons"], [f"{share:g}" for share in record.settings["shares"]]
    figure, axes = grid(2, len(epsilons), 11, 6.8, sharex=True, sharey="col")
    for column, epsilon in enumerate(epsilons):
        cells = [cell for cell in record.cells.values() if cell["epsilon"] == epsilon]
        x = [cell["tau"] for cell in cells]
        for ax in axes[:, column]:
            ax.axhline(epsilon, color=PALE, linestyle="--", linewidth=1.2, label="ε of randomized response")
        for share, colour in zip(shares, SCALE, strict=False):
            style = {"color": colour, "marker": "o", "markersize": 3.5, "linewidth": 1.3}
            style["label"] = f"{100 * float(share):g} % of the rows guessed"
            paper = [cell["indicator"][share] for cell in cells]
            mean, sd = ([found[f"gaussian_{part}"] for found in paper] for part in ("mean", "sd"))
            axes[0, column].errorbar(x, mean, yerr=sd, capsize=2, **style)
            axes[1, column].plot(x, [cell["posterior"][share]["theorem"] for cell in cells], **style)
        default = [cell["posterior"]["grid"] for cell in cells]
        for form, label, colour, dashes in (
            ("two_sided", "default grid, two-sided form", "black", ":"),
            ("ignored", "default grid, τ not told (invalid)", DEFAULT, "-."),
        ):
            y = [found[form] for found in default]
            axes[1, column].plot(x, y, color=colour, linestyle=dashes, linewidth=1.6, label=label)
        axes[0, column].set_title(f"ε = {epsilon:g}", fontsize=10.5)
        axes[0, column].set_ylim(0, 1.5 * epsilon)
        axes[1, column].set_xlabel("τ")
        axes[0, column].set_xscale("log")
    axes[0, 0].set_ylabel("paper's rule: Gaussian, mean ± sd")
    axes[1, 0].set_ylabel("valid bound, log-ratio attack")
    rows = record.settings["rows"]
    figure.suptitle(f"Counterfactuals shifted by τ, Theorem 1's form, {rows:,} rows, binary", fontsize=11.5)
    legend(figure, axes[1, 0], 4)
    return {"tau": figure}


def tables(record: Record) -> dict[str, str]:
    """The paper's rule and the valid bound at each share; the default's three forms."""
    shares = [f"{share:g}" for share in record.settings["shares"]]
    head = ["ε, τ", *(f"paper's rule {100 * float(share):g} %" for share in shares)]
    head += [f"valid {100 * float(share):g} %" for share in shares]
    head += ["default, theorem", "default, two-sided", "default, τ not told (invalid)"]
    rows = []
    for cell in record.cells.values():
        row = [f"{cell['epsilon']:g}, {cell['tau']:.0e}"]
        row += [number(cell["indicator"][share]["gaussian_mean"]) for share in shares]
        row += [number(cell["posterior"][share]["theorem"]) for share in shares]
        row += [number(cell["posterior"]["grid"][form]) for form in ("theorem", "two_sided", "ignored")]
        rows.append(row)
    return {"tau": markdown(head, rows) + "\n" + footer(record)}
