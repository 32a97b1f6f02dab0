"""An audit without its report: play the games once, then put many questions to the counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bystander import ApproxDP, Gaussian, Grid, Quantile, Records, Shift
from bystander._keys import mix64
from bystander.attacks import Attack
from bystander.bound import offsets
from bystander.counts import Sketch, Tally
from bystander.games import label
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
