"""What reports draw: curves computed from one audit's rows and counts. Nothing here is a bound but `bounds`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bystander.bound import offsets, rejected
from bystander.counts import Tally
from bystander.records import Records
from bystander.result import Curve, Pictures
from bystander.selection import Choice, EProcess, FixedFraction, PaperSweep, Question, Selection
from bystander.tradeoff import Gaussian, Steinke

_SAMPLE = 100_000


def cuts(canaries: int) -> tuple[int, ...]:
    """The cuts that pictures and descriptive numbers look at: 1 % … 100 %, and below 1 % by ratios."""
    fine = (round(canaries * 0.01 * 2.0 ** (-k / 2)) for k in range(1, 8))
    return tuple(sorted({*PaperSweep().cuts(canaries), *(c for c in fine if c >= 20)}))


def pictures(
    records: Records,
    scores: NDArray[np.float64],
    tally: Tally,
    selection: Selection,
    question: Question,
    choice: Choice,
) -> Pictures:
    """Every curve of one audit."""
    rows = _sample(records)
    labels, reference, shown = records.labels[rows], records.reference[rows], scores[rows]
    return Pictures(
        guesses=_by_fraction(tally, question),
        bounds=Curve(choice.fractions, choice.epsilons),
        shift=_by_shift(tally, selection, question, choice),
        scores=_densities(labels, reference, shown),
        reliability=_reliability(labels, reference),
    )


def descriptive(records: Records, scores: NDArray[np.float64], tally: Tally, question: Question) -> dict[str, float]:
    """Numbers that describe and bound nothing: the paper's rule, accuracy, AUC."""
    delta = question.family.delta or 1e-5
    paper = Question(Gaussian(delta), question.shift, question.classes, question.level, question.combination)
    sweep = PaperSweep()
    swept = tally.at(sweep.cuts(tally.canaries))
    best = np.array([paper.family.epsilon(mu) for mu in sweep.each(swept, paper)[0]])
    one = tally.at(FixedFraction(0.01).cuts(tally.canaries))
    fixed = np.array([paper.family.epsilon(mu) for mu in sweep.each(one, paper)[0]])
    rows = _sample(records)
    return {
        "epsilon_mean": float(best.mean()),
        "epsilon_sd": float(best.std(ddof=1)) if len(best) > 1 else 0.0,
        "epsilon_1pct_mean": float(fixed.mean()),
        "epsilon_1pct_sd": float(fixed.std(ddof=1)) if len(fixed) > 1 else 0.0,
        "accuracy": float(tally.correct[:, -1].mean() / tally.guesses[-1]),
        "auc": _auc(records.labels[rows], records.reference[rows], scores[rows]),
    }


def _sample(records: Records) -> NDArray[np.int64]:
    """At most 100,000 rows, in the order of their keys: the same whatever the order of the file."""
    return np.argsort(records.keys)[:_SAMPLE]


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
    from bystander._kernels import best_rejected

    candidates = tally.at(selection.cuts(tally.canaries))
    level = question.combination.level(question.level, tally.games) / len(candidates.guesses)
    before, after = offsets(question.family, question.shift, question.classes)
    counts = question.combination.of(candidates.correct).astype(np.int64)
    theta, _ = best_rejected(
        question.family.kind, question.family.constant, before, after, float(tally.canaries),
        candidates.guesses, counts, level,
    )  # fmt: skip
    return question.family.epsilon(float(theta))


def _pairs(
    labels: NDArray[np.int64], reference: NDArray[np.float64], scores: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Scores of true labels; scores of counterfactual ones, with their probabilities."""
    return scores[np.arange(len(labels)), labels], scores.ravel(), reference.ravel()


def _auc(labels: NDArray[np.int64], reference: NDArray[np.float64], scores: NDArray[np.float64]) -> float:
    """P(a true label outscores a counterfactual one), ties counting half, counterfactuals in expectation."""
    true, false, weight = _pairs(labels, reference, scores)
    order = np.argsort(false)
    false, mass = false[order], np.concatenate(([0.0], np.cumsum(weight[order])))
    below, upto = np.searchsorted(false, true, "left"), np.searchsorted(false, true, "right")
    return float((mass[below] + mass[upto]).mean() / (2 * mass[-1]))


def _densities(labels: NDArray[np.int64], reference: NDArray[np.float64], scores: NDArray[np.float64]) -> Curve:
    """Densities of the scores of true and of counterfactual labels, over the middle 99.8 %."""
    true, false, weight = _pairs(labels, reference, scores)
    low, high = np.quantile(true, (0.001, 0.999))
    likely = false[weight > 0.01]
    if len(likely):
        low, high = min(low, np.quantile(likely, 0.001)), max(high, np.quantile(likely, 0.999))
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, 61)
    here, _ = np.histogram(np.clip(true, low, high), edges)
    there, _ = np.histogram(np.clip(false, low, high), edges, weights=weight)
    step = edges[1] - edges[0]
    return Curve(
        tuple(edges.tolist()), tuple((here / here.sum() / step).tolist()), tuple((there / there.sum() / step).tolist())
    )


def _reliability(labels: NDArray[np.int64], reference: NDArray[np.float64]) -> Curve:
    """Reference probability against observed rate, in 15 bins of equal size over (row, class); binary: class 1."""
    if reference.shape[1] == 2:
        p, hit = reference[:, 1], labels == 1
    else:
        p = reference.ravel()
        hit = (np.arange(reference.shape[1]) == labels[:, None]).ravel()
    order = np.argsort(p, kind="stable")
    parts = [part for part in np.array_split(order, 15) if len(part)]
    return Curve(
        tuple(float(p[part].mean()) for part in parts),
        tuple(float(hit[part].mean()) for part in parts),
        tuple(float(len(part)) for part in parts),
    )
