"""Predictions out: the logs that `bystander audit` reads, for members and for rows that were never trained on.

The labels in them are the true ones: a log is as private as the data.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bystander._validate import InputError
from bystander.mechanisms.base import Matrix
from bystander.report import files
from bystander.training.base import Learner, rows


@dataclass(frozen=True, slots=True)
class Logs:
    """Where the two logs lie; `arguments` are what `bystander.audit` takes, and `command` audits them again."""

    members: Path
    control: Path

    @property
    def arguments(self) -> dict[str, Any]:
        """As in `bystander.audit(**logs.arguments)`."""
        names = {"labels": "label", "target": "target", "reference": "reference", "id": "id"}
        return {"data": self.members, **names, "control": self.control}

    @property
    def command(self) -> str:
        """As in a shell."""
        columns = "--label label --target target --reference reference --id id"
        return f"bystander audit {self.members} {columns} --control {self.control}"


def write(
    path: str | Path,
    *,
    ids: ArrayLike,
    labels: ArrayLike,
    target: ArrayLike,
    reference: ArrayLike,
    **columns: ArrayLike,
) -> Path:
    """One log as Parquet, the whole file or none: id, label, target, reference, and further columns (for slices).

    Predictions of two classes, (rows,) or (rows, 2), become the probability of label 1; of more, a list of K.
    """
    path = Path(path)
    files.check(path)
    files.write(path, _bytes(ids, labels, target, reference, columns))
    return path


def write_both(
    folder: str | Path,
    target: Learner,
    reference: Learner,
    *,
    members: tuple[Any, ArrayLike],
    control: tuple[Any, ArrayLike],
    reference_sees: tuple[Any, Any] | None = None,
    ids: tuple[ArrayLike, ArrayLike] | None = None,
    columns: tuple[Mapping[str, ArrayLike], Mapping[str, ArrayLike]] | None = None,
) -> Logs:
    """Predict members and control, each (X, y), with both models; write members.parquet and control.parquet.

    The reference must not have been fitted on either. Where it takes other features, `reference_sees` is its X of
    members and of control. Ids are 0, 1, … through members and control unless given. Both files are made before
    either is put in place.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror}); choose another folder") from None
    logs = Logs(folder / "members.parquet", folder / "control.parquet")
    made: list[tuple[Path, bytes]] = []
    start = 0
    for part, (path, (X, y)) in enumerate(zip((logs.members, logs.control), (members, control), strict=True)):
        files.check(path)
        seen = X if reference_sees is None else reference_sees[part]
        own = np.arange(start, start + rows(X)) if ids is None else ids[part]
        more = {} if columns is None else columns[part]
        made.append(
            (path, _bytes(own, y, _predicted("target", target, X), _predicted("reference", reference, seen), more))
        )
        start += rows(X)
    _place(made)
    return logs


def _place(made: list[tuple[Path, bytes]]) -> None:
    """Write all aside, then rename: an old pair is never mixed with a new one by a write that fails."""
    asides = [path.with_name(f".{path.name}.{os.getpid()}.new") for path, _ in made]
    try:
        for aside, (_, data) in zip(asides, made, strict=True):
            files.write(aside, data)
        for aside, (path, _) in zip(asides, made, strict=True):
            os.replace(aside, path)
    except OSError as error:
        raise InputError(f"{made[0][0].parent}: cannot be written ({error.strerror}); choose another folder") from None
    finally:
        for aside in asides:
            aside.unlink(missing_ok=True)


def _predicted(name: str, model: Learner, X: Any) -> Matrix:
    p = np.asarray(model.predict_proba(X), dtype=np.float64)
    if p.ndim != 2 or len(p) != rows(X):
        raise InputError(f"{name} predicts shape {p.shape}: give a model whose predict_proba has a row for each of X's")
    return p


def _bytes(
    ids: ArrayLike, labels: ArrayLike, target: ArrayLike, reference: ArrayLike, columns: Mapping[str, ArrayLike]
) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table: dict[str, Any] = {"id": np.asarray(ids), "label": np.asarray(labels)}
    for name, values in (("target", target), ("reference", reference)):
        table[name] = _column(name, np.asarray(values, dtype=np.float64), pa)
    for name, given in columns.items():
        if name in table:
            raise InputError(f"column {name!r} is the log's own: give another name")
        table[name] = pa.array(np.asarray(given))
    for name, held in table.items():
        if len(held) != len(table["label"]):
            raise InputError(f"{name} has {len(held)} rows: label has {len(table['label'])}; give one a row")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(table), sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def _column(name: str, p: NDArray[np.float64], pa: Any) -> Any:
    if p.ndim not in (1, 2) or (p.ndim == 2 and p.shape[1] < 2):
        raise InputError(f"{name} has shape {p.shape}: give probabilities, (rows,) of label 1 or (rows, classes)")
    total = p if p.ndim == 1 else p.sum(axis=1)
    good = ((p >= 0) & (p <= 1 + 1e-6)).reshape(len(p), -1).all(axis=1) & ((p.ndim == 1) | (np.abs(total - 1) <= 1e-3))
    if not good.all():
        row = int(np.argmin(good))
        raise InputError(f"{name}, row {row} is {p[row].tolist()}: give probabilities, which add up to 1")
    if p.ndim == 2 and p.shape[1] > 2:
        return pa.array(list(p), pa.list_(pa.float64()))
    return pa.array(p if p.ndim == 1 else p[:, 1])
