"""Data frames and arrays become tables that know their name in an error."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from bystander._tables import Source, Where, line, reading
from bystander._validate import InputError


def frame_source(frame: object, name: str) -> Source:
    """A data frame that narwhals knows, eager or lazy."""
    import narwhals as nw

    try:
        known: Any = nw.from_native(frame)
        actual = {str(c): c for c in known.collect_schema().names()}  # pandas may number its columns
    except Exception as error:  # not a frame at all, or columns that repeat
        advice = "give a pandas, polars or pyarrow table whose columns have different names"
        raise InputError(f"{name} is {type(frame).__name__}: {advice} ({line(error)})") from None

    def read(names: Sequence[str], numbers: Collection[str]) -> Any:
        import pyarrow as pa

        with reading(name, "a data frame"):
            chosen = known.select([nw.col(actual[c]) for c in names])
            chosen = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
            parts = dict(zip(names, chosen.iter_columns(), strict=True))
        return pa.table({c: column(part, c, name, c in numbers) for c, part in parts.items()})

    return Source(name, tuple(actual), read)


def array_source(arrays: Mapping[str, object], name: str) -> tuple[Source, dict[str, tuple[str, ...]]]:
    """Arrays by argument name, and the columns each has become: several where it was a data frame."""
    import narwhals as nw

    held: dict[str, Any] = {}
    columns: dict[str, tuple[str, ...]] = {}
    for key, value in arrays.items():
        known: Any = nw.from_native(value, pass_through=True, allow_series=True)
        if isinstance(known, (nw.DataFrame, nw.LazyFrame)):
            part = frame_source(known, name)
            table = part.read(part.columns, part.columns)
            parts = {f"{key}[{c}]": table[c] for c in part.columns}
            if not parts:
                raise InputError(f"{name}, {key} is a data frame without columns: give its probabilities")
        else:
            parts = {key: column(known, key, name, key not in ("ids", "groups", "slices"))}
        held |= parts
        columns[key] = tuple(parts)
    first, *others = held
    for other in others:
        if len(held[other]) != len(held[first]):
            counts = f"{first} has {len(held[first])} rows and {other} has {len(held[other])}"
            raise InputError(f"{name}: {counts}: give one entry per row in each")

    def read(names: Sequence[str], numbers: Collection[str]) -> Any:
        import pyarrow as pa

        return pa.table({c: held[c] for c in names})

    return Source(name, tuple(held), read), columns


def column(value: Any, name: str, source: str, number: bool) -> Any:
    """One array, series or list as an Arrow array; two-dimensional ones become a list column."""
    import narwhals as nw
    import pyarrow as pa

    if isinstance(value, (pa.Array, pa.ChunkedArray)):
        return value
    try:
        if isinstance(value, nw.Series):
            return value.to_arrow()
        if isinstance(value, (list, tuple)):
            return pa.array(value)
        array = value if isinstance(value, np.ma.MaskedArray) else np.asarray(value)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim not in (1, 2) or 0 in array.shape[1:]:
            raise InputError(
                f"{source}, {name} is {type(value).__name__} of shape {array.shape}: "
                "give one entry per row, or rows × classes"
            )
        return _from_numpy(array)
    except InputError:
        raise
    except Exception as error:  # NumPy and Arrow raise several kinds for values that do not fit together
        entries = value.to_list() if isinstance(value, nw.Series) else list(value)
        odd = next((i for i, entry in enumerate(entries) if _odd(entry)), None) if number else None
        if odd is not None:
            raise Where(source).at(name, odd, entries[odd], "give a number") from None
        if number and not any(isinstance(entry, (list, tuple, np.ndarray)) for entry in entries):
            return pa.array(np.array(entries, np.float64))  # 0, True and 1.0 in one list
        raise InputError(f"{source}, column {name!r} mixes types: give values of one type ({line(error)})") from None


def _odd(entry: object) -> bool:
    if isinstance(entry, (list, tuple, np.ndarray)):
        return any(_odd(e) for e in entry)
    if isinstance(entry, int):
        return abs(entry) >= 2**63
    return entry is not None and not isinstance(entry, (float, Decimal, np.integer, np.floating, np.bool_))


def _from_numpy(array: Any) -> Any:
    import pyarrow as pa

    if array.dtype.kind == "f" and array.dtype.itemsize != 4:
        array = array.astype(np.float64, copy=False)
    elif not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    mask = None
    if isinstance(array, np.ma.MaskedArray):
        mask, array = np.ma.getmaskarray(array).reshape(-1), array.data
    flat = pa.array(np.ascontiguousarray(array).reshape(-1), mask=mask)
    return flat if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, array.shape[1])
