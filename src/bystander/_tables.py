"""Files, folders, globs, URLs, data frames and arrays become tables that know their name in an error."""

from __future__ import annotations

import difflib
import glob
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from bystander._validate import InputError

_SUFFIXES = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".csv": "CSV",
    ".csv.gz": "CSV",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
}
Data = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True, slots=True)
class Source:
    """A table not read yet. `read(names, numbers)` gives the named columns; text in `numbers` is parsed."""

    name: str
    columns: tuple[str, ...]
    read: Callable[[Sequence[str], Collection[str]], Any]

    def need(self, names: Sequence[str]) -> None:
        """Each of these columns is here, once."""
        for name in names:
            times = self.columns.count(name)
            if times > 1:
                raise InputError(f"{self.name} has {times} columns {name!r}: give each column its own name")
            if not times:
                close = difflib.get_close_matches(name, self.columns, 1, 0.5)
                hint = f"did you mean {close[0]!r}?" if close else "name one of these"
                more = f", … ({len(self.columns)} in all)" if len(self.columns) > 20 else ""
                have = ", ".join(map(repr, self.columns[:20])) + more or "none"
                raise InputError(f"{self.name} has no column {name!r}; its columns are {have}: {hint}")


def shown(value: object) -> str:
    """A value as one short line."""
    text = " ".join((value if isinstance(value, str) else repr(value)).split())
    if isinstance(value, str):
        text = repr(value) if len(value) <= 80 else repr(value[:77]) + "…"
    return text if len(text) <= 90 else text[:87] + "…"


def _line(error: object) -> str:
    text = "".join(c if c.isprintable() else " " for c in str(error))
    text = " ".join(text.split()) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "…"


def at(name: str, column: str, row: int, value: object, advice: str) -> InputError:
    """The error for one value: where it is, what it is, what to do."""
    return InputError(f"{name}, column {column!r}, row {row} is {shown(value)}: {advice}")


@contextmanager
def _reading(name: str, kind: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{name} does not exist: check the path") from None
    except PermissionError:
        raise InputError(f"{name} may not be read: check its permissions") from None
    except Exception as error:  # a damaged file makes its reader raise nearly anything
        raise InputError(f"{name} cannot be read as {kind}: check that it is whole ({_line(error)})") from None


# ---------------------------------------------------------------- files


def find(data: Data) -> tuple[list[Source], str]:
    """The tables behind files, folders, globs and URLs, and one short name for all of them."""
    if not isinstance(data, (str, os.PathLike, Sequence)):
        raise InputError(f"data is {shown(data)}: give a file, folder, glob or URL as text or a path, or a list")
    items = [data] if isinstance(data, (str, os.PathLike)) else list(data)
    if not items:
        raise InputError("no data files are given: name a file, folder, glob or URL")
    files: list[tuple[str, Any, str]] = []
    for item in items:
        if not isinstance(item, (str, os.PathLike)) or not isinstance(os.fspath(item), str):
            raise InputError(f"data is {shown(item)}: give a file, folder, glob or URL as text or a path")
        files += _expand(os.fspath(item))
    seen: set[str] = set()
    for name, filesystem, path in files:
        same = os.path.realpath(path) if filesystem.type_name == "local" else name
        if same in seen:
            raise InputError(f"{name} is given twice: name each file once, or its rows would count twice")
        seen.add(same)
    base = os.path.basename(files[0][0].rstrip("/")) or files[0][0]
    if len(files) == 1:
        label = base
    elif len(items) == 1:
        text = _public(os.fspath(items[0]))
        folder = text if glob.has_magic(text) else text.rstrip("/") + "/"
        label = f"{len(files)} files in {_printable(folder)}"
    else:
        label = f"{len(files)} files"
    return [_open(*file) for file in files], label


def _printable(name: str) -> str:
    return name if name.isprintable() and name.strip() else repr(name)


def _public(text: str) -> str:
    # A URL may hold a key and a secret; an error must not repeat them.
    return re.sub(r"//[^/@]*@", "//", text.split("?")[0]) if "://" in text else text


def _suffix(path: str) -> str | None:
    lower = path.lower()
    return next((end for end in (".csv.gz", *_SUFFIXES) if lower.endswith(end)), None)


def _expand(text: str) -> list[tuple[str, Any, str]]:
    from pyarrow import fs

    name = _printable(_public(text))
    url = "://" in text
    prefix = ""
    try:
        if url:
            filesystem, path = fs.FileSystem.from_uri(text)
            prefix = text.split("://")[0] + "://"
        else:
            filesystem, path = fs.LocalFileSystem(), text
        info = filesystem.get_file_info(path)
    except Exception as error:  # an unknown scheme, no network, a wrong key, a path with a NUL
        detail = _public(_line(str(error).replace(text, name)))
        raise InputError(f"{name} cannot be opened: check the path or URL ({detail})") from None
    if info.type == fs.FileType.File:
        if _suffix(path) is None:
            known = ", ".join(_SUFFIXES)
            raise InputError(f"{name} has no suffix that says its format: give one of {known}")
        return [(name, filesystem, path)]
    if info.type == fs.FileType.Directory:
        with _reading(name, "a folder"):
            infos = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
            start = len(path.rstrip("/")) + 1
            found = sorted(
                i.path for i in infos if i.type == fs.FileType.File and _suffix(i.path) and _counts(i.path[start:])
            )
        if not found:
            raise InputError(f"{name} is a folder without Parquet, CSV or Arrow files: check the path")
        return [(_printable(prefix + p), filesystem, p) for p in found]
    if not url and glob.has_magic(text):
        start = len(re.split(r"[^/]*[*?\[]", text, maxsplit=1)[0])
        matched = (p for p in glob.glob(text, recursive=True) if _counts(p[start:]))
        # Under ** the files inside a folder match too, so the folder itself would give them twice.
        folders = "**" not in text
        found = sorted(p for p in matched if (folders if os.path.isdir(p) else _suffix(p)))
        if not found:
            raise InputError(f"{name} matches no Parquet, CSV or Arrow files: check the pattern")
        return [file for p in found for file in _expand(p)]
    if info.type == fs.FileType.NotFound:
        raise InputError(f"{name} does not exist: check the path")
    raise InputError(f"{name} is not a file: give a file, folder, glob or URL")


def _counts(path: str) -> bool:
    # Names that start so hold no rows: _delta_log, _temporary, ._copy.parquet.
    return not any(part.startswith((".", "_")) for part in path.split("/"))


def _open(name: str, filesystem: Any, path: str) -> Source:
    suffix = _suffix(path) or ""
    kind = _SUFFIXES[suffix]
    reader = {"Parquet": _parquet, "CSV": _csv, "Arrow": _arrow}[kind]
    compression = "gzip" if suffix.endswith(".gz") else None

    def opened() -> Any:
        if kind == "CSV":
            return filesystem.open_input_stream(path, compression=compression)
        return filesystem.open_input_file(path)

    def read(names: Sequence[str], numbers: Collection[str]) -> Any:
        with _reading(name, kind):
            table = reader(opened, names)
        if kind == "CSV":
            for column in set(names) & set(numbers):
                place = table.column_names.index(column)
                table = table.set_column(place, column, _parse(name, column, table[column]))
        return table

    with _reading(name, kind):
        columns = reader(opened, None)
    return Source(name, tuple(columns), read)


def _parquet(opened: Callable[[], Any], names: Sequence[str] | None) -> Any:
    from pyarrow import parquet

    with opened() as stream:
        file = parquet.ParquetFile(stream)
        if names is None:
            return file.schema_arrow.names
        return file.read(columns=list(names)).select(list(names))


def _arrow(opened: Callable[[], Any], names: Sequence[str] | None) -> Any:
    from pyarrow import ipc

    def reader(stream: Any, fields: list[int] | None) -> Any:
        options = ipc.IpcReadOptions(included_fields=fields)
        stream.seek(0)
        whole_file = stream.read(6) == b"ARROW1"
        stream.seek(0)
        return (ipc.open_file if whole_file else ipc.open_stream)(stream, options=options)

    with opened() as stream:
        columns = reader(stream, None).schema.names
        if names is None:
            return columns
        table = reader(stream, [columns.index(name) for name in names]).read_all().select(list(names))
        table.validate(full=True)  # a damaged file can hold offsets that point outside it
        return table


def _csv(opened: Callable[[], Any], names: Sequence[str] | None) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    parsing = csv.ParseOptions(newlines_in_values=True)
    if names is None:
        with opened() as stream, csv.open_csv(stream, parse_options=parsing) as reader:
            return reader.schema.names
    # All as text: an id keeps its zeros, and a value that is no number is found with its row.
    converting = csv.ConvertOptions(
        include_columns=list(names),
        column_types={name: pa.large_string() for name in names},
        null_values=[""],
        strings_can_be_null=True,
    )
    with opened() as stream:
        return csv.read_csv(stream, parse_options=parsing, convert_options=converting)


def _parse(name: str, column: str, texts: Any) -> Any:
    import pyarrow as pa
    from pyarrow import compute as pc

    texts = pc.utf8_trim_whitespace(texts)
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        pass
    words = {"true": 1.0, "false": 0.0}
    values: list[float | None] = []
    for row, text in enumerate(texts.to_pylist()):
        try:
            values.append(None if text is None else words[text.lower()] if text.lower() in words else float(text))
        except ValueError:
            raise at(name, column, row, text, "give a number") from None
    return pa.chunked_array([pa.array(values, pa.float64())])


# ---------------------------------------------------------------- data frames and arrays


def frame_source(frame: object, name: str) -> Source:
    """A data frame that narwhals knows, eager or lazy."""
    import narwhals as nw

    try:
        known: Any = nw.from_native(frame)
        actual = {str(c): c for c in known.collect_schema().names()}  # pandas may number its columns
    except Exception as error:  # not a frame at all, or columns that repeat
        advice = "give a pandas, polars or pyarrow table whose columns have different names"
        raise InputError(f"{name} is {type(frame).__name__}: {advice} ({_line(error)})") from None

    def read(names: Sequence[str], numbers: Collection[str]) -> Any:
        import pyarrow as pa

        with _reading(name, "a data frame"):
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
            parts = {key: column(known, key, name, key in ("labels", "target", "reference"))}
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
            raise at(source, name, odd, entries[odd], "give a number") from None
        if number and not any(isinstance(entry, (list, tuple, np.ndarray)) for entry in entries):
            return pa.array(np.array(entries, np.float64))  # 0, True and 1.0 in one list
        raise InputError(f"{source}, column {name!r} mixes types: give values of one type ({_line(error)})") from None


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
