"""Whole records in a data frame: one key a row, columns as numbers for a learner, columns replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from bystander import _columns, _keys
from bystander._frames import frame_source
from bystander._tables import Where, line
from bystander._validate import InputError

Frame = nw.DataFrame[Any]
Series = nw.Series[Any]
Matrix = NDArray[np.float64]
_LEVELS = 254  # codes of a text column; rarer texts share the last


def known(data: object, name: str, columns: Sequence[str] = ()) -> Frame:
    """A data frame that narwhals knows, collected, with at least one row and these columns."""
    try:
        found: Any = nw.from_native(data)
        frame: Frame = found.collect() if isinstance(found, nw.LazyFrame) else found
        names = [str(each) for each in frame.columns]
    except Exception as error:  # not a frame at all
        raise InputError(
            f"{name} is {type(data).__name__}: give a pandas, polars or pyarrow table ({line(error)})"
        ) from None
    for column in columns:
        if column not in names:
            raise InputError(f"{name} has no column {column!r}: it has {', '.join(names)}")
    if not len(frame):
        raise InputError(f"{name} has no rows: give at least one row")
    return frame


def without(frame: Frame, columns: Sequence[str | None]) -> Frame:
    """The other columns."""
    return frame.drop([each for each in columns if each is not None and each in frame.columns])


def row_keys(frame: Frame, id: str | None, name: str) -> NDArray[np.uint64]:
    """A key a row: of its id, or of its content and how often that came before."""
    if id is not None:
        source = frame_source(frame.to_native(), name)
        ids = _columns.identity(Where(name), id, source.read([id], [])[id])
        keys = _keys.id_keys(ids)
        if (twins := _keys.first_repeat(keys, ids)) is not None:
            raise InputError(f"{name}: id {ids[twins[1]].as_py()!r} names two rows: give each row its own")
        return keys
    folded = np.zeros(len(frame), np.uint64)
    numbers: list[Matrix] = []
    for column in frame.columns:
        series = frame[column]
        if (values := _numbers(series)) is not None:
            numbers.append(values)
        else:
            folded = _keys.mix64(folded ^ _keys.text_keys(_texts(series)))
    matrix = np.column_stack(numbers) if numbers else np.empty((len(frame), 0))
    return _keys.content_keys(folded.view(np.int64), matrix, np.empty((len(frame), 0)))


def labels(frame: Frame, column: str, classes: int, name: str) -> NDArray[np.int64]:
    """The label column, checked: 0…K−1."""
    source = frame_source(frame.to_native(), name)
    return _columns.labels(Where(name), column, source.read([column], [column])[column], classes)


def picked(series: Series, rows: NDArray[np.int64]) -> Series:
    """These entries of a column, in its own type."""
    taken: Series = series[rows.tolist()]
    return taken


def typed(value: Series, like: Series) -> Series:
    """A column as another's type: of a pandas category, with its categories."""
    native, wanted = value.to_native(), like.to_native()
    if hasattr(native, "astype"):
        made = nw.from_native(native.astype(wanted.dtype), series_only=True)
    else:
        made = value.cast(like.dtype)
    if made.null_count() > value.null_count():
        raise InputError(f"column {like.name!r} is {like.dtype}, and a value for it is not: give values of that type")
    renamed: Series = made.alias(like.name)
    return renamed


def constant(like: Series, value: Any, rows: int) -> Series:
    """A column of one value, of the type of `like`."""
    column = nw.new_series(like.name, [value] * rows, backend=like.implementation)
    return typed(column, like)


def replaced(frame: Frame, columns: Sequence[Series]) -> Frame:
    """The frame with other columns of these names."""
    native: Any = frame.to_native()
    if hasattr(native, "reset_index"):  # pandas would align the new columns by its index
        frame = nw.from_native(native.reset_index(drop=True), eager_only=True)
    return frame.with_columns(*columns)


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Columns as numbers: text by its place among the commonest texts, what is missing as NaN."""

    columns: tuple[str, ...]
    levels: dict[str, dict[str, int]]  # of the columns that are not numbers

    @classmethod
    def of(cls, frame: Frame, columns: Sequence[str]) -> Features:
        """Learn the texts of these columns."""
        levels = {}
        for column in columns:
            if _numbers(frame[column]) is None:
                texts, counts = np.unique(_filled(frame[column]), return_counts=True)
                order = np.argsort(-counts, kind="stable")[:_LEVELS]
                levels[column] = {str(texts[k]): place for place, k in enumerate(order) if texts[k] != _MISSING}
        return cls(tuple(columns), levels)

    @property
    def categorical(self) -> list[int]:
        """Which columns of the matrix are codes."""
        return [place for place, column in enumerate(self.columns) if column in self.levels]

    def matrix(self, frame: Frame) -> Matrix:
        """(rows, columns); a text that was not learned has a code of its own."""
        parts = []
        for column in self.columns:
            if column in self.levels:
                texts, place = np.unique(_filled(frame[column]), return_inverse=True)
                codes = [np.nan if t == _MISSING else self.levels[column].get(str(t), _LEVELS) for t in texts]
                parts.append(np.asarray(codes, dtype=np.float64)[place])
            else:
                values = _numbers(frame[column])
                if values is None:
                    raise InputError(
                        f"column {column!r} is {frame[column].dtype}: it was a number where this was fitted"
                    )
                parts.append(values)
        return np.column_stack(parts) if parts else np.empty((len(frame), 0))


_MISSING = "\0missing"


def _numbers(series: Series) -> Matrix | None:
    """A column of numbers, booleans or times as floats, what is missing as NaN; None of any other."""
    kind = series.dtype
    if kind == nw.Boolean:
        series = series.cast(nw.Int8)
    elif kind == nw.Date or isinstance(kind, nw.Datetime):
        series = series.cast(nw.Datetime("us")).dt.timestamp("us")
    elif not kind.is_numeric():
        return None
    return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)


def _filled(series: Series) -> NDArray[np.str_]:
    return np.asarray(_texts(series).to_pylist(), dtype=np.str_)


def _texts(series: Series) -> Any:
    import pyarrow as pa

    try:
        texts = series.cast(nw.String).fill_null(_MISSING).to_arrow()
    except Exception as error:  # nested columns, objects: each backend refuses in its own way
        raise InputError(
            f"column {series.name!r} is {series.dtype}: give numbers, text or times ({line(error)})"
        ) from None
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    return texts.cast(pa.large_string())
