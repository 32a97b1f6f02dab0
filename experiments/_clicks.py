"""Click logs in Criteo's format, drawn from summary statistics of real rows: what no real log has is the truth.

`Shape` is those statistics (`criteo/calibrate.py` takes them from 8,000 real rows; no row is kept). `draw` makes the
rows of a day, each with its true P(click | x), a flawless reference.

A row is a vector of 39 correlated normals. Each is read as a quantile of its column: below the missing rate it is
missing, above it a number of the column's quantiles, or a category by rank (measured shares, then a power law). The
log-odds of a click add up over the columns: by bins of a number, by value of a category. Values beyond the measured
ones have normal effects of the column's measured sd, keyed by value, so that days agree on them.

From day to day: the rate, the effects, the numbers' distributions drift, and rare values give way to new ones. How much
is a choice (`Drift`): 8,000 rows without a day cannot tell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from bystander._keys import mix64

SHAPE = Path(__file__).resolve().parent / "criteo" / "shape.json"
NUMBERS = tuple(f"I{j}" for j in range(1, 14))
CATEGORIES = tuple(f"C{j}" for j in range(1, 27))
COLUMNS = (*NUMBERS, *CATEGORIES)
MEASURED = 8  # values of a category whose share and effect are taken from the real rows
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Drift:
    """What changes in a day: sd of the log-rate, of an effect as a share of its column's, of a number's normal score;
    the share of the rare values that give way to new ones."""

    rate: float = 0.03
    effects: float = 0.1
    numbers: float = 0.03
    fresh: float = 0.1


@dataclass(frozen=True)
class Clicks:
    """A made-up click log, and each row's true probability of a click."""

    frame: pd.DataFrame
    labels: NDArray[np.int64]
    truth: Vector


@dataclass(frozen=True)
class Shape:
    """Summary statistics of the real rows, by column: see `criteo/calibrate.py`."""

    columns: Mapping[str, Mapping[str, Any]]
    correlation: Vector  # of the columns' normal scores
    scale: float  # of the summed effects: columns overlap

    @classmethod
    def load(cls, path: Path = SHAPE) -> Shape:
        """From the committed file."""
        body = json.loads(path.read_text())
        return cls(body["columns"], square(body["correlation"]), body["scale"])


def square(upper: list[list[float]]) -> Vector:
    """The correlation matrix of its rows above the diagonal."""
    n = len(upper) + 1
    out = np.eye(n)
    for i, row in enumerate(upper):
        out[i, i + 1 :] = out[i + 1 :, i] = row
    values, vectors = np.linalg.eigh(out)
    out = (vectors * np.maximum(values, 1e-3)) @ vectors.T
    root = np.sqrt(np.diag(out))
    return np.asarray(out / np.outer(root, root))


def draw(
    rows: int,
    *,
    day: int = 0,
    seed: int = 0,
    rate: float = 0.03,
    drift: Drift | None = None,
    shape: Shape | None = None,
) -> Clicks:
    """The first `rows` rows of this day; more rows of it begin with the same ones in blocks of 50,000."""
    held, moved = shape or Shape.load(), drift or Drift()
    blocks = [
        _block(held, moved, min(_BLOCK, rows - start), day, seed, start // _BLOCK) for start in range(0, rows, _BLOCK)
    ]
    logit = np.concatenate([part for _, part, _ in blocks])
    truth = expit(logit + _intercept(held, rate, seed) + moved.rate * _normal(day, seed, salt=1))
    coin = np.concatenate([part for _, _, part in blocks])
    columns: dict[str, Any] = {}
    for name in COLUMNS:
        values = np.concatenate([part[name] for part, _, _ in blocks])
        columns[name] = values if name in NUMBERS else _names(name, values)
    return Clicks(pd.DataFrame(columns), (coin < truth).astype(np.int64), truth)


_BLOCK = 50_000


def _block(
    shape: Shape, drift: Drift, rows: int, day: int, seed: int, number: int
) -> tuple[dict[str, NDArray[Any]], Vector, Vector]:
    """Columns (categories as ids), summed effects without an intercept, and the labels' coins."""
    rng = np.random.default_rng([seed, day, number, 71])
    coins = rng.random(_BLOCK)[:rows]
    scores = (rng.standard_normal((_BLOCK, len(COLUMNS)))[:rows]) @ np.linalg.cholesky(shape.correlation).T
    columns: dict[str, NDArray[Any]] = {}
    logit = np.zeros(rows)
    for j, name in enumerate(COLUMNS):
        about, score = shape.columns[name], scores[:, j]
        if name in NUMBERS:
            u = ndtr(score + drift.numbers * _normal(day, seed, salt=100 + j))
            columns[name], effect = _number(about, u, [_moved(drift, day, seed, j, k) for k in range(8)])
        else:
            columns[name], effect = _category(about, ndtr(score), drift, day, seed, j)
        logit += shape.scale * effect
    return columns, logit, coins


def _number(about: Mapping[str, Any], u: Vector, moved: list[float]) -> tuple[Vector, Vector]:
    """Values, missing as NaN, and their effects: one for missing, then one for each bin."""
    gone = about["missing"]
    present = np.clip((u - gone) / (1 - gone), 0, 1)
    knots = np.asarray(about["quantiles"], dtype=np.float64)
    values = np.round(np.interp(present, np.linspace(0, 1, len(knots)), knots))
    effects = np.asarray(about["effects"]) * (1 + np.asarray(moved[: len(about["effects"])]))
    which = np.where(u < gone, 0, 1 + np.searchsorted(about["edges"], values))
    return np.where(u < gone, np.nan, values), effects[which]


def _category(
    about: Mapping[str, Any], u: Vector, drift: Drift, day: int, seed: int, j: int
) -> tuple[NDArray[np.uint64], Vector]:
    """Ids of values (0 is missing) and their effects."""
    shares = np.concatenate(([about["missing"]], about["shares"]))
    edges = np.cumsum(shares)
    place = np.searchsorted(edges, u, side="right")
    effects = np.concatenate((about["effects"], [0.0]))
    common = place < len(shares)
    beyond = np.clip((u - edges[-1]) / max(1 - edges[-1], 1e-12), 0, 1 - 1e-12)
    rank = _power_law(beyond, about["exponent"], about["values"])
    turn = _uniform(rank, 3 * j + 1, seed) + drift.fresh * day  # when a rare value gives way to a new one
    ids = np.where(common, place, len(shares) + rank + np.floor(turn).astype(np.int64) * (1 << 32)).astype(np.uint64)
    own = np.where(common, effects[np.minimum(place, len(shares) - 1)], about["rest"])
    own = own + np.where(common, 0.0, about["sd"] * ndtri(_uniform(ids, 3 * j + 2, seed)))
    if day:
        own = own + drift.effects * about["sd"] * ndtri(_uniform(ids, 3 * j + 3 + 1000 * day, seed))
    return ids, own


def _power_law(u: Vector, exponent: float, values: int) -> NDArray[np.int64]:
    """0 … values − 1 with P(r) ∝ (r + 9)^−exponent, nearly: the ranks after the eight measured ones."""
    low, high, power = MEASURED + 1.0, MEASURED + 1.0 + values, 1.0 - exponent
    near_one = abs(power) < 1e-6
    x = low * (high / low) ** u if near_one else (low**power + u * (high**power - low**power)) ** (1 / power)
    return np.clip(x.astype(np.int64) - MEASURED - 1, 0, values - 1)


def _uniform(ids: NDArray[Any], salt: int, seed: int) -> Vector:
    """In (0, 1), by id."""
    keys = mix64(np.asarray(ids).astype(np.uint64) + mix64(np.full(1, salt + (seed << 20), dtype=np.uint64)))
    return np.asarray((keys >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def _normal(day: int, seed: int, salt: int) -> float:
    """What has moved since day 0: nothing on day 0."""
    return float(np.random.default_rng([seed, day, salt, 72]).standard_normal()) if day else 0.0


def _moved(drift: Drift, day: int, seed: int, j: int, k: int) -> float:
    return drift.effects * _normal(day, seed, salt=1000 + 10 * j + k)


def _names(column: str, ids: NDArray[np.uint64]) -> pd.Categorical:
    """Eight hexadecimal digits a value, as Criteo's hashes; missing is the empty string."""
    found, codes = np.unique(ids, return_inverse=True)
    hashes = mix64(found + np.uint64(CATEGORIES.index(column) << 40)) & np.uint64(0xFFFFFFFF)
    names = ["" if one == 0 else f"{key:08x}" for one, key in zip(found.tolist(), hashes.tolist(), strict=True)]
    if len(set(names)) < len(names):  # two values, one hash: as it is in the real file
        return pd.Categorical(np.asarray(names, dtype=object)[codes])
    return pd.Categorical.from_codes(codes, names)


def _intercept(shape: Shape, rate: float, seed: int) -> float:
    """The intercept at which day 0's first block has this rate."""
    logit = _block(shape, Drift(), _BLOCK, 0, seed, 0)[1]
    low, high = -30.0, 30.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if expit(logit + middle).mean() < rate else (low, middle)
    return low
