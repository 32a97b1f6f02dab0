"""How many guesses, and what choosing costs; how many games, and how they become one count.

A selection names its cuts before any game is played, and pays for having several. A combination turns the
counts of many games on one model into one count at a smaller level. Proofs: docs/math/selection.md, games.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from bystander._validate import InputError, fraction
from bystander.bound import offsets, rejected, tolerated
from bystander.counts import Tally
from bystander.tradeoff import Family, Pure, Shift, Steinke


@dataclass(frozen=True, slots=True)
class Quantile:
    """Believe what at least this share of the games reject.

    If E[share of games rejecting] ≤ level, Markov's inequality makes Pr[share ≥ q] ≤ level/q: so each game is
    evaluated at q times the level. One game alone pays nothing.
    """

    share: float = 0.5

    def __post_init__(self) -> None:
        fraction("share", self.share, one=True)

    @property
    def name(self) -> str:
        """How reports call it."""
        return "median of the games" if self.share == 0.5 else f"what {self.share:.0%} of the games reject"

    def needed(self, games: int) -> int:
        """How many of the games must reject."""
        return max(1, math.ceil(self.share * games - 1e-9))

    def level(self, level: float, games: int) -> float:
        """The level at which each game is evaluated."""
        return level * self.needed(games) / games

    def of(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """What that many of the games reach, column by column."""
        return np.asarray(np.sort(values, axis=0)[len(values) - self.needed(len(values))])


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The selected count, the level at which it was evaluated, and what each candidate would have given."""

    epsilon: float
    parameter: float
    guesses: int
    correct: int
    level: float | None  # at which the one count gives ε again, where there is one
    tau_star: float | None
    fractions: tuple[float, ...]
    epsilons: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the counts."""

    family: Family
    shift: Shift
    classes: int
    level: float
    combination: Quantile


class Selection(Protocol):
    """How c' is chosen."""

    valid: ClassVar[bool]

    @property
    def name(self) -> str:
        """How reports call it."""

    def cuts(self, canaries: int) -> tuple[int, ...]:
        """Every c' that it will look at, rising."""

    def choose(self, tally: Tally, question: Question) -> Choice:
        """The count that gives the largest bound, after paying for the choice."""


def _cuts(fractions: tuple[float, ...], canaries: int) -> tuple[int, ...]:
    return tuple(sorted({max(1, round(q * canaries)) for q in fractions}))


def _choose(tally: Tally, question: Question) -> Choice:
    """Bonferroni over the candidates that there are, before the game."""
    level = question.combination.level(question.level, tally.games) / len(tally.guesses)
    correct = question.combination.of(tally.correct)
    args = (question.family, question.shift, question.classes, tally.canaries)
    parameters = [rejected(*args, int(g), int(c), level) for g, c in zip(tally.guesses, correct, strict=True)]
    best = int(np.argmax(parameters))
    if parameters[best] == 0:  # nothing is rejected: show the largest count
        best = len(parameters) - 1
    star = None if isinstance(question.family, Steinke) else 0.0
    if star is not None and (parameters[best] > 0 or question.shift.tau > 0):  # a granted τ may be why nothing is
        star = max(tolerated(*args, int(g), int(c), level) for g, c in zip(tally.guesses, correct, strict=True))
    epsilons = tuple(question.family.epsilon(p) for p in parameters)
    return Choice(
        epsilons[best], parameters[best], int(tally.guesses[best]), int(correct[best]), level, star,
        tuple(float(g) / tally.canaries for g in tally.guesses), epsilons,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class FixedFraction:
    """One fraction of the canaries, fixed in advance: no price for choosing."""

    fraction: float = 0.01
    valid: ClassVar[bool] = True

    def __post_init__(self) -> None:
        fraction("guesses", self.fraction, one=True)

    @property
    def name(self) -> str:
        """The fraction."""
        return f"fixed at {self.fraction:.4g} of the rows"

    def cuts(self, canaries: int) -> tuple[int, ...]:
        """One cut."""
        return _cuts((self.fraction,), canaries)

    def choose(self, tally: Tally, question: Question) -> Choice:
        """The one candidate, at the full level."""
        return _choose(tally, question)


@dataclass(frozen=True, slots=True)
class Grid:
    """A few fractions fixed in advance, Bonferroni over them. The default: 1 %, doubled up to all."""

    fractions: tuple[float, ...] = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0)
    valid: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.fractions:
            raise InputError("the grid of guess fractions is empty: give at least one")
        for q in self.fractions:
            fraction("guesses", q, one=True)

    @property
    def name(self) -> str:
        """The candidates and the price."""
        return f"grid of {len(self.fractions)} fractions, Bonferroni"

    def cuts(self, canaries: int) -> tuple[int, ...]:
        """One cut a fraction; few canaries make some coincide."""
        return _cuts(self.fractions, canaries)

    def choose(self, tally: Tally, question: Question) -> Choice:
        """The best candidate at level / candidates."""
        return _choose(tally, question)


@dataclass(frozen=True, slots=True)
class EProcess:
    """Bet on each guess in turn, the most confident first, and stop at the best moment. Pure ε, no shift.

    Given the model and the shown labels, each guess is right with probability at most q = e^ε/(1 + e^ε), whatever
    the earlier ones were; so M_t = mean_d e^{d·C_t − t·L_d}, L_d = log(1 + e^{ε+d}) − log(1 + e^ε), is a
    supermartingale, and sup_t M_t ≥ 1/γ rejects ε (Ville). Looking at some t alone only loses power.
    """

    valid: ClassVar[bool] = True
    _bets: ClassVar[NDArray[np.float64]] = 0.04 * 60.0 ** (np.arange(8) / 7)

    @property
    def name(self) -> str:
        """How reports call it."""
        return "e-process over all ranks"

    def cuts(self, canaries: int) -> tuple[int, ...]:
        """Every t up to 500, then in steps of one percent."""
        steps = 500 * 1.01 ** np.arange(math.ceil(math.log(max(canaries, 500) / 500) / math.log(1.01)) + 1)
        cuts = np.concatenate((np.arange(1, 501), np.round(steps), [canaries])).astype(np.int64)
        return tuple(int(c) for c in np.unique(cuts[cuts <= canaries]))

    def choose(self, tally: Tally, question: Question) -> Choice:
        """The bound of each game, then the combination's quantile of them."""
        if not isinstance(question.family, Pure) or question.shift.tau > 0:
            raise InputError(
                "the e-process holds for pure ε without shift: use --family pure and --tau 0, or --guesses grid"
            )
        level = question.combination.level(question.level, tally.games)
        epsilons, peaks = zip(*(self._bound(tally.guesses, row, level) for row in tally.correct), strict=True)
        order = np.argsort(epsilons, kind="stable")
        game = int(order[tally.games - question.combination.needed(tally.games)])
        peak = peaks[game]
        return Choice(
            float(epsilons[game]), float(epsilons[game]), int(tally.guesses[peak]), int(tally.correct[game, peak]),
            None, None,            (float(tally.guesses[peak]) / tally.canaries,), (float(epsilons[game]),),
        )  # fmt: skip

    def _bound(self, t: NDArray[np.int64], c: NDArray[np.int64], level: float) -> tuple[float, int]:
        """The largest ε with sup_t M_t(ε) ≥ 1/level, and the t of that peak. M_t falls with ε on every path."""
        won = np.multiply.outer(self._bets, c)

        def wealth(epsilon: float) -> NDArray[np.float64]:
            price = np.logaddexp(0, epsilon + self._bets) - np.logaddexp(0, epsilon)
            return np.asarray(np.logaddexp.reduce(won - np.multiply.outer(price, t), axis=0) - math.log(len(price)))

        goal = -math.log(level)
        at_zero = wealth(0.0)
        if at_zero.max() < goal:
            return 0.0, int(at_zero.argmax())
        low, high = 0.0, 1.0
        while wealth(high).max() >= goal:
            low, high = high, 2 * high
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if wealth(middle).max() >= goal else (low, middle)
        return low, int(wealth(low).argmax())


@dataclass(frozen=True, slots=True)
class PaperSweep:
    """The paper's rule: in every game the best of 1 %, 2 % … 100 %, unpaid for; their mean. Not a bound."""

    valid: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """How reports call it."""
        return "the paper's sweep over 1 % … 100 %"

    def cuts(self, canaries: int) -> tuple[int, ...]:
        """A hundred cuts."""
        return _cuts(tuple(p / 100 for p in range(1, 101)), canaries)

    def choose(self, tally: Tally, question: Question) -> Choice:
        """The mean over games of ε; the count shown is the middle game's."""
        parameters, which = self.each(tally, question)
        epsilons = np.array([question.family.epsilon(p) for p in parameters])
        game = int(np.argsort(epsilons, kind="stable")[len(epsilons) // 2])
        k = int(which[game])
        return Choice(
            float(epsilons.mean()), float(parameters.mean()), int(tally.guesses[k]), int(tally.correct[game, k]),
            None, None,
            (float(tally.guesses[k]) / tally.canaries,), (float(epsilons.mean()),),
        )  # fmt: skip

    def each(self, tally: Tally, question: Question) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The best parameter of each game, and the cut that gave it."""
        from bystander._kernels import sweep

        family = question.family
        before, after = offsets(family, question.shift, question.classes)
        best: NDArray[np.float64] = np.empty(tally.games)
        which: NDArray[np.int64] = np.empty(tally.games, dtype=np.int64)
        sweep(
            family.kind, family.constant, before, after, float(tally.canaries), tally.guesses, tally.correct,
            question.level, best, which,
        )  # fmt: skip
        return best, which
