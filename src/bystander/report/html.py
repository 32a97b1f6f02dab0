"""A result as one page that needs no network, no script and no other file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from bystander._version import __version__
from bystander.report import charts, words
from bystander.report.games import game

if TYPE_CHECKING:
    from bystander.result import Bound, Result

MOST_SLICES = 200


def page(result: Result) -> str:
    """The whole report: headline, assumptions, charts, control, slices, and how to get it again."""
    style = files("bystander.report").joinpath("page.css").read_text(encoding="utf-8")
    cards = (
        _headline(result),
        _control(result),
        _rests(result),
        f'<div class="stack">{_assumptions(result)}{_descriptive(result)}</div>\n',
        _quality(result),
        *_charts(result),
        _slices(result),
        _reproduce(result),
    )
    title = _plain(f"{words.headline(result)} · Bystander audit")
    footer = f"Bystander {__version__}. What was found is there; what was not found may be there too."
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
<header class="mast"><span class="brand">{_MARK} Bystander</span><span>Privacy audit</span></header>
{"".join(cards)}
<footer>{_plain(footer)}</footer>
</main>
</body>
</html>
"""


_MARK = (
    '<svg class="eye" viewBox="0 0 24 14" aria-hidden="true">'
    '<path d="M1 7C5 1.5 19 1.5 23 7 19 12.5 5 12.5 1 7Z"/><circle cx="12" cy="7" r="2.6"/></svg>'
)


def _plain(content: object) -> str:
    return re.sub(r"(?<=\d) %", "\u00a0%", escape(words.clean(content)))


def _prose(content: object) -> str:
    """Escaped text whose `back ticks` are code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _plain(content))


def _code(command: str) -> str:
    """A command whose lines break between words alone."""
    return f"<pre>{' '.join(f'<span>{_plain(word)}</span>' for word in command.split(' '))}</pre>"


def _card(title: str, body: str | None, *, note: str = "", wide: bool = False, kind: str = "") -> str:
    if not body:
        return ""
    classes = " ".join(filter(None, ("card", "wide" if wide else "", kind)))
    lead = f'<p class="note">{_prose(note)}</p>' if note else ""
    return f'<section class="{classes}"><h2>{_plain(title)}</h2>{lead}{body}</section>\n'


def _pairs(rows: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{_plain(k)}</dt><dd>{_prose(v)}</dd>" for k, v in rows) + "</dl>"


def _bullets(sentences: Iterable[str]) -> str:
    items = "".join(f"<li>{_prose(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def _legend(*items: tuple[str, str]) -> str:
    keys = "".join(f'<li><span class="key {kind}"></span>{_plain(name)}</li>' for kind, name in items)
    return f'<ul class="legend">{keys}</ul>'


def _headline(result: Result) -> str:
    if not result.valid:
        state, above = "invalid", "Not a valid bound"
    elif words.nothing(result):
        state, above = "nothing", "No leakage shown"
    else:
        state = "found"
        above = "Lower bound under an assumption" if result.family.name in words.LABELS else "Valid lower bound"
    sign, value = words.relation(result).rsplit(" ", 1)
    body = (
        f'<p class="state">{above}</p>'
        f'<h1><span class="sign">{_plain(sign)}</span> {_plain(value)}</h1>'
        f'<p class="terms">{_plain(words.terms(result))}</p>'
        f'<p class="meaning">{_plain(words.meaning(result))}</p>'
    )
    if result.valid:
        caption = (
            "Below the mark: every ε that this audit rules out. The percentage under an ε is how often it "
            f"lets the best guesser be right {game(result).doubt}, δ aside: at "
            f"{words.epsilon(result.epsilon)} it is {words.best_guess(result.epsilon)}, and for a coin 50 %."
        )
        if words.nothing(result):
            caption = "This audit rules out no ε: its guesses do not have to be better than a coin's."
        if result.control is not None:
            caption += f" The second mark is the control, {words.relation(result.control)}."
        body += f"<figure>{charts.gauge(result)}<figcaption>{_plain(caption)}</figcaption></figure>"
    return f'<section class="card wide headline {state}">{body}</section>\n'


def _bar(bound: Bound, top: float, kind: str) -> str:
    share = 100 * min(1.0, bound.epsilon / top) if top > 0 else 0.0
    return f'<span class="rail"><span class="fill {kind}" style="width:{share:.1f}%"></span></span>'


def _control(result: Result) -> str:
    control = result.control
    if control is None:
        kind = "warn" if result.stand_in else "note"
        return _card("No control", f'<p class="{kind}">{_prose(words.no_control(result))}</p>', wide=True)
    top = max(result.epsilon, control.epsilon)
    rows = "".join(
        f'<div class="side"><div class="who"><b>{who}</b><span>{what}</span></div>{_bar(part, top, kind)}'
        f'<div class="what"><b class="{kind}">{_plain(words.relation(part))}</b>'
        f"<span>{_plain(words.accuracy(part))} correct, {part.canaries:,} rows</span></div></div>"
        for part, who, what, kind in (
            (result, "Members", "rows the model was trained on", "members"),
            (control, "Control", "rows it never saw", "control"),
        )
    )
    note = f'<p class="verdict">{_prose(result.control_note)}</p>' if result.control_note else ""
    return _card("Members against control", note + rows, note=words.control(result), wide=True)


def _rests(result: Result) -> str:
    return _card("What it rests on", _pairs(words.facts(result) + words.setting(result)))


def _assumptions(result: Result) -> str:
    notes = f"<h3>Notes</h3>{_bullets(result.notes)}" if result.notes else ""
    return _card("What must hold" if result.valid else "Read before use", _bullets(result.assumptions) + notes)


def _charts(result: Result) -> list[str]:
    called = game(result)
    control = [("line control", "control, the same")] if result.control is not None else []
    dots = "valid bound of each candidate" if result.valid else "candidates, not bounds"
    over = f"mean ± sd over {result.games:,} games" if result.games > 1 else "one game"
    keys = (
        ("band members", f"members, {over}: descriptive"),
        ("dot members", dots),
        ("ring members", "selected"),
    )
    drawn = [
        ("How many guesses", charts.guesses(result), "", _legend(*keys, *control)),
        (
            "What the attack sees",
            charts.scores(result),
            "",
            _legend(("box members", called.true), ("box other", called.other)),
        ),
        (
            f"How wrong may the {result.stand_in} be?",
            charts.shift(result),
            _sentence(words.tau_star(result)),
            _legend(("line members", "members"), *(("line control", "control") for _ in control)),
        ),
        (
            f"Is the {result.stand_in} calibrated?",
            charts.reliability(result),
            "On the diagonal its probabilities are right; larger dots hold more rows.",
            "",
        ),
    ]
    cards = [(title, chart + legend, note) for title, chart, note, legend in drawn if chart]
    alone = len(cards) if len(cards) % 2 else 0  # the last of an odd number has its row to itself
    return [_card(title, body, note=note, wide=place == alone) for place, (title, body, note) in enumerate(cards, 1)]


def _quality(result: Result) -> str:
    found = result.quality
    if found is None:
        return ""
    return _card(words.quality_title(result), _pairs(words.quality(found)) + _bullets(found.advice), wide=True)


def _sentence(content: str) -> str:
    return f"{content[0].upper()}{content[1:]}."


def _slices(result: Result) -> str:
    if not result.slices:
        return ""
    parts = words.worst_first(result)
    top = max(bound.epsilon for part in parts for bound in (part.bound, part.control) if bound is not None)
    controls = any(part.control is not None for part in parts)

    def cell(bound: Bound | None, kind: str) -> str:
        shown = "–" if bound is None else f"{_bar(bound, top, kind)}<b>{words.epsilon(bound.epsilon)}</b>"
        return f"<td>{shown}</td>"

    rows = ""
    for part in parts[:MOST_SLICES]:
        cells = cell(part.bound, "members") + (cell(part.control, "control") if controls else "")
        small = f"{part.bound.canaries:,} rows, {words.accuracy(part.bound)} correct"
        name = f"{_plain(words.slice_name(part))}<small>{_plain(small)}</small>"
        rows += f'<tr><th scope="row">{name}</th>{cells}</tr>'
    sign = words.sign(tuple(part.bound for part in parts))
    names = ["Slice", sign, *(["Control"] if controls else [])]
    heads = "".join(f'<th scope="col">{name}</th>' for name in names)
    table = f'<table class="slices"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    hidden = len(parts) - MOST_SLICES
    table += f'<p class="note">… and {hidden:,} more: see the JSON report.</p>' if hidden > 0 else ""
    title = f"Slices by {result.slice_column}" if result.slice_column else "Slices"
    kind = "long" if len(parts) > 12 else ""  # a long table may go over to the next page in print
    return _card(title, table, note=words.slices_note(result), wide=True, kind=kind)


def _descriptive(result: Result) -> str:
    body = _pairs(words.descriptive(result)) if result.descriptive else None
    return _card(words.DESCRIPTIVE, body, note=words.DESCRIPTIVE_NOTE, kind="aside")


def _reproduce(result: Result) -> str:
    body = ""
    if result.command:
        body += f"<p>The command:</p>{_code(result.command)}"
    again = words.recompute(result)
    if again:
        body += f"<p>The number alone, from its counts:</p>{_code(again)}"
    body += _pairs([("Version", __version__), ("Seed", f"{result.seed}")])
    return _card("Get it again", body, wide=True)
