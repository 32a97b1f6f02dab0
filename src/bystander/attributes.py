"""Attribute inference: is what stands in the protected columns true, or drawn from a sampler? (Algorithm 2)

The target is asked about both versions of a record through its prediction function. The label game is the case where
the label is the protected column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bystander import quality, tabular
from bystander._validate import InputError, whole
from bystander.asked import Asked
from bystander.bound import shift_assumption
from bystander.calibration import reliability
from bystander.games.label import game_keys
from bystander.games.versions import Versions
from bystander.outcome import saw
from bystander.result import Curve, Quality, Result
from bystander.samplers import Chain, Finite, Sampler, as_sampler, coins_of, columns_of
from bystander.selection import Quantile, Selection
from bystander.tabular import Frame, Matrix
from bystander.tradeoff import Family, Shift
from bystander.verdict import Played, beside, verdict

Predict = Callable[[Any], ArrayLike]
_MOST = 32  # values that are all scored; of more, some are drawn
_TINY = 1e-9


def audit_attribute(
    data: object,
    *,
    protected: str | Sequence[str],
    sampler: Sampler | Finite | Chain | Callable[[Any, Matrix], Any],
    target: Predict,
    label: str | None = None,
    reference: Predict | None = None,
    loss: bool = False,
    id: str | None = None,
    control: object = None,
    draws: int = 8,
    imagined: int = 8,
    selection: Selection | None = None,
    combination: Quantile | None = None,
    family: Family | None = None,
    confidence: float = 0.95,
    tau: float | Shift = 0.0,
    games: int = 100,
    seed: int = 0,
) -> Result:
    """Measure from below how much a model gives away of protected columns of its training records.

    `data` is a data frame (pandas, polars, PyArrow) of training records, `protected` the columns in question, and
    `sampler` draws them given the rest: a `Chain` fitted on other rows, a `Finite` law, or a function of (the rest of
    the rows, coins) that returns them. `target` maps a frame without `label` and `id` to probabilities: of label 1, or
    a column a class. With `loss` it maps a frame without `id` to losses. `reference`, of the same kind, takes off what
    any model of such data would say. `control` is a frame of records that the target did not train on.

    A version of a record scores log r − log E r, where r is the target's probability of the record's label (over the
    reference's), and E the mean over what the sampler may draw: over all values where they are few, else over
    `imagined` draws of the attacker's own. `draws` is how many counterfactual records are made of each row.

    >>> import numpy as np, pandas as pd
    >>> from bystander.attributes import audit_attribute
    >>> from bystander.samplers import Finite
    >>> rng = np.random.default_rng(0)
    >>> smoker = rng.integers(0, 2, 4000)
    >>> kept = np.where(rng.random(4000) < 0.9, smoker, 1 - smoker)  # what a model remembers of each person
    >>> rows = pd.DataFrame({"person": range(4000), "smoker": smoker, "ill": 1})
    >>> remember = lambda r: np.where(r["smoker"] == kept[r["person"]], 0.9, 0.1)
    >>> coin = Finite("smoker", (0, 1), lambda r: np.full((len(r), 2), 0.5))
    >>> result = audit_attribute(rows, protected="smoker", sampler=coin, target=remember, label="ill")
    >>> 1.2 < result.epsilon < float(np.log(0.9 / 0.5)) + 1.61  # against an imputed value, ε is log(.5/.1) = 1.61
    True
    """
    columns = (protected,) if isinstance(protected, str) else tuple(protected)
    used = as_sampler(sampler, columns)
    if isinstance(used, Chain):
        used = used.finite() or used
    if loss == (label is not None):
        raise InputError("label and loss: name the label column, or give losses instead with loss=True; one of them")
    asker = _Asker(columns, used, target, reference, label, id, whole("draws", draws, 1, 1000),
                   whole("imagined", imagined, 1, 1000), seed)  # fmt: skip
    frame = asker.frame(data, "data")
    _apart(sampler, frame, id)
    finite = isinstance(used, Finite) and len(used.values) <= _MOST
    values = len(used.values) if isinstance(used, Finite) and finite else None
    asked = Asked.of(
        values, ", ".join(columns), selection=selection, combination=combination, family=family,
        confidence=confidence, tau=tau, games=games, seed=seed,
    )  # fmt: skip
    told = (*getattr(sampler, "notes", ()),)
    members = asker.versions(frame, finite)
    result = _result(members, asker, asked, finite, told)
    if control is None:
        return result
    held = asker.versions(asker.frame(control, "control"), finite)
    return beside(result, _result(held, asker, asked, finite, ()), _tested(held, finite, float(confidence)))


@dataclass(frozen=True, slots=True)
class _Asker:
    """Asks the target about versions of records."""

    columns: tuple[str, ...]
    sampler: Sampler
    target: Predict
    reference: Predict | None
    label: str | None
    id: str | None
    draws: int
    imagined: int
    seed: int

    def frame(self, data: object, name: str) -> Frame:
        needed = [*self.columns, *(each for each in (self.label, self.id) if each is not None)]
        return tabular.known(data, name, needed)

    def versions(self, frame: Frame, finite: bool) -> Versions:
        """Score the true version of every record, and the ones that may stand in its place."""
        keys = tabular.row_keys(frame, self.id, "data")
        if finite and isinstance(self.sampler, Finite):
            return self._all(frame, keys, self.sampler)
        true = self._ratio(frame)
        drawn = np.stack([self._ratio(self._draw(frame, keys, place)) for place in range(self.draws)], axis=1)
        own = np.stack(
            [self._ratio(self._draw(frame, keys, self.draws + place)) for place in range(self.imagined)], axis=1
        )
        middle = _log_mean(own, np.full(own.shape, 1 / self.imagined))
        return Versions.drawn(true - middle, drawn - middle[:, None], keys)

    def _all(self, frame: Frame, keys: NDArray[np.uint64], sampler: Finite) -> Versions:
        law = _checked_law(sampler.law(self._public(frame)), len(frame), len(sampler.values))
        own = frame[sampler.column].to_list()
        place = {value: k for k, value in enumerate(sampler.values)}
        truth = np.array([place.get(value, -1) for value in own], dtype=np.int64)
        if (truth < 0).any():
            row = int(np.argmin(truth))
            raise InputError(
                f"column {sampler.column!r}, row {row} is {own[row]!r}: the sampler knows {sampler.values!r} alone"
            )
        scores = np.empty(law.shape)
        for k, value in enumerate(sampler.values):
            column = tabular.constant(frame[sampler.column], value, len(frame))
            scores[:, k] = self._ratio(tabular.replaced(frame, [column]))
        return Versions(truth, law, scores - _log_mean(scores, law)[:, None], keys)

    def _public(self, frame: Frame) -> Any:
        """What a sampler is told: everything but the protected columns and the id."""
        return tabular.without(frame, (*self.columns, self.id)).to_native()

    def _draw(self, frame: Frame, keys: NDArray[np.uint64], number: int) -> Frame:
        coins = coins_of(keys, self.seed, number, len(self.columns))
        made = self.sampler.draw(self._public(frame), coins)
        return tabular.replaced(frame, columns_of(made, self.sampler, frame))

    def _ratio(self, frame: Frame) -> Matrix:
        """log r of every record."""
        found = self._log_probability(self.target, "target", frame)
        return found if self.reference is None else found - self._log_probability(self.reference, "reference", frame)

    def _log_probability(self, predict: Predict, who: str, frame: Frame) -> Matrix:
        shown = tabular.without(frame, (self.label, self.id)).to_native()
        p = np.asarray(predict(shown), dtype=np.float64)
        if self.label is None:
            if p.shape != (len(frame),) or not np.isfinite(p).all():
                raise InputError(
                    f"{who} gave losses of shape {p.shape}: give one finite loss for each of {len(frame)} rows"
                )
            return -p
        if p.ndim == 1:
            p = np.column_stack((1 - p, p))
        if p.ndim != 2 or len(p) != len(frame) or not (p.min() >= -1e-9 and p.max() <= 1 + 1e-9):
            raise InputError(f"{who} gave {p.shape} for {len(frame)} rows: give probabilities from 0 to 1")
        y = tabular.labels(frame, self.label, p.shape[1], "data")
        return np.asarray(np.log(np.maximum(p[np.arange(len(y)), y], _TINY)))


def _result(played: Versions, asker: _Asker, asked: Asked, finite: bool, told: tuple[str, ...]) -> Result:
    keys = game_keys(asked.seed, asked.games)
    what = ", ".join(asker.columns)
    seen = saw(played.truth, played.law, played.scores)
    seen = replace(seen, reliability=reliability(played.truth, played.law) if finite else Curve((), ()))
    ratio = "loss ratio" if asker.reference is None else "loss ratio over a reference"
    impossible = int((played.law[np.arange(len(played)), played.truth] <= 0).sum()) if finite else 0
    warned = (
        f"The sampler gives probability 0 to the true value of {impossible:,} rows: any attack wins there, whatever "
        "the target learned. Smooth it.",
    )
    return verdict(
        Played(
            game="attribute",
            attack=ratio,
            canaries=len(played),
            classes=asked.question.classes,
            games=asked.games,
            seed=asked.seed,
            tally=partial(_tally, played, keys),
            seen=seen,
            assumptions=(
                f"Given the rest of its record, {what} of one record is drawn independently of the others.",
                "The sampler was fitted without the audited records.",
            ),
            stand_in="sampler",
            believed=shift_assumption(asked.question.shift, asked.question.classes, "sampler", "values"),
            notes=(
                f"The ε is that of replacing {what} of one record.", *told, *(warned if impossible else ()),
            ),
        ),
        asked.selection,
        asked.question,
    )  # fmt: skip


def _tally(played: Versions, keys: NDArray[np.uint64], cuts: tuple[int, ...]) -> Any:
    return played.play(keys).tally(cuts, keys)


def _tested(held: Versions, finite: bool, confidence: float) -> Quality | None:
    """The two-sample test of the sampler, on control records."""
    if not finite:
        return quality.of_draws(held.scores[:, 0], held.scores[:, 1:], held.keys, confidence)
    posterior = held.law * np.exp(held.scores)  # of each value, by Bayes' rule
    posterior /= posterior.sum(axis=1, keepdims=True)
    return quality.of_probabilities(held.truth, posterior, held.law, held.keys, confidence)


def _apart(sampler: object, frame: Frame, id: str | None) -> None:
    """Refuse records that the sampler was fitted on, where ids tell."""
    if isinstance(sampler, Chain) and sampler.fitted is not None and id is not None:
        both = np.intersect1d(sampler.fitted, tabular.row_keys(frame, id, "data")).size
        if both:
            raise InputError(
                f"the sampler was fitted on {both:,} of the audited rows: fit it on rows outside the audit"
            )


def _log_mean(values: Matrix, law: Matrix) -> Matrix:
    """log Σ law·exp(values), row by row."""
    top = values.max(axis=1)
    return np.asarray(top + np.log((law * np.exp(values - top[:, None])).sum(axis=1)))


def _checked_law(law: ArrayLike, rows: int, values: int) -> Matrix:
    p = np.asarray(law, dtype=np.float64)
    if p.shape != (rows, values):
        raise InputError(
            f"the sampler's law has shape {p.shape}: give a row for each of {rows}, a column a value ({values})"
        )
    if not (p.min() >= 0 and np.abs(p.sum(axis=1) - 1).max() <= 1e-3):
        raise InputError("the sampler's law does not add up to 1 in every row: give probabilities")
    return np.asarray(p / p.sum(axis=1, keepdims=True))
