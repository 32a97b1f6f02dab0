"""Write docs/cli.md and docs/api.md from the code, and the measured block of docs/going-further.md from bench's
records; with --check, exit 1 if they are stale.

python docs/generate.py [--check]
"""

from __future__ import annotations

import inspect
import json
import re
import statistics
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

import typer

import bystander

HERE = Path(__file__).resolve().parent
NOTE = "<!-- Written by docs/generate.py. Do not edit. -->\n"
ROWS = 10**10  # of docs/going-further.md: a day's


def oneline(text: str) -> str:
    """Text fit for a cell of a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def parameters(callback: Any) -> Iterator[str]:
    """A table of a command's arguments and options, read from its signature."""
    yield "| Option | Value | Meaning | Default |\n|---|---|---|---|\n"
    for name, parameter in inspect.signature(callback, eval_str=True).parameters.items():
        kind, info = get_args(parameter.annotation)
        kind = next((k for k in get_args(kind) if k is not type(None)), kind)
        value = info.metavar or (
            "|".join(kind) if inspect.isclass(kind) and issubclass(kind, StrEnum) else getattr(kind, "__name__", "")
        )
        argument, default = isinstance(info, typer.models.ArgumentInfo), parameter.default
        shown = "" if default is None else str(default)
        shown = "required" if default is inspect.Parameter.empty else "" if default is False else shown
        meaning = oneline(info.help or "")
        if said := re.search(r"\[default: (.+)\]", meaning):
            shown, meaning = said[1], meaning.replace(said[0], "").strip()
        option = f"`{value}`" if argument else f"`--{name.replace('_', '-')}`"
        yield f"| {option} | {'' if argument or kind is bool else oneline(value)} | {meaning} | {shown} |\n"


def cli() -> str:
    """The page of the command line."""
    from bystander.cli import EXAMPLES, app

    parts = [NOTE, "# Command line\n\n", f"{app.info.help}\n\n"]
    parts += ["Exit status: 0 done; 1 the bound is above `--fail-above`; 2 wrong usage or bad input.\n"]
    for command in app.registered_commands:
        run: Any = command.callback
        parts += [f"\n## bystander {command.name or run.__name__}\n\n", f"{inspect.cleandoc(run.__doc__)}\n\n"]
        parts += parameters(run)
    examples = [line.strip() for line in EXAMPLES.splitlines() if line.strip().startswith("bystander ")]
    return "".join([*parts, "\n## Examples\n\n```\n", "\n".join(examples), "\n```\n"])


def signature(thing: Any) -> str:
    """A signature, one parameter a line where it is long."""
    found = inspect.signature(thing)
    parts = [re.sub(r"<factory>|<object .+>", "…", str(p).replace("'", "")) for p in found.parameters.values()]
    if any(p.kind is p.KEYWORD_ONLY for p in found.parameters.values()):
        first = next(i for i, p in enumerate(found.parameters.values()) if p.kind is p.KEYWORD_ONLY)
        parts.insert(first, "*")
    short = f"({', '.join(parts)})"
    return short if len(short) < 90 else "(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def text_of(thing: Any) -> str:
    """The docstring without its examples: those run where they stand, in the source."""
    return re.sub(r"^>>>(.+\n?)*", "", inspect.cleandoc(thing.__doc__ or ""), flags=re.MULTILINE).rstrip()


def api() -> str:
    """The page of the public names."""
    parts = [NOTE, "# Python\n\nEverything below is imported from `bystander`. Examples: `help(bystander.audit)`.\n"]
    for name in bystander.__all__:
        thing = getattr(bystander, name)
        if name.startswith("__"):
            continue
        parts.append(f"\n## {name}\n\n")
        if not issubclass(thing if inspect.isclass(thing) else object, Exception):
            parts.append(f"```python\n{name}{signature(thing)}\n```\n\n")
        parts.append(f"{text_of(thing)}\n")
        own = vars(thing) if inspect.isclass(thing) else {}
        for method, value in own.items():
            function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if method.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
                continue
            call = "" if isinstance(value, property) else "()"
            parts.append(f"\n- `{method}{call}`: {oneline(function.__doc__)}")
        parts.append("\n" if own else "")
    return re.sub(r"\n{3,}", "\n\n", "".join(parts)).rstrip() + "\n"


def measured() -> str:
    """The table of docs/going-further.md: what was measured, and what it makes of ROWS rows."""
    record = json.loads((HERE.parent / "bench" / "records" / "streaming.json").read_text(encoding="utf-8"))
    outcomes, rows, games = record["outcomes"], record["sizes"]["rows"], record["sizes"]["games"]

    def median(which: str, field: str = "processor_seconds") -> float:
        return statistics.median(each[field] for each in outcomes[which])

    a, b, c = median("all games"), median("start"), median("one game")
    hours = ROWS / rows / 3600
    peaks = [f"{record['peak_mib'][name]:,.0f} MiB" for name in ("all games", "one game")]
    lines = [
        "| | measured | |",
        "|---|--:|---|",
        f"| A | {a:.2f} s | processor time of the command, {rows:,} rows × {games} games |",
        f"| B | {b:.2f} s | the same on 1,000 rows: what a start costs |",
        f"| C | {c:.2f} s | the same on {rows:,} rows, one game |",
        f"| P | {', '.join(peaks)} | peak memory of A and of C |",
        f"| R | {median('arrow', 'seconds'):.2f} s | PyArrow reads the same columns and keeps nothing (wall time) |",
        "",
        f"| for {ROWS:,} rows | | |",
        "|---|--:|---|",
        f"| {games} games | {(a - b) * hours:.2f} core-hours | (A − B) · {ROWS // rows:,} / 3,600 |",
        f"| one game | {(c - b) * hours:.2f} core-hours | (C − B) · {ROWS // rows:,} / 3,600 |",
        f"| each further game | {(a - c) / (games - 1) * hours:.4f} core-hours "
        f"| (A − C) / {games - 1} · {ROWS // rows:,} / 3,600 |",
        f"| cores to do {games} games in one hour | {(a - b) * hours:.1f} | core-hours / 1 h |",
        "",
        f"`{record['command']}` → `bench/records/streaming.json` ({record['at'][:10]}, commit {record['commit'][:7]}, "
        f"{record['cpu']}, {record['cores']} cores).",
    ]
    if record["skipped"]:
        more = f"{record['sizes']['more_rows']:,} rows, one game: {record['skipped']}"
        lines += ["", f"{more}. That record is older than streaming: A, C and P are of a program that held all rows."]
    return "\n".join(lines)


def further() -> str:
    """The page on going further, its block filled anew."""
    text = (HERE / "going-further.md").read_text(encoding="utf-8")
    return re.sub(
        r"(<!-- measured -->\n).*?(<!-- end -->)",
        lambda found: f"{found[1]}{measured()}\n{found[2]}",
        text,
        flags=re.DOTALL,
    )


def main() -> int:
    """Write the pages, or compare them."""
    stale = []
    for name, text in (("cli.md", cli()), ("api.md", api()), ("going-further.md", further())):
        path = HERE / name
        if "--check" in sys.argv[1:]:
            stale += [name] if not path.exists() or path.read_text(encoding="utf-8") != text else []
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.stderr.write(f"stale: {', '.join(stale)}; run python docs/generate.py\n")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
