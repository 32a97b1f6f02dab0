"""Taking a mechanism's noise out of predictions. All of it is post-processing: it costs no privacy.

A model fitted to released labels predicts what is released, p̃ = p·T, with T the channel (rows: label, columns: what
the model is shown). A correction goes back to p. `prior` is what is believed of a row before it is predicted: the base
rate, or the row's own prior where the mechanism had one; it decides what T does not tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bystander._validate import InputError, at_least, fraction, inside, whole
from bystander.mechanisms.base import Labels, Matrix
from bystander.mechanisms.priors import normalised
from bystander.training.base import take

SURE = 3.0
"""So many standard errors a gain must be above 0 to be believed."""
LEAST = 50
"""On so many rows, at least: of fewer a standard error says little."""

Noise = Callable[[Any], tuple[Matrix, Labels, Matrix]]
"""Of some rows: their channels, which is whose, and what is believed of each row before it is predicted."""


class Correction(Protocol):
    """A way back from p̃ to p, as a frozen value."""

    through: ClassVar[bool]
    """Whether the noise is dealt with in training, so that predictions are of true labels already."""

    def correct(self, probabilities: ArrayLike, channel: ArrayLike, prior: ArrayLike) -> Matrix:
        """(rows, K) predictions of what one (K, K) channel releases, made predictions of labels."""


@dataclass(frozen=True, slots=True)
class NoCorrection:
    """Predictions as the model makes them: of what is released."""

    through: ClassVar[bool] = False

    def correct(self, probabilities: ArrayLike, channel: ArrayLike, prior: ArrayLike) -> Matrix:
        """As they are."""
        return read(probabilities, channel, prior)[0]


@dataclass(frozen=True, slots=True)
class WuClip:
    """clip(p̃·T⁻¹, 0, 1) (Wu et al. 2022). To reproduce: its zeros and ones ruin a log-loss.

    >>> from bystander.mechanisms import RandomizedResponse
    >>> channel = RandomizedResponse(epsilon=1, classes=2).channel()
    >>> WuClip().correct([[0.80, 0.20]], channel, [0.97, 0.03]).round(3).tolist()
    [[1.0, 0.0]]
    """

    through: ClassVar[bool] = False

    def correct(self, probabilities: ArrayLike, channel: ArrayLike, prior: ArrayLike) -> Matrix:
        """Rows are divided by their sum, which the clip can leave above 1 where K > 2."""
        return normalised(np.minimum(inverted(*read(probabilities, channel, prior)), 1.0))


@dataclass(frozen=True, slots=True)
class Inverse:
    """p̃·T⁻¹, held at `floor` times the prior or above, and divided by its sum.

    >>> from bystander.mechanisms import RandomizedResponse
    >>> channel = RandomizedResponse(epsilon=1, classes=2).channel()
    >>> Inverse(floor=0.1).correct([[0.80, 0.20]], channel, [0.97, 0.03]).round(3).tolist()
    [[0.997, 0.003]]
    """

    floor: float = 0.05
    through: ClassVar[bool] = False

    def __post_init__(self) -> None:
        fraction("floor", self.floor)

    def correct(self, probabilities: ArrayLike, channel: ArrayLike, prior: ArrayLike) -> Matrix:
        """The floor keeps every class possible."""
        p, matrix, belief = read(probabilities, channel, prior)
        return normalised(np.maximum(inverted(p, matrix, belief), self.floor * belief))


@dataclass(frozen=True, slots=True)
class Posterior:
    """The p for which Σ_z p̃_z·log(p·T)_z + weight·Σ_y prior_y·log p_y is largest, by EM.

    It is the mode of p's posterior if the prediction is worth 1/weight released labels and the prior one label: the
    less a released label tells, the more it leans on the prior.

    >>> from bystander.mechanisms import RandomizedResponse
    >>> for epsilon in (1, 4):
    ...     channel = RandomizedResponse(epsilon=epsilon, classes=2).channel()
    ...     seen = [[0.5, 0.5]] @ channel
    ...     Posterior().correct(seen, channel, [0.97, 0.03]).round(2).tolist()
    [[0.59, 0.41]]
    [[0.52, 0.48]]
    """

    weight: float = 0.05
    through: ClassVar[bool] = False

    def __post_init__(self) -> None:
        inside("weight", self.weight, 0, 1e6)

    def correct(self, probabilities: ArrayLike, channel: ArrayLike, prior: ArrayLike) -> Matrix:
        """EM shrinks what is left of the error by 1/(1 + weight) or better in each step."""
        p, matrix, belief = read(probabilities, channel, prior)
        held = belief / belief.sum(axis=1, keepdims=True)
        found = normalised(np.maximum(inverted(p, matrix, belief), 0.05 * belief))
        for _ in range(min(2000, int(20 * (1 + 1 / self.weight)))):
            ratio = p / np.maximum(found @ matrix, 1e-300)
            new = (found * (ratio @ matrix.T) + self.weight * held) / (1 + self.weight)
            step = float(np.abs(new - found).max())
            found = new
            if step < 1e-7:
                break
        return normalised(found)


@dataclass(frozen=True, slots=True)
class Forward:
    """Train through the channel: the learner's own p makes the released labels likeliest (Patrini et al. 2017).

    For a torch network and, with two classes, CatBoost; other learners have no such training.
    """

    through: ClassVar[bool] = True

    def correct(self, probabilities: ArrayLike, channel: ArrayLike, prior: ArrayLike) -> Matrix:
        """The noise was dealt with in training."""
        return read(probabilities, channel, prior)[0]


@dataclass(frozen=True, slots=True)
class Believed:
    """The prior itself: what `HeldOut` falls back on where nothing released speaks for the model."""

    through: ClassVar[bool] = False

    def correct(self, probabilities: ArrayLike, channel: ArrayLike, prior: ArrayLike) -> Matrix:
        """Each row's prior."""
        p, _, belief = read(probabilities, channel, prior)
        return normalised(np.broadcast_to(belief, p.shape))


@dataclass(frozen=True, slots=True)
class HeldOut:
    """`Posterior`, its weight chosen on released rows that the model was not fitted on; or the prior, as it is.

    A `share` of the rows is held out, and where that is fewer than `enough` rows, more such parts one after the other,
    each from a model of its own; the model that predicts is fitted on all rows then. Of the weights that make what was
    released likelier than the base rate makes it, by `sure` standard errors, the best is taken. Where none does, or
    fewer than 50 rows can be held out, the model is not believed: the prior stands (`Believed`), and if that is the
    base rate a warning says so.
    """

    share: float = 0.1
    enough: int = 50_000
    sure: float = SURE
    weights: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
    through: ClassVar[bool] = False

    def __post_init__(self) -> None:
        fraction("share", self.share)
        whole("enough", self.enough, 0)
        at_least("sure", self.sure, 0)
        if self.share > 0.5:
            raise InputError(f"share is {self.share}: give at most 0.5, so that a model has as many rows to learn from")
        if not isinstance(self.weights, (tuple, list)) or not self.weights:
            raise InputError(f"weights is {self.weights!r}: give a tuple of numbers above 0")
        object.__setattr__(self, "weights", tuple(inside("weights", weight, 0, 1e6) for weight in self.weights))

    def parts(self, rows: int) -> list[Labels]:
        """The rows that are held out together, a model each; none where they would be too few to judge by.

        Of as many rows they are always the same, so that a training resumes. They know nothing of the labels.
        """
        size = int(self.share * rows)
        if rows < LEAST or size == 0:
            return []
        order = np.random.default_rng(0).permutation(rows)
        many = min(max(1, -(-max(self.enough, LEAST) // size)), rows // size)
        if size * (many + 1) > rows:  # all of them, a part that is no multiple included
            return [np.sort(part) for part in np.array_split(order, many)]
        return [np.sort(order[number * size : (number + 1) * size]) for number in range(many)]

    def gains(
        self, p: Matrix, channels: Matrix, which: Labels, prior: Matrix, likelihood: Matrix, rate: Matrix
    ) -> Matrix:
        """(1 + weights, rows): how much likelier than by the base rate what was released of each row is, in logs.

        The first is the prior's own gain.
        """
        ways: list[Correction] = [Believed(), *(Posterior(weight) for weight in self.weights)]
        found = [(corrected(way, p, channels, which, prior) * likelihood).sum(axis=1) for way in ways]
        return np.log(np.stack(found) / (likelihood @ rate))

    def choose(self, gains: Matrix) -> Correction:
        """The weight whose gain is the largest of those that are sure; the prior if that is better, or none is."""
        best = surest(gains, self.sure)
        return Posterior(self.weights[best - 1]) if best else Believed()

    def correct(self, probabilities: ArrayLike, channel: ArrayLike, prior: ArrayLike) -> Matrix:
        """There is nothing to choose by: `Posterior` as it comes."""
        return Posterior().correct(probabilities, channel, prior)


def surest(gains: Matrix, sure: float = SURE) -> int | None:
    """Of the (ways, rows) gains whose mean is `sure` standard errors above 0, the largest; None where none is.

    >>> surest(np.array([[0.5, -0.3] * 50, [0.02, -0.01] * 50]))  # 2.5 and 3.3 standard errors
    1
    """
    mean = gains.mean(axis=1)
    if gains.shape[1] < LEAST:
        return None
    certain = mean > sure * gains.std(axis=1) / math.sqrt(gains.shape[1])
    return int(np.argmax(np.where(certain, mean, -np.inf))) if certain.any() else None


def usual(base: object) -> Correction:
    """What is done unless told otherwise: held out, for a base that is costly to train in as few parts as will do."""
    return HeldOut(enough=0) if getattr(base, "costly", False) else HeldOut()


def read(probabilities: ArrayLike, channel: ArrayLike, prior: ArrayLike) -> tuple[Matrix, Matrix, Matrix]:
    """Check shapes; a prior of one row is for all."""
    p, matrix = np.asarray(probabilities, dtype=np.float64), np.asarray(channel, dtype=np.float64)
    belief = np.atleast_2d(np.asarray(prior, dtype=np.float64))
    if p.ndim != 2 or matrix.shape != (p.shape[1], p.shape[1]):
        raise InputError(f"probabilities has shape {p.shape}, channel {matrix.shape}: give (rows, K) and (K, K)")
    if belief.shape[1] != p.shape[1] or len(belief) not in (1, len(p)):
        raise InputError(f"prior has shape {belief.shape}: give {p.shape[1]} numbers, or as many for each row")
    return p, matrix, belief


def inverted(p: Matrix, channel: Matrix, prior: Matrix) -> Matrix:
    """The solution of x·T = p̃ that is nearest to the prior: p̃·T⁻¹ where T has an inverse.

    RRWithPrior's T has none where k < K: labels outside the top k keep what the prior says of them.
    """
    return np.asarray(prior + (p - prior @ channel) @ np.linalg.pinv(channel, rcond=1e-10))


def corrected(how: Correction, p: Matrix, channels: Matrix, which: Labels, prior: Matrix) -> Matrix:
    """Rows with channels of their own: row i is corrected for `channels[which[i]]`."""
    prior = np.broadcast_to(np.atleast_2d(prior), p.shape)
    if len(channels) == 1:
        return how.correct(p, channels[0], prior)
    out = np.empty_like(p)
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(len(channels) + 1))
    for number, channel in enumerate(channels):
        rows = order[ends[number] : ends[number + 1]]
        if len(rows):
            out[rows] = how.correct(p[rows], channel, prior[rows])
    return out


def in_blocks(how: Correction, p: Matrix, X: Any, noise: Noise, held: int = 2**23) -> Matrix:
    """The predictions of X, corrected."""
    return np.concatenate([corrected(how, p[i], *noise(of)) for i, of in blocks(p, X, held)])


def blocks(p: Matrix, X: Any, held: int = 2**23) -> Iterator[tuple[slice, Any]]:
    """So many rows at a time that their channels, K × K numbers each at worst, stay within `held`."""
    many = max(1, held // p.shape[1] ** 2)
    for start in range(0, max(1, len(p)), many):
        stop = min(start + many, len(p))
        yield slice(start, stop), X if stop - start == len(p) else take(X, np.arange(start, stop))


def base_rate(likelihood: NDArray[np.float64], steps: int = 5000) -> Matrix:
    """The labels' frequencies, from the release alone: the π of largest Π_i Σ_y π_y·likelihood_iy, by EM.

    One label of each class is added at the end, so that none is impossible.

    >>> base_rate(np.array([[0.9, 0.1]] * 74 + [[0.1, 0.9]] * 26)).round(2).tolist()  # .9·.8 + .1·.2 = .74
    [0.79, 0.21]
    """
    rows, classes = likelihood.shape
    kinds, counts = np.unique(likelihood, axis=0, return_counts=True)
    times = counts.astype(np.float64)
    if len(kinds) > 20_000:  # continuous releases: enough for a rate
        kinds = likelihood[:: -(-rows // 20_000)]
        times = np.full(len(kinds), rows / len(kinds))
    rate = np.full(classes, 1 / classes)
    for _ in range(steps):
        joint = kinds * rate
        new = times @ (joint / joint.sum(axis=1, keepdims=True)) / rows
        step = float(np.abs(new - rate).max())
        rate = new
        if step < 1e-9:
            break
    return np.asarray((rate * rows + 1) / (rows + classes))
