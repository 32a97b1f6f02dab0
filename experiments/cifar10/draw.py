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
_MENDED = ("**valid, M' calibrated**", "control, M' calibrated")
_FIXED = (
    "paper, 1 %",
    "paper's rule, not a bound",
    "**valid at 1 %**",
    "control, paper's rule",
    "control, valid",
    *_MENDED,
)
_ACCURACY = ("paper", "test", "own rows", "labels true in the release", "ε between labels", "ε against ⊥", "trained on")
_ATTACKS = (
    ("label game", "members", _draw.PALE, "o"),
    ("label game, M' calibrated", "calibrated", _draw.VALID, "D"),
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
        "cifar10": markdown(
            [*_HEAD, *_draw.AUDIT_HEAD, *_MENDED],
            [
                [*names, *_draw.audit_row(cell["members"], cell["control"]["valid"], paper), *_mended(cell, "valid")]
                for names, cell, paper in sweep
            ],
        )
        + foot,
        "cifar10-brief": _draw.brief(_brief(held)),
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
            ["training", "test accuracy", "seconds", "on"],
            [
                [name, _share(cell["test_accuracy"]), f"{cell['training']['seconds']:.0f}", cell["device"]]
                for name, cell in record.cells.items()
                if _alone(name)
            ],
        )
        + ("" if held else foot),
    }


def _brief(held: list[tuple[str, int, dict[str, Any]]]) -> list[tuple[Any, ...]]:
    """For the overview: the ends of LP-1ST and PATE-FM without privacy, by both references."""
    chosen = (("lp1st", 0), ("lp1st", 2), ("pate-fm", 0))
    rows: list[tuple[Any, ...]] = []
    for kind, place, cell in held:
        if (kind, place) in chosen:
            name, epsilon = _names(kind, place)
            milder = cell["calibrated"]
            rows.append((f"{name}, ε = {epsilon}", PAPER[kind][0][place], cell["members"], None, cell["control"]))
            rows.append((f"{name}, ε = {epsilon}, M' calibrated", None, milder["members"], None, milder["control"]))
    return rows


def _alone(name: str) -> bool:
    return name == "reference" or "-250" in name


def _fixed(cell: dict[str, Any]) -> list[str]:
    members, control = cell["members"], cell["control"]
    rules = (members["paper_one_percent"], control["paper_one_percent"])
    one, other = (spread(rule) for rule in rules)
    return [
        one,
        f"**{_draw.floor(members['fixed'])}**",
        other,
        _draw.floor(control["fixed"]),
        *_mended(cell, "fixed"),
    ]


def _mended(cell: dict[str, Any], rule: str) -> list[str]:
    """Members and control, with M' calibrated."""
    members, control = (_draw.floor(cell["calibrated"][part][rule]) for part in ("members", "control"))
    return [f"**{members}**", control]


def _accuracy(cell: dict[str, Any]) -> list[str]:
    notes = cell["notes"]
    kept = notes.get("labels_true")
    told = [_share(cell["test_accuracy"]), _share(cell["members_accuracy"]), "–" if kept is None else _share(kept)]
    if "answers" in notes:
        told[2] = f"{notes['answers']} answers, {_share(notes['answers_right'])} right"
    return [*told, *(number(notes.get(f"epsilon_{which}")) for which in ("replace", "label")), cell["device"]]


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _found(cell: dict[str, Any], key: str) -> tuple[dict[str, Any], float]:
    """What an attack found on the members, and the control's valid bound."""
    if key == "members":
        return cell[key], cell["control"]["valid"]
    if key == "calibrated":
        return cell[key]["members"], cell[key]["control"]["valid"]
    return cell[key], cell[key]["control"]


def figures(record: Record) -> dict[str, Any]:
    """ε against ε: the attacks for each mechanism, valid bounds and the paper's rule, control beside."""
    held = _targets(record)
    if not held:
        return {}
    figure, axes = _draw.grid(1, len(NAMES), 12, 4.2, sharey=True)
    for ax, kind in zip(axes.flat, NAMES, strict=True):
        cells = {place: cell for which, place, cell in held if which == kind}
        for shift, (label, key, colour, marker) in enumerate(_ATTACKS):
            x = [2 - place + (shift - 1.5) * 0.17 for place in cells]
            found = [_found(cell, key) for cell in cells.values()]
            means, spreads = ([each["paper"][part] for each, _ in found] for part in ("mean", "sd"))
            ax.errorbar(
                x, means, spreads, fmt=marker, color=colour, mfc="none", ms=5, capsize=2, label=f"{label}: paper's rule"
            )
            ax.plot(x, [each["valid"] for each, _ in found], marker, color=colour, ms=5, label=f"{label}: valid bound")
            ax.plot(x, [control for _, control in found], "_", color=colour, ms=11, mew=2, label=f"{label}: control")
        ax.plot([-0.4, 0.4], [1, 1], "--", color=_draw.INK, lw=1, label="ε of the mechanism (10 is above the frame)")
        ax.set_title(NAMES[kind], fontsize=10)
        ax.set_xticks([0, 1, 2], ["1", "10", "∞"])
        ax.set_xlabel("ε of the mechanism")
    axes[0, 0].set_ylabel("empirical ε")
    _draw.legend(figure, axes[0, 0], 4)
    return {"cifar10": figure}
