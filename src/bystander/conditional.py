"""One column given others: a calibrated classifier of its values, or of bins of them, and how good it is."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bystander._validate import InputError
from bystander.calibration import Calibration, constant_loss, log_loss, reliability
from bystander.result import Curve
from bystander.tabular import Features, Frame, Matrix, Series, picked

_VALUES = 64  # a column of more has its rarer texts in one bin, or its numbers in bins


@dataclass(frozen=True, slots=True)
class Fit:
    """How a column is learned."""

    bins: int
    calibration: Calibration
    iterations: int
    seed: int


@dataclass(frozen=True, slots=True)
class ColumnQuality:
    """How well a column is predicted, on rows that neither fitted nor calibrated the model."""

    rows: int
    values: int
    log_loss: float
    constant: float  # log-loss of the best constant
    reliability: Curve  # x: predicted probability; y: observed rate; other: (row, value) pairs in the bin

    def sentence(self, column: str) -> str:
        """The log-loss beside a constant's, in words."""
        return (
            f"Sampler of {column}: log-loss {self.log_loss:.4f} over {self.values} values or bins, a constant's "
            f"{self.constant:.4f}, on {self.rows:,} rows set aside."
        )


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """P(column | given), and rows that lend their values: a drawn value has been seen, and keeps its type."""

    column: str
    features: Features
    donors: Series  # values in the order of their bins
    starts: NDArray[np.int64]  # (bins + 1,): where a bin's donors begin
    values: tuple[Any, ...] | None  # where every bin is one value
    rates: Matrix  # (bins,)
    model: Any  # None where nothing is given
    calibration: Calibration
    quality: ColumnQuality

    @classmethod
    def fit(cls, frame: Frame, column: str, given: tuple[str, ...], how: Fit) -> Conditional:
        """Learn on 70 % of the rows, calibrate on 15 %, measure on 15 %."""
        code, bins = _binned(frame[column], how.bins)
        order = np.argsort(code, kind="stable")
        starts = np.searchsorted(code[order], np.arange(bins + 1))
        donors = picked(frame[column], order)
        values = None
        lent = donors.to_list()
        if all(len(set(lent[a:b])) == 1 for a, b in pairwise(starts)):
            values = tuple(lent[a] for a in starts[:-1])
        features = Features.of(frame, given)
        x = features.matrix(frame)
        shuffled = np.random.default_rng([how.seed, len(given)]).permutation(len(code))
        first, second = int(0.7 * len(code)), int(0.85 * len(code))
        learn, mend, look = shuffled[:first], shuffled[first:second], shuffled[second:]
        counts = np.bincount(code[learn], minlength=bins) + 1.0
        rates: Matrix = np.asarray(counts / counts.sum(), dtype=np.float64)
        several = bool(given) and len(np.unique(code[learn])) > 1
        model = _classifier(x[learn], code[learn], features.categorical, how) if several else None
        raw = cls(
            column, features, donors, starts, values, rates, model, how.calibration, ColumnQuality(0, bins, 0, 0, _NONE)
        )
        calibration = how.calibration
        if model is not None:
            calibration = calibration.fit(code[mend], raw._raw(x[mend]))
        law = raw._law(x[look], calibration)
        quality = ColumnQuality(
            len(look), bins, log_loss(code[look], law) if bins > 1 else 0.0, constant_loss(code[look], bins),
            reliability(code[look], law) if bins > 1 else _NONE,
        )  # fmt: skip
        return cls(column, features, donors, starts, values, rates, model, calibration, quality)

    def law(self, frame: Frame) -> Matrix:
        """(rows, bins): the probability of each value or bin."""
        return self._law(self.features.matrix(frame), self.calibration)

    def draw(self, frame: Frame, coin: Matrix) -> Series:
        """A bin by its probability, and in it a value that was seen there, by one coin a row."""
        law = self.law(frame)
        ends = np.cumsum(law, axis=1)
        bin_ = (coin[:, None] >= ends[:, :-1]).sum(axis=1)
        rows = np.arange(len(coin))
        left = (coin - (ends[rows, bin_] - law[rows, bin_])) / law[rows, bin_]
        size = np.diff(self.starts)[bin_]
        within = np.clip((left * size).astype(np.int64), 0, size - 1)
        return picked(self.donors, self.starts[bin_] + within).alias(self.column)

    def _law(self, x: Matrix, calibration: Calibration) -> Matrix:
        if self.model is None:
            return np.tile(self.rates, (len(x), 1))
        return _mixed(calibration.transform(self._raw(x)), self.rates, self.quality.values)

    def _raw(self, x: Matrix) -> Matrix:
        """The classifier's probabilities, with a little of the base rates: no value is impossible."""
        law = np.zeros((len(x), len(self.rates)))
        with _threads(len(x)):
            law[:, self.model.classes_] = self.model.predict_proba(x)
        return _mixed(law, self.rates, len(self.rates))


_NONE = Curve((), ())


def _mixed(law: Matrix, rates: Matrix, bins: int) -> Matrix:
    return np.asarray((1 - 1e-4) * law + 1e-4 * rates) if bins > 1 else law


def _binned(series: Series, bins: int) -> tuple[NDArray[np.int64], int]:
    """The bin of every row, and how many there are: a bin a value where those are few."""
    entries = series.to_list()
    missing = np.array([entry is None or entry != entry for entry in entries])
    numeric = series.dtype.is_numeric()
    if numeric:
        numbers = np.array([0.0 if gone else float(entry) for entry, gone in zip(entries, missing, strict=True)])
        distinct = np.unique(numbers[~missing])
        if len(distinct) > bins:
            edges = np.unique(np.quantile(numbers[~missing], np.arange(1, bins) / bins))
            code = np.searchsorted(edges, numbers, side="left")
        else:
            code = np.searchsorted(distinct, numbers)
    else:
        texts = np.array(["" if gone else str(entry) for entry, gone in zip(entries, missing, strict=True)])
        _, place, counts = np.unique(texts, return_inverse=True, return_counts=True)
        rank = np.empty(len(counts), np.int64)
        rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
        code = np.minimum(rank[place], _VALUES - 1)
    code = np.where(missing, code.max(initial=0) + 1, code)
    held, code = np.unique(code, return_inverse=True)
    if len(held) < 2:
        return np.zeros(len(entries), np.int64), 1
    return code.astype(np.int64), len(held)


def _classifier(x: Matrix, code: NDArray[np.int64], categorical: list[int], how: Fit) -> Any:
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ModuleNotFoundError:
        raise InputError(
            'the built-in sampler needs scikit-learn: pip install "bystander[train]", or give a sampler of your own'
        ) from None
    model = HistGradientBoostingClassifier(
        max_iter=how.iterations, learning_rate=0.1, max_leaf_nodes=15, min_samples_leaf=20, early_stopping=False,
        categorical_features=categorical or None, random_state=how.seed,
    )  # fmt: skip
    with _threads(len(x)):
        return model.fit(x, code)


def _threads(rows: int) -> Any:
    """One thread where rows are few: OpenMP's barriers would cost more than they gain."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1 if rows < 50_000 else None)
