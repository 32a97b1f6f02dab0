"""Criteo's format, on rows made here; on real ones where BYSTANDER_DATA has criteo_8000.tsv.gz (slow tests)."""

import gzip
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from bystander import InputError
from bystander.datasets import File, Source, criteo


def lines(rows, seed=0):
    """Rows as Criteo writes them: counts down to −2, hashed categories, empty fields."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(rows):
        numbers = ["" if rng.random() < 0.3 else str(rng.integers(-2, 5000)) for _ in range(13)]
        words = ["" if rng.random() < 0.2 else f"{rng.integers(0, 40):08x}" for _ in range(26)]
        out.append("\t".join([str(int(rng.random() < 0.2)), *numbers, *words]))
    return out


def write(path, held):
    text = "".join(f"{line}\n" for line in held).encode()
    path.write_bytes(gzip.compress(text, 1) if path.suffix == ".gz" else text)
    return path


@pytest.fixture(scope="module")
def held():
    return lines(500)


def equals(frame, held):
    """The frame says what the lines say, field by field."""
    assert list(frame.columns) == ["label", *(f"I{j}" for j in range(1, 14)), *(f"C{j}" for j in range(1, 27))]
    fields = [line.split("\t") for line in held]
    assert frame["label"].tolist() == [int(row[0]) for row in fields]
    for j in range(1, 14):
        wanted = np.array([np.nan if row[j] == "" else float(row[j]) for row in fields], np.float32)
        np.testing.assert_array_equal(frame[f"I{j}"], wanted)
    for j in range(1, 27):
        assert frame[f"C{j}"].dtype == "category"
        assert frame[f"C{j}"].tolist() == [row[13 + j] for row in fields]


@pytest.mark.parametrize("name", ["day_3.gz", "day_3", "train.txt", "train.txt.gz"])
def test_days_and_the_challenge_read_alike(name, held, tmp_path):
    write(tmp_path / name, held)
    equals(criteo.load(tmp_path, day=3 if "day" in name else None), held)
    equals(criteo.load(tmp_path / name), held)


def test_rows_of_a_day_are_its_next_ones(held, tmp_path):
    write(tmp_path / "day_0.gz", held)
    equals(criteo.load(tmp_path, day=0, rows=120, skip=77), held[77:197])


@pytest.mark.parametrize("size", [1, 7, 500, 501])
def test_batches_add_up_to_the_whole(size, held, tmp_path):
    path = write(tmp_path / "day_0.gz", held[:40] if size == 1 else held)
    parts = list(criteo.batches(path, size=size, rows=40 if size == 1 else 450))
    assert max(map(len, parts)) <= size
    start = 0
    for part in parts:
        equals(part, held[start : start + len(part)])
        start += len(part)
    assert start == (40 if size == 1 else 450)


def test_load_joins_batches_into_one_frame(held, tmp_path, monkeypatch):
    path = write(tmp_path / "train.txt", held)
    monkeypatch.setattr(criteo, "_BATCH", 64)
    equals(criteo.load(path), held)


def test_reading_the_first_rows_of_a_long_day_takes_their_memory_only(held, tmp_path):
    """Peak of Python's own allocations: a file 16 times as long costs the same."""
    peaks = []
    for times in (4, 64):
        path = write(tmp_path / f"day_{times % 24}.gz", held * times)
        next(criteo.batches(path, rows=1000, size=200))
        tracemalloc.start()
        next(criteo.batches(path, rows=1000, size=200))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda row: ["x", *row[1:]], r"line 4: label is 'x': give 0 or 1"),
        (lambda row: [*row[:5], "4,5", *row[6:]], r"line 4: I5 is '4,5': give a number or nothing"),
        (lambda row: row[:30], r"line 4 has 30 columns: give 40: label, I1–I13, C1–C26"),
    ],
)
def test_a_bad_line_is_named(change, told, held, tmp_path):
    bad = [*held[:3], "\t".join(change(held[3].split("\t"))), *held[4:]]
    path = write(tmp_path / "day_0.gz", bad)
    for size in (2, 500):
        with pytest.raises(InputError, match=told):
            list(criteo.batches(path, size=size))


def test_wrong_files_are_one_line(held, tmp_path):
    path = write(tmp_path / "day_0.gz", held)
    with pytest.raises(InputError, match=r"day_0\.gz has 500 rows after the first 0: 501 was asked for"):
        criteo.load(path, rows=501)
    with pytest.raises(InputError, match=r"has 0 rows after the first 900: at least one was asked for"):
        criteo.load(path, skip=900)
    with pytest.raises(InputError, match=r"has no day_7\.gz or day_7 or day_7\.first\.gz \(Criteo click logs\)"):
        criteo.load(tmp_path, day=7)
    with pytest.raises(InputError, match=r"day is 24: give a whole number from 0 to 23"):
        criteo.load(tmp_path, day=24)
    with pytest.raises(InputError, match=r"day is 0, and .* is one file: give its folder, or leave day out"):
        criteo.load(path, day=0)
    write(tmp_path / "two.tsv", ["0\t1"])
    with pytest.raises(InputError, match=r"two\.tsv, line 1 has 2 columns: give 40"):
        criteo.load(tmp_path / "two.tsv")
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(InputError, match=r"day_0\.gz cannot be read \(.*\): delete it and fetch it again"):
        criteo.load(path)


def test_a_day_is_fetched_whole_or_its_first_rows(held, tmp_path, monkeypatch):
    served, folder = write(tmp_path / "served.gz", held), tmp_path / "to"
    source = Source("Criteo click logs", "", "", "", (File("day_1.gz", served.as_uri()),))
    monkeypatch.setattr(criteo, "SOURCE", source)
    criteo.fetch(folder, day=1, rows=50)
    equals(criteo.load(folder, day=1), held[:50])
    criteo.fetch(folder, day=1, rows=90)
    equals(criteo.load(folder, day=1), held[:90])
    criteo.fetch(folder, day=1, rows=60)  # they are there
    assert len(criteo.load(folder, day=1)) == 90
    criteo.fetch(folder, day=1)
    equals(criteo.load(folder, day=1), held)
    assert sorted(p.name for p in folder.iterdir()) == ["day_1.first.gz", "day_1.gz"]
    with pytest.raises(InputError, match=r"rows is 5, with no day: give the day"):
        criteo.fetch(folder, rows=5)


@pytest.mark.slow
def test_real_rows():
    """8,000 rows of the challenge: 21.6 % clicks, no text where a number should be."""
    path = Path(os.environ.get("BYSTANDER_DATA", "cache"), "criteo_8000.tsv.gz")
    if not path.exists():
        pytest.skip(f"{path} is not here: set BYSTANDER_DATA to its folder")
    frame = criteo.load(path)
    assert (len(frame), frame["label"].sum()) == (8000, 1728)
    equals(frame, gzip.decompress(path.read_bytes()).decode().splitlines())
