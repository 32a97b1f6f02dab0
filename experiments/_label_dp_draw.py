"""Tables and figures of the label-DP mechanisms, from a record of `_label_dp`, beside the paper's numbers on Criteo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from experiments import _draw
from experiments._draw import DEFAULT, INK, PALE, PAPER, PROXY, VALID, floor, grid, legend, markdown, number
from experiments._label_dp import EPSILONS, MECHANISMS, ONE_STAGE, PATE, PLAIN, name
from experiments._record import Record

TABLE: dict[str, tuple[str, ...]] = {
    "LP-1ST": ("1.37 ± .14", "1.29 ± .12", "1.22 ± .17", "0.59 ± .05", "0.34 ± .02", "0.06 ± .01"),
    "LP-1ST (domain prior)": ("1.47 ± .22", "1.37 ± .10", "1.28 ± .21", "—", "—", "—"),
    "LP-1ST (noise correction)": ("1.31 ± .12", "1.26 ± .11", "1.04 ± .16", "0.52 ± .07", "0.40 ± .08", "0.06 ± .01"),
    "LP-2ST": ("1.52 ± .14", "1.46 ± .11", "1.24 ± .15", "0.75 ± .05", "0.61 ± .07", "0.06 ± .01"),
    "PATE": ("1.60 ± .15", "1.48 ± .14", "1.28 ± .12", "0.71 ± .07", "0.59 ± .05", "0.06 ± .01"),
}
LOSS: dict[str, tuple[str, ...]] = {
    "LP-1ST": (".130", ".130", ".136", ".206", ".362", ".653"),
    "LP-1ST (domain prior)": (".130", ".130", ".136", "—", "—", "—"),
    "LP-1ST (noise correction)": (".130", ".130", ".131", ".156", ".171", ".645"),
    "LP-2ST": (".130", ".130", ".123", ".207", ".342", ".527"),
    "PATE": (".130", ".151", ".156", ".188", ".255", ".680"),
}
DASH = "—"


def shown(epsilon: float | str) -> str:
    """As a table writes it."""
    return "∞" if epsilon == "inf" else f"{epsilon:g}"


def held(record: Record) -> Iterator[tuple[str, float | str, int, dict[str, Any]]]:
    """Every (mechanism, ε, place in the paper's table, cell); without privacy all but PATE share one cell."""
    for mechanism in MECHANISMS:
        for place, epsilon in enumerate(EPSILONS):
            own = mechanism == PATE or epsilon != "inf"
            cell = record.cells.get(name(mechanism if own else PLAIN, epsilon))
            if cell is not None:
                yield mechanism, epsilon, place, cell


def tables(record: Record, key: str) -> dict[str, str]:
    """ε by the label game; by membership inference; the log-loss; and the reference."""
    rows = {"label": [], "mia": []}
    for mechanism, epsilon, place, cell in held(record):
        names = (f"{mechanism}, {shown(epsilon)}",)
        if "nothing" in cell:
            for kind in rows:
                rows[kind].append([*names, TABLE[mechanism][place] if kind == "label" else DASH, *[DASH] * 6])
            continue
        control, mia = cell["control"], cell["mia"]
        truth = cell.get("truth")
        extra = [floor(cell["as_many"])] if "as_many" in cell else []
        extra += [] if truth is None else [f"{floor(truth['members'])} / {floor(truth['control'])}"]
        rows["label"].append(
            [*names, *_draw.audit_row(cell["members"], control["valid"], TABLE[mechanism][place]), *extra]
        )
        rows["mia"].append([*names, *_draw.audit_row(mia, mia["control"])])
    known = any("truth" in cell for cell in record.cells.values())
    uneven = any("as_many" in cell for cell in record.cells.values())
    width = len(_draw.AUDIT_HEAD) + 1 + uneven + known
    padded = [row + [DASH] * (width - len(row)) for row in rows["label"]]
    first = ["mechanism, ε", *_draw.AUDIT_HEAD]
    more = ["valid on as many members as control rows"] if uneven else []
    more += ["valid by the true P: members / control"] if known else []
    foot = _draw.footer(record)
    return {
        key: markdown([*first, *more], padded) + "\n" + foot,
        f"{key}-mia": markdown(first, [row + [DASH] * (len(first) - len(row)) for row in rows["mia"]]),
        f"{key}-loss": _losses(record),
        f"{key}-reference": _reference(record),
        f"{key}-share": _few(record),
        f"{key}-brief": _brief(record),
    }


def _brief(record: Record) -> str:
    """Three cells for the overview."""
    chosen = ((ONE_STAGE, "inf"), (ONE_STAGE, 1), (PATE, "inf"))
    found = {(mechanism, epsilon): (place, cell) for mechanism, epsilon, place, cell in held(record)}
    return _draw.brief(
        (f"{pair[0]}, ε = {shown(pair[1])}", TABLE[pair[0]][found[pair][0]], cell["members"], cell.get("as_many"),
         cell["control"])
        for pair in chosen if pair in found and "members" in (cell := found[pair][1])
    )  # fmt: skip


def _losses(record: Record) -> str:
    """Test log-loss: the paper's / ours; below, the same noise taken out by the product's default."""
    found = {(mechanism, epsilon): cell for mechanism, epsilon, _, cell in held(record)}
    rows = []
    for mechanism in MECHANISMS:
        line = [mechanism]
        for place, epsilon in enumerate(EPSILONS):
            cell = found.get((mechanism, epsilon), {})
            ours = number(cell["log_loss"]["test"], 3).lstrip("0") if "log_loss" in cell else DASH
            line.append(f"{LOSS[mechanism][place]} / {ours}")
        rows.append(line)
    inverse = ["LP-1ST, corrected by `Inverse()`"]
    for epsilon in EPSILONS:
        cell = found.get(("LP-1ST (noise correction)", epsilon), {})
        inverse.append(f"{DASH} / {number(cell.get('log_loss_inverse'), 3).lstrip('0')}")
    return markdown(["paper's / ours", *(f"ε = {shown(epsilon)}" for epsilon in EPSILONS)], [*rows, inverse])


def _reference(record: Record) -> str:
    """How the reference does where it was trained, and where the target is."""
    about = {key: value for key, value in record.cells["reference"].items() if isinstance(value, dict)}
    rows = [
        [part, number(one["rate"], 4), number(one["log_loss"], 4), number(one["constant"], 4),
         number(one.get("truth"), 4), number(one.get("tau"), 4)]
        for part, one in about.items()
    ]  # fmt: skip
    return markdown(["rows", "positive", "reference's log-loss", "constant's", "truth's", "mean TV to the truth"], rows)


def _few(record: Record) -> str:
    """What each mechanism promises, what it did to the labels, and what a cell costs."""
    rows = []
    for mechanism, epsilon, _, cell in held(record):
        if "nothing" in cell:
            rows.append([f"{mechanism}, {shown(epsilon)}", DASH, DASH, DASH, cell["nothing"]])
            continue
        spent = cell["seconds_of"]
        ones = cell["share_of_one"]
        rows.append([
            f"{mechanism}, {shown(epsilon)}", number(cell["epsilon_true"]), number(cell["epsilon_label"]),
            DASH if ones is None else f"{ones:.0%}",
            f"{spent['train']:.0f} + {spent['predict'] + spent['audit']:.0f} s",
        ])  # fmt: skip
    return markdown(["mechanism, ε", "ε between labels", "ε against ⊥", "rows with k = 1", "training + audit"], rows)


def figures(record: Record, key: str, title: str) -> dict[str, Any]:
    """ε found against ε spent, a panel a mechanism; and the label game beside membership inference."""
    figure, axes = grid(1, len(MECHANISMS), 13, 4, sharey=True)
    for ax, mechanism in zip(axes[0], MECHANISMS, strict=True):
        _panel(ax, [(place, cell) for kind, place, cell in audited(record) if kind == mechanism])
        theirs = [(place, float(text.split()[0])) for place, text in enumerate(TABLE[mechanism]) if text != DASH]
        ax.plot(*zip(*theirs, strict=True), color=PROXY, marker="o", markerfacecolor="none", markersize=5,
                linestyle="none", label="the paper's numbers (Criteo)")  # fmt: skip
        ax.set_title(mechanism, fontsize=9.5)
    highest = max(float(text.split()[0]) for line in TABLE.values() for text in line if text != DASH)
    top = max(_top(record), 1.08 * highest)  # shared; the mechanism's own ε leaves at the top
    axes[0][0].set_ylim(-0.03 * top, top)
    axes[0][0].set_ylabel("ε found")
    figure.suptitle(title, fontsize=11)
    legend(figure, axes[0][0], 6)
    return {key: figure, f"{key}-mia": _beside(record, title)}


def audited(record: Record) -> list[tuple[str, int, dict[str, Any]]]:
    """(mechanism, place, cell) of every cell with numbers."""
    return [(mechanism, place, cell) for mechanism, _, place, cell in held(record) if "nothing" not in cell]


def _top(record: Record) -> float:
    """Room for all that was found, by either rule."""
    cells = [cell for _, _, cell in audited(record)]
    bars = [cell[game]["paper"]["mean"] + cell[game]["paper"]["sd"] for cell in cells for game in ("members", "mia")]
    bounds = [cell[game]["valid"] for cell in cells for game in ("members", "control", "mia")]
    return 1.08 * max([0.2, *bars, *bounds, *(cell["truth"]["members"] for cell in cells if "truth" in cell)])


def _panel(ax: Any, cells: list[tuple[int, dict[str, Any]]]) -> None:
    if not cells:
        return
    x = [place for place, _ in cells]
    members = [cell["members"] for _, cell in cells]
    truth = [cell["truth"]["members"] for _, cell in cells if "truth" in cell]
    spent = [(place, cell["epsilon_true"]) for place, cell in cells if cell["epsilon_true"] is not None]
    ax.plot([at for at, _ in spent], [epsilon for _, epsilon in spent], color=PALE, linestyle="--", linewidth=1.2,
            label="ε of the mechanism")  # fmt: skip
    mean, sd = ([one["paper"][part] for one in members] for part in ("mean", "sd"))
    ax.errorbar(x, mean, yerr=sd, color=PAPER, marker="o", markersize=4, capsize=2, label="paper's rule, not a bound")
    ax.plot(x, [one["valid"] for one in members], color=DEFAULT, marker="v", markersize=4, label="valid bound")
    control = [cell["control"]["valid"] for _, cell in cells]
    ax.plot(x, control, color=INK, marker="x", linestyle=":", markersize=5, label="the same on control rows")
    if len(truth) == len(x):
        ax.plot(x, truth, color=VALID, marker="D", markersize=4, label="valid bound by the true P")
    ax.set_xticks(range(len(EPSILONS)), [shown(epsilon) for epsilon in EPSILONS])
    ax.set_xlim(-0.3, len(EPSILONS) - 0.7)
    ax.set_xlabel("ε")


def _beside(record: Record, title: str) -> Any:
    """The paper's figure: the label game and calibrated membership inference, by the paper's rule and validly."""
    figure, axes = grid(1, 2, 12, 4.8, sharey=True)
    for ax, rule in zip(axes[0], ("paper", "valid"), strict=True):
        for k, mechanism in enumerate(MECHANISMS):
            cells = [(place + (k - 2) * 0.15, cell) for kind, place, cell in audited(record) if kind == mechanism]
            for game, marker in (("members", "o"), ("mia", "x")):
                x = [at + (0.06 if game == "mia" else 0) for at, _ in cells]
                found = [cell[game][rule] for _, cell in cells]
                y = [each["mean"] if rule == "paper" else each for each in found]
                bars = [each["sd"] for each in found] if rule == "paper" else None
                told = f"{mechanism}: {'label game' if game == 'members' else 'membership'}"
                ax.errorbar(x, y, yerr=bars, color=_draw.SCALE[k], marker=marker, linestyle="none", markersize=4.5,
                            capsize=2, label=told)  # fmt: skip
            control = [cell["control"]["paper"]["mean"] if rule == "paper" else cell["control"]["valid"]
                       for _, cell in cells]  # fmt: skip
            ax.plot([at for at, _ in cells], control, color=INK, marker="_", markersize=8, linestyle="none",
                    label="label game on control rows" if k == len(MECHANISMS) - 1 else None)  # fmt: skip
        low = [(place, epsilon) for place, epsilon in enumerate(EPSILONS) if epsilon != "inf"]
        ax.hlines([epsilon for _, epsilon in low], [at - 0.42 for at, _ in low], [at + 0.42 for at, _ in low],
                  color=PALE, linestyle="--", linewidth=1, label="ε of the mechanism, between labels")  # fmt: skip
        ax.set_ylim(-0.03 * (top := _top(record)), top)
        ax.set_xticks(range(len(EPSILONS)), [shown(epsilon) for epsilon in EPSILONS])
        ax.set_xlabel("ε")
        ax.set_title("paper's rule, not a bound" if rule == "paper" else "valid bounds", fontsize=10)
    axes[0][0].set_ylabel("ε found")
    figure.suptitle(title, fontsize=11)
    legend(figure, axes[0][1], 4)
    return figure
