"""bench/README.md, written from the records: every number there was measured by the command beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bench import figures, records
from bench.fits import off_line
from bench.venvs import HERE

Record = dict[str, Any]

HEAD = """# Measurements

Written by `python -m bench` from `bench/records/*.json`; do not edit. `make bench` measures everything in one run, and
`python -m bench NAME…` (with `.venv/bin/python`) any of the parts `lia`, `bounds`, `huge`, `curves` and `streaming`.
`python -m bench readme` only writes this page again.

Each peer runs in a virtual environment of its own under `bench/.venvs/`, made from `bench/requirements-*.txt`. Every
repetition is a fresh process that is warmed up by one small call first; repetitions of us and of the peers take turns,
and a ratio is that of the medians, with the least and most over the pairs of turns. Memory is the peak resident set
of the process; "net" is that peak less what the process held after its imports and its warm-up.
"""


def write() -> None:
    """Write the page from the records that there are."""
    parts = [HEAD]
    for name, page in PAGES.items():
        record = records.read(name)
        if record is not None:
            parts.append(page(record) + "\n" + _made(record))
    (HERE / "README.md").write_text("\n".join(parts))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table: the first column is text, the others are numbers."""
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def lia(record: Record) -> str:
    """Ours beside PrivacyGuard's label-inference attack."""
    sizes, ratios, outcomes = record["sizes"], record["ratios"], record["outcomes"]
    rows = [
        ("time, attack and analysis", _span(ratios["time"]), "≥ 100"),
        ("time, analysis alone", _span(ratios["time_analysis_alone"]), "≥ 100"),
        ("time, all 100 games run once", _span(ratios["time_unscaled"]), "≥ 100"),
        ("processor time of both", _span(ratios["processor_time"]), ""),
        ("peak memory, ours / theirs", _span(ratios["memory"]), "≤ 0.1"),
        ("the same, net of imports and warm-up", _span(ratios["memory_net"]), ""),
        ("the same against their run of 10 games", _span(ratios["memory_ten_games"]), ""),
    ]
    whole = record["privacyguard_100_games"]
    ours, theirs = outcomes["ours"], outcomes["privacyguard"]
    measured = [
        ("ours, 100 games", _list(ours, "seconds"), _list(ours, "peak_mib", 0), _list(ours, "base_mib", 0)),
        ("PrivacyGuard, 10 games: attack", _list(theirs, "attack_seconds"), "", ""),
        (
            "PrivacyGuard, 10 games: analysis",
            _list(theirs, "analysis_seconds"),
            _list(theirs, "peak_mib", 0),
            _list(theirs, "base_mib", 0),
        ),
        (
            "PrivacyGuard, 100 games, once",
            f"{whole['attack_seconds']:.2f} + {whole['analysis_seconds']:.2f}",
            f"{whole['peak_mib']:.0f}",
            f"{whole['base_mib']:.0f}",
        ),
    ]
    profile = [
        (f"`{name}`", str(each["calls"]), f"{each['ms']:.1f}") for name, each in record["profile"]["functions"].items()
    ]
    return (
        f"## {sizes['rows']:,} binary rows, {sizes['games']} games, beside PrivacyGuard's label-inference attack\n\n"
        "Ours is the default audit (grid of eight fractions, Bonferroni, approx family) with everything its report "
        f"draws. Theirs is measured on {sizes['games_scaled_from']} games and counted ten times, at its default of 10 "
        "bootstraps a game; its time is linear in games (the run of all 100 shows it). Its ε is an empirical quantile "
        "of bootstraps, not a bound, so values are not compared.\n\n"
        + table(("ratio", "measured (least–most)", "wanted"), rows)
        + "\n"
        + table(("", "seconds", "peak MiB", "MiB before the work"), measured)
        + f"\nWhere our {1e3 * record['profile']['seconds']:.0f} ms go (under the profiler; cumulative):\n\n"
        + table(("function", "calls", "ms"), profile)
    )


def bounds(record: Record) -> str:
    """One bound beside the peers'."""
    rows = []
    for name, count in record["counts"].items():
        for peer, wanted in (("jax-privacy", "≥ 100"), ("jax-privacy, Steinke", ""), ("privacyguard", "≥ 1,000")):
            mine = "ours, Steinke" if "Steinke" in peer else "ours"
            rows.append(
                (
                    f"{name}: {peer}",
                    f"{1e3 * _middle(count['outcomes'][mine]):.3g}",
                    f"{1e3 * _middle(count['outcomes'][peer]):.3g}",
                    _span(count["ratios"][peer]),
                    wanted,
                    f"{count['epsilon'][mine]:.6f}",
                    f"{count['epsilon'][peer]:.6f}",
                )
            )
    scales = [each["privacyguard_scaled_over_whole"] for each in record["counts"].values()]
    scaled = next(each for each in scales if each is not None)
    worst = max(each["difference_from_jax_privacy"]["gaussian"] for each in record["counts"].values())
    return (
        f"## One bound at m = {record['canaries']:,}, beside jax-privacy's and PrivacyGuard's\n\n"
        "Ours is all of `bound()`, τ* included, of the Gaussian family unless Steinke's is named. Compared is ε at "
        "δ = 1e-5 and 95 %: jax-privacy looks for ε itself (to 1e-6), we for μ (to 1e-10), then turned into ε. "
        f"The largest difference between the two is {worst:.1e} (wanted: at most 1e-4). PrivacyGuard tries noise "
        "levels 0.001, 0.011 … one after the other, so its ε is coarse; at c' = 100,000 it takes over half an hour, so "
        "four of its levels are timed, among them the one at which it would stop, and scaled to all that it would try "
        f"(where it is run whole as well, at c' = 1,000, the scaled time is {scaled:.2f} of the true one).\n\n"
        + table(("count: peer", "ours, ms", "theirs, ms", "ratio (least–most)", "wanted", "our ε", "their ε"), rows)
    )


def huge(record: Record) -> str:
    """A bound at 10⁹ canaries."""
    rows = []
    for name, each in record["bounds"].items():
        plain = each.get("plain", {})
        if "timed_out" in each:
            rows.append((name, f"> {1e3 * each['timed_out']:,.0f}", "", "< 50", "", "", ""))
            continue
        known = "mu" in plain
        rows.append(
            (
                name,
                f"{1e3 * each['seconds']:,.3f}",
                f"{1e3 * each['rejected_seconds']:,.3f}",
                "< 50",
                f"{each['epsilon']:.6f}",
                f"{each['mu'] - plain['mu']:+.0e}" if known else "not in time" if plain else "",
                f"{plain['steps']:,}" if known else "",
            )
        )
    return (
        f"## A bound at m = {record['canaries']:,}\n\n"
        "The Gaussian ones are checked against the recursion written again without blocks, kernels or quantile of ours "
        "(bisected to 1e-8). Its steps, over all evaluations together, show why a bound is so fast: both early exits "
        "come long before i reaches 0.\n\n"
        + table(("count", "`bound()`, ms", "without τ*, ms", "wanted", "ε", "our μ − plain μ", "plain steps"), rows)
    )


def curves(record: Record) -> str:
    """How cost grows; its figures are drawn again."""
    for name, curve in record["curves"].items():
        figures.cost(name, curve)
    rows = [
        (
            f"{name}: {what}",
            f"{each['all']:.2f}",
            f"{each['upper_half']:.2f}",
            f"{off_line(curve['sizes'], curve['seconds'][what]):.0%}",
        )
        for name, curve in record["curves"].items()
        for what, each in curve["exponents"].items()
    ]
    over = record["ten_classes_over_two"]
    times = []
    for name, curve in record["curves"].items():
        for what, seconds in curve["seconds"].items():
            shown = (f"{size:,}: {_seconds(each)}" for size, each in zip(curve["sizes"], seconds, strict=True))
            times.append((f"{name}: {what}", " · ".join(shown)))
    return (
        "## How cost grows\n\n"
        "Exponents of seconds against size, fitted on all sizes and on their upper half, where what an audit costs "
        "whatever its size no longer shows. The last column is how far the worst size lies from "
        "the best line a + b·size. Wanted for rows and games: linear within 10 %.\n\n"
        + table(("curve", "all sizes", "upper half", "off a line by"), rows)
        + f"\n10 classes cost {over['audit']:.2f} times as much as 2 (the games alone {over['games']:.2f}); wanted: at "
        "most 3.\n\n"
        + "".join(f"![{name}](figures/{name}.png)\n" for name in record["curves"])
        + "\n"
        + table(("curve", "seconds by size"), times)
    )


def streaming(record: Record) -> str:
    """Parquet larger than memory."""
    title = "## Parquet larger than memory\n\n"
    if "ratios" not in record:
        said = "".join(f"- {name}: `{text.strip().splitlines()[-1]}`\n" for name, text in record["failed"].items())
        return title + f"It did not get through. {' '.join(record['timed_out'])}\n\n{said}"
    ratios, peaks = record["ratios"], record["peak_mib"]
    if record["skipped"]:
        more = [("10⁸ rows, one game", record["skipped"], "peak the same as at 10⁷")]
    else:
        more = [
            ("peak MiB, 10⁸ rows, one game", f"{peaks['more rows']:.0f}", "the same"),
            ("seconds, 10⁸ rows, one game", f"{_middle(record['outcomes']['more rows']):.1f}", ""),
        ]
    rows = [
        ("10⁷ rows × 100 games: ns per row and game", f"{record['ns_per_row_game']:.2f}", "≤ 3"),
        ("the same less the start of the program", f"{record['ns_per_row_game_less_start']:.2f}", ""),
        ("10⁷ rows, one game, over PyArrow's reading", _span(ratios["one_game_over_arrow"]), "≤ 3"),
        ("the same less the start of the program", _span(ratios["one_game_less_start_over_arrow"]), ""),
        ("peak MiB, 10⁷ rows, 100 games", f"{peaks['all games']:.0f}", "< 1024"),
        ("peak MiB, 10⁷ rows, one game", f"{peaks['one game']:.0f}", "< 1024"),
        *more,
        ("seconds, start of the program", f"{record['start_seconds']:.1f}", ""),
    ]
    return (
        title
        + "`bystander audit FILE --id=id --label=click --target=p_new --reference=p_old --games=N --json -`: wall time "
        "and peak memory of the whole process, from outside. PyArrow reads the same four columns in batches, in one "
        "process with its default threads; the file is in the page cache for both.\n\n"
        + table(("", "measured", "wanted"), rows)
    )


PAGES: dict[str, Callable[[Record], str]] = {
    "lia": lia, "bounds": bounds, "huge": huge, "curves": curves, "streaming": streaming,
}  # fmt: skip


def _made(record: Record) -> str:
    changed = f" with uncommitted source {record['source']}" if record["source_changed"] else ""
    if record["source"] != record["source_after"]:
        changed += f" (**edited meanwhile**: {record['source_after']} at the end; measure again)"
    before, after = record["load"][0], record["load_after"][0]
    return (
        f"`{record['command']}` · {record['at']} · commit {record['commit'][:10]}{changed} · {record['cpu']}, "
        f"{record['cores']} cores, {record['memory_gib']} GiB, Python {record['python']} · load {before:.1f} before, "
        f"{after:.1f} after\n"
    )


def _span(ratio: dict[str, float]) -> str:
    return f"{_short(ratio['ratio'])} ({_short(ratio['min'])}–{_short(ratio['max'])})"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _seconds(number: float | None) -> str:
    return "–" if number is None else f"{number:.3g}"


def _list(outcomes: list[Record], field: str, places: int = 2) -> str:
    return f"{_middle(outcomes, field):.{places}f}"


def _middle(outcomes: list[Record], field: str = "seconds") -> float:
    return float(sorted(each[field] for each in outcomes)[len(outcomes) // 2])
