"""Sentiment140: tweets labelled by their emoticons, from the official CSV or a Parquet file of label, day, text."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bystander._validate import InputError
from bystander.datasets.source import Broken, File, Source, download, existing, member, pandas, unpack, unreadable

if TYPE_CHECKING:
    import pandas as pd

CSV = "training.1600000.processed.noemoticon.csv"
SOURCE = Source(
    "Sentiment140",
    "http://help.sentiment140.com/for-students",
    "none stated; for research, with the citation",
    "A. Go, R. Bhayani and L. Huang, Twitter Sentiment Classification using Distant Supervision, 2009",
    (
        File(
            "trainingandtestdata.zip",
            "https://cs.stanford.edu/people/alecmgo/trainingandtestdata.zip",
            "sha256:004a3772c8a7ff9bbfeb875880f47f0679d93fc63e5cf9cff72d54a8a6162e57",
        ),
    ),
)
_COLUMNS = ("polarity", "id", "date", "query", "user", "text")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MASKS = (
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+"), "EMAIL"),
    (re.compile(r"(?:https?://|www\.)\S+"), "URL"),
    (re.compile(r"@\w+"), "@user"),
    (re.compile(r"\d{5,}"), "NUMBER"),
)
_ADVICE = "bystander.datasets.tweets.fetch(folder) gets it"


def fetch(folder: str | os.PathLike[str]) -> Path:
    """Download the official archive (81 MB) into the folder and unpack its training rows; what is there stays."""
    if not Path(folder, CSV).exists():
        unpack(download(SOURCE.files[0], folder), {CSV: CSV}, folder)
    return Path(folder)


def load(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Label (1: positive), day (2009-06-07) and text of every tweet that is no repetition, in the file's order.

    Read from the first that is there: `tweets.parquet`, the official CSV, the official archive. Neutral rows of the CSV
    are left out; user names, addresses and long numbers in its texts are masked.
    """
    pd = pandas()
    path = existing(folder, ("tweets.parquet", CSV, SOURCE.files[0].name), SOURCE, _ADVICE)
    if path.suffix != ".parquet":
        rows = _official(path)
    else:
        rows = pd.read_parquet(path)
        if missing := {"label", "day", "text"} - set(rows.columns):
            raise InputError(f"{path} has no column {sorted(missing)[0]!r}: give label, day and text")
        rows = rows[["label", "day", "text"]]
    return rows.drop_duplicates("text").reset_index(drop=True)


def mask(text: str) -> str:
    """The text without what points at somebody.

    >>> mask("@ann see www.example.org or write to me@example.org, 5551234567")
    '@user see URL or write to EMAIL, NUMBER'
    """
    for pattern, name in _MASKS:
        text = pattern.sub(name, text)
    return text


def _official(path: Path) -> pd.DataFrame:
    """Six quoted columns in Latin-1: polarity 0, 2 or 4, id, date, query, user, text."""
    pd = pandas()
    try:
        if path.suffix == ".zip":
            with member(path, CSV) as stream:
                rows = _parse(io.BytesIO(stream.read()))
        else:
            rows = _parse(path)
    except (*Broken, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise unreadable(path, error) from None
    if rows.empty:
        raise InputError(f"{path} has no rows: fetch it again")
    odd = ~rows["polarity"].isin(["0", "2", "4"])
    if odd.any():
        at = int(np.argmax(odd.to_numpy()))
        raise InputError(f"{path}, line {at + 1}: polarity is {rows['polarity'].iloc[at]!r}: give 0, 2 or 4 first")
    rows = rows[rows["polarity"] != "2"]
    days = [_day(date) for date in rows["date"]]
    if None in days:
        odd_date = rows["date"].iloc[days.index(None)]
        raise InputError(f"{path}: a date is {odd_date!r}: give dates as 'Mon Apr 06 22:19:45 PDT 2009'")
    label = (rows["polarity"] == "4").to_numpy(np.int64)
    return pd.DataFrame({"label": label, "day": days, "text": rows["text"].map(mask).to_numpy()})


def _parse(source: Path | io.BytesIO) -> pd.DataFrame:
    pd = pandas()
    return pd.read_csv(
        source, header=None, names=list(_COLUMNS), encoding="latin-1", dtype=str, keep_default_na=False
    )  # fmt: skip


def _day(date: str) -> str | None:
    """The day of 'Mon Apr 06 22:19:45 PDT 2009': 2009-04-06."""
    parts = date.split()
    if len(parts) != 6 or parts[1] not in _MONTHS:
        return None
    return f"{parts[5]}-{_MONTHS.index(parts[1]) + 1:02d}-{parts[2]}"
