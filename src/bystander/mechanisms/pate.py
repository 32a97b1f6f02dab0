"""PATE for tabular labels: teachers vote, the histogram gets Laplace noise (Papernot et al. 2017; Wu et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bystander._validate import InputError, fraction, inside, whole
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
    read_prior,
    relation,
)
from bystander.mechanisms.losses import LaplaceLoss, Losses
from bystander.mechanisms.priors import normalised
from bystander.mechanisms.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Pate:
    """Laplace(scale) on every class's count of the teachers' votes, for a preset number of answers.

    `one_count` (two classes) releases the count of label 1 alone: the other is teachers minus it. ⊥: the teacher that
    holds the row abstains, which every answer sees. The defaults are Wu et al.'s for Criteo.
    """

    classes: int = 2
    teachers: int = 100
    scale: float = 20.0
    answers: int = 200
    delta: float = 1e-5
    one_count: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", whole("classes", self.classes, 2, 1_000_000))
        object.__setattr__(self, "teachers", whole("teachers", self.teachers, 1))
        object.__setattr__(self, "answers", whole("answers", self.answers, 1))
        object.__setattr__(self, "scale", inside("scale", self.scale, 0, 1e300))
        fraction("delta", self.delta, zero=True)
        if self.one_count and self.classes != 2:
            raise InputError(f"classes is {self.classes}: one_count needs two classes; leave it out")

    def randomize(self, y: ArrayLike, prior: ArrayLike | Prior | None = None, rng: Rng = None) -> Release:
        """`y` is the votes: (queries, classes) counts, as `cast` makes them; the output is their noisy counts."""
        votes = read_votes(y, self.classes, self.teachers)
        if len(votes) > self.answers:
            raise InputError(f"votes has {len(votes)} queries: give at most the {self.answers} answers paid for")
        held = None if prior is None else read_prior(prior, self.classes, len(votes))
        random = generator(rng)
        if self.one_count:
            noisy = votes[:, 1] + random.laplace(0.0, self.scale, len(votes))
            return Release(np.stack([self.teachers - noisy, noisy], axis=1), self, len(votes), held)
        return Release(votes + random.laplace(0.0, self.scale, votes.shape), self, len(votes), held)

    def labels(self, release: Release) -> Labels:
        """The noisy winners."""
        return np.asarray(np.argmax(release.output, axis=1))

    def posterior(self, release: Release, prior: ArrayLike | Prior | None = None) -> Matrix:
        """The teachers' law of labels as estimated: noisy counts clipped at 0, normalised; times a prior, if given."""
        shares = normalised(release.output)
        held = release.prior if prior is None else read_prior(prior, self.classes, release.rows)
        if held is None:
            return shares
        joint = (shares + 1e-12) * held.probabilities
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """Replacing a label moves one vote: two counts by 1 (one, if one is released); ⊥ takes one vote away."""
        two = relation(neighbours) == "replace" and not self.one_count
        losses: Losses = ((LaplaceLoss(1 / self.scale), self.answers * (2 if two else 1)),)
        return guarantee(neighbours, losses, delta=self.delta, bottom="the teacher that holds the row abstains")

    def tradeoff(self, neighbours: Neighbours) -> Profile:
        """A lower bound on f, from dp-accounting's pessimistic δ(ε): hundreds of answers have no closed form."""
        return Profile.of(self.guarantee(neighbours))


def shards(rows: int, teachers: int, rng: Rng = None) -> tuple[Labels, ...]:
    """Disjoint parts of the rows, equal to within one row, drawn without the labels."""
    rows, teachers = whole("rows", rows, 1), whole("teachers", teachers, 1, rows)
    return tuple(np.sort(part) for part in np.array_split(generator(rng).permutation(rows), teachers))


def cast(probabilities: ArrayLike, *, sampled: bool = True, rng: Rng = None) -> Labels:
    """(teachers, queries, classes) → (queries, classes) votes: one a teacher, drawn from its law or its argmax.

    (teachers, queries) is the probability of label 1. With 3 % positives argmax gives no positive at all: sample.
    A teacher's tie casts one vote, drawn among its likeliest labels.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    p = np.stack([1 - p, p], axis=-1) if p.ndim == 2 else p
    if p.ndim != 3 or not ((p >= 0).all() and (np.abs(p.sum(axis=-1) - 1) < 1e-4).all()):
        raise InputError(f"probabilities has shape {p.shape}: give (teachers, queries, classes) that add up to 1")
    random = generator(rng)
    if sampled:
        cut = np.cumsum(p, axis=-1)
        vote = (random.random(p.shape[:2])[..., None] * cut[..., -1:] >= cut).sum(axis=-1)
    else:
        vote = np.argmax((p == p.max(axis=-1, keepdims=True)) * (1 + random.random(p.shape)), axis=-1)
    queries, classes = p.shape[1:]
    places = np.arange(queries)[None, :] * classes + np.minimum(vote, classes - 1)
    return np.bincount(places.ravel(), minlength=queries * classes).reshape(queries, classes)


def read_votes(votes: ArrayLike, classes: int, teachers: int | None = None) -> NDArray[np.int64]:
    """(queries, classes) whole counts; each query's add up to the number of teachers."""
    given = np.asarray(votes)
    if given.ndim != 2 or given.shape[1] != classes or len(given) == 0:
        raise InputError(f"votes has shape {given.shape}: give (queries, {classes}) counts, as cast() makes them")
    numbers = given.dtype.kind in "biuf" and bool(np.isfinite(given).all())
    counts = given.astype(np.int64) if numbers else np.full(given.shape, -1)
    if counts.min() < 0 or (counts != given).any():
        raise InputError("votes has entries that are no counts: give whole numbers of at least 0")
    total = counts.sum(axis=1)
    if teachers is not None and (total != teachers).any():
        row = int(np.flatnonzero(total != teachers)[0])
        raise InputError(f"votes, query {row} adds up to {total[row]}: {teachers} teachers cast one vote each")
    return counts
