"""Criteo's click logs: the day files of the 1 TB set (`day_0.gz` …), and the format of the Kaggle challenge.

Both hold one ad a line, tab-separated, without a header: the label (1: clicked), 13 counts I1–I13, 26 hashed
categories C1–C26; any of the features may be empty. A day is streamed: memory goes with the rows asked for, not with
the file.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from bystander._validate import InputError, whole
from bystander.datasets.source import (
    Broken,
    File,
    Source,
    aside,
    download,
    existing,
    opened,
    pandas,
    unpack,
    unreadable,
)

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = tuple(f"I{j}" for j in range(1, 14))
CATEGORIES = tuple(f"C{j}" for j in range(1, 27))
COLUMNS = ("label", *NUMBERS, *CATEGORIES)
DAYS = 24
_AT = "https://huggingface.co/datasets/criteo/CriteoClickLogs/resolve/main"
_KAGGLE = "criteo-research-kaggle-display-advertising-challenge-dataset.tar.gz"
SOURCE = Source(
    "Criteo click logs",
    "https://ailab.criteo.com/download-criteo-1tb-click-logs-dataset/",
    "CC BY-NC-SA 4.0 (1 TB); Criteo's terms for research (Kaggle)",
    "Criteo AI Lab, Criteo 1TB Click Logs, 2015; Criteo Display Advertising Challenge, 2014",
    (
        *(File(f"day_{n}.gz", f"{_AT}/day_{n}.gz") for n in range(DAYS)),
        File(_KAGGLE, f"https://go.criteo.net/{_KAGGLE}"),
    ),
)
_BATCH = 100_000
_BLOCK = 1 << 24  # bytes: Arrow parses in one go what is smaller
_NUMBER = re.compile(r"([+-]?\d+(\.\d*)?([eE][+-]?\d+)?)?")
_FETCH = "bystander.datasets.criteo.fetch(folder"


def fetch(folder: str | os.PathLike[str], *, day: int | None = None, rows: int | None = None) -> Path:
    """Download a day (0…23) into the folder, or the Kaggle challenge's rows (`day=None`); what is there stays.

    A day is many gigabytes: with `rows`, its stream is read until it has given that many, which are stored as
    `day_0.first.gz`. Criteo publishes no checksums; a file that was cut off fails at its end, as gzip does.
    """
    if day is None:
        if rows is not None:
            raise InputError(f"rows is {rows}, with no day: give the day (0…{DAYS - 1}), or leave rows out")
        if not Path(folder, "train.txt").exists():
            unpack(download(SOURCE.file(_KAGGLE), folder), {"train.txt": "train.txt"}, folder)
        return Path(folder)
    file = SOURCE.file(f"day_{whole('day', day, 0, DAYS - 1)}.gz")
    if rows is None:
        download(file, folder)
        return Path(folder)
    wanted = whole("rows", rows, 1)
    path = Path(folder, f"day_{day}.first.gz")
    if not path.exists() or _lines(path) < wanted:
        with opened(file.url) as answer, aside(path) as scratch:
            try:
                with gzip.open(answer) as stream, gzip.open(scratch, "wb", compresslevel=6) as out:
                    out.writelines(islice(stream, wanted))
            except Broken as error:
                raise InputError(f"{file.url} is no gzip file ({error}): try again") from None
    return Path(folder)


def load(
    source: str | os.PathLike[str], *, day: int | None = None, rows: int | None = None, skip: int = 0
) -> pd.DataFrame:
    """The next `rows` rows after the first `skip`, or all: label of int8, I1–I13 of float32, C1–C26 of category.

    `source` is a file in Criteo's format (packed by gzip or not), or a folder: of day files, where `day` is given, or
    of the Kaggle challenge's `train.txt`. An empty count is NaN, an empty category "".
    """
    pd = pandas()
    from pandas.api.types import union_categoricals

    parts = list(batches(source, day=day, rows=rows, skip=skip))
    if len(parts) == 1:
        return parts[0]
    whole_table = {}
    for name in COLUMNS:
        column = [part.pop(name) for part in parts]
        whole_table[name] = union_categoricals(column) if name[0] == "C" else pd.concat(column, ignore_index=True)
    return pd.DataFrame(whole_table)


def batches(
    source: str | os.PathLike[str],
    *,
    day: int | None = None,
    rows: int | None = None,
    skip: int = 0,
    size: int = _BATCH,
) -> Iterator[pd.DataFrame]:
    """As `load`, in frames of `size` rows: memory does not grow with the file."""
    pandas()
    path = _path(source, day)
    wanted = None if rows is None else whole("rows", rows, 1)
    skip, size, seen = whole("skip", skip, 0), whole("size", size, 1), 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            wanted_lines = islice(lines, skip, None if wanted is None else skip + wanted)
            while part := list(islice(wanted_lines, size)):
                yield _typed(part, path, skip + seen)
                seen += len(part)
    except Broken as error:
        raise unreadable(path, error) from None
    if not seen or (wanted is not None and seen < wanted):
        asked = "at least one" if wanted is None else f"{wanted:,}"
        raise InputError(f"{path} has {seen:,} rows after the first {skip:,}: {asked} was asked for; ask for fewer")


def _path(source: str | os.PathLike[str], day: int | None) -> Path:
    if Path(source).is_file():
        if day is not None:
            raise InputError(f"day is {day}, and {os.fspath(source)} is one file: give its folder, or leave day out")
        return Path(source)
    if day is None:
        return existing(source, ("train.txt", "train.txt.gz"), SOURCE, f"{_FETCH}) gets it")
    name = f"day_{whole('day', day, 0, DAYS - 1)}"
    advice = f"{_FETCH}, day={day}) gets it; with rows=1_000_000, the first million of it"
    return existing(source, (f"{name}.gz", name, f"{name}.first.gz"), SOURCE, advice)


def _typed(lines: list[bytes], path: Path, before: int) -> pd.DataFrame:
    """Lines as a frame; `before` lines stand before them in the file."""
    import pyarrow as pa
    from pyarrow import csv

    types = {"label": pa.int8(), **dict.fromkeys(NUMBERS, pa.float32())}
    types |= dict.fromkeys(CATEGORIES, pa.dictionary(pa.int32(), pa.string()))
    try:
        table = csv.read_csv(
            pa.py_buffer(b"".join(lines)),
            csv.ReadOptions(column_names=list(COLUMNS), use_threads=False, block_size=_BLOCK),
            csv.ParseOptions(delimiter="\t", quote_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=False),
        )
    except pa.ArrowInvalid as error:
        raise _refusal(lines, path, before) or unreadable(path, error) from None
    if table.column("label").null_count or not set(table.column("label").unique().to_pylist()) <= {0, 1}:
        raise _refusal(lines, path, before) or unreadable(path, ValueError("a label is neither 0 nor 1"))
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _refusal(lines: list[bytes], path: Path, before: int) -> InputError | None:
    """What is wrong with the first wrong line."""
    for at, line in enumerate(lines, before + 1):
        row = line.decode(errors="replace").rstrip("\r\n").split("\t")
        if len(row) != len(COLUMNS):
            told = f"give {len(COLUMNS)}: label, I1–I13, C1–C26, separated by tabs"
            return InputError(f"{path}, line {at} has {len(row)} columns: {told}")
        if row[0] not in ("0", "1"):
            return InputError(f"{path}, line {at}: label is {row[0]!r}: give 0 or 1")
        for name, field in zip(NUMBERS, row[1:], strict=False):
            if not _NUMBER.fullmatch(field):
                return InputError(f"{path}, line {at}: {name} is {field!r}: give a number or nothing")
    return None


def _lines(path: Path) -> int:
    try:
        with gzip.open(path) as stream:
            return sum(1 for _ in stream)
    except Broken:
        return 0
