"""A small problem, made here: a target that memorises and one that is label-private, both audited with control.

Yesterday's log trains the reference; today's trains the targets, by logistic regression on thousands of random
features. Both targets see the same rows: one their labels, the other labels behind randomized response.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bystander._validate import InputError
from bystander.audit import audit
from bystander.report import files
from bystander.result import Result

Matrix = NDArray[np.float64]

ROWS, PAST, FEATURES, RANDOM, EPSILON = 6_000, 60_000, 12, 1_600, 1.0


def run(out: Path, progress: Callable[[str, int, int], None] | None = None, *, seed: int = 7) -> dict[str, Result]:
    """Make the logs under `out`, audit them, write a page each, and say what came out."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be made ({error.strerror}); choose another folder") from None
    rng = np.random.default_rng(seed)
    rule = rng.normal(size=FEATURES) * 0.6
    past, members, control = (_log(rng, rule, n) for n in (PAST, ROWS, ROWS))
    _say(
        f"{ROWS:,} rows train each target; {ROWS:,} others are the control; {PAST:,} of yesterday train the reference."
    )

    reference = _fit(past[0], past[1], ridge=1.0)
    frequencies = rng.normal(size=(FEATURES, RANDOM)) * 0.35, rng.uniform(0, 2 * np.pi, RANDOM)
    keep = np.exp(EPSILON) / (1 + np.exp(EPSILON))
    private = np.where(rng.random(ROWS) < keep, members[1], 1 - members[1])
    targets = {"memorising": members[1], f"label-private (ε = {EPSILON:g})": private}

    results: dict[str, Result] = {}
    for name, labels in targets.items():
        target = _fit(_lift(members[0], frequencies), labels, ridge=0.3)
        where = out / name.split()[0]
        for part, (x, y) in (("members", members), ("control", control)):
            _write(where, part, x, y, _predict(_lift(x, frequencies), target), _predict(x, reference))
        results[name] = _audit(where, progress)
        files.write(where / "report.html", results[name].to_html())
    _summary(out, results)
    return results


def _log(rng: np.random.Generator, rule: Matrix, rows: int) -> tuple[Matrix, NDArray[np.int64]]:
    """One day's rows: features, and a click for about one row in five."""
    x = rng.normal(size=(rows, FEATURES))
    p = 1 / (1 + np.exp(1.8 - x @ rule))
    return x, (rng.random(rows) < p).astype(np.int64)


def _lift(x: Matrix, frequencies: tuple[Matrix, Matrix]) -> Matrix:
    return np.asarray(np.cos(x @ frequencies[0] + frequencies[1]) * np.sqrt(2 / RANDOM) * 8)


def _fit(x: Matrix, y: NDArray[np.int64], ridge: float) -> Matrix:
    """Logistic regression with an intercept, by Newton's method."""
    x = np.column_stack((x, np.ones(len(x))))
    w = np.zeros(x.shape[1])
    for _ in range(6):
        p = 1 / (1 + np.exp(-(x @ w)))
        half = x * np.sqrt(p * (1 - p))[:, None]  # its Gram matrix is the curvature, at half the work
        w -= np.linalg.solve(half.T @ half + ridge * np.eye(len(w)), x.T @ (p - y) + ridge * w)
    return w


def _predict(x: Matrix, w: Matrix) -> Matrix:
    return np.asarray(1 / (1 + np.exp(-(x @ w[:-1] + w[-1]))))


def _write(folder: Path, part: str, x: Matrix, y: NDArray[np.int64], target: Matrix, reference: Matrix) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(exist_ok=True)
    activity = np.array(["low", "middle", "high"])[np.digitize(x[:, 0], (-0.5, 0.5))]
    columns = {"row": np.arange(len(y)), "click": y, "target": target, "reference": reference, "activity": activity}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    files.write(folder / f"{part}.parquet", sink.getvalue().to_pybytes())


def _audit(folder: Path, progress: Callable[[str, int, int], None] | None) -> Result:
    members, control = folder / "members.parquet", folder / "control.parquet"
    result = audit(
        members, labels="click", target="target", reference="reference", id="row", slice="activity", control=control,
        progress=progress,
    )  # fmt: skip
    return replace(
        result,
        command=f"bystander audit {members} --label click --target target --reference reference --id row "
        f"--slice activity --control {control} --html {folder / 'report.html'}",
    )


def _summary(out: Path, results: dict[str, Result]) -> None:
    _say("")
    for name, result in results.items():
        page = out / name.split()[0] / "report.html"
        control = result.control.epsilon if result.control else float("nan")
        _say(f"{name:24} members ε ≥ {result.epsilon:.2f}   control ε ≥ {control:.2f}   {page}")
    first = next(iter(results.values()))
    _say("")
    here = "" if shutil.which("bystander") else f"{os.path.dirname(os.path.relpath(sys.argv[0]))}/"
    _say(f"Audit it again yourself:\n  {here}{first.command}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
