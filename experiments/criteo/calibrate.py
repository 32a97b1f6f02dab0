"""Summary statistics of real Criteo rows, for `_clicks`: python -m experiments.criteo.calibrate [FILE] → shape.json.

FILE is in Kaggle's format (label, I1–I13, C1–C26, tab-separated, no header); the default is criteo_8000.tsv.gz, looked
for in cache/ and BYSTANDER_DATA. Taken by column: missing rate; a number's quantiles and log-odds of a click by bins; a
category's shares and log-odds of its 8 likeliest values, the mean and sd of the log-odds beyond, and a power law for
the frequencies beyond; the correlation of the columns' normal scores. Last, one scale for the summed effects: the one
at which a booster learns as much (AUC) from as many made-up rows at the same rate as from the real ones.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from bystander import datasets
from experiments import _data
from experiments._clicks import CATEGORIES, COLUMNS, MEASURED, NUMBERS, SHAPE, Shape, _power_law, draw, square

_BINS, _KNOTS = 5, 17
_SMOOTH = 20.0  # rows at the base rate added to every rate


def statistics(table: pd.DataFrame) -> dict[str, Any]:
    """Everything but the scale."""
    y = table["label"].to_numpy(np.float64)
    columns, scores = {}, []
    for name in COLUMNS:
        about, score = (_number if name in NUMBERS else _category)(table[name], y)
        columns[name] = about
        scores.append(score)
    upper = np.corrcoef(np.array(scores)).round(2)
    return {"rows": len(table), "rate": round(float(y.mean()), 4), "columns": columns,
            "correlation": [upper[i, i + 1 :].tolist() for i in range(len(upper) - 1)]}  # fmt: skip


def _odds(y: NDArray[np.float64], base: float) -> float:
    p = (y.sum() + _SMOOTH * base) / (len(y) + _SMOOTH)
    return round(float(np.log(p / (1 - p)) - np.log(base / (1 - base))), 2)


def _scores(order: NDArray[Any]) -> NDArray[np.float64]:
    """Normal scores of the mid-ranks."""
    return np.asarray(ndtri((pd.Series(order).rank() - 0.5) / len(order)))


def _number(column: pd.Series, y: NDArray[np.float64]) -> tuple[dict[str, Any], NDArray[np.float64]]:
    values, base = column.to_numpy(np.float64), y.mean()
    here = ~np.isnan(values)
    present, clicked = values[here], y[here]
    levels = np.clip(np.linspace(0, 1, _KNOTS), 0.005, 0.995)  # no row's own extreme value
    edges = np.unique(np.quantile(present, np.arange(1, _BINS) / _BINS).astype(int))
    bins = np.searchsorted(edges, present)
    about = {
        "missing": round(float(1 - here.mean()), 3),
        "quantiles": np.quantile(present, levels).round().astype(int).tolist(),
        "edges": edges.tolist(),
        "effects": [_odds(y[~here], base), *(_odds(clicked[bins == k], base) for k in range(len(edges) + 1))],
    }
    return about, _scores(np.where(here, values, -np.inf))


def _category(column: pd.Series, y: NDArray[np.float64]) -> tuple[dict[str, Any], NDArray[np.float64]]:
    text, base, n = column.astype(str).to_numpy(), y.mean(), len(y)
    counts = pd.Series(text[text != ""]).value_counts()
    top = counts.index[:MEASURED].tolist()
    rank = {"": -1} | {value: r for r, value in enumerate(counts.index)}
    order = np.array([rank[value] for value in text])
    rest = order >= len(top)
    exponent, values = _tail(counts.to_numpy()[len(top) :], int(rest.sum()))
    about = {
        "missing": round(float((order < 0).mean()), 3),
        "shares": [round(float(counts[value] / n), 3) for value in top],
        "effects": [_odds(y[order == r], base) for r in range(-1, len(top))],
        "rest": _odds(y[rest], base),
        "sd": _spread(order[rest], y[rest]),
        "exponent": exponent,
        "values": values,
    }
    return about, _scores(order)


def _spread(order: NDArray[np.int64], y: NDArray[np.float64]) -> float:
    """The sd of the values' log-odds, by moments: pairs of rows with the same value share their effect."""
    if len(y) < 50:
        return 0.3
    p = min(max(y.mean(), 0.01), 0.99)
    table = pd.DataFrame({"v": order, "e": y - p}).groupby("v")["e"].agg(["sum", "count"])
    squares = pd.Series((y - p) ** 2).groupby(order).sum().to_numpy()
    many = table["count"].to_numpy()
    pairs = (many * (many - 1)).sum()
    shared = (table["sum"].to_numpy() ** 2 - squares).sum() / max(pairs, 1)
    return round(float(np.sqrt(max(shared, 0)) / (p * (1 - p))), 2) if pairs >= 200 else 0.3


def _tail(counts: NDArray[np.int64], rows: int) -> tuple[float, int]:
    """(exponent, values) of the power law whose `rows` draws have as many distinct values and as many single ones."""
    if len(counts) < 20:
        return 1.0, max(len(counts), 1)
    wanted = np.array([len(counts), max((counts == 1).sum(), 1)], dtype=np.float64)
    u = np.random.default_rng(73).random(rows)  # independent, as the rows are: even ones would repeat too little
    best, found = np.inf, (1.0, len(counts))
    for exponent in np.arange(0.0, 1.6, 0.1):
        for values in np.unique((len(counts) * np.geomspace(1, 3000, 45)).astype(int)):
            many = np.unique(_power_law(u, exponent, values), return_counts=True)[1]
            seen = np.array([len(many), (many == 1).sum()], dtype=np.float64)
            miss = float(np.abs(np.log((seen + 1) / (wanted + 1))).sum())
            if miss < best:
                best, found = miss, (round(float(exponent), 1), int(values))
    return found


def skill(frame: pd.DataFrame, y: NDArray[np.int64], folds: int = 5) -> float:
    """A booster's AUC on the folds that it has not seen."""
    from catboost import CatBoostClassifier
    from sklearn.metrics import roc_auc_score

    fold, p = np.random.default_rng(75).integers(0, folds, len(y)), np.zeros(len(y))
    for k in range(folds):
        model = CatBoostClassifier(iterations=150, depth=5, learning_rate=0.08, max_ctr_complexity=1, random_seed=k,
                                   thread_count=2, verbose=False, allow_writing_files=False)  # fmt: skip
        model.fit(frame[fold != k], y[fold != k], cat_features=list(CATEGORIES))
        p[fold == k] = model.predict_proba(frame[fold == k])[:, 1]
    return float(roc_auc_score(y, p))


def main() -> None:
    """Measure, scale, write."""
    table = datasets.criteo.load(sys.argv[1] if len(sys.argv) > 1 else _data.criteo_sample())
    body = statistics(table)
    real = skill(table[list(COLUMNS)], table["label"].to_numpy())
    print(f"AUC on the real rows {real:.4f}", file=sys.stderr)
    tried = []
    low, high = 0.2, 0.8
    for _ in range(5):
        scale = (low + high) / 2
        shape = Shape(body["columns"], square(body["correlation"]), scale)
        made = [draw(len(table), seed=seed, rate=body["rate"], shape=shape) for seed in (1, 2, 3)]
        auc = float(np.mean([skill(one.frame, one.labels) for one in made]))
        print(f"scale {scale:.3f}: AUC {auc:.4f}", file=sys.stderr)
        tried.append((abs(auc - real), scale, auc))
        low, high = (scale, high) if auc < real else (low, scale)
    _, scale, auc = min(tried)
    body |= {"scale": round(scale, 3), "auc": {"real": round(real, 4), "made_up": round(auc, 4)}}
    SHAPE.write_text(_text(body))


def _text(body: dict[str, Any]) -> str:
    """JSON, a column a line."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(about)}" for name, about in body["columns"].items())
    rest = {key: value for key, value in body.items() if key != "columns"}
    head = ",\n".join(f" {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in rest.items())
    return f'{{\n{head},\n "columns": {{\n{lines}\n }}\n}}\n'


if __name__ == "__main__":
    main()
