"""Priors for RRWithPrior, each with what it costs: another model's prediction, noisy clusters, a public domain."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bystander._validate import InputError, inside, whole
from bystander.mechanisms.base import Labels, Matrix, Prior, Rng, generator, read_labels, read_prior


def from_model(probabilities: ArrayLike, *, classes: int, temperature: float = 1.0) -> Prior:
    """A model's prediction, as softmax(log p / temperature). Free: it must not know these labels."""
    held = read_prior(probabilities, classes)
    return Prior(sharpened(held.probabilities, temperature), held.epsilon, "a model's prediction")


def from_clusters(clusters: ArrayLike, y: object, *, classes: int, epsilon: float, rng: Rng = None) -> Prior:
    """Each cluster's label histogram with discrete Laplace noise of scale 2/ε_p (L1 sensitivity 2): costs ε_p.

    `clusters` are whole numbers from 0, made from public features alone. The total of prior and release is ε_p + ε.
    Negative counts become 0; a cluster with nothing left gets a uniform prior (Ghazi et al. 2021).
    """
    epsilon = inside("epsilon", epsilon, 0, 700)
    labels, cluster = read_labels(y, classes), np.asarray(clusters)
    if cluster.shape != labels.shape or cluster.dtype.kind not in "iu" or cluster.min() < 0:
        raise InputError(
            f"clusters has shape {cluster.shape}: give one whole number from 0 for each of {len(labels)} rows"
        )
    many = int(cluster.max()) + 1
    counts = np.bincount(cluster.astype(np.int64) * classes + labels, minlength=many * classes).reshape(many, classes)
    noisy = counts + discrete_laplace(2 / epsilon, counts.shape, generator(rng))
    sizes = counts.sum(axis=1)[cluster]
    return Prior(normalised(noisy)[cluster], epsilon, f"noisy histograms of {many} clusters", sizes)


def from_domain(
    categories: ArrayLike, y: object, *, classes: int, epsilon: float = 0.05, most: int = 100, rng: Rng = None
) -> Prior:
    """Criteo's domain prior: rows bucketed by a *public* categorical; its `most` - 1 largest values, and the rest."""
    values, codes, sizes = np.unique(np.asarray(categories), return_inverse=True, return_counts=True)
    rank = np.empty(len(values), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(values))
    buckets = np.minimum(rank[codes.ravel()], whole("most", most, 1) - 1)
    found = from_clusters(buckets, y, classes=classes, epsilon=epsilon, rng=rng)
    told = f"a public categorical in {int(buckets.max()) + 1} buckets"
    return Prior(found.probabilities, found.epsilon, told, found.counted)


def sharpened(p: Matrix, temperature: float) -> Matrix:
    """softmax(log p / temperature)."""
    temperature = inside("temperature", temperature, 0, 1e6)
    with np.errstate(divide="ignore"):
        logs = np.log(p) / temperature
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def normalised(counts: NDArray[np.int64] | Matrix) -> Matrix:
    """Rows of at least 0 that add up to 1; uniform where nothing is left."""
    kept = np.maximum(counts, 0).astype(np.float64)
    total = kept.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(kept, total, out=np.full_like(kept, 1 / kept.shape[1]), where=total > 0))


def discrete_laplace(scale: float, shape: tuple[int, ...], random: np.random.Generator) -> Labels:
    """P(z) ∝ e^(−|z|/scale): the difference of two geometrics (Ghosh, Roughgarden and Sundararajan 2012)."""
    stop = -np.expm1(-1 / scale)
    return np.asarray(random.geometric(stop, shape) - random.geometric(stop, shape))
