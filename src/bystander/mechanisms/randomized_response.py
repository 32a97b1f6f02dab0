"""k-ary randomized response (Warner 1965; Kairouz, Oh and Viswanath 2016)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bystander import tradeoff as families
from bystander._validate import inside, whole
from bystander.mechanisms.base import (
    Guarantee,
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
from bystander.mechanisms.families import Response
from bystander.mechanisms.losses import ResponseLoss, response
from bystander.mechanisms.polygon import Polygon


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse:
    """P(z = y) = e^ε/(e^ε + K − 1), each other label 1/(e^ε + K − 1). ⊥: a uniform output.

    >>> rr = RandomizedResponse(epsilon=2, classes=10)
    >>> rr.guarantee("replace").epsilon, round(rr.guarantee("label").epsilon, 3)
    (2.0, 1.506)
    """

    epsilon: float
    classes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", inside("epsilon", self.epsilon, 0, 700))
        object.__setattr__(self, "classes", whole("classes", self.classes, 2, 1_000_000))

    def channel(self, prior: ArrayLike | Prior | None = None) -> Matrix:
        """(K, K): rows the true label, columns the output; (rows, K, K), all the same, where a prior has rows."""
        p, q = response(self.epsilon, self.classes)
        one = np.full((self.classes, self.classes), q)
        np.fill_diagonal(one, p)
        if prior is None:
            return one
        rows = len(read_prior(prior, self.classes).probabilities)
        single = np.ndim(prior.probabilities if isinstance(prior, Prior) else prior) == 1
        return one if single else np.repeat(one[None], rows, axis=0)

    def randomize(self, y: object, prior: ArrayLike | Prior | None = None, rng: Rng = None) -> Release:
        """One noisy label a row. A prior changes nothing here: it is kept for the posterior."""
        labels, random = read_labels(y, self.classes), generator(rng)
        keep = random.random(len(labels)) < response(self.epsilon, self.classes)[0]
        other = (labels + random.integers(1, self.classes, len(labels))) % self.classes
        held = None if prior is None else read_prior(prior, self.classes, len(labels))
        return Release(np.where(keep, labels, other), self, len(labels), held)

    def posterior(self, release: Release, prior: ArrayLike | Prior | None = None) -> Matrix:
        """∝ prior × channel; without any prior, of uniform labels."""
        held = release.prior if prior is None else read_prior(prior, self.classes, release.rows)
        p, q = response(self.epsilon, self.classes)
        joint = np.full((release.rows, self.classes), q)
        joint[np.arange(release.rows), release.output] = p
        joint = joint if held is None else joint * held.probabilities
        total = joint.sum(axis=1, keepdims=True)
        return np.asarray(joint / total)

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """ε between labels; against ⊥ max(ln[K·e^ε/(e^ε + K − 1)], ln[(e^ε + K − 1)/K]). Both f are exact."""
        if relation(neighbours) == "replace":
            losses = ((ResponseLoss(self.epsilon, self.classes), 1),)
            family = families.RandomizedResponse(self.classes)
            return guarantee(neighbours, losses, family=family, parameter=self.epsilon, exact=True)
        loss = ResponseLoss(self.epsilon, self.classes, uniform=True)
        q = (self.classes - 1) * response(self.epsilon, self.classes)[1]
        knee = min(q, 1 / self.classes)  # f turns at (knee, ·) and at its mirror image
        epsilon = loss.epsilon()
        shape = Response(max(2.0, 1 / knee - math.exp(epsilon) + 1))
        told = "a uniform output"
        return guarantee(neighbours, ((loss, 1),), family=shape, parameter=epsilon, exact=True, bottom=told)

    def tradeoff(self, neighbours: Neighbours) -> Polygon:
        """The exact f, symmetric: between any two labels, or a label and ⊥."""
        return ResponseLoss(self.epsilon, self.classes, uniform=relation(neighbours) == "label").polygon()
