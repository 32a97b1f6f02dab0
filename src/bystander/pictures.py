"""What reports draw: curves computed from one audit's rows and counts. Nothing here is a bound but `bounds`."""

from __future__ import annotations

import numpy as np

from bystander.bound import offsets, rejected
from bystander.counts import Tally
from bystander.outcome import Seen
from bystander.result import Curve, Pictures
from bystander.selection import Choice, EProcess, FixedFraction, PaperSweep, Question, Selection
from bystander.tradeoff import Gaussian, Steinke, gaussian_epsilon


def cuts(canaries: int) -> tuple[int, ...]:
    """The cuts that pictures and descriptive numbers look at: 1 % … 100 %, and below 1 % by ratios."""
    fine = (round(canaries * 0.01 * 2.0 ** (-k / 2)) for k in range(1, 8))
    return tuple(sorted({*PaperSweep().cuts(canaries), *(c for c in fine if c >= 20)}))


def pictures(seen: Seen, tally: Tally, selection: Selection, question: Question, choice: Choice) -> Pictures:
    """Every curve of one audit."""
    return Pictures(
        guesses=_by_fraction(tally, question),
        bounds=Curve(choice.fractions, choice.epsilons),
        shift=_by_shift(tally, selection, question, choice),
        scores=seen.scores,
        reliability=seen.reliability,
    )


def descriptive(seen: Seen, tally: Tally, question: Question) -> dict[str, float]:
    """Numbers that describe and bound nothing: the paper's rule, accuracy, AUC."""
    delta = question.family.delta or 1e-5
    paper = Question(Gaussian(delta), question.shift, question.classes, question.level, question.combination)
    sweep = PaperSweep()
    swept = tally.at(sweep.cuts(tally.canaries))
    best = gaussian_epsilon(sweep.each(swept, paper)[0], delta)
    one = tally.at(FixedFraction(0.01).cuts(tally.canaries))
    fixed = gaussian_epsilon(sweep.each(one, paper)[0], delta)
    return {
        "epsilon_mean": float(best.mean()),
        "epsilon_sd": float(best.std(ddof=1)) if len(best) > 1 else 0.0,
        "epsilon_1pct_mean": float(fixed.mean()),
        "epsilon_1pct_sd": float(fixed.std(ddof=1)) if len(fixed) > 1 else 0.0,
        "accuracy": float(tally.correct[:, -1].mean() / tally.guesses[-1]),
        "auc": seen.auc,
    }


def _by_fraction(tally: Tally, question: Question) -> Curve:
    """ε of the mean count at each fraction alone, and of that count's standard deviation over the games."""

    wanted = tally.canaries * np.geomspace(max(20 / tally.canaries, 0.001), 1, 24)
    where = np.unique(np.searchsorted(tally.guesses, np.minimum(wanted, tally.guesses[-1])))
    x, y, sd = [], [], []
    for k in where:
        guesses, count = int(tally.guesses[k]), tally.correct[:, k]
        spread = count.std(ddof=1) if tally.games > 1 else 0.0

        def epsilon(correct: float, guesses: int = guesses) -> float:
            c = min(guesses, max(0, round(correct)))
            family = question.family
            return family.epsilon(
                rejected(family, question.shift, question.classes, tally.canaries, guesses, c, question.level)
            )

        x.append(guesses / tally.canaries)
        y.append(epsilon(count.mean()))
        sd.append((epsilon(count.mean() + spread) - epsilon(count.mean() - spread)) / 2)
    return Curve(tuple(x), tuple(y), tuple(sd))


def _by_shift(tally: Tally, selection: Selection, question: Question, choice: Choice) -> Curve:
    """The selection's ε, were the reference off by τ."""
    if isinstance(selection, EProcess | PaperSweep) or isinstance(question.family, Steinke):
        return Curve((), ())
    star = choice.tau_star or 1e-4
    taus = [*(star * np.geomspace(1e-3, 0.97, 20)), star, star * 1.5]
    epsilons = []
    for tau in taus:
        shifted = Question(
            question.family, question.shift.at(min(tau, 1.0)), question.classes, question.level, question.combination
        )
        epsilons.append(_without_star(tally, selection, shifted))
    return Curve(tuple(float(t) for t in taus), tuple(epsilons))


def _without_star(tally: Tally, selection: Selection, question: Question) -> float:
    from bystander._kernels import sweep

    candidates = tally.at(selection.cuts(tally.canaries))
    level = question.combination.level(question.level, tally.games) / len(candidates.guesses)
    before, after = offsets(question.family, question.shift, question.classes)
    counts = question.combination.of(candidates.correct)[None]
    best, which = np.empty(1), np.empty(1, dtype=np.int64)
    family, m = question.family, float(tally.canaries)
    sweep(family.kind, family.constant, before, after, m, candidates.guesses, counts, level, best, which)
    return family.epsilon(float(best[0]))
