"""RRWithPrior: randomized response among the likeliest labels (LP-1ST; Ghazi et al. 2021, RRTop-k and RRWithPrior)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bystander._validate import InputError, inside, whole
from bystander.mechanisms.base import (
    Guarantee,
    Labels,
    Matrix,
    Neighbours,
    Prior,
    Release,
    Rng,
    generator,
    guarantee,
    read_labels,
    read_prior,
    relation,
)
from bystander.mechanisms.families import TopK
from bystander.mechanisms.losses import ResponseLoss
from bystander.mechanisms.polygon import Polygon, envelope
from bystander.tradeoff import RandomizedResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class RRWithPrior:
    """Randomized response on the k* likeliest labels of each row; any other label gives a uniform one of those.

    ⊥: uniform on the row's top k*. Without a prior it is plain RR: what the Criteo "LP-1ST" of Wu et al. 2022 runs.

    >>> RRWithPrior(epsilon=1, classes=4).sizes([[0.7, 0.2, 0.05, 0.05], [0.25, 0.25, 0.25, 0.25]]).tolist()
    [1, 4]
    """

    epsilon: float
    classes: int
    min_k: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", inside("epsilon", self.epsilon, 0, 700))
        object.__setattr__(self, "classes", whole("classes", self.classes, 2, 1_000_000))
        object.__setattr__(self, "min_k", whole("min_k", self.min_k, 1, self.classes))

    def sizes(self, prior: ArrayLike | Prior) -> Labels:
        """k* of each row of the prior: argmax over k ≥ min_k of e^ε/(e^ε + k − 1)·Σ_{j≤k} p_(j)."""
        p = read_prior(prior, self.classes).probabilities
        top = np.cumsum(-np.sort(-p, axis=1), axis=1)
        k = np.arange(1, self.classes + 1)
        w = top / (1 + (k - 1) * np.exp(-self.epsilon))
        return np.asarray(np.argmax(w[:, self.min_k - 1 :], axis=1) + self.min_k)

    def share_of_one(self, prior: ArrayLike | Prior) -> float:
        """The share of rows with k = 1: their output is a constant, and their label is never used."""
        return float(np.mean(self.sizes(prior) == 1))

    def channel(self, prior: ArrayLike | Prior | None = None) -> Matrix:
        """(rows, K, K): label × output, one matrix per prior row; (K, K) for one prior or none."""
        held = np.full(self.classes, 1 / self.classes) if prior is None else prior
        one = np.ndim(held.probabilities if isinstance(held, Prior) else held) == 1
        p = read_prior(held, self.classes).probabilities
        k = np.full(1, self.classes) if prior is None else self.sizes(p)
        inside_top, yes, no = _law(p, k, self.epsilon)
        out = np.where(inside_top[:, :, None], no[:, None, None], (1 / k)[:, None, None]) * inside_top[:, None, :]
        rows, labels = np.nonzero(inside_top)
        out[rows, labels, labels] = yes[rows]
        return out[0] if one else np.asarray(out)

    def randomize(self, y: object, prior: ArrayLike | Prior | None = None, rng: Rng = None) -> Release:
        """One noisy label a row, among the row's top k*."""
        labels = read_labels(y, self.classes)
        if prior is None:
            flat = np.full((len(labels), self.classes), 1 / self.classes)
            k, held = np.full(len(labels), self.classes), None
            return Release(draw(labels, flat, k, self.epsilon, generator(rng)), self, len(labels), held, k)
        held = read_prior(prior, self.classes, len(labels))
        k = self.sizes(held)
        self.check(k)
        output = draw(labels, held.probabilities, k, self.epsilon, generator(rng))
        return Release(output, self, len(labels), held, k)

    def check(self, sizes: Labels) -> None:
        """Refuse a prior so strong, for this ε, that no output depends on any label."""
        share = float(np.mean(sizes == 1))
        if share == 1:
            raise InputError(
                f"epsilon is {self.epsilon:g}: with this prior k = 1 on {share:.0%} of the rows, so no output "
                "depends on its label; give min_k=2, a larger epsilon or a weaker prior"
            )

    def posterior(self, release: Release, prior: ArrayLike | Prior | None = None) -> Matrix:
        """∝ belief × channel. The belief is the prior drawn with, unless another is given; the channel's stays."""
        return posterior(release, prior, self.classes, self.epsilon)

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """The worst case over all priors; what a prior learned from the same labels costs is the release's to add."""
        least = max(2, self.min_k)
        if relation(neighbours) == "replace":
            losses = ((ResponseLoss(self.epsilon, least), 1),)
            family = RandomizedResponse(least)
            return guarantee(neighbours, losses, family=family, parameter=self.epsilon, exact=True)
        return guarantee(
            neighbours,
            ((self.tradeoff(neighbours), 1),),
            family=TopK(least, self.classes),
            parameter=self.epsilon,
            exact=True,
            bottom="uniform on the row's top k*",
        )

    def tradeoff(self, neighbours: Neighbours, prior: ArrayLike | Prior | None = None) -> Polygon:
        """The exact f of these priors, or without any of the worst priors (k from min_k, at least 2, to K)."""
        uniform, least = relation(neighbours) == "label", max(2, self.min_k)
        if prior is None and not uniform:
            return ResponseLoss(self.epsilon, least).polygon()  # f falls as k does
        sizes = range(least, self.classes + 1) if prior is None else np.unique(self.sizes(prior)).tolist()
        return envelope(ResponseLoss(self.epsilon, k, uniform).polygon() for k in sizes)


def draw(labels: Labels, p: Matrix, sizes: Labels, epsilon: float, random: np.random.Generator) -> Labels:
    """RRTop-k, all rows at once: by place in the row's sorted prior."""
    rows = np.arange(len(labels))
    order = np.argsort(-p, axis=1, kind="stable")
    place = np.argmax(order == labels[:, None], axis=1)
    keep = random.random(len(labels)) < 1 / (1 + (sizes - 1) * np.exp(-epsilon))
    spin = random.random(len(labels))
    other = (place + 1 + np.minimum(spin * np.maximum(sizes - 1, 1), sizes - 2).astype(np.int64)) % np.maximum(sizes, 1)
    outside = np.minimum((random.random(len(labels)) * sizes).astype(np.int64), sizes - 1)
    chosen = np.where(place < sizes, np.where(keep | (sizes == 1), place, other), outside)
    return np.asarray(order[rows, chosen])


def posterior(release: Release, prior: ArrayLike | Prior | None, classes: int, epsilon: float) -> Matrix:
    """The law of each label given its output, the row's top k and a belief."""
    flat = np.full((release.rows, classes), 1 / classes)
    drawn = flat if release.prior is None else release.prior.probabilities
    belief = drawn if prior is None else read_prior(prior, classes, release.rows).probabilities
    assert release.sizes is not None
    top, yes, no = _law(drawn, release.sizes, epsilon)
    likely = np.where(top, no[:, None], (1 / release.sizes)[:, None])
    likely[np.arange(release.rows), release.output] = yes
    joint = likely * belief
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def _law(p: Matrix, sizes: Labels, epsilon: float) -> tuple[Matrix, Matrix, Matrix]:
    """Which labels are in each row's top k; P(z = y) and P(z = other top label) for y in it."""
    order = np.argsort(-p, axis=1, kind="stable")
    top = np.zeros(p.shape, dtype=bool)
    np.put_along_axis(top, order, np.arange(p.shape[1])[None, :] < sizes[:, None], axis=1)
    odds = np.exp(-epsilon)
    total = 1 + (sizes - 1) * odds
    return top, 1 / total, odds / total
