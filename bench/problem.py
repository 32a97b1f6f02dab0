"""Prediction logs with a known leak: the target's prediction leans towards the label it was trained on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Arrays = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


def binary(rows: int, seed: int = 0) -> Arrays:
    """Labels, and of the target and of the reference the probability of label 1."""
    rng = np.random.default_rng(seed)
    reference = rng.uniform(0.05, 0.95, rows)
    labels = (rng.random(rows) < reference).astype(np.int64)
    target = np.clip(reference + 0.2 * (labels - reference) + rng.normal(0, 0.05, rows), 0.01, 0.99)
    return labels, target, reference


def classes(rows: int, count: int, seed: int = 0) -> Arrays:
    """The same with a column a class; for two classes as well."""
    rng = np.random.default_rng(seed)
    reference = rng.exponential(size=(rows, count)) + 0.05
    reference /= reference.sum(axis=1, keepdims=True)
    labels = (rng.random((rows, 1)) > np.cumsum(reference, axis=1)[:, :-1]).sum(axis=1)
    target = reference * np.exp(rng.normal(0, 0.1, reference.shape))
    target[np.arange(rows), labels] += 0.2
    return labels, target / target.sum(axis=1, keepdims=True), reference


def save(folder: Path, rows: int) -> dict[str, str]:
    """Write a binary problem as .npy files, which every peer's Python reads, and say where they lie."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, array in zip(("labels", "target", "reference"), binary(rows), strict=True):
        paths[name] = str(folder / f"{name}-{rows}.npy")
        np.save(paths[name], array)
    return paths
