"""From the counts of any game to one Result: selection, bound, pictures, and the words that go with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bystander import pictures
from bystander.counts import Tally
from bystander.outcome import Seen
from bystander.quality import advice
from bystander.result import Curve, Quality, Result
from bystander.selection import Choice, Question, Selection
from bystander.tradeoff import Gaussian

_CHOSEN = {
    True: "The rule for the number of guesses was fixed before the game, and its choice is paid for.",
    False: "Not a bound: the number of guesses is the best of many in hindsight, and games are averaged.",
}


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """A game that was played: how its counts are cut, what was seen of it, and what it rests on.

    `stand_in` is what stood for the truth where the attacker was shown something else ("reference"), and `believed` the
    sentence that says how good it is taken to be. None where nothing was drawn after training: there is no shift then.
    """

    game: str
    attack: str
    canaries: int
    classes: int
    games: int
    seed: int
    tally: Callable[[tuple[int, ...]], Tally]  # the counts at rising c'
    seen: Seen
    assumptions: tuple[str, ...]
    stand_in: str | None
    believed: str = ""
    notes: tuple[str, ...] = ()


def verdict(played: Played, selection: Selection, question: Question) -> Result:
    """The bound, and everything that it rests on."""
    m = played.canaries
    mine = selection.cuts(m)
    tally = played.tally(tuple(sorted({*mine, *pictures.cuts(m)})))
    choice = selection.choose(tally.at(mine), question)
    drawn = pictures.pictures(played.seen, tally, selection, question, choice)
    bound = bound_fields(choice, m, selection, question)
    if played.stand_in is None:
        drawn, bound = replace(drawn, shift=Curve((), ())), bound | {"tau_star": None}
    few = (f"{m:,} rows are few: even a total leak would show only a small ε.",) if m < 1000 else ()
    assumptions = (_CHOSEN[selection.valid], *played.assumptions, question.family.assumption, played.believed)
    return Result(
        **bound,
        assumptions=tuple(filter(None, assumptions)),
        selection=selection.name,
        combination=_combination(selection, question, played.games),
        attack=played.attack,
        classes=played.classes,
        level=choice.level,
        games=played.games,
        seed=played.seed,
        descriptive=pictures.descriptive(played.seen, tally, question),
        pictures=drawn,
        notes=(*played.notes, *few),
        game=played.game,
        stand_in=played.stand_in,
    )


def bound_fields(choice: Choice, canaries: int, selection: Selection, question: Question) -> dict[str, Any]:
    """What every bound says of a choice."""
    family, shift = question.family, question.shift
    return {
        "epsilon": choice.epsilon,
        "confidence": 1 - question.level,
        "family": family,
        "mu": choice.parameter if isinstance(family, Gaussian) else None,
        "canaries": canaries,
        "guesses": choice.guesses,
        "correct": choice.correct,
        "tau": shift.tau,
        "tau_form": shift.name,
        "tau_star": choice.tau_star,
        "valid": selection.valid,
    }


def beside(members: Result, control: Result, quality: Quality | None = None) -> Result:
    """The result with its control, a sentence on the two, and what a test on the control rows found."""
    if quality is not None:
        quality = replace(quality, advice=advice(quality, members))
    note = _control_note(members, control, quality) if members.valid else None
    return replace(members, control=control, control_note=note, quality=quality)


def _combination(selection: Selection, question: Question, games: int) -> str:
    """How many games became one number."""
    if games == 1:
        return "one game"
    return question.combination.name if selection.valid else "mean of the games"


def _control_note(members: Result, control: Result, quality: Quality | None) -> str:
    """What a control says of the members' figure."""
    who = members.stand_in
    nothing = control.epsilon < 0.001  # which reports show as 0
    if nothing and quality is not None and quality.low > 0:
        return (
            f"The control reads 0 on {control.canaries:,} rows, but the {who} is off: another test of these rows "
            f"tells it from the truth. See the quality of the {who}."
        )
    if nothing:
        return (
            f"The control reads 0 on {control.canaries:,} rows: no sign that the {who}'s error explains what the "
            "members read."
        )
    read, found = _floored(control.epsilon), _floored(members.epsilon)
    told = (
        f"The control is not 0: rows that the target never trained on read ε ≥ {read}. They have nothing to be "
        f"memorised: that much is the {who}'s error, and the members' figure holds such an error too"
    )
    if control.epsilon >= members.epsilon:
        return told + ". The members read no more than the control: this audit shows no memorisation."
    if control.epsilon >= 0.5 * members.epsilon:
        return told + f". It may explain most of the {found}: use a better {who}."
    return told + f". Part of the {found} may be that error: a better {who} would tell."


def _floored(epsilon: float) -> str:
    """Two places, or three below 0.1, rounded down."""
    places = 2 if epsilon >= 0.1 else 3
    return f"{math.floor(epsilon * 10**places) / 10**places:.{places}f}"
