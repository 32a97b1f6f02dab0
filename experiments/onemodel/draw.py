"""Every game on one model, from the record: one table, and a bar for every row of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from experiments._draw import DEFAULT, INK, PAPER, floor, footer, grid, legend, markdown, number, spread
from experiments._record import Record

GAMES = {
    "label": "label", "attribute": "attribute", "membership": "membership, held-out rows",
    "generated": "membership, generated rows", "one run": "membership, coins (one run)",
    "label canaries": "label canaries",
}  # fmt: skip


def found(record: Record, target: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(game, attack, numbers) of one target, in the order in which they were played."""
    for game in GAMES:
        cell = record.cells.get(f"{target} {game}", {})
        for attack, numbers in cell.items():
            if attack not in ("run", "seconds"):
                yield game, attack, numbers


def targets(record: Record) -> list[str]:
    """The keys of the targets, and how they are called."""
    return [key.removesuffix(" target") for key in record.cells if key.endswith(" target")]


def told(target: str) -> str:
    """A target, in words."""
    epsilon = target.removeprefix("eps=")
    return "ordinary training" if epsilon == "inf" else f"labels behind randomized response, ε = {epsilon}"


def tables(record: Record) -> dict[str, str]:
    """The table for each target; the models; the counterfactuals."""
    out = {}
    for target in targets(record):
        name = "onemodel" if target == "eps=inf" else f"onemodel-{target.replace('=', '')}"
        out[name] = markdown(_HEAD, [_row(*each) for each in found(record, target)]) + "\n" + footer(record)
    return out | {"onemodel-models": _models(record), "onemodel-quality": _quality(record)}


_HEAD = (
    "game", "attack", "n", "right of guessed", "**ε ≥**", "τ*", "control: n", "ε ≥", "paper's sweep, not a bound",
    "control", "AUC", "control",
)  # fmt: skip


def _row(game: str, attack: str, one: Mapping[str, Any]) -> list[str]:
    other = one["control"]
    return [
        GAMES[game], attack, f"{one['canaries']:,}", f"{one['correct']:,} of {one['guesses']:,}",
        f"**{floor(one['epsilon'])}**", _star(one["tau_star"]), f"{other['canaries']:,}", floor(other["epsilon"]),
        _sweep(one), _sweep(other), number(one["auc"], 3), number(other["auc"], 3),
    ]  # fmt: skip


def _star(tau: float | None) -> str:
    return "–" if tau is None else f"{tau:.1e}" if tau else "0"


def _sweep(one: Mapping[str, Any]) -> str:
    """Of one game there is no spread."""
    return spread(one["paper"]) if one["games"] > 1 else number(one["paper"]["mean"])


def _models(record: Record) -> str:
    """Log-loss on members and on the control."""
    reference, rows = record.cells["reference"], []
    for target in targets(record):
        loss = record.cells[f"{target} target"]["log_loss"]
        rows.append([f"M, {told(target)}", number(loss["members"], 3), number(loss["control"], 3)])
    rows += [[f"M', {kind}", "–", number(loss, 3)] for kind, loss in reference["log_loss"].items()]
    rows.append(["a constant", "–", number(reference["constant"], 3)])
    return markdown(["model", "log-loss: members", "control"], rows)


def _quality(record: Record) -> str:
    """The two-sample test on the control's rows, for each target and stand-in."""
    rows = []
    for target in targets(record):
        for game, attack, one in found(record, target):
            seen = one["quality"]
            if seen is not None and not any(attack.endswith(each) for each in _AGAIN):
                what = "M'" if game == "label" else f"sampler of {attack.partition(':')[0]}"
                loss = "–" if seen["log_loss"] is None else number(seen["log_loss"], 4)
                rows.append([
                    what, told(target), f"{seen['rows']:,}", loss, number(seen["log_loss_constant"], 4),
                    f"{seen['shift']:.4f}", f"{seen['shift_low']:.4f} to {seen['shift_high']:.4f}",
                ])  # fmt: skip
    head = ["stand-in", "seen through", "rows", "log-loss", "a constant's", "shift seen", "95 % interval"]
    return markdown(head, rows)


_AGAIN = ("paper (t = 2)", "learned", "over a reference")  # other attacks on what was tested already


def figures(record: Record) -> dict[str, Any]:
    """A panel for each target: valid bounds as bars, the control's as crosses, the paper's sweep as points."""
    names = targets(record)
    figure, axes = grid(1, len(names), 6.2 * len(names), 7.6, sharex=True, sharey=True)
    for ax, target in zip(axes[0], names, strict=True):
        rows = list(found(record, target))
        at = list(range(len(rows)))
        ax.barh(at, [one["epsilon"] for *_, one in rows], 0.7, color=DEFAULT, label="valid bound")
        ax.plot([one["control"]["epsilon"] for *_, one in rows], at, "x", color=INK, markersize=5, linestyle="",
                label="control, valid bound")  # fmt: skip
        mean, sd = ([one["paper"][part] for *_, one in rows] for part in ("mean", "sd"))
        ax.errorbar(mean, at, xerr=sd, fmt="o", color=PAPER, markersize=3.5, capsize=2,
                    label="paper's sweep, mean ± sd: not a bound")  # fmt: skip
        ax.set_yticks(at, [f"{GAMES[game]}: {attack}" for game, attack, _ in rows], fontsize=8)
        true = record.cells[f"{target} target"]["epsilon_true"]
        if true is not None:
            ax.axvline(true, color=INK, ls="--", lw=1, label="ε of randomized response (labels)")
        ax.set_title(told(target), fontsize=10)
        ax.set_xlabel("ε found")
    axes[0, 0].invert_yaxis()
    figure.suptitle("Every game on one model: CatBoost on flights (95 %, δ = 1e-5)", fontsize=11.5)
    legend(figure, axes[0, -1], 4)
    return {"onemodel": figure}
