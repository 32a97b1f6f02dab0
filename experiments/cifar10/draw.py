"""The paper's CIFAR-10 tables and figures beside ours, from the record alone."""

from __future__ import annotations

from typing import Any

from experiments import _draw
from experiments._draw import markdown, number, spread
from experiments._record import Record

NAMES = {
    "lp1st": "LP-1ST",
    "lp1st-prior": "LP-1ST, out-of-domain prior",
    "pate-fm": "PATE-FM",
    "alibi": "ALIBI",
}
EPSILONS = ("inf", "10", "1")
# Tables 1 (sweep), 5 (1 %) and 3 (accuracy) of the paper, at ε = ∞, 10, 1.
PAPER = {
    "lp1st": (
        ("2.13 ± .22", "2.02 ± .33", "0.43 ± .05"),
        ("1.98 ± .21", "1.99 ± .32", "0.41 ± .03"),
        (91.3, 91.07, 60.4),
    ),
    "lp1st-prior": (
        ("2.26 ± .22", "1.86 ± .25", "0.90 ± .07"),
        ("2.08 ± .21", "1.78 ± .23", "0.81 ± .05"),
        (92.1, 91.5, 87.9),
    ),
    "pate-fm": (
        ("2.42 ± .32", "2.22 ± .24", "0.79 ± .09"),
        ("2.26 ± .31", "2.16 ± .22", "0.74 ± .08"),
        (92.5, 92.3, 91.3),
    ),
    "alibi": (
        ("2.53 ± .33", "2.18 ± .27", "0.67 ± .07"),
        ("2.43 ± .31", "2.1 ± .26", "0.65 ± .05"),
        (90.1, 87.1, 66.9),
    ),
}
_HEAD = ("target", "ε")
_FIXED = ("paper, 1 %", "paper's rule, not a bound", "**valid at 1 %**", "control, paper's rule", "control, valid")
_ACCURACY = ("paper", "test", "own rows", "labels true in the release", "ε between labels", "ε against ⊥", "trained on")
_ATTACKS = (
    ("label game", "members", _draw.VALID, "o"),
    ("calibrated membership", "mia", _draw.PAPER, "s"),
    ("RMIA", "rmia", _draw.SCALE[2], "^"),
)


def _targets(record: Record) -> list[tuple[str, int, dict[str, Any]]]:
    """(kind, place of its ε, cell), mechanism by mechanism."""
    pairs = [(kind, place) for kind in NAMES for place in range(len(EPSILONS))]
    held = [(kind, place, record.cells.get(f"{kind}-{EPSILONS[place]}")) for kind, place in pairs]
    return [(kind, place, cell) for kind, place, cell in held if cell is not None]


def _names(kind: str, place: int) -> tuple[str, str]:
    return NAMES[kind], "∞" if EPSILONS[place] == "inf" else EPSILONS[place]


def tables(record: Record) -> dict[str, str]:
    """The sweep, 1 %, membership, accuracy and few labels."""
    held = _targets(record)
    foot = "\n" + _draw.footer(record)
    sweep = [(_names(kind, place), cell, PAPER[kind][0][place]) for kind, place, cell in held]
    return {
        "cifar10": _draw.audit_table(_HEAD, sweep) + foot,
        "cifar10-fixed": markdown(
            [*_HEAD, *_FIXED],
            [[*_names(kind, place), PAPER[kind][1][place], *_fixed(cell)] for kind, place, cell in held],
        ),
        "cifar10-mia": _draw.audit_table(_HEAD, [(names, cell, None) for names, cell, _ in sweep], mia=True),
        "cifar10-rmia": _draw.audit_table(
            _HEAD, [(names, {**cell, "mia": cell["rmia"]}, None) for names, cell, _ in sweep], mia=True
        ),
        "cifar10-accuracy": markdown(
            [*_HEAD, *_ACCURACY],
            [[*_names(kind, place), f"{PAPER[kind][2][place]:g} %", *_accuracy(cell)] for kind, place, cell in held],
        ),
        "cifar10-few": markdown(
            ["training", "test accuracy"],
            [[name, _share(cell["test_accuracy"])] for name, cell in record.cells.items() if _alone(name)],
        ),
    }


def _alone(name: str) -> bool:
    return name == "reference" or "-250" in name


def _fixed(cell: dict[str, Any]) -> list[str]:
    members, control = cell["members"], cell["control"]
    rules = (members["paper_one_percent"], control["paper_one_percent"])
    one, other = (spread(rule) for rule in rules)
    return [one, f"**{_draw.floor(members['fixed'])}**", other, _draw.floor(control["fixed"])]


def _accuracy(cell: dict[str, Any]) -> list[str]:
    notes = cell["notes"]
    kept = notes.get("labels_true")
    told = [_share(cell["test_accuracy"]), _share(cell["members_accuracy"]), "–" if kept is None else _share(kept)]
    if "answers" in notes:
        told[2] = f"{notes['answers']} answers, {_share(notes['answers_right'])} right"
    return [*told, *(number(notes.get(f"epsilon_{which}")) for which in ("replace", "label")), cell["device"]]


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def figures(record: Record) -> dict[str, Any]:
    """ε against ε: three attacks for each mechanism, valid bounds and the paper's rule, control beside."""
    held = _targets(record)
    figure, axes = _draw.grid(1, len(NAMES), 11.5, 3.3, sharey=True)
    for ax, kind in zip(axes.flat, NAMES, strict=True):
        cells = {place: cell for which, place, cell in held if which == kind}
        for shift, (label, key, colour, marker) in enumerate(_ATTACKS):
            x = [2 - place + (shift - 1) * 0.16 for place in cells]
            rule = [cell[key]["paper"] for cell in cells.values()]
            means, spreads = [each["mean"] for each in rule], [each["sd"] for each in rule]
            ax.errorbar(
                x, means, spreads, fmt=marker, color=colour, mfc="none", capsize=2, label=f"{label}, paper's rule"
            )
            valid = [cell[key]["valid"] for cell in cells.values()]
            ax.plot(x, valid, marker, color=colour, label=f"{label}, valid bound")
            control = [
                cell["control"]["valid"] if key == "members" else cell[key]["control"] for cell in cells.values()
            ]
            ax.plot(x, control, "_", color=colour, markersize=10, label=f"{label}, control")
        ax.set_title(NAMES[kind], fontsize=10)
        ax.set_xticks([0, 1, 2], ["1", "10", "∞"])
        ax.set_xlabel("ε of the mechanism")
    axes[0, 0].set_ylabel("empirical ε")
    _draw.legend(figure, axes[0, 0], 3)
    return {"cifar10": figure}
