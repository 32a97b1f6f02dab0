"""Cost against size, both on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.venvs import HERE

FOLDER = HERE / "figures"
TITLES = {
    "stream": ("rows of a Parquet file, streamed, 20 games", "Cost against rows, streamed"),
    "rows": ("rows, 20 games", "Cost against rows"),
    "games": ("games, 1,000,000 rows", "Cost against games"),
    "classes": ("classes, 200,000 rows, 100 games", "Cost against classes"),
    "canaries": ("canaries m, 60 % of the guesses right", "Cost of one bound"),
}
NAMES = {"audit": "whole audit", "games": "games alone", "records": "reading arrays"}


def cost(name: str, curve: Mapping[str, Any]) -> Path:
    """Draw one curve's figure; where cost grows, with a line of slope 1 beside it."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    xlabel, title = TITLES[name]
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    top = 0.0
    for what, seconds in curve["seconds"].items():
        points = [(x, y) for x, y in zip(curve["sizes"], seconds, strict=True) if y is not None]
        slope = curve["exponents"][what]["upper_half"]
        axes.loglog(*zip(*points, strict=True), "o-", ms=4, label=f"{NAMES.get(what, what)} (upper half: {slope:.2f})")
        top = max(top, points[-1][1] / points[-1][0])
    if name != "canaries":  # a bound's cost does not grow with them
        ends = [curve["sizes"][0], curve["sizes"][-1]]
        axes.loglog(ends, [2 * top * x for x in ends], ":", color="0.6", label="slope 1")
    axes.set(xlabel=xlabel, ylabel="seconds", title=title)
    axes.grid(True, which="major", color="0.9")
    axes.legend(frameon=False, fontsize=8)
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.png"
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path
