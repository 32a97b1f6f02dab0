"""The words of the command line, and the values they stand for."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from bystander import attacks, engines, selection, tradeoff
from bystander._validate import InputError
from bystander.games.guesses import Above, Centred, Guess, Tails
from bystander.scores import Coins, Given, Paired


class FamilyName(StrEnum):
    """Trade-off families by name."""

    approx = "approx"
    pure = "pure"
    gaussian = "gaussian"
    laplace = "laplace"
    rr = "rr"
    steinke = "steinke"


class AttackName(StrEnum):
    """Attacks by name."""

    log_ratio = "log-ratio"
    paper = "paper"
    learned = "learned"


class TauForm(StrEnum):
    """The ways to spend τ."""

    auto = "auto"
    theorem = "theorem"
    two_sided = "two-sided"


class CoinsName(StrEnum):
    """Who tossed the coins of a membership game."""

    paired = "paired"
    given = "given"


class EngineName(StrEnum):
    """Where games are played."""

    local = "local"
    ray = "ray"


def names(text: str) -> tuple[str, ...]:
    """Columns, split at commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def family(name: FamilyName | None, delta: float, classes: int) -> tradeoff.Family:
    """A trade-off family; approx where none is named."""
    match name:
        case None | FamilyName.approx:
            return tradeoff.ApproxDP(delta)
        case FamilyName.pure:
            return tradeoff.Pure()
        case FamilyName.gaussian:
            return tradeoff.Gaussian(delta)
        case FamilyName.laplace:
            return tradeoff.Laplace(delta)
        case FamilyName.rr:
            return tradeoff.RandomizedResponse(classes)
        case FamilyName.steinke:
            return tradeoff.Steinke(delta)


def guesses(text: str) -> selection.Selection:
    """How the number of guesses is chosen."""
    match text:
        case "grid":
            return selection.Grid()
        case "eprocess":
            return selection.EProcess()
        case "paper-sweep":
            return selection.PaperSweep()
    try:
        fractions = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"--guesses is {text!r}: give grid, eprocess, paper-sweep, or a fraction such as 0.01"
        ) from None
    return selection.FixedFraction(fractions[0]) if len(fractions) == 1 else selection.Grid(fractions)


def attack(name: AttackName, power: float | None) -> attacks.Attack:
    """An attack, with its power where it has one."""
    match name:
        case AttackName.paper:
            return attacks.PaperScore(2.0 if power is None else power)
        case AttackName.log_ratio:
            return attacks.LogRatio(0.0 if power is None else power)
        case AttackName.learned:
            if power is not None:
                raise InputError(f"--power is {power:g}: the learned attack has none")
            return attacks.Learned()


def engine(name: EngineName, address: str | None, checkpoint: Path | None = None) -> engines.Engine:
    """Where games are played."""
    if name is EngineName.ray:
        if checkpoint is not None:
            raise InputError(f"--checkpoint is {str(checkpoint)!r}: it goes with --engine local")
        return engines.Ray(address)
    if address is not None:
        raise InputError(f"--ray-address is {address!r}: it goes with --engine ray")
    return engines.Local(checkpoint)


def shift(tau: float, form: TauForm) -> float | tradeoff.Shift:
    """How τ is spent."""
    match form:
        case TauForm.auto:
            return tau
        case TauForm.theorem:
            return tradeoff.Shift(tau)
        case TauForm.two_sided:
            return tradeoff.TwoSidedShift(tau)


def coins(name: CoinsName) -> Coins:
    """Where the bits of a membership game come from."""
    return Given() if name is CoinsName.given else Paired()


def guess(text: str) -> Guess:
    """How scores become guesses."""
    name, colon, number = text.partition(":")
    try:
        match name, bool(colon):
            case "both", False:
                return Tails()
            case "both", True:
                return Tails(float(number))
            case "above", True:
                return Above(float(number))
            case "centre", True:
                return Centred(float(number))
    except InputError:
        raise
    except ValueError:
        raise InputError(f"--guess is {text!r}: give a number after the colon, as in {name}:0.5") from None
    raise InputError(f"--guess is {text!r}: give both, both:UPPER, above:SCORE or centre:SCORE")
