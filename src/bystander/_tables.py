"""Files, folders, globs and URLs become tables that know their name in an error."""

from __future__ import annotations

import difflib
import glob
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

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
class Where:
    """Rows of one table, as errors name them: the first is row `start` of it."""

    name: str
    start: int = 0

    def column(self, column: str) -> str:
        """The column."""
        return f"{self.name}, column {column!r}"

    def row(self, column: str, row: int) -> str:
        """One row of the column, counted in the whole table."""
        return f"{self.column(column)}, row {self.start + row}"

    def at(self, column: str, row: int, value: object, advice: str) -> InputError:
        """The error for one value: where it is, what it is, what to do."""
        return InputError(f"{self.row(column, row)} is {shown(value)}: {advice}")


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


def line(error: object) -> str:
    """An exception as one short line."""
    text = "".join(c if c.isprintable() else " " for c in str(error))
    text = " ".join(text.split()) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "…"


@contextmanager
def reading(name: str, kind: str) -> Iterator[None]:
    """Whatever a reader raises becomes one clear line."""
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{name} does not exist: check the path") from None
    except PermissionError:
        raise InputError(f"{name} may not be read: check its permissions") from None
    except Exception as error:  # a damaged file makes its reader raise nearly anything
        raise InputError(f"{name} cannot be read as {kind}: check that it is whole ({line(error)})") from None


# ---------------------------------------------------------------- files


@dataclass(frozen=True, slots=True)
class File:
    """A file on a PyArrow file system, and the name that errors give it."""

    name: str
    filesystem: Any
    path: str

    @property
    def kind(self) -> str:
        """Parquet, CSV or Arrow, by its suffix."""
        return _SUFFIXES[_suffix(self.path) or ""]

    @property
    def local(self) -> bool:
        """Whether it is on this machine."""
        return bool(self.filesystem.type_name == "local")

    @property
    def identity(self) -> str:
        """The same for two names of one file."""
        return os.path.realpath(self.path) if self.local else self.name

    def opened(self) -> Any:
        """Its bytes, as a context; only a CSV file's are a stream, decompressed."""
        if self.kind == "CSV":
            compression = "gzip" if self.path.lower().endswith(".gz") else None
            return self.filesystem.open_input_stream(self.path, compression=compression)
        return self.filesystem.open_input_file(self.path)

    def read(self, names: Sequence[str], numbers: Collection[str]) -> Any:
        """The named columns; text in `numbers` is parsed."""
        with reading(self.name, self.kind):
            table = _READERS[self.kind](self.opened, names)
        return parsed(Where(self.name), table, numbers) if self.kind == "CSV" else table

    def source(self) -> Source:
        """The file as a table not read yet."""
        with reading(self.name, self.kind):
            columns = _READERS[self.kind](self.opened, None)
        return Source(self.name, tuple(columns), self.read)


def named_files(data: object) -> bool:
    """Are these names of files, and not data?"""
    return isinstance(data, (str, os.PathLike, list, tuple))


def shared_file(one: Any, other: Any) -> str | None:
    """The first file that both name, where both name files."""
    if not (named_files(one) and named_files(other)):
        return None
    held = {file.identity for file in locate(one)[0]}
    return next((file.name for file in locate(other)[0] if file.identity in held), None)


def locate(data: Data) -> tuple[list[File], str]:
    """The files behind files, folders, globs and URLs, and one short name for all of them."""
    if not isinstance(data, (str, os.PathLike, Sequence)):
        raise InputError(f"data is {shown(data)}: give a file, folder, glob or URL as text or a path, or a list")
    items = [data] if isinstance(data, (str, os.PathLike)) else list(data)
    if not items:
        raise InputError("no data files are given: name a file, folder, glob or URL")
    files: list[File] = []
    for item in items:
        if not isinstance(item, (str, os.PathLike)) or not isinstance(os.fspath(item), str):
            raise InputError(f"data is {shown(item)}: give a file, folder, glob or URL as text or a path")
        files += _expand(os.fspath(item))
    seen: set[str] = set()
    for file in files:
        if file.identity in seen:
            raise InputError(f"{file.name} is given twice: name each file once, or its rows would count twice")
        seen.add(file.identity)
    base = os.path.basename(files[0].name.rstrip("/")) or files[0].name
    if len(files) == 1:
        label = base
    elif len(items) == 1:
        text = _public(os.fspath(items[0]))
        folder = text if glob.has_magic(text) else text.rstrip("/") + "/"
        label = f"{len(files)} files in {_printable(folder)}"
    else:
        label = f"{len(files)} files"
    return [replace(file, path=os.path.abspath(file.path)) if file.local else file for file in files], label


def find(data: Data) -> tuple[list[Source], str]:
    """The tables behind files, folders, globs and URLs, and one short name for all of them."""
    files, name = locate(data)
    return [file.source() for file in files], name


def _printable(name: str) -> str:
    return name if name.isprintable() and name.strip() else repr(name)


def _public(text: str) -> str:
    # A URL may hold a key and a secret; an error must not repeat them.
    return re.sub(r"//[^/@]*@", "//", text.split("?")[0]) if "://" in text else text


def _suffix(path: str) -> str | None:
    lower = path.lower()
    return next((end for end in (".csv.gz", *_SUFFIXES) if lower.endswith(end)), None)


def _expand(text: str) -> list[File]:
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
        detail = _public(line(str(error).replace(text, name)))
        raise InputError(f"{name} cannot be opened: check the path or URL ({detail})") from None
    if info.type == fs.FileType.File:
        if _suffix(path) is None:
            known = ", ".join(_SUFFIXES)
            raise InputError(f"{name} has no suffix that says its format: give one of {known}")
        return [File(name, filesystem, path)]
    if info.type == fs.FileType.Directory:
        with reading(name, "a folder"):
            infos = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
            start = len(path.rstrip("/")) + 1
            found = sorted(
                i.path for i in infos if i.type == fs.FileType.File and _suffix(i.path) and _counts(i.path[start:])
            )
        if not found:
            raise InputError(f"{name} is a folder without Parquet, CSV or Arrow files: check the path")
        return [File(_printable(prefix + p), filesystem, p) for p in found]
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


def _parquet(opened: Callable[[], Any], names: Sequence[str] | None) -> Any:
    from pyarrow import parquet

    with opened() as stream:
        file = parquet.ParquetFile(stream)
        if names is None:
            return file.schema_arrow.names
        return file.read(columns=list(names)).select(list(names))


def arrow_reader(stream: Any, fields: list[int] | None = None) -> Any:
    """A reader of these fields of Arrow's file or stream format."""
    from pyarrow import ipc

    options = ipc.IpcReadOptions(included_fields=fields)
    stream.seek(0)
    whole_file = stream.read(6) == b"ARROW1"
    stream.seek(0)
    return (ipc.open_file if whole_file else ipc.open_stream)(stream, options=options)


def _arrow(opened: Callable[[], Any], names: Sequence[str] | None) -> Any:
    with opened() as stream:
        columns = arrow_reader(stream).schema.names
        if names is None:
            return columns
        table = arrow_reader(stream, [columns.index(name) for name in names]).read_all().select(list(names))
        table.validate(full=True)  # a damaged file can hold offsets that point outside it
        return table


def csv_options(names: Sequence[str] | None) -> dict[str, Any]:
    """How CSV is read: all as text, so an id keeps its zeros, and a value that is no number is found with its row."""
    import pyarrow as pa
    from pyarrow import csv

    options = {"parse_options": csv.ParseOptions(newlines_in_values=True)}
    if names is not None:
        options["convert_options"] = csv.ConvertOptions(
            include_columns=list(names),
            column_types={name: pa.large_string() for name in names},
            null_values=[""],
            strings_can_be_null=True,
        )
    return options


def _csv(opened: Callable[[], Any], names: Sequence[str] | None) -> Any:
    from pyarrow import csv

    with opened() as stream:
        if names is None:
            with csv.open_csv(stream, **csv_options(None)) as reader:
                return reader.schema.names
        return csv.read_csv(stream, **csv_options(names))


_READERS = {"Parquet": _parquet, "CSV": _csv, "Arrow": _arrow}


def parsed(where: Where, table: Any, numbers: Collection[str]) -> Any:
    """The table with the text of these columns as numbers."""
    for place, column in enumerate(table.column_names):
        if column in numbers:
            table = table.set_column(place, column, _parse(where, column, table[column]))
    return table


def _parse(where: Where, column: str, texts: Any) -> Any:
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
            raise where.at(column, row, text, "give a number") from None
    return pa.array(values, pa.float64())
