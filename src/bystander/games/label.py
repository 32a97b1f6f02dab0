"""The paper's Algorithm 2 for labels: a fair bit b, y¹ ~ Multinoulli(M'(x)), shown label y^b."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bystander.counts import Ranking, rank
from bystander.records import Records


@dataclass(frozen=True, slots=True, eq=False)
class LabelGame:
    """One label game, ready to be played any number of times: who is a canary, and what each guess would be."""

    keys: NDArray[np.uint64]
    labels: NDArray[np.int64]
    thresholds: NDArray[np.float64]  # (rows, classes): cumulative M'(x), the last one ∞
    ranking: Ranking

    def __len__(self) -> int:
        return len(self.keys)


def shown(records: Records) -> NDArray[np.float64]:
    """The law of the shown label: half the true label, half M'(x)."""
    law = records.reference / 2
    law[np.arange(len(records)), records.labels] += 0.5
    return law


def prepare(records: Records, scores: NDArray[np.float64]) -> LabelGame:
    """Place every (row, shown label) by the attack's score."""
    thresholds = np.cumsum(records.reference, axis=1)
    thresholds[:, -1] = np.inf
    return LabelGame(records.keys, records.labels, thresholds, rank(scores, shown(records)))
