"""An audit without its report: play the games once, then put many questions to the counts.

`cell` is what an experiment on a trained target records: the label game on the members and on held-out rows, by the
paper's rule and by valid ones, and calibrated membership beside it. `_draw.audit_table` shows such cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bystander import ApproxDP, FixedFraction, Gaussian, Grid, LogRatio, PaperScore, Quantile, Records, Shift
from bystander._keys import mix64
from bystander.attacks import Attack
from bystander.bound import offsets
from bystander.counts import Sketch, Tally
from bystander.games import label, membership
from bystander.games.guesses import Tails
from bystander.rivals import at_label, calibrated_scores
from bystander.selection import PaperSweep, Question, Selection
from bystander.tradeoff import Family

Matrix = NDArray[np.float64]
LEVEL = 0.05
DELTA = 1e-5
_BATCH = 131_072


def records(labels: NDArray[np.integer], target: Matrix, reference: Matrix, *, seed: int = 0) -> Records:
    """Rows keyed by position and seed. Checked by nobody: these arrays were made here."""
    keys = mix64(np.arange(len(labels), dtype=np.uint64) + np.uint64(seed) * np.uint64(1 << 40))
    return Records(np.asarray(labels, dtype=np.int64), target, reference, keys, None, (), "experiment")


def cut(share: float, rows: int) -> int:
    """How many rows a share is."""
    return max(1, round(share * rows))


def play(rows: Records, attack: Attack, *, shares: tuple[float, ...] = (), games: int = 100, seed: int = 0) -> Tally:
    """Counts at these shares and at those of the default grid."""
    m = len(rows)
    cuts = sorted({*Grid().cuts(m), *(cut(q, m) for q in shares)})
    keys, sketch = label.game_keys(seed, games), Sketch.empty(games)
    for start in range(0, m, _BATCH):
        part = rows.take(slice(start, start + _BATCH))
        label.play(part, attack.scores(part.target, part.reference), keys, sketch)
    return sketch.tally(cuts, keys)


def question(
    classes: int, *, family: Family | None = None, shift: Shift | None = None, share: float = 0.5, level: float = LEVEL
) -> Question:
    """What is asked: the product's defaults unless told otherwise."""
    return Question(family or ApproxDP(DELTA), shift or Shift(0.0), classes, level, Quantile(share))


def ask(tally: Tally, selection: Selection, asked: Question) -> float:
    """ε by a valid selection."""
    return selection.choose(tally.at(selection.cuts(tally.canaries)), asked).epsilon


def paper(tally: Tally, share: float, *, classes: int = 2, shift: Shift | None = None) -> NDArray[np.float64]:
    """The paper's rule at a fixed share: Gaussian ε(δ) of every game. Descriptive: not a bound."""
    asked = question(classes, family=Gaussian(DELTA), shift=shift)
    return _each(tally.at((cut(share, tally.canaries),)), asked)


def paper_sweep(tally: Tally, classes: int = 2) -> NDArray[np.float64]:
    """The paper's rule with its sweep; the tally must hold 1 %, 2 % … 100 %."""
    return _each(tally.at(PaperSweep().cuts(tally.canaries)), question(classes, family=Gaussian(DELTA)))


def _each(tally: Tally, asked: Question) -> NDArray[np.float64]:
    offsets(asked.family, asked.shift, asked.classes)
    found, which = np.unique(PaperSweep().each(tally, asked)[0], return_inverse=True)
    return np.array([asked.family.epsilon(mu) for mu in found])[which]


# ---- a cell of an audit table -----------------------------------------------------------------------------

SHARE = 0.01  # the paper's fixed share of guesses
_HUNDRED = tuple(p / 100 for p in range(1, 101))
_RECORDS = 3  # whole records differ in more than two ways: what a shift costs between them


def cell(
    members: Records,
    control: Records | None,
    *,
    canaries: int | None = None,
    games: int = 100,
    seed: int = 0,
    epsilon_true: float | None = None,
    epsilon_label: float | None = None,
    attack: Attack | None = None,
    score: Attack | None = None,
    calibrated: bool = True,
) -> dict[str, Any]:
    """All rules on one target: `members` and `control` (held-out rows) are logs as `records` makes them.

    At most `canaries` rows of each are audited, drawn by `seed` without reading labels. `attack` (the log-ratio) is
    what valid bounds use; `score` (the paper's, t = 2) what the paper's rule uses. `epsilon_true` is the mechanism's ε
    of replacing a label, `epsilon_label` its ε against ⊥; None for no privacy. The cell's entries:

    canaries, classes, epsilon_true, epsilon_label
    members, control (or None): what `label_game` found
    mia (where `calibrated` and there is a control): what `membership_game` found, with its own control
    """
    held = some(members, canaries, seed)
    out: dict[str, Any] = {
        "canaries": len(held), "classes": held.classes, "epsilon_true": epsilon_true, "epsilon_label": epsilon_label,
        "members": label_game(held, games=games, seed=seed, attack=attack, score=score),
        "control": None,
    }  # fmt: skip
    if control is None:
        return out
    fresh = some(control, canaries, seed)
    out["control"] = label_game(fresh, games=games, seed=seed, attack=attack, score=score)
    if calibrated:
        out["mia"] = membership_game(calibration(held), calibration(fresh), games=games, seed=seed)
    return out


def label_game(
    rows: Records, *, games: int = 100, seed: int = 0, attack: Attack | None = None, score: Attack | None = None
) -> dict[str, Any]:
    """The label game on these rows.

    canaries; paper, paper_one_percent: {mean, sd} over the games, Gaussian ε(δ) of the paper's score, not bounds;
    valid, fixed: bounds by the attack, f_{ε,δ}, with the grid and with 1 %; valid_score: with the paper's score and the
    grid; tau_star, guesses, correct: of `valid`; impossible: rows whose label the reference gives probability 0.
    """
    m, k = len(rows), rows.classes
    swept = play(rows, score or PaperScore(2.0), shares=_HUNDRED, games=games, seed=seed)
    tally = play(rows, attack or LogRatio(), games=games, seed=seed)
    return {
        "canaries": m,
        **_paper_rule(swept, k),
        **_valid(tally, k),
        "valid_score": ask(swept, Grid(), question(k)),
        "impossible": int((rows.reference[np.arange(m), rows.labels] == 0).sum()),
    }


def membership_game(
    scores: NDArray[np.float64], others: NDArray[np.float64], *, games: int = 100, seed: int = 0
) -> dict[str, Any]:
    """Any attack's membership scores (higher: trained on), of members and of held-out rows, as the same game.

    The entries of `label_game` but for `impossible` and `valid_score`, and `control`: the valid bound with one half of
    the held-out rows in the members' place. Pairs of rows differ in the features too: a bound on ε of a whole row.
    """
    half = np.array_split(_order(len(others), seed), 2)
    against = _pairs(others[half[0]], others[half[1]], games, seed)
    tally = _pairs(scores, others, games, seed)
    found = {"canaries": tally.canaries, **_paper_rule(tally, _RECORDS), **_valid(tally, _RECORDS)}
    return {**found, "control": ask(against, Grid(), question(_RECORDS))}


def calibration(rows: Records) -> NDArray[np.float64]:
    """ℓ(M'(x), y) − ℓ(M(x), y): difficulty calibration (Watson et al. 2022), the paper's membership inference."""
    return calibrated_scores(at_label(rows.target, rows.labels), at_label(rows.reference, rows.labels))


def some(rows: Records, canaries: int | None, seed: int) -> Records:
    """That many rows, drawn without reading them; all, where there are no more."""
    if canaries is None or canaries >= len(rows):
        return rows
    return rows.take(np.sort(_order(len(rows), seed)[:canaries]))


def others(rows: int, canaries: int, seed: int) -> NDArray[np.int64]:
    """The rows that `some` leaves, in order: outside the audit."""
    return np.sort(_order(rows, seed)[canaries:])


def two_columns(positive: NDArray[np.floating]) -> Matrix:
    """(rows,) P(label 1) as (rows, 2)."""
    p = np.asarray(positive, dtype=np.float64)
    return np.ascontiguousarray(np.column_stack((1 - p, p)))


def log_loss(labels: NDArray[np.integer], probabilities: Matrix) -> float:
    """Mean −log M(x)[y]."""
    at = probabilities[np.arange(len(labels)), labels]
    return float(-np.log(np.clip(at, 1e-15, None)).mean())


def _paper_rule(tally: Tally, classes: int) -> dict[str, Mapping[str, float]]:
    both = {"paper": paper_sweep(tally, classes), "paper_one_percent": paper(tally, SHARE, classes=classes)}
    return {
        name: {"mean": each.mean(), "sd": each.std(ddof=1) if len(each) > 1 else 0.0} for name, each in both.items()
    }


def _valid(tally: Tally, classes: int) -> dict[str, Any]:
    asked = question(classes)
    choice = Grid().choose(tally.at(Grid().cuts(tally.canaries)), asked)
    return {
        "valid": choice.epsilon, "fixed": ask(tally, FixedFraction(SHARE), asked), "tau_star": choice.tau_star,
        "guesses": choice.guesses, "correct": choice.correct,
    }  # fmt: skip


def _pairs(scores: NDArray[np.float64], others: NDArray[np.float64], games: int, seed: int) -> Tally:
    kinds = (_scored(each, seed + salt) for salt, each in ((0, scores), (7, others)))
    pairs = membership.Pairs.of(*kinds, seed)
    m = len(pairs.keys)
    cuts = sorted({*Grid().cuts(m), *PaperSweep().cuts(m)})
    return membership.paired(pairs, Tails(), label.game_keys(seed, games), tuple(cuts))


def _scored(scores: NDArray[np.float64], salt: int) -> membership.Scored:
    return membership.Scored(
        scores, mix64(np.arange(len(scores), dtype=np.uint64) + np.uint64(salt) * np.uint64(1 << 40))
    )


def _order(rows: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, rows, 55]).permutation(rows)
