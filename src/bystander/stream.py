"""More rows than memory holds: files cut into fragments, and each fragment read batch by batch."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bystander._tables import Data, File, Where, arrow_reader, csv_options, locate, parsed, reading
from bystander._validate import InputError, whole
from bystander.records import Columns, Records, batch, needed

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BATCH", "Fragment", "Stream", "open_stream", "same_classes"]

BATCH = 131_072
_FRAGMENT = 1_000_000  # row groups are taken together until they hold as many rows
_CSV_BLOCK = 1 << 20  # bytes; PyArrow reads 32 blocks ahead


@dataclass(frozen=True, slots=True)
class Fragment:
    """Some rows of one file, which any process that sees the file can read; it pickles."""

    file: File
    number: int  # the file's place among the files, sorted by name
    columns: Columns
    start: int = 0  # the first row's number in its file
    rows: int | None = None  # where the file tells
    groups: tuple[int, ...] = ()  # Parquet's row groups

    @property
    def name(self) -> str:
        """The file, as errors name it."""
        return self.file.name

    def batches(self, size: int = BATCH) -> Iterator[Records]:
        """Read and check the rows, at most `size` at a time; an error names the row of the file.

        With an id, keys are those of the same rows in memory. Without one they come from the file's number and the
        row's: the coins of a stream without ids depend on where its rows stand.
        """
        size = whole("size", size, 1)
        names, numbers = needed(self.columns)
        read = {"Parquet": _parquet, "Arrow": _arrow, "CSV": _csv}[self.file.kind]
        row = self.start
        _keep_freed_memory()
        with closing(read(self, names, size)) as tables:
            while True:
                with reading(self.name, self.file.kind):
                    table = next(tables, None)
                if table is None:
                    break
                for first in range(0, table.num_rows, size):
                    part, where = table.slice(first, size), Where(self.name, row)
                    if self.file.kind == "CSV":
                        part = parsed(where, part, numbers)
                    yield batch(where, part, self.columns, self.number)
                    row += part.num_rows
        if self.rows is not None and row - self.start != self.rows:
            raise self._changed()

    def _changed(self) -> InputError:
        return InputError(f"{self.name} has changed since it was opened: give files that nothing writes to meanwhile")


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows to read in any order of fragments, by any number of readers; there is at least one row."""

    fragments: tuple[Fragment, ...]
    rows: int | None  # None where a CSV or an Arrow stream does not tell
    source: str

    def batches(self, size: int = BATCH) -> Iterator[Records]:
        """All rows, one fragment after the other."""
        classes = None
        for fragment in self.fragments:
            for records in fragment.batches(size):
                classes = same_classes(classes, records)
                yield records


def same_classes(classes: int | None, records: Records) -> int:
    """The number of classes of these rows, which is that of the rows before them, where there are any."""
    if classes is not None and records.classes != classes:
        raise InputError(
            f"{records.source} has {records.classes} classes and the rows before it have {classes}: "
            "give probabilities of the same classes"
        )
    return records.classes


def open_stream(data: Data, columns: Columns) -> Stream:
    """Find the files, check that each has the columns, and cut them into fragments; no row is kept.

    Repeated ids are looked for when the rows were read: `Summary.check_ids`. Groups, and files joined on their
    ids, need all rows at once: `from_files` reads those.
    """
    if columns.group is not None:
        raise InputError(
            f"--group {columns.group!r} needs the rows in memory: leave it out, or keep one row per group beforehand"
        )
    names, _ = needed(columns)
    files, source = locate(data)
    files = sorted(files, key=lambda file: file.name)
    sources = [file.source() for file in files]
    _not_joined([set(each.columns) for each in sources], [each.name for each in sources], columns)
    for each in sources:
        each.need(names)
    fragments = [part for number, file in enumerate(files) for part in _fragments(file, number, columns)]
    if not fragments:
        where = sources[0].name if len(sources) == 1 else f"{sources[0].name} and {len(sources) - 1} more"
        raise InputError(f"{where} has no rows: give at least one row")
    counts = [fragment.rows for fragment in fragments]
    known = [count for count in counts if count is not None]
    return Stream(tuple(fragments), sum(known) if len(known) == len(counts) else None, source)


def _not_joined(held: Sequence[set[str]], names: Sequence[str], columns: Columns) -> None:
    target, reference = {columns.label, *columns.target}, set(columns.reference)
    left = [name for name, has in zip(names, held, strict=True) if target <= has and not reference <= has]
    right = [name for name, has in zip(names, held, strict=True) if reference <= has and not target <= has]
    if columns.id is not None and left and right:
        raise InputError(
            f"{left[0]} and {right[0]} would be joined on {columns.id!r}, which needs the rows in memory: "
            "write the target's and the reference's columns to the same file"
        )


def _fragments(file: File, number: int, columns: Columns) -> list[Fragment]:
    """The file's fragments; none where it has no rows."""
    with reading(file.name, file.kind):
        if file.kind != "Parquet":
            count = _rows(file)
            return [] if count == 0 else [Fragment(file, number, columns, rows=count)]
        sizes = _row_groups(file)
    found: list[Fragment] = []
    start, rows, groups = 0, 0, []
    for group, size in enumerate(sizes):
        groups.append(group)
        rows += size
        if rows >= _FRAGMENT or (rows and group == len(sizes) - 1):
            found.append(Fragment(file, number, columns, start, rows, tuple(groups)))
            start, rows, groups = start + rows, 0, []
    return found


def _row_groups(file: File) -> list[int]:
    from pyarrow import parquet

    with file.opened() as stream:
        about = parquet.ParquetFile(stream).metadata
        return [about.row_group(group).num_rows for group in range(about.num_row_groups)]


def _rows(file: File) -> int | None:
    """How many rows an Arrow or CSV file has: 0, a number, or None for some."""
    from pyarrow import csv

    with file.opened() as stream:
        if file.kind == "CSV":
            with csv.open_csv(stream, **csv_options(None)) as reader:
                return None if any(table.num_rows for table in reader) else 0
        reader = arrow_reader(stream, [])
        if not hasattr(reader, "num_record_batches"):
            return None if any(table.num_rows for table in reader) else 0
        if hasattr(reader, "count_rows"):  # newer PyArrow
            return int(reader.count_rows())
        return sum(int(reader.get_batch(i).num_rows) for i in range(reader.num_record_batches))


def _parquet(fragment: Fragment, names: list[str], size: int) -> Generator[Any, None, None]:
    from pyarrow import parquet

    with fragment.file.opened() as stream:
        # A remote file is read ahead; on a local disk that would only hold the fragment's bytes in memory.
        file = parquet.ParquetFile(stream, pre_buffer=not fragment.file.local)
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
        first, last = fragment.groups[0], fragment.groups[-1]
        if sum(sizes[:first]) != fragment.start or sum(sizes[first : last + 1]) != fragment.rows:
            raise fragment._changed()
        groups = [group for group in fragment.groups if sizes[group]]
        for table in file.iter_batches(size, groups, names, use_threads=False):
            yield table.select(names)


def _arrow(fragment: Fragment, names: list[str], size: int) -> Generator[Any, None, None]:
    with fragment.file.opened() as stream:
        columns = arrow_reader(stream).schema.names
        reader = arrow_reader(stream, [columns.index(name) for name in names])
        if hasattr(reader, "num_record_batches"):
            tables = (reader.get_batch(i) for i in range(reader.num_record_batches))
        else:
            tables = iter(reader)
        for table in tables:
            table.validate(full=True)  # a damaged file can hold offsets that point outside it
            yield table.select(names)


def _csv(fragment: Fragment, names: list[str], size: int) -> Generator[Any, None, None]:
    from pyarrow import csv

    options = csv.ReadOptions(block_size=_CSV_BLOCK)
    with fragment.file.opened() as stream, csv.open_csv(stream, options, **csv_options(names)) as reader:
        yield from reader


def _keep_freed_memory() -> None:
    # glibc gives freed arrays of a batch's size back to the kernel, and gets them again page by page: 13 ns a row.
    # Freeing one large array, which nothing touches, raises its threshold for that (to twice this size).
    np.empty(31 << 20, np.uint8)
