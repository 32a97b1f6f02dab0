"""A result as one page that needs no network, no script and no other file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from bystander._version import __version__
from bystander.report import charts, words

if TYPE_CHECKING:
    from bystander.result import Bound, Result


def page(result: Result) -> str:
    """The whole report: headline, assumptions, charts, control, slices, and how to get it again."""
    style = files("bystander.report").joinpath("page.css").read_text(encoding="utf-8")
    cards = (
        _headline(result),
        _control(result),
        _rests(result),
        _assumptions(result),
        *_charts(result),
        _slices(result),
        _descriptive(result),
        _reproduce(result),
    )
    title = _plain(f"{words.headline(result)} · Bystander audit")
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
<header class="mast"><span class="brand">{_MARK} Bystander</span><span>Audit of memorised labels</span></header>
{"".join(cards)}
<footer>Bystander {_plain(__version__)}. A lower bound says how much was found, never that nothing more is there.</footer>
</main>
</body>
</html>
"""


_MARK = (
    '<svg class="eye" viewBox="0 0 24 14" aria-hidden="true">'
    '<path d="M1 7C5 1.5 19 1.5 23 7 19 12.5 5 12.5 1 7Z"/><circle cx="12" cy="7" r="2.6"/></svg>'
)


def _plain(content: object) -> str:
    return escape(words.clean(content))


def _prose(content: object) -> str:
    """Escaped text whose `back ticks` are code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _plain(content))


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
    state = "invalid" if not result.valid else "nothing" if words.nothing(result) else "found"
    above = {"invalid": "Not a valid bound", "nothing": "No leakage shown", "found": "Valid lower bound"}[state]
    number = words.relation(result)
    sign, value = number.rsplit(" ", 1)
    body = (
        f'<p class="state">{above}</p><h1><span class="sign">{_plain(sign)}</span> {_plain(value)}</h1>'
        f'<p class="terms">{_plain(words.terms(result))}</p><p class="meaning">{_plain(words.meaning(result))}</p>'
    )
    if result.valid:
        caption = (
            f"Below the mark: every ε that this audit rules out. The percentage under an ε is how often it lets the best "
            f"guesser be right about one label with two equally likely values: at {words.epsilon(result.epsilon)} it is "
            f"{words.best_guess(result.epsilon)}, and for a coin 50 %."
        )
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
        return _card("No control", f'<p class="warn">{_prose(words.NO_CONTROL)}</p>', wide=True)
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
    return _card("Members against control", note + rows, note=words.CONTROL, wide=True)


def _rests(result: Result) -> str:
    return _card("What it rests on", _pairs(words.facts(result) + words.setting(result)))


def _assumptions(result: Result) -> str:
    notes = f"<h3>Notes</h3>{_bullets(result.notes)}" if result.notes else ""
    return _card("What must hold", _bullets(result.assumptions) + notes)


def _charts(result: Result) -> list[str]:
    control = [("line control", "control, mean")] if result.control is not None else []
    dots = "valid bound of each candidate" if result.valid else "candidates, not bounds"
    games = f"members, mean ± sd over {result.games:,} games: descriptive"
    guesses = _legend(("line members", games), ("dot members", dots), ("ring members", "selected"), *control)
    labels = _legend(("box members", "true labels"), ("box other", "counterfactual labels"))
    star = words.tau_star(result)
    found = charts.guesses(result), charts.scores(result), charts.shift(result), charts.reliability(result)
    main, score, shift, reliable = found
    shift_note = f"{star[0].upper()}{star[1:]}."
    shift_body = f"{shift}{_legend(('line members', 'members'), *control)}" if shift else None
    if shift is None and result.pictures is not None and result.tau_star is None:
        shift_body = '<p class="empty">Nothing to draw.</p>'
    return [
        _card("How many guesses", main and main + guesses),
        _card("What the attack sees", score and score + labels),
        _card("How wrong may the reference be?", shift_body, note=shift_note),
        _card(
            "Is the reference calibrated?",
            reliable,
            note="On the diagonal its probabilities are right; larger dots hold more rows.",
        ),
    ]


def _slices(result: Result) -> str:
    if not result.slices:
        return ""
    parts = words.worst_first(result)
    top = max([part.bound.epsilon for part in parts] + [part.control.epsilon for part in parts if part.control])
    controls = any(part.control is not None for part in parts)
    rows = ""
    for part in parts:
        cells = f"<td>{_bar(part.bound, top, 'members')}<b>{words.epsilon(part.bound.epsilon)}</b></td>"
        if controls:
            inner = f"{_bar(part.control, top, 'control')}<b>{words.epsilon(part.control.epsilon)}</b>" if part.control else "–"
            cells += f"<td>{inner}</td>"
        small = f"{part.bound.canaries:,} rows, {words.accuracy(part.bound)} correct"
        rows += f'<tr><th scope="row">{_plain(part.value)}<small>{_plain(small)}</small></th>{cells}</tr>'
    sign = words.sign(tuple(part.bound for part in parts))
    heads = f'<th scope="col">Slice</th><th scope="col">{sign}</th>' + ('<th scope="col">Control</th>' if controls else "")
    table = f'<table class="slices"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    title = f"Slices by {result.slice_column}" if result.slice_column else "Slices"
    return _card(title, table, note=words.slices_note(result), wide=True, kind="long")


def _descriptive(result: Result) -> str:
    body = _pairs(words.descriptive(result)) if result.descriptive else None
    return _card(words.DESCRIPTIVE, body, note=words.DESCRIPTIVE_NOTE, kind="aside")


def _reproduce(result: Result) -> str:
    body = ""
    if result.command:
        body += f"<p>The command:</p><pre>{_plain(result.command)}</pre>"
    again = words.recompute(result)
    if again:
        body += f"<p>The number alone, from its counts (γ = {words.small(result.level)}):</p><pre>{_plain(again)}</pre>"
    body += _pairs([("Version", __version__), ("Seed", f"{result.seed}")])
    return _card("Get it again", body)
