"""Criteo's click logs: the day files of the 1 TB set (`day_0.gz` …), and the format of the Kaggle challenge.

Both hold one ad a line, tab-separated, without a header: the label (1: clicked), 13 counts I1–I13, 26 hashed
categories C1–C26; any of the features may be empty. A day is streamed: memory goes with the rows asked for, not with
the file.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

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
_ADVICE = "bystander.datasets.criteo.fetch(folder, ...) gets it"


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
                    for _, line in zip(range(wanted), stream, strict=False):
                        out.write(line)
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
    pd = pandas()
    path = _path(source, day)
    wanted = None if rows is None else whole("rows", rows, 1)
    skip, size, seen = whole("skip", skip, 0), whole("size", size, 1), 0
    try:
        for part in pd.read_csv(
            path, sep="\t", header=None, dtype=str, keep_default_na=False, quoting=3, skiprows=skip, nrows=wanted,
            chunksize=size, compression="gzip" if path.suffix == ".gz" else None,
        ):  # fmt: skip
            yield _typed(part, path, skip + seen)
            seen += len(part)
    except pd.errors.EmptyDataError:
        pass
    except (*Broken, pd.errors.ParserError, UnicodeDecodeError) as error:
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
        return existing(source, ("train.txt", "train.txt.gz"), SOURCE, _ADVICE)
    name = f"day_{whole('day', day, 0, DAYS - 1)}"
    return existing(source, (f"{name}.gz", name, f"{name}.first.gz"), SOURCE, _ADVICE)


def _typed(part: pd.DataFrame, path: Path, before: int) -> pd.DataFrame:
    pd = pandas()
    if part.shape[1] != len(COLUMNS):
        told = "label, I1–I13, C1–C26, separated by tabs"
        raise InputError(f"{path} has {part.shape[1]} columns: give {len(COLUMNS)}: {told}")
    part.columns = pd.Index(COLUMNS)
    short = part[COLUMNS[-1]].isna().to_numpy()
    if short.any():
        raise InputError(f"{path}, line {before + int(np.argmax(short)) + 1} ends early: give {len(COLUMNS)} columns")
    columns: dict[str, object] = {}
    odd = ~part["label"].isin(["0", "1"]).to_numpy()
    if odd.any():
        at = int(np.argmax(odd))
        raise InputError(f"{path}, line {before + at + 1}: label is {part['label'].iloc[at]!r}: give 0 or 1 first")
    columns["label"] = part["label"].astype(np.int8).to_numpy()
    for name in NUMBERS:
        values = pd.to_numeric(part[name].replace("", "nan"), errors="coerce").to_numpy(np.float32)
        odd = np.isnan(values) & (part[name] != "").to_numpy()
        if odd.any():
            at = int(np.argmax(odd))
            raise InputError(
                f"{path}, line {before + at + 1}: {name} is {part[name].iloc[at]!r}: give a number or nothing"
            )
        columns[name] = values
    columns |= {name: pd.Categorical(part[name]) for name in CATEGORIES}
    return pd.DataFrame(columns)


def _lines(path: Path) -> int:
    try:
        with gzip.open(path) as stream:
            return sum(1 for _ in stream)
    except Broken:
        return 0
