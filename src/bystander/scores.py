"""A game that someone else played: bits and scores become the same bounds, selections and reports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bystander._validate import InputError
from bystander.asked import RECORDS, Asked
from bystander.games import membership
from bystander.games.guesses import Guess, Tails
from bystander.games.label import game_keys
from bystander.games.membership import Pairs, Scored
from bystander.outcome import saw_two
from bystander.result import Result
from bystander.scored import Sides, control_from_data, from_array, from_arrays, from_data
from bystander.selection import Quantile, Selection
from bystander.tradeoff import Family, Shift
from bystander.verdict import Played, beside, verdict


@dataclass(frozen=True, slots=True)
class Paired:
    """Nobody tossed coins before training: a trained row and a fresh one are paired at random, and a coin shows one.

    Right for two sets of rows drawn alike, and also where coins were tossed. It uses as many rows of each kind as
    there are of the rarer one. The bound is on ε of replacing a row by a fresh one.
    """


@dataclass(frozen=True, slots=True)
class Given:
    """A fair coin was tossed for every row before training, and the rows that it chose were trained on.

    One game on all rows (Steinke et al. 2023). The bound is on ε of adding or removing a row. Not for a training set
    beside a test set: nobody tossed coins for those.
    """


Coins = Paired | Given


def scores(
    data: object = None,
    *,
    score: Any = None,
    member: Any = None,
    id: Any = None,
    members: ArrayLike | None = None,
    others: Any = None,
    control: Any = None,
    coins: Coins | None = None,
    guess: Guess | None = None,
    attack: str = "scores given",
    selection: Selection | None = None,
    combination: Quantile | None = None,
    family: Family | None = None,
    confidence: float = 0.95,
    tau: float | Shift = 0.0,
    games: int = 100,
    seed: int = 0,
) -> Result:
    """A lower bound on ε from anybody's membership scores: higher means "trained on".

    Give `members` and `others` as two arrays; or `score` and `member` (1 for rows of the training set, 0 for others)
    as arrays; or these as names of columns of `data` (files, a folder, a glob, a URL, a data frame). With `data` and
    `others` as more data, `data` holds the members and `others` the rest. `control` holds scores of further rows that
    the target did not train on: they are played in the members' place.

    `coins` says where the bits come from, `Paired()` unless given; `guess` how scores become guesses: `Tails()`
    (both ends), `Centred(0)` (by the distance from a centre) or `Above(threshold)`.

    >>> import numpy as np
    >>> from bystander import scores
    >>> rng = np.random.default_rng(0)
    >>> result = scores(members=rng.normal(1.5, 1, 20_000), others=rng.normal(0, 1, 20_000))
    >>> result.canaries, 3 < result.epsilon < 4
    (20000, True)
    >>> scores(members=rng.normal(0, 1, 20_000), others=rng.normal(0, 1, 20_000)).epsilon
    0.0
    """
    coins = Paired() if coins is None else coins
    guess = Tails() if guess is None else guess
    asked = Asked.of(
        None, "scores", selection=selection, combination=combination, family=family, confidence=confidence, tau=tau,
        games=games, seed=seed,
    )  # fmt: skip
    shift = asked.question.shift
    if data is None:
        sides = from_arrays(score, member, id, members, others)
    elif members is not None:
        raise InputError("members are given beside data: with data, the members are its rows")
    else:
        sides = from_data(data, score, member, id, others)
    for rows, kind, bit in ((sides.members, "members", 1), (sides.others, "others", 0)):
        if not len(rows):
            raise InputError(f"{sides.source} has no {kind} (member {bit}): a game needs rows of both kinds")
    if isinstance(coins, Given):
        if shift.tau > 0:
            raise InputError(f"tau is {shift.tau:g}: coins tossed before training leave no shift; use tau 0")
        if control is not None:
            raise InputError("control goes with paired coins: where coins are given, the rows left out are the control")
        return verdict(_given(sides, guess, attack, asked.seed), asked.selection, asked.question)

    def play(sides: Sides) -> Result:
        played = _paired(sides, guess, attack, asked.games, asked.seed, shift)
        return verdict(played, asked.selection, asked.question)

    if control is None:
        return play(sides)
    held = (
        from_array("control", control) if data is None else control_from_data(control, data, others, score, member, id)
    )
    return beside(play(sides), play(replace(sides, members=held)))


def _paired(sides: Sides, guess: Guess, attack: str, games: int, seed: int, shift: Shift) -> Played:
    pairs = Pairs.of(sides.members, sides.others, seed)
    keys = game_keys(seed, games)
    spare = abs(len(sides.members) - len(sides.others))
    kind = "members" if len(sides.members) > len(sides.others) else "others"
    within = "cannot be told apart (τ = 0)" if shift.tau == 0 else f"are within total variation τ = {shift.tau:g}"
    return Played(
        game="membership",
        attack=f"{attack}: {guess.name}",
        canaries=len(pairs.keys),
        classes=RECORDS,
        games=games,
        seed=seed,
        tally=partial(membership.paired, pairs, guess, keys),
        seen=saw_two(sides.members.scores, sides.others.scores),
        assumptions=(
            "Members and others were drawn independently, or are a random split of one set. They were paired at "
            "random, and a coin tossed after training shows one of each pair.",
            "Every row was scored by one rule, which does not know whether the row is a member.",
        ),
        stand_in="held-out set",
        believed=f"Members and others were drawn alike: without the target they {within}. Where they differ, the "
        "difference reads like memorisation.",
        notes=(
            "The ε is that of replacing a row. That of adding or removing one is at least half of it (δ aside).",
            *([f"{spare:,} {kind} have no partner and were not played."] if spare else []),
        ),
    )


def _given(sides: Sides, guess: Guess, attack: str, seed: int) -> Played:
    rows = Scored(
        np.concatenate((sides.members.scores, sides.others.scores)),
        np.concatenate((sides.members.keys, sides.others.keys)),
    )
    inside, m = len(sides.members), len(rows)
    if (chance := _fair(inside, m)) < 1e-6:
        raise InputError(
            f"{sides.source} has {inside:,} members in {m:,} rows: fair coins would not give that (p = {chance:.0e}); "
            "use coins paired"
        )
    halves = "Exactly half of the rows are members. If a set was split in half, use coins paired: no coins were tossed."
    return Played(
        game="membership-one-run",
        attack=f"{attack}: {guess.name}",
        canaries=m,
        classes=RECORDS,
        games=1,
        seed=seed,
        tally=partial(membership.given, rows, np.arange(m) < inside, guess, seed),
        seen=saw_two(sides.members.scores, sides.others.scores),
        assumptions=(
            "A fair coin, tossed independently for every row before training, decided whether the row was trained on.",
            "Every row was scored by one rule, which does not know the row's coin.",
        ),
        stand_in=None,
        notes=("The ε is that of adding or removing a row.", *([halves] if 2 * inside == m else [])),
    )


def _fair(heads: int, tosses: int) -> float:
    """The chance of a share as far from one half as this, both sides: an honest user is refused once in a million."""
    from scipy.special import bdtr

    return float(min(1.0, 2 * bdtr(min(heads, tosses - heads), tosses, 0.5)))
