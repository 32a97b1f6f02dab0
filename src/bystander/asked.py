"""What is asked of any game's counts, from the arguments that every audit takes."""

from __future__ import annotations

from dataclasses import dataclass

from bystander._validate import InputError, a_choice, fraction, whole
from bystander.bound import as_shift
from bystander.selection import EProcess, Grid, Quantile, Question, Selection
from bystander.tradeoff import ApproxDP, Family, Pure, RandomizedResponse, Shift

RECORDS = 3  # whole records differ in more than two ways: a shift costs what it does for many classes


@dataclass(frozen=True, slots=True)
class Asked:
    """The selection, the question, how many games, and their seed."""

    selection: Selection
    question: Question
    games: int
    seed: int

    @classmethod
    def of(
        cls,
        values: int | None,
        source: str,
        *,
        selection: Selection | None = None,
        combination: Quantile | None = None,
        family: Family | None = None,
        confidence: float = 0.95,
        tau: float | Shift = 0.0,
        games: int = 100,
        seed: int = 0,
    ) -> Asked:
        """Check the arguments, and fill in what was left out.

        `values` is how many values the source's rows may show: labels, a column's; None where whole records are shown.
        """
        selection = Grid() if selection is None else a_choice("selection", selection, "cuts", "FixedFraction(0.01)")
        family = (Pure() if isinstance(selection, EProcess) else ApproxDP()) if family is None else family
        a_choice("family", family, "kind", "ApproxDP(delta=1e-5)")
        combination = Quantile() if combination is None else a_choice("combination", combination, "level", "Quantile()")
        if isinstance(family, RandomizedResponse) and family.classes != values:
            if values is None:
                raise InputError("family rr is for labels: use approx, pure, gaussian, laplace or steinke")
            raise InputError(
                f"family rr is for {family.classes} values and {source} has {values}: give --classes {values}"
            )
        classes = RECORDS if values is None else values
        level = 1 - fraction("confidence", confidence)
        question = Question(family, as_shift(tau, classes), classes, level, combination)
        return cls(selection, question, whole("games", games, 1, 10_000), whole("seed", seed, 0))
