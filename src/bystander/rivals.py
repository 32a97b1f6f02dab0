"""Rival attacks: membership scores by other people's methods, each a function of probabilities at the true label.

All are higher where the row looks trained on. Probabilities come as one number a row: M(x)[y], that of the row's own
label; `at_label` takes it from the probabilities of all classes. `bystander.scores` makes a bound of any of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bystander._validate import InputError, fraction, inside

__all__ = ["at_label", "calibrated_scores", "lira_scores", "loss_scores", "rmia_scores"]

Vector = NDArray[np.float64]
_TINY = 1e-12


def at_label(probabilities: ArrayLike, labels: ArrayLike, *, temperature: float = 1.0) -> Vector:
    """M(x)[y]: each row's probability of its own label, for any number of classes.

    `probabilities` is (rows, K), or (rows,) of label 1. A temperature T takes p^(1/T), normalised, as softmax(z/T)
    would be; RMIA's published settings have 2.

    >>> at_label([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]], [2, 0]).tolist(), at_label([0.9, 0.2], [1, 0]).tolist()
    ([0.5, 0.6], [0.9, 0.8])
    """
    temperature = inside("temperature", temperature, 0, np.inf)
    given = _numbers("probabilities", probabilities, "give numbers from 0 to 1")
    _within("probabilities", given, "give numbers from 0 to 1")
    p = np.column_stack([1 - given, given]) if given.ndim == 1 else given
    if p.ndim != 2 or not p.size:
        raise InputError(f"probabilities have shape {p.shape}: give (rows,) of label 1, or (rows, classes)")
    y = _numbers("labels", labels, f"give whole numbers 0…{p.shape[1] - 1}")
    if y.shape != (len(p),):
        raise InputError(f"labels have shape {y.shape}: give one for each of {len(p):,} rows")
    good = (y >= 0) & (y < p.shape[1]) & (y == np.floor(y))
    if not good.all():
        raise InputError(f"labels hold {y[~good][0]:g}: give whole numbers 0…{p.shape[1] - 1}")
    if temperature != 1:
        z = np.log(np.maximum(p, _TINY)) / temperature
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
    return np.asarray(p[np.arange(len(p)), y.astype(np.int64)])


def loss_scores(target: ArrayLike) -> Vector:
    """−ℓ(M(x), y) = log M(x)[y] (Yeom et al. 2018)."""
    return np.asarray(np.log(np.maximum(_read("target", target), _TINY)))


def calibrated_scores(target: ArrayLike, reference: ArrayLike) -> Vector:
    """ℓ(M'(x), y) − ℓ(M(x), y): the loss, less how hard the row is (Watson et al. 2022).

    >>> calibrated_scores([0.9, 0.9], [0.9, 0.1]).round(3).tolist()
    [0.0, 2.197]
    """
    target, reference = _read("target", target), _read("reference", reference)
    _alike(target, reference)
    return np.asarray(loss_scores(target) - loss_scores(reference))


def rmia_scores(
    target: ArrayLike,
    reference: ArrayLike,
    population_target: ArrayLike,
    population_reference: ArrayLike,
    *,
    a: float = 0.3,
    gamma: float = 1.0,
) -> Vector:
    """RMIA, offline (Zarifzadeh et al. 2024): the share of population rows z with r(x)/r(z) > γ.

    r = M(x)[y] / (½(1 + a)·M'(x)[y] + ½(1 − a)). The population are rows that the target did not train on, best not
    among the audited ones. `reference` may be (rows, models): their mean is taken. Exact in O((n + m) log m).

    >>> rmia_scores([0.9, 0.1], [0.5, 0.5], [0.2, 0.4, 0.6], [0.5, 0.5, 0.5]).tolist()
    [1.0, 0.0]
    """
    a, gamma = fraction("a", a, zero=True, one=True), inside("gamma", gamma, 0, np.inf)
    rows, against = (
        _relative(_read("target", p), _read("reference", q, models=True), a)
        for p, q in ((target, reference), (population_target, population_reference))
    )
    bars = np.sort(gamma * against)
    return np.asarray(np.searchsorted(bars, rows, side="left") / len(bars))


def lira_scores(
    target: ArrayLike, references: ArrayLike, trained: ArrayLike | None = None, *, shared: bool | None = None
) -> Vector:
    """LiRA (Carlini et al. 2022), by Gaussians of φ = log(p / (1 − p)) over several references (rows, models).

    Online where `trained` (rows, models) says which reference saw which row: the log-likelihood ratio "in" against
    "out". Offline without it: how many standard deviations φ lies above the references that did not see the row.
    `shared` takes one standard deviation for all rows; by default where a row has fewer than 32 references.

    >>> lira_scores([0.9, 0.5], [[0.4, 0.6], [0.4, 0.6]]).round(2).tolist()
    [3.83, 0.0]
    """
    phi, p = _logit(_read("target", target)), _read("references", references, models=True)
    if p.ndim != 2 or p.shape[1] < 2:
        raise InputError(f"references have shape {p.shape}: give (rows, models) of two models or more")
    _alike(phi, p)
    others, one = _logit(p), p.shape[1] < 32 if shared is None else shared
    if trained is None:
        mean, deviation = _gaussian(others, np.ones_like(others, dtype=bool), one, "out")
        return np.asarray((phi - mean) / deviation)
    advice = "give true or false for each row and model"
    bits = _numbers("trained", trained, advice)
    if bits.shape != others.shape:
        raise InputError(f"trained has shape {bits.shape}: give {others.shape}, as the references have")
    if not np.isin(bits, (0, 1)).all():
        raise InputError(f"trained holds {bits[~np.isin(bits, (0, 1))][0]:g}: {advice}")
    seen = bits.astype(bool)
    (inside_mean, inside_deviation), (outside_mean, outside_deviation) = (
        _gaussian(others, seen, one, "in"), _gaussian(others, ~seen, one, "out")
    )  # fmt: skip
    return np.asarray(
        _log_density(phi, inside_mean, inside_deviation) - _log_density(phi, outside_mean, outside_deviation)
    )


def _relative(p: Vector, q: Vector, a: float) -> Vector:
    _alike(p, q)
    q = q.mean(axis=1) if q.ndim == 2 else q
    return np.asarray(p / np.maximum((1 + a) / 2 * q + (1 - a) / 2, _TINY))


def _logit(p: Vector) -> Vector:
    p = np.clip(p, _TINY, 1 - _TINY)
    return np.asarray(np.log(p) - np.log1p(-p))


def _gaussian(values: Vector, mask: NDArray[np.bool_], shared: bool, which: str) -> tuple[Vector, Vector]:
    """Each row's mean over the models of this kind, and its standard deviation or that of all rows."""
    count = mask.sum(axis=1)
    least = 1 if shared else 2
    if count.min() < least:
        row = int(np.argmin(count))
        raise InputError(
            f"trained, row {row}: {count[row]} references are {which!r}: give at least {least} of each kind"
        )
    mean = np.where(mask, values, 0).sum(axis=1) / count
    square = np.where(mask, (values - mean[:, None]) ** 2, 0).sum(axis=1)
    if shared:
        deviation = np.full(len(values), np.sqrt(square.sum() / max(1, int((count - 1).sum()))))
    else:
        deviation = np.sqrt(square / (count - 1))
    return mean, np.maximum(deviation, 1e-6)


def _log_density(x: Vector, mean: Vector, deviation: Vector) -> Vector:
    return np.asarray(-np.log(deviation) - ((x - mean) / deviation) ** 2 / 2)


def _read(name: str, values: ArrayLike, models: bool = False) -> Vector:
    """Probabilities, one a row; or one a row and model."""
    advice = "give probabilities from 0 to 1, not losses or logits"
    p = _numbers(name, values, advice)
    if p.ndim not in ((1, 2) if models else (1,)) or not p.size:
        raise InputError(f"{name} has shape {p.shape}: give one probability a row, that of its label (see at_label)")
    _within(name, p, advice)
    return p


def _numbers(name: str, values: ArrayLike, advice: str) -> Vector:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} {_holds(name)} what is no number: {advice}") from None


def _within(name: str, p: Vector, advice: str) -> None:
    good = (p >= 0) & (p <= 1)  # NaN fails both
    if not good.all():
        raise InputError(f"{name} {_holds(name)} {p[~good][0]}: {advice}")


def _holds(name: str) -> str:
    return "hold" if name.endswith("s") else "holds"


def _alike(p: Vector, q: Vector) -> None:
    if len(p) != len(q):
        raise InputError(f"target has {len(p):,} rows and reference {len(q):,}: give the same rows of both")
