"""What is asked of any game's counts, from the arguments that every audit takes."""

from __future__ import annotations

from dataclasses import dataclass

from bystander._validate import InputError, fraction, whole
from bystander.bound import as_shift
from bystander.selection import EProcess, Grid, Quantile, Question, Selection
from bystander.tradeoff import ApproxDP, Family, Pure, RandomizedResponse, Shift

RECORDS = 3  # whole records differ in more than two ways: a shift costs what it does for many classes


@dataclass(frozen=True, slots=True)
class Asked:
    """The selection, the question, how many games, and their seed; `versions` is 2 where no more can be shown."""

    selection: Selection
    question: Question
    games: int
    seed: int

    @classmethod
    def of(
        cls,
        versions: int,
        *,
        selection: Selection | None = None,
        combination: Quantile | None = None,
        family: Family | None = None,
        confidence: float = 0.95,
        tau: float | Shift = 0.0,
        games: int = 100,
        seed: int = 0,
    ) -> Asked:
        """Check the arguments, and fill in what was left out."""
        selection = Grid() if selection is None else selection
        family = (Pure() if isinstance(selection, EProcess) else ApproxDP()) if family is None else family
        if isinstance(family, RandomizedResponse) and family.classes != versions:
            raise InputError(f"family rr is for {family.classes} values: use approx, pure, gaussian or laplace")
        level = 1 - fraction("confidence", confidence)
        question = Question(family, as_shift(tau, versions), versions, level, combination or Quantile())
        return cls(selection, question, whole("games", games, 1, 10_000), whole("seed", seed, 0))
