"""Bad input: one clear line, status 2, nothing on standard output, nothing left behind. No traceback, no number."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from tests import makers

N = 40


def good():
    rng = np.random.default_rng(0)
    return {"y": rng.integers(0, 2, N), "p": rng.random(N), "q": rng.random(N), "id": np.arange(N)}


def classes(k=3):
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(k), (2, N))
    table = {"y": rng.integers(0, k, N), "id": np.arange(N)}
    return table | {f"p{i}": p[:, i] for i in range(k)} | {f"q{i}": q[:, i] for i in range(k)}


def changed(table, column, row, value):
    values = list(table[column])
    values[row] = value
    return table | {column: values}


def refused(*args, status=2):
    """The one line that these arguments are refused with."""
    found, out, err = makers.invoke(*args)
    assert (found, out) == (status, "")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


def audit(path, *more, p="p", q="q"):
    return "audit", path, "--label", "y", "--target", p, "--reference", q, "--games", 2, *more


THREE = {"p": "p0,p1,p2", "q": "q0,q1,q2"}


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("table", "columns", "words"),
    [
        (changed(good(), "y", 7, 2), {}, ["'y'", "row 7", "2", "0…1"]),
        (changed(good(), "y", 7, -1), {}, ["'y'", "row 7", "-1"]),
        (good() | {"y": ["yes", "no"] * 20}, {}, ["'y'", "row 0", "yes"]),
        (changed(good(), "p", 3, 1.25), {}, ["'p'", "row 3", "1.25"]),
        (changed(good(), "q", 3, -0.5), {}, ["'q'", "row 3", "-0.5"]),
        (changed(good(), "p", 5, float("nan")), {}, ["'p'", "row 5", "nan"]),
        (changed(good(), "q", 9, None), {}, ["'q'", "row 9", "null"]),
        (changed(good(), "y", 9, None), {}, ["'y'", "row 9", "null"]),
        (changed(good(), "id", 11, 4), {"id": True}, ["'id'", "row 11", "4", "row 4"]),
        (changed(good(), "id", 11, None), {"id": True}, ["'id'", "row 11", "null"]),
        (changed(classes(), "p1", 6, 0.0), THREE, ["'p0', 'p1', 'p2'", "row 6", "sums to"]),
        (changed(classes(), "y", 2, 3), THREE, ["'y'", "row 2", "3", "0…2"]),
        (classes(), {"p": "p0,p1,p2", "q": "q0,q1"}, ["sums to"]),
        (good(), {"p": "nope"}, ["no column 'nope'", "'y'", "'p'", "'q'"]),
        ({name: values[:0] for name, values in good().items()}, {}, ["no rows"]),
    ],
)  # fmt: skip
def test_a_bad_table_is_named_by_file_column_row_and_value(tmp_path, kind, table, columns, words):
    columns = dict(columns)
    path = tmp_path / f"logs.{kind}"
    if kind == "parquet":
        parquet.write_table(pa.table(table), path)
    else:
        rows = zip(*table.values(), strict=True)
        lines = [",".join("" if value is None else str(value) for value in row) for row in rows]
        path.write_text("\n".join([",".join(table), *lines]) + "\n")
    more = ["--id", "id"] if columns.pop("id", False) else []
    line = refused(*audit(path, *more, "--json", tmp_path / "out.json", "--html", tmp_path / "out.html", **columns))
    for word in words:
        if word == "nan" and kind == "csv":
            continue
        assert word in line
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_mixed_numbers_of_classes(tmp_path):
    for name, k in (("a", 3), ("b", 2)):
        table = classes(k)
        lists = {side: np.column_stack([table[f"{side}{i}"] for i in range(k)]).tolist() for side in "pq"}
        parquet.write_table(pa.table({"y": table["y"] % 2, **lists}), tmp_path / f"{name}.parquet")
    line = refused(*audit(tmp_path))
    assert "3 classes" in line
    assert "2" in line
    assert "parquet" in line


def test_ids_that_do_not_match(tmp_path):
    table = good()
    parquet.write_table(pa.table({k: table[k] for k in ("y", "p", "id")}), tmp_path / "new.parquet")
    other = pa.table({"q": table["q"], "id": table["id"] + 1})
    parquet.write_table(other, tmp_path / "old.parquet")
    line = refused(*audit(tmp_path / "new.parquet", "--reference-data", tmp_path / "old.parquet", "--id", "id"))
    for word in ("new.parquet", "'id'", "row 0", "old.parquet"):
        assert word in line


def test_files_that_are_not_there_or_not_whole(tmp_path):
    assert "nowhere.parquet" in refused(*audit(tmp_path / "nowhere.parquet"))
    assert str(tmp_path) in refused(*audit(tmp_path))  # an empty folder
    assert "*.parquet" in refused(*audit(tmp_path / "*.parquet"))
    path = tmp_path / "logs.parquet"
    parquet.write_table(pa.table(good()), path)
    path.write_bytes(path.read_bytes()[:-100])
    assert "logs.parquet cannot be read as Parquet" in refused(*audit(path))
    path.write_bytes(b"")
    assert "logs.parquet" in refused(*audit(path))


@pytest.fixture
def logs(tmp_path):
    path = tmp_path / "logs.parquet"
    parquet.write_table(pa.table(good()), path)
    return path


@pytest.mark.parametrize("option", ["--json", "--html", "--plot"])
def test_outputs_that_cannot_be_written_are_refused_before_the_work(logs, tmp_path, option):
    for place in (tmp_path / "no" / "out.svg", tmp_path):
        line = refused(*audit(logs, option, place))
        assert str(place) in line
    assert [p.name for p in tmp_path.iterdir()] == ["logs.parquet"]


def test_outputs_do_not_replace_each_other_or_what_is_read(logs, tmp_path):
    out, svg = tmp_path / "out.html", tmp_path / "out.svg"
    assert "--json is" in refused(*audit(logs, "--html", out, "--json", tmp_path / "." / "out.html"))
    assert "and so is --plot" in refused(*audit(logs, "--plot", svg, "--json", svg))
    (tmp_path / "link.json").symlink_to(logs)
    (tmp_path / "held.csv").write_text("y,p,q\n0,0.5,0.5\n")
    for option, place in (("--html", logs), ("--json", tmp_path / "link.json"), ("--html", tmp_path / "held.csv")):
        line = refused(*audit(logs, option, place, "--control", tmp_path / "*.csv"))
        assert f"{option} is {place}, which is read" in line
    assert sorted(p.name for p in tmp_path.iterdir()) == ["held.csv", "link.json", "logs.parquet"]


def test_rows_that_are_audited_are_no_control(logs, tmp_path):
    link = tmp_path / "other" / "link.parquet"
    link.parent.mkdir()
    link.symlink_to(logs)
    for data, control in ((logs, logs), (tmp_path / "*.parquet", logs), (logs, link), (logs, f"file://{logs}")):
        assert "is audited and given as control" in refused(*audit(data, "--control", control))


@pytest.mark.parametrize("option", ["--json", "--html", "--plot"])
def test_outputs_that_fail_to_be_written_after_all_are_one_line(logs, option):
    """Root may write anywhere, so /proc passes the check and refuses the file."""
    status, _, err = makers.invoke(*audit(logs, option, "/proc/out.svg"))
    assert status == 2
    assert err.count("\n") == 1
    assert "/proc/out.svg" in err


def test_a_picture_of_an_unknown_kind_is_refused_and_nothing_is_written(logs, tmp_path):
    line = refused(*audit(logs, "--plot", tmp_path / "figure.xyz", "--json", tmp_path / "out.json"))
    assert "xyz" in line
    assert [p.name for p in tmp_path.iterdir()] == ["logs.parquet"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--delta", "1.5"), "delta is 1.5"),
        (("--delta", "-1e-5"), "delta is -1e-05"),
        (("--delta", "nan"), "delta is nan"),
        (("--delta", "x"), "'--delta'"),
        (("--confidence", "1"), "confidence is 1"),
        (("--confidence", "0"), "confidence is 0"),
        (("--confidence", "95"), "confidence is 95"),
        (("--tau", "1"), "tau is 1"),
        (("--games", "0"), "games is 0"),
        (("--games", "1e3"), "'--games'"),
        (("--seed", "-1"), "seed is -1"),
        (("--canaries", "41"), "canaries is 41"),
        (("--stream-above", "-1"), "stream_above is -1"),
        (("--target", ","), "target names no column"),
        (("--guesses", "2"), "guesses is 2"),
        (("--guesses", "many"), "--guesses is 'many'"),
        (("--guesses", "0.1,nan"), "guesses is nan"),
        (("--guesses", "eprocess", "--family", "approx"), "the e-process holds for pure ε"),
        (("--family", "steinke", "--tau", "0.1"), "Steinke's bound has no shifted form"),
        (("--attack", "learned", "--power", "1"), "--power is 1"),
        (("--attack", "learned"), "too few"),
        (("--attack", "paper", "--power", "-1"), "t is -1"),
        (("--power", "inf"), "t is inf"),
        (("--fail-above", "nan"), "--fail-above is nan"),
        (("--fail-above", "-1"), "--fail-above is -1"),
        (("--family", "nope"), "'--family'"),
        (("--control", "nowhere.csv"), "nowhere.csv"),
        (("--group", "id"), "--group needs --id"),
        (("--nope",), "--nope"),
    ],
)
def test_arguments_out_of_range_are_named(logs, args, words):
    assert words in refused(*audit(logs, *args))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--canaries", 10, "--guesses", 11, "--correct", 1), "guesses is 11"),
        (("--canaries", 10, "--guesses", 5, "--correct", 6), "correct is 6"),
        (("--canaries", 0, "--guesses", 5, "--correct", 5), "canaries is 0"),
        (("--canaries", "ten", "--guesses", 5, "--correct", 5), "'--canaries'"),
        (("--canaries", 10, "--guesses", 5), "--correct"),
        (("--canaries", 10**400, "--guesses", 5, "--correct", 5), "canaries is a number of 401 digits"),
        (("--canaries", 10, "--guesses", 5, "--correct", 5, "--family", "rr", "--classes", 1), "classes is 1"),
    ],
)
def test_counts_that_cannot_be_are_named(args, words):
    assert words in refused("bound", *args)


@pytest.mark.parametrize(
    "args",
    [("nope",), ("audit",), ("audit", "x.csv"), ("bound", "--canaries"), ("bound", "extra"), ("--nope",)],
)
def test_wrong_usage_is_one_line(args):
    assert refused(*args).startswith("bystander: ")


# ---------------------------------------------------------------- a process of its own


def command(*args):
    return [sys.executable, "-m", "bystander.cli", *map(str, args)]


@pytest.mark.parametrize(
    "args", [("audit", "nowhere.parquet", "--label", "y", "--target", "p", "--reference", "q"), ("bound",)]
)
def test_the_process_itself_says_one_line_and_leaves_with_2(args):
    done = subprocess.run(command(*args), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("bystander: ")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_so_and_leaves_nothing(tmp_path, sent):
    n = 1_000_000
    rng = np.random.default_rng(0)
    path = tmp_path / "logs.parquet"
    parquet.write_table(pa.table({"y": rng.integers(0, 2, n), "p": rng.random(n), "q": rng.random(n)}), path)
    out = ("--json", tmp_path / "out.json", "--html", tmp_path / "out.html", "--plot", tmp_path / "out.png")
    args = command("audit", path, "--label", "y", "--target", "p", "--reference", "q", "--games", 1000, *out)
    process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2.5)  # past its imports, into the games
    process.send_signal(sent)
    said, err = process.communicate(timeout=60)
    assert (process.returncode, said) == (2, "")
    assert err == "bystander: interrupted; no output was written\n"
    assert [p.name for p in tmp_path.iterdir()] == ["logs.parquet"]


# ---------------------------------------------------------------- garbage

NUMBERS = st.one_of(
    st.integers(-3, 60),
    st.integers(),
    st.floats(),
    st.sampled_from([10**9, 2**63, 10**30, 10**400, 1e-320, "", " ", "nan", "-inf", "0x10", "½", "1_000", "٣"]),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8),
)


@settings(max_examples=150)
@given(
    canaries=NUMBERS,
    guesses=NUMBERS,
    correct=NUMBERS,
    more=st.dictionaries(
        st.sampled_from(["--delta", "--confidence", "--family", "--tau", "--tau-form", "--classes"]),
        st.one_of(NUMBERS, st.sampled_from(["pure", "approx", "gaussian", "laplace", "rr", "steinke", "two-sided"])),
        max_size=3,
    ),
)
@example(canaries=10**400, guesses=1, correct=1, more={})
@example(canaries=10**30, guesses=10**29, correct=1, more={})
@example(canaries=60, guesses=60, correct=60, more={"--family": "rr", "--classes": 10**400})
@example(canaries=60, guesses=60, correct=60, more={"--family": "gaussian", "--delta": 1e-320})
@example(canaries=60, guesses=60, correct=60, more={"--confidence": 1e-320})
def test_bound_answers_or_refuses_whatever_it_is_given(canaries, guesses, correct, more):
    args = ["bound", f"--canaries={canaries}", f"--guesses={guesses}", f"--correct={correct}", "--json", "-"]
    status, out, err = makers.invoke(*args, *(f"{name}={value}" for name, value in more.items()))
    if status == 0:
        epsilon = json.loads(out)["epsilon"]
        assert err == ""
        assert 0 <= epsilon < 800
    else:
        assert (status, out) == (2, "")
        assert err.count("\n") == 1


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.one_of(
        st.binary(max_size=300),
        st.text('yp,q01.5\n"-eE;\t nan', max_size=200).map(lambda t: f"y,p,q\n{t}".encode()),
    ),
    suffix=st.sampled_from([".csv", ".parquet", ".arrow", ".csv.gz", ".feather", ".txt"]),
)
def test_bytes_that_are_no_table_give_no_number_but_one_line(tmp_path, content, suffix):
    path = tmp_path / f"garbage{suffix}"
    path.write_bytes(content)
    status, out, err = makers.invoke(*audit(path, "--json", "-"))
    if status == 0:  # by luck a table: then whole rows of it
        assert suffix == ".csv"
        assert json.loads(out)["canaries"] <= content.count(b"\n")
    else:
        assert (status, out) == (2, "")
        assert err.count("\n") == 1
        assert "garbage" in err


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10**6), byte=st.integers(0, 255), keep=st.floats(0, 1))
def test_a_damaged_parquet_file_gives_one_line_or_checked_rows(tmp_path, place, byte, keep):
    path = tmp_path / "logs.parquet"
    parquet.write_table(pa.table(good()), path)
    content = bytearray(path.read_bytes())
    if keep < 0.5:
        content = content[: int(2 * keep * len(content))]
    else:
        content[place % len(content)] = byte
    path.write_bytes(bytes(content))
    status, out, err = makers.invoke(*audit(path, "--json", "-"))
    if status == 0:
        assert json.loads(out)["canaries"] == N
    else:
        assert (status, out) == (2, "")
        assert err.count("\n") == 1
