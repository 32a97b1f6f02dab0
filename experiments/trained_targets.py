"""Prediction logs of trained targets, on which attacks can be compared.

    python experiments/trained_targets.py [NAME...] [--force]

For each target a reference model M' is trained on other rows, the target M on the members; both then predict
the members and the control (rows that neither trained on). Written to cache/targets/NAME/:

    members.parquet, control.parquet   id, label, target, reference (binary: the probability of label 1;
                                       K classes: a list of K), a slice column, and `truth` where it is known
    info.json                          sizes, seeds, versions, seconds, losses

Departures from the paper's section 5: smaller data (see _data.py), random thirds instead of days. The labels
in the logs are always the true ones, also where the target trained on randomized ones.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiments import _data
from experiments._models import PAPER, Fit, Labels, Probabilities, Rows, boosted, convnet, linear, perceptron, say

SEEDS = {"split": 10, "reference": 11, "target": 12, "mechanism": 13}


@dataclass(frozen=True)
class Parts:
    """Disjoint rows: the reference's, the target's, nobody's."""

    reference: Rows
    members: Rows
    control: Rows


@dataclass(frozen=True)
class Target:
    """Everything needed to train one target and log it; arrays run over all rows."""

    labels: Labels
    parts: Parts
    reference: Fit
    target: Fit
    columns: Mapping[str, Any]
    shown: Labels | None = None  # what the target trains on; None: the true labels
    notes: Mapping[str, Any] = field(default_factory=dict)


# ---- splits and mechanisms ------------------------------------------------------------------------------


def thirds(rows: int) -> Parts:
    """A random third for each."""
    return Parts(*np.array_split(np.random.default_rng(SEEDS["split"]).permutation(rows), 3))


def earlier_later(rows: int) -> Parts:
    """Rows in time order: the earlier half for the reference, a random half of the later for the target."""
    earlier, later = np.array_split(np.arange(rows), 2)
    return Parts(earlier, *np.array_split(np.random.default_rng(SEEDS["split"]).permutation(later), 2))


def randomized(labels: Labels, epsilon: float, classes: int = 2) -> Labels:
    """k-ary randomized response, drawn once."""
    rng = np.random.default_rng(SEEDS["mechanism"])
    lie = rng.random(len(labels)) >= np.exp(epsilon) / (np.exp(epsilon) + classes - 1)
    return np.where(lie, (labels + rng.integers(1, classes, len(labels))) % classes, labels).astype(np.int32)


# ---- targets --------------------------------------------------------------------------------------------

_flights = cache(_data.flights)


def _late(
    split: Callable[[int], Parts] = thirds,
    epsilon: float | None = None,
    without: tuple[str, ...] = (),
    **settings: Any,
) -> Target:
    """Is a flight more than 15 minutes late? `settings` are the target's alone."""
    table = _flights()
    labels = (table["arr_delay"] > 15).to_numpy(np.int32)
    frame = table.drop(columns=["arr_delay", *without])
    return Target(
        labels,
        split(len(table)),
        reference=boosted(frame),
        target=boosted(frame, **settings),
        columns={"carrier": table["carrier"]},
        shown=None if epsilon is None else randomized(labels, epsilon),
        notes={"catboost": PAPER | settings, "randomized_response_epsilon": epsilon, "without": without},
    )


def flights_random() -> Target:
    """Random thirds: no shift but what the reference gets wrong."""
    return _late()


def flights_time() -> Target:
    """January to June for the reference, the later months for target and control: a real shift.

    Without the date, which lies outside all that the reference has seen (with it, the reference's log-loss is
    .63, above a constant's .53).
    """
    return _late(earlier_later, without=("month", "day"))


def flights_rr2() -> Target:
    """The target's labels went through randomized response with epsilon 2; the reference's did not."""
    return _late(epsilon=2.0)


def flights_deep() -> Target:
    """An overfitted target, six times as many trees and deeper; the reference as before."""
    return _late(iterations=600, depth=10)


def flights_10() -> Target:
    """Ten classes: the delay's deciles."""
    table = _flights()
    labels = pd.qcut(table["arr_delay"], 10, labels=False).to_numpy(np.int32)
    settings = {"depth": 6}
    model = boosted(table.drop(columns="arr_delay"), loss_function="MultiClass", **settings)
    notes = {"catboost": PAPER | settings}
    return Target(labels, thirds(len(table)), model, model, {"carrier": table["carrier"]}, notes=notes)


def _sentiment(reference: Callable[[Any], Fit] | None = None) -> Target:
    """Is a tweet positive? The words' weights come from all texts and no label."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    table = _data.tweets()
    words = TfidfVectorizer(max_features=10_000, sublinear_tf=True, dtype=np.float32, ngram_range=(1, 2))
    features = words.fit_transform(table["text"]).tocsr()
    settings = {"hidden_layer_sizes": (128, 32), "max_iter": 2, "batch_size": 200, "alpha": 1e-5}
    target = perceptron(features, **settings)
    return Target(
        table["label"].to_numpy(np.int32),
        thirds(len(table)),
        reference=target if reference is None else reference(features),
        target=target,
        columns={"day": table["day"]},
        notes={"perceptron": settings},
    )


def tweets_mlp() -> Target:
    """Target and reference are the same network."""
    return _sentiment()


def tweets_mlp_lr() -> Target:
    """The same target beside a logistic regression, which is better calibrated on rows it has not seen."""
    return _sentiment(partial(linear, C=2.0))


def cifar10_cnn() -> Target:
    """Half the training images each; the control is the 10,000 test images."""
    images, labels, classes = _data.cifar10()
    order = np.random.default_rng(SEEDS["split"]).permutation(50_000)
    parts = Parts(*np.array_split(order, 2), np.arange(50_000, 60_000))
    model = convnet(images, len(classes), epochs=12)
    return Target(labels, parts, model, model, {"class": np.array(classes)[labels]}, notes={"epochs": 12})


def criteo_like() -> Target:
    """Clicks at 3 %, made up, so that the true probability (column `truth`) is a flawless reference."""
    data = _data.clicks(600_000)
    model = boosted(data.frame)
    columns = {"c0": data.frame["c0"], "truth": data.truth}
    return Target(data.labels, thirds(600_000), model, model, columns, notes={"catboost": PAPER})


TARGETS: dict[str, Callable[[], Target]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        *(flights_random, flights_time, flights_rr2, flights_deep, flights_10),
        *(tweets_mlp, tweets_mlp_lr, cifar10_cnn, criteo_like),
    )
}


# ---- train, log, write ----------------------------------------------------------------------------------


def make(name: str, folder: Path) -> dict[str, Any]:
    """Train one target and its reference, write the logs to `folder`, and say how they did."""
    spec = TARGETS[name]()
    parts = {"members": spec.parts.members, "control": spec.parts.control}
    shown = spec.labels if spec.shown is None else spec.shown
    seconds, logs = {}, {part: {} for part in parts}
    for model, fit, rows, labels in (
        ("target", spec.target, spec.parts.members, shown),
        ("reference", spec.reference, spec.parts.reference, spec.labels),
    ):
        say(f"  {name}: the {model} trains on {len(rows):,} rows")
        start = time.perf_counter()
        predict = fit(rows, labels[rows], SEEDS[model])
        seconds[model] = round(time.perf_counter() - start, 1)
        for part, asked in parts.items():
            logs[part][model] = predict(asked).astype(np.float64)
    for part, rows in parts.items():
        pq.write_table(as_table(spec, rows, logs[part]), folder / f"{part}.parquet", compression="zstd")
    quality = {
        part: {"rows": len(rows), "rates": np.bincount(spec.labels[rows]) / len(rows)}
        | {model: grade(spec.labels[rows], p) for model, p in logs[part].items()}
        for part, rows in parts.items()
    }
    info = {
        "name": name,
        "about": (TARGETS[name].__doc__ or "").strip().partition("\n")[0],
        "reference_rows": len(spec.parts.reference),
        **quality,
        "train_seconds": seconds,
        "seeds": SEEDS,
        "notes": dict(spec.notes),
        "versions": versions(),
    }
    (folder / "info.json").write_text(json.dumps(info, indent=2, default=np.ndarray.tolist) + "\n")
    return info


def as_table(spec: Target, rows: Rows, predictions: Mapping[str, Probabilities]) -> pa.Table:
    """The log of these rows, as an auditor would get it."""
    columns = {"id": pa.array(rows, pa.int64()), "label": pa.array(spec.labels[rows], pa.int32())}
    for model, p in predictions.items():
        binary = p.shape[1] == 2
        columns[model] = pa.array(p[:, 1]) if binary else pa.array(list(p), pa.list_(pa.float64()))
    columns |= {name: pa.array(np.asarray(values)[rows]) for name, values in spec.columns.items()}
    return pa.table(columns)


def grade(labels: Labels, p: Probabilities) -> dict[str, float]:
    """Log-loss and accuracy on the true labels."""
    at_label = np.clip(p[np.arange(len(labels)), labels], 1e-15, None)
    accuracy = (p.argmax(1) == labels).mean()
    return {"log_loss": round(float(-np.log(at_label).mean()), 5), "accuracy": round(float(accuracy), 5)}


def versions() -> dict[str, str]:
    """Of what the numbers depend on, if loaded."""
    names = {"numpy": "numpy", "pandas": "pandas", "sklearn": "scikit-learn", "catboost": "catboost"}
    loaded = {
        package: version(package) for name, package in (names | {"torch": "torch"}).items() if name in sys.modules
    }
    return {"python": platform.python_version(), "machine": platform.machine(), **loaded}


def main() -> None:
    """Make what is asked for and not there yet."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TARGETS)}; default: all")
    parser.add_argument("--force", action="store_true", help="make it again though it is there")
    args = parser.parse_args()
    if unknown := set(args.names) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    for name in args.names or TARGETS:
        folder = _data.CACHE / "targets" / name
        if folder.exists() and not args.force:
            say(f"{name}: already in {folder}")
            continue
        scratch = folder.with_name(f"{name}.partial")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        start = time.perf_counter()
        info = make(name, scratch)
        shutil.rmtree(folder, ignore_errors=True)
        scratch.rename(folder)
        losses = ", ".join(
            f"{model} {info['members'][model]['log_loss']:.4f} / {info['control'][model]['log_loss']:.4f}"
            for model in ("target", "reference")
        )
        say(f"{name}: {time.perf_counter() - start:.0f} s; log-loss on members / control: {losses}")


if __name__ == "__main__":
    main()
