"""The figures of randomized response, from the record: ε found against ε spent, and their ratio."""

from __future__ import annotations

from typing import Any

from experiments._draw import DEFAULT, INK, PALE, PAPER, PROXY, VALID, footer, grid, legend, markdown, number
from experiments._record import Record

SHARES = {"0.001": "0.1 %", "0.01": "1 %"}


def figures(record: Record) -> dict[str, Any]:
    """One figure a share of guesses, as in the paper."""
    return {f"rr-{share}": _figure(record, share) for share in SHARES}


def _figure(record: Record, share: str) -> Any:
    figure, axes = grid(2, 3, 11, 6.6, sharex="col", sharey="row")
    for column, k in enumerate(record.settings["classes"]):
        truth = [cell for cell in record.cells.values() if cell["k"] == k and cell["source"] == "truth"]
        proxy = [cell for cell in record.cells.values() if cell["k"] == k and cell["source"] == "logistic"]
        for ax, ratio in ((axes[0, column], False), (axes[1, column], True)):
            _panel(ax, truth, proxy, share, ratio=ratio)
        axes[0, column].set_title(f"k = {k}", fontsize=10.5)
        axes[1, column].set_xlabel("ε of randomized response (replacement)")
    axes[0, 0].set_ylabel("ε found")
    axes[1, 0].set_ylabel("ε found / ε of the mechanism")
    top = 1.2 * max(max(line.get_ydata()) for ax in axes[1] for line in ax.get_lines() if len(line.get_ydata()))
    axes[1, 0].set_ylim(0, min(2.2, max(1.3, top)))
    rows, games = record.settings["rows"], record.settings["games"]
    title = f"Randomized response, {SHARES[share]} of {rows:,} rows guessed, {games} games, 95 %, δ = 1e-5"
    figure.suptitle(title, fontsize=11.5)
    legend(figure, axes[0, 0], 3)
    return figure


def _panel(ax: Any, truth: list[dict[str, Any]], proxy: list[dict[str, Any]], share: str, *, ratio: bool) -> None:
    x = [cell["epsilon"] for cell in truth]

    def scaled(values: list[float]) -> list[float]:
        return [v / e for v, e in zip(values, x, strict=False)] if ratio else values

    def gaussian(cells: list[dict[str, Any]], reading: str, **style: Any) -> None:
        mean, sd = ([cell[reading][share][f"gaussian_{part}"] for cell in cells] for part in ("mean", "sd"))
        ax.errorbar(x[: len(mean)], scaled(mean), yerr=scaled(sd), capsize=2, linewidth=1.4, markersize=4, **style)

    ax.plot(x, scaled(x), color=PALE, linestyle="--", linewidth=1.2, label="truth: replacement ε (= SIM ε, supremum)")
    uniform = [cell["sim_uniform"] for cell in truth]
    ax.plot(x, scaled(uniform), color=PALE, linestyle=":", linewidth=1.4, label="SIM ε, uniform imputed label")
    best = [cell["best_attack"][share] for cell in truth]
    ax.plot(x, scaled(best), color=INK, linewidth=1, label="best attack at this share, infinitely many rows")
    gaussian(truth, "indicator", color=PAPER, marker="o", label="paper's rule (Gaussian, mean ± sd), true posterior")
    gaussian(proxy, "indicator", color=PROXY, marker="s", linestyle="--", label="paper's rule, logistic regression")
    gaussian(truth, "posterior", color="#7a3e9d", marker="^", label="Gaussian, mean ± sd, log-ratio attack")
    valid = [cell["posterior"][share]["valid"] for cell in truth]
    ax.plot(x, scaled(valid), color=VALID, marker="D", markersize=4, label="valid bound at this share, log-ratio")
    default = [cell["posterior"]["grid"] for cell in truth]
    ax.plot(x, scaled(default), color=DEFAULT, marker="v", markersize=4, label="valid default (grid), log-ratio")
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_xticks(x, minor=False)


def tables(record: Record) -> dict[str, str]:
    """Both shares side by side, counterfactuals from the true posterior; and logistic regression against it."""
    head = ["k, ε", "SIM ε uniform"]
    for label in SHARES.values():
        head += [f"{label}: best attack", "paper's rule", "Gaussian, log-ratio"]
        head += ["valid, paper's score", "valid, log-ratio"]
    rows, beside = [], []
    for cell in record.cells.values():
        if cell["source"] == "truth":
            row = [f"{cell['k']}, {cell['epsilon']:g}", number(cell["sim_uniform"])]
            for share in SHARES:
                paper = cell["indicator"][share]
                row += [
                    number(cell["best_attack"][share]),
                    f"{paper['gaussian_mean']:.2f} ± {paper['gaussian_sd']:.2f}",
                    number(cell["posterior"][share]["gaussian_mean"]),
                    number(paper["valid"]),
                    number(cell["posterior"][share]["valid"]),
                ]
            rows.append([*row, number(cell["indicator"]["grid"]), f"**{number(cell['posterior']['grid'])}**"])
            twin = record.cells.get(f"k={cell['k']} logistic eps={cell['epsilon']:g}")
            if twin:
                beside.append(_beside(cell, twin))
    head += ["grid, paper's score", "**default**"]
    second = [
        "k, ε",
        "mean TV",
        "paper's rule 0.1 %: truth",
        "logistic",
        "1 %: truth",
        "logistic",
        "default: truth",
        "logistic",
    ]
    return {"rr": markdown(head, rows) + "\n" + footer(record), "rr-logistic": markdown(second, beside)}


def _beside(truth: dict[str, Any], twin: dict[str, Any]) -> list[str]:
    row = [f"{truth['k']}, {truth['epsilon']:g}", number(twin["reference_tv"]["mean"], 4)]
    for share in SHARES:
        row += [number(cell["indicator"][share]["gaussian_mean"]) for cell in (truth, twin)]
    return [*row, *(number(cell["posterior"]["grid"]) for cell in (truth, twin))]
