"""A result in the terminal."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from bystander.report import words

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bystander.result import Bound, Result, Slice

WIDTH = 100
MOST_SLICES = 20


def plain(result: Result) -> str:
    """The whole report as text without colour, 100 columns wide."""
    from rich.console import Console

    stream = io.StringIO()
    console = Console(file=stream, width=WIDTH, color_system=None, force_terminal=False, force_jupyter=False)
    console.print(render(result))
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip().splitlines()) + "\n"


def render(result: Result) -> RenderableType:
    """The whole report for a rich console."""
    from rich.console import Group

    parts = [
        _headline(result, words.meaning(result)),
        *_section("What it rests on", _pairs(words.facts(result) + words.setting(result))),
        *_bullets("Assumptions", result.assumptions),
        *_section("Members against control", *_control(result)),
    ]
    if result.quality is not None:
        told = _pairs([("•", words.clean(sentence)) for sentence in result.quality.advice], style="")
        parts += _section(words.quality_title(result), _pairs(words.quality(result.quality)), told)
    if result.slices:
        title = f"Slices by {words.clean(result.slice_column)}" if result.slice_column else "Slices"
        parts += _section(title, *_slices(result))
    if result.descriptive:
        note = _text(words.DESCRIPTIVE_NOTE, "dim")
        parts += _section(words.DESCRIPTIVE, note, _pairs(words.descriptive(result)))
    return Group(*parts, *_bullets("Notes", result.notes))


def render_bound(bound: Bound) -> RenderableType:
    """One bound from counts alone, for a rich console."""
    from rich.console import Group

    return Group(
        _headline(bound, words.meaning(bound, who="guesses this well")),
        *_section("What it rests on", _pairs(words.facts(bound))),
        *_bullets("Assumptions", bound.assumptions),
    )


def _text(content: str, style: str = "") -> RenderableType:
    from rich.padding import Padding
    from rich.text import Text

    return Padding(Text(content, style=style), (0, 2))


def _headline(bound: Bound, meaning: str) -> RenderableType:
    from rich.panel import Panel
    from rich.text import Text

    colour = "red" if not bound.valid else "green" if words.nothing(bound) else "cyan"
    text = Text(words.headline(bound), style=f"bold {colour}")
    text.append(f"  ({words.terms(bound)})", style="not bold default")
    text.append(f"\n\n{meaning}", style="not bold default")
    return Panel(text, border_style=colour, padding=(0, 1))


def _section(title: str, *body: RenderableType) -> list[RenderableType]:
    from rich.text import Text

    return [Text(f"\n{title}", style="bold"), *body]


def _bullets(title: str, sentences: Iterable[str]) -> list[RenderableType]:
    rows = [("•", words.clean(sentence)) for sentence in sentences]
    return _section(title, _pairs(rows, style="")) if rows else []


def _pairs(rows: Iterable[tuple[str, str]], style: str = "dim") -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(no_wrap=True)
    grid.add_column()
    for name, value in rows:
        grid.add_row(Text(f"  {name}", style=style), Text(value))
    return grid


def _control(result: Result) -> list[RenderableType]:
    from rich import box
    from rich.table import Table

    control = result.control
    if control is None:
        return [_text(words.no_control(result), "yellow" if result.stand_in else "dim")]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("")
    table.add_column("Members", justify="right", style="cyan")
    table.add_column("Control", justify="right", style="yellow")
    pair = (result, control)
    table.add_row("  Lower bound" if result.valid else "  Estimate", *(words.relation(part) for part in pair))
    table.add_row("  Rows", *(f"{part.canaries:,}" for part in pair))
    table.add_row("  Correct guesses", *(words.accuracy(part) for part in pair))
    if result.tau_star is not None and control.tau_star is not None:
        table.add_row("  τ*", *(words.small(part.tau_star or 0.0) for part in pair))
    note = [_text(words.clean(result.control_note), "bold")] if result.control_note else []
    return [table, *note, _text(words.control(result), "dim")]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _slices(result: Result) -> list[RenderableType]:
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    parts = words.worst_first(result)
    controls = any(part.control is not None for part in parts)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("  Slice", max_width=40)
    table.add_column(words.sign(tuple(part.bound for part in parts)), justify="right", style="cyan")
    if controls:
        table.add_column("Control", justify="right", style="yellow")
    for name in ("Rows", "Correct guesses"):
        table.add_column(name, justify="right", no_wrap=True)

    def row(part: Slice) -> list[RenderableType]:
        control = [words.epsilon(part.control.epsilon) if part.control else "–"] if controls else []
        bound = part.bound
        name = Padding(Text(_cut(words.slice_name(part), 38)), (0, 0, 0, 2))
        return [name, words.epsilon(bound.epsilon), *control, f"{bound.canaries:,}", words.accuracy(bound)]

    for part in parts[:MOST_SLICES]:
        table.add_row(*row(part))
    hidden = len(parts) - MOST_SLICES
    more = [_text(f"… and {hidden} more: see --json or --html", "dim")] if hidden > 0 else []
    return [table, *more, _text(words.slices_note(result), "dim")]
