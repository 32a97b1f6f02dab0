"""The table on Twitter, from the record, and a picture of three attacks beside their controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from experiments._draw import AUDIT_HEAD, INK, PALE, PAPER, SCALE, audit_row, brief, footer, grid, legend, markdown
from experiments._record import Record
from experiments.tweets import PAPER as TABLE

ATTACKS = {"lia": "LIA (labels)", "mia": "calibrated MIA", "rmia": "RMIA"}
KINDS = {"plain": "as trained", "calibrated": "calibrated"}


def found(cell: Mapping[str, Any], kind: str, attack: str) -> tuple[Mapping[str, Any], float]:
    """What an attack found, and the control's valid bound."""
    held = cell[kind]
    if attack == "lia":
        return held["members"], held["control"]["valid"]
    return held[attack], held[attack]["control"]


def targets(record: Record) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """ε as shown, and its cell."""
    for key, cell in record.cells.items():
        if key.startswith("eps="):
            yield "∞" if cell["epsilon"] is None else f"{cell['epsilon']:g}", cell


def tables(record: Record) -> dict[str, str]:
    """Attacks by ε and reference; and how well the networks predict."""
    rows = []
    for epsilon, cell in targets(record):
        for kind, told in KINDS.items():
            for attack, title in ATTACKS.items():
                paper = TABLE[attack] if epsilon == "∞" and kind == "plain" else None
                rows.append([title, epsilon, told, *audit_row(*found(cell, kind, attack), paper)])
    m = record.cells["reference"]
    grades = [["M'", "–", "–", f"{m['accuracy']:.1%}", f"{m['log_loss']:.3f}"]]
    grades.append([f"M', temperature {m['temperature']:.2f}", "–", "–", "", f"{m['calibrated_log_loss']:.3f}"])
    for epsilon, cell in targets(record):
        seen = cell["members"]
        grades.append(
            [f"M, ε = {epsilon}", f"{seen['accuracy']:.1%}", f"{seen['log_loss']:.3f}",
             f"{cell['test']['accuracy']:.1%}", f"{cell['test']['log_loss']:.3f}"]
        )  # fmt: skip
    head = ["network", "members: accuracy", "log-loss", "test: accuracy", "log-loss"]
    return {
        "tweets": markdown(["attack", "ε", "M'", *AUDIT_HEAD], rows) + "\n" + footer(record),
        "tweets-accuracy": markdown(head, grades),
        "tweets-brief": brief(
            (f"ε = {epsilon}, M' {told}", TABLE["lia"] if epsilon == "∞" and kind == "plain" else None,
             cell[kind]["members"], None, cell[kind]["control"])
            for epsilon, cell in targets(record) for kind, told in KINDS.items()
        ),
    }  # fmt: skip


def figures(record: Record) -> dict[str, Any]:
    """A panel for each reference: valid bounds as bars, controls in front of them, the paper's rule as a point."""
    figure, axes = grid(1, 2, 10, 4.2, sharey=True)
    cells = list(targets(record))
    for ax, (kind, told) in zip(axes[0], KINDS.items(), strict=True):
        for j, (attack, title) in enumerate(ATTACKS.items()):
            at = [i + 0.26 * (j - 1) for i in range(len(cells))]
            pairs = [found(cell, kind, attack) for _, cell in cells]
            ax.bar(at, [each["valid"] for each, _ in pairs], 0.22, color=SCALE[j], label=f"{title}: valid bound")
            ax.bar(at, [control for _, control in pairs], 0.12, color=PALE, label="control" if not j else None)
            mean, sd = ([each["paper"][part] for each, _ in pairs] for part in ("mean", "sd"))
            told_once = "paper's rule, mean ± sd: not a bound" if not j else None
            ax.errorbar(at, mean, yerr=sd, fmt="o", color=PAPER, markersize=4, capsize=2, label=told_once)
        for i, (_, cell) in enumerate(cells):
            if cell["epsilon"] is not None:
                ends = [i - 0.42, i + 0.42]
                ax.plot(
                    ends,
                    [cell["epsilon"]] * 2,
                    color=INK,
                    ls="--",
                    lw=1,
                    label="ε of the mechanism" if i == 1 else None,
                )
        ax.set_xticks(range(len(cells)), [f"ε = {epsilon}" for epsilon, _ in cells])
        ax.set_title(f"reference {told}", fontsize=10.5)
    axes[0, 0].set_ylabel("ε found")
    figure.suptitle(f"Tweets, 95 %, δ = 1e-5 ({record.settings['data']})", fontsize=11.5)
    legend(figure, axes[0, 0], 3)
    return {"tweets": figure}
