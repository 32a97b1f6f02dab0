"""A game whose rows have several versions: the true one, and others that a coin may show in its place.

The label game is the case where versions are labels. Where a version is a drawn record, each game shows the true one or
one of the draws, so every game is played with a fresh draw of the same law.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bystander.counts import Sketch
from bystander.games import label
from bystander.records import Records

_BLOCK = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class Versions:
    """Which version is true, the law of the counterfactual, the attack's score of each version, and a key a row.

    Scores are of (row, version) alone: positive says "true", and the larger the surer.
    """

    truth: NDArray[np.int64]  # (rows,)
    law: NDArray[np.float64]  # (rows, versions)
    scores: NDArray[np.float64]  # (rows, versions)
    keys: NDArray[np.uint64]  # (rows,)

    @classmethod
    def drawn(cls, true: NDArray[np.float64], drawn: NDArray[np.float64], keys: NDArray[np.uint64]) -> Versions:
        """The true record's score (rows,) beside those of draws (rows, draws), which a game shows equally often."""
        rows, draws = drawn.shape
        law = np.concatenate((np.zeros((rows, 1)), np.full((rows, draws), 1 / draws)), axis=1)
        return cls(np.zeros(rows, np.int64), law, np.concatenate((true[:, None], drawn), axis=1), keys)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.truth)

    def play(self, games: NDArray[np.uint64]) -> Sketch:
        """Every game on every row."""
        into = Sketch.empty(len(games))
        for start in range(0, len(self), _BLOCK):
            part = slice(start, start + _BLOCK)
            law = self.law[part]
            rows = Records(self.truth[part], law, law, self.keys[part], slices=None, slice_names=(), source="versions")
            label.play(rows, np.ascontiguousarray(self.scores[part]), games, into)
        return into
