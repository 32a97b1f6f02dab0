import gzip
import os
import re
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import csv, feather, ipc, parquet

from bystander._validate import InputError
from bystander.records import Columns, from_arrays, from_files, from_frame

BINARY = Columns("label", ("t",), ("r",))
WITH_ID = Columns("label", ("t",), ("r",), id="id")


def make(n=60, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 5, (2, n)) / 4  # many equal rows
    ids = [f"{i:03d}" for i in rng.permutation(n)]
    return pa.table(
        {
            "id": ids,
            "label": rng.integers(0, 2, n),
            "t": p[0],
            "r": p[1],
            "s": [f"s{i % 3}" for i in range(n)],
        }
    )


def bag(records):
    rows = zip(
        records.keys.tolist(),
        records.labels.tolist(),
        records.target.tolist(),
        records.reference.tolist(),
        strict=True,
    )
    return sorted(rows)


def write(table, path):
    name = str(path)
    if name.endswith((".parquet", ".pq")):
        parquet.write_table(table, path)
    elif name.endswith(".csv.gz"):
        with gzip.open(path, "wb") as out:
            csv.write_csv(table, out)
    elif name.endswith(".csv"):
        csv.write_csv(table, path)
    elif name.endswith(".feather"):
        feather.write_feather(table, path)
    elif name.endswith(".ipc"):
        with ipc.new_stream(path, table.schema) as out:
            out.write_table(table)
    else:
        with ipc.new_file(path, table.schema) as out:
            out.write_table(table)
    return path


def fails(call, *parts):
    with pytest.raises(InputError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert "\r" not in text
    assert len(text) < 12000
    for part in parts:
        assert part in text, f"{part!r} is not in: {text}"
    assert ": " in text  # what is wrong, then what to do
    return text


def table(**changes):
    n = len(next(iter(changes.values()))) if changes else 4
    columns = {"id": [f"u{i}" for i in range(n)], "label": [0, 1] * n, "t": [0.25] * n, "r": [0.5] * n}
    return pa.table(
        {
            k: (v if isinstance(v, (pa.Array, pa.ChunkedArray)) else pa.array(v[:n]))
            for k, v in (columns | changes).items()
        }
    )


# ---------------------------------------------------------------- the same rows, however they come


@pytest.mark.parametrize("columns", [BINARY, WITH_ID], ids=["content", "id"])
@pytest.mark.parametrize("end", ["parquet", "pq", "csv", "csv.gz", "arrow", "feather", "ipc", "CSV"])
def test_every_file_format_gives_the_same_rows(tmp_path, columns, end):
    rows = make()
    path = tmp_path / f"day1.{end}"
    write(rows, path) if end != "CSV" else csv.write_csv(rows, path)
    records = from_files(path, columns)
    assert bag(records) == bag(from_frame(rows, columns))
    assert records.source == f"day1.{end}"
    assert len(records) == 60
    assert records.classes == 2
    assert len(set(records.keys.tolist())) == 60


@pytest.mark.parametrize("columns", [BINARY, WITH_ID], ids=["content", "id"])
@pytest.mark.parametrize(
    "convert",
    [
        lambda t: t.to_pandas(),
        lambda t: t.to_pandas().convert_dtypes(),
        lambda t: t.to_pandas(types_mapper=pd.ArrowDtype),
        lambda t: t.to_pandas().set_index("s"),
        pl.from_arrow,
        lambda t: pl.from_arrow(t).lazy(),
        lambda t: t.take(np.random.default_rng(5).permutation(60)),
        lambda t: pa.concat_tables([t.slice(0, 7), t.slice(7, 0), t.slice(7)]),
        lambda t: t.set_column(0, "id", t["id"].dictionary_encode()),
        lambda t: t.set_column(0, "id", t["id"].cast(pa.string_view())),
        lambda t: t.set_column(0, "id", t["id"].cast(pa.large_binary())),
    ],
    ids=[
        "pandas",
        "nullable",
        "arrow-pandas",
        "index",
        "polars",
        "lazy",
        "shuffled",
        "chunks",
        "dict",
        "view",
        "bin",
    ],
)
def test_every_frame_gives_the_same_rows(columns, convert):
    rows = make()
    assert bag(from_frame(convert(rows), columns)) == bag(from_frame(rows, columns))


@pytest.mark.parametrize("columns", [BINARY, WITH_ID], ids=["content", "id"])
def test_seven_files_of_many_formats_give_the_same_rows(tmp_path, columns):
    rows = make()
    ends = ["parquet", "csv", "csv.gz", "arrow", "feather", "ipc", "pq"]
    (tmp_path / "deep").mkdir()
    paths = []
    for i, end in enumerate(ends):
        part = rows.slice(9 * i, 9 if i < 6 else None)
        paths.append(write(part, tmp_path / ("deep" if i % 2 else ".") / f"part{i}.{end}"))
    (tmp_path / "README.txt").write_text("not data")
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "1.parquet").write_bytes(b"no rows here")
    (tmp_path / ".hidden.csv").write_bytes(b"\xff")
    whole = bag(from_frame(rows, columns))
    for data in (paths[::-1], tmp_path, str(tmp_path), str(tmp_path / "**" / "*"), f"file://{tmp_path}"):
        assert bag(from_files(data, columns)) == whole
    assert from_files(tmp_path, columns).source == f"7 files in {tmp_path}/"
    assert from_files(paths, columns).source == "7 files"
    # Spark and others write parts without rows.
    write(rows.slice(0, 0), tmp_path / "empty.parquet")
    assert bag(from_files(tmp_path, columns)) == whole


@pytest.mark.parametrize("pieces", [1, 3])
def test_target_and_reference_may_sit_in_two_files(tmp_path, pieces):
    rows = make()
    whole = bag(from_frame(rows, WITH_ID))
    shuffled = rows.take(np.random.default_rng(3).permutation(60))
    left, right = [], []
    for i in range(pieces):
        size = 60 // pieces
        left.append(write(rows.select(["id", "label", "t"]).slice(i * size, size), tmp_path / f"a{i}.parquet"))
        right.append(write(shuffled.select(["id", "r"]).slice(i * size, size), tmp_path / f"b{i}.csv"))
    assert bag(from_files([*right, *left], WITH_ID)) == whole
    joined = from_files(left, WITH_ID, reference_data=right)
    assert bag(joined) == whole
    if pieces == 1:
        assert joined.source == "a0.parquet and b0.csv"
    more = write(table(id=["x", "y"]), tmp_path / "more.parquet")
    assert len(from_files([*left, *right, more], WITH_ID)) == 62


def test_both_files_may_use_one_column_name(tmp_path):
    rows = make()
    a = write(rows.select(["id", "label", "t"]).rename_columns(["id", "label", "prob"]), tmp_path / "a.csv")
    b = write(rows.select(["id", "label", "r"]).rename_columns(["id", "label", "prob"]), tmp_path / "b.parquet")
    columns = Columns("label", ("prob",), ("prob",), id="id")
    assert bag(from_files(a, columns, reference_data=b)) == bag(from_frame(rows, WITH_ID))
    fails(lambda: from_files([a, b], columns), f"{b}, column 'id', row 0", f"of {a} has the same id")


def test_target_and_reference_may_be_one_column(tmp_path):
    rows = make()
    p = rows["t"].to_numpy()
    lists = rows.append_column("p", pa.array(np.column_stack([1 - p, p]).tolist()))
    for columns in (Columns("label", "t", "t"), Columns("label", "p", "p", id="id")):
        records = from_frame(lists, columns)
        assert (records.target == records.reference).all()
        assert records.target[:, 1].tolist() == p.tolist()
        path = write(lists, tmp_path / "a.parquet")
        assert bag(from_files(path, columns)) == bag(records)


def test_float32_is_widened_before_anything_else():
    p = np.random.default_rng(0).random(1000).astype(np.float32)
    labels = np.arange(1000) % 2
    assert bag(from_arrays(labels, p, p)) == bag(from_arrays(labels, p.astype(float), p.astype(float)))
    lists = np.column_stack([p, 1 - p])
    wide = from_arrays(labels, lists.astype(float), lists.astype(float))
    assert bag(from_arrays(labels, lists, lists)) == bag(wide)


def test_arrays_of_every_kind_give_the_same_rows():
    rows = make()
    columns = {"labels": "label", "target": "t", "reference": "r", "ids": "id"}
    whole = bag(from_frame(rows, WITH_ID))
    frame, polars = rows.to_pandas(), pl.from_arrow(rows)
    for get in (
        lambda c: rows[c],
        lambda c: rows[c].combine_chunks(),
        lambda c: rows[c].to_numpy(),
        lambda c: rows[c].to_pylist(),
        lambda c: tuple(rows[c].to_pylist()),
        lambda c: frame[c],
        lambda c: polars[c],
    ):
        arrays = {name: get(c) for name, c in columns.items()}
        ids = arrays.pop("ids")
        assert bag(from_arrays(**arrays, ids=ids)) == whole
        assert bag(from_arrays(**arrays)) == bag(from_frame(rows, BINARY))
    assert from_arrays(**arrays).source == "arrays"


def test_two_columns_lists_and_one_column_are_the_same_rows(tmp_path):
    t = np.random.default_rng(0).random(500)
    r = np.random.default_rng(1).random(500)
    labels = np.arange(500) % 2
    one = bag(from_arrays(labels, t, r))
    two = [np.column_stack([1 - p, p]) for p in (t, r)]
    assert bag(from_arrays(labels, *two)) == one
    assert bag(from_arrays(labels, t[:, None], two[1])) == one
    assert bag(from_arrays(labels, pd.DataFrame(two[0]).rename(columns=str), pl.DataFrame(two[1]))) == one
    lists = pa.table({"label": labels, "t": [list(x) for x in two[0]], "r": [list(x) for x in two[1]]})
    assert bag(from_frame(lists, BINARY)) == one
    assert bag(from_files(write(lists, tmp_path / "a.parquet"), BINARY)) == one
    wide = {"label": labels} | {f"{m}{k}": p[:, k] for m, p in zip("tr", two, strict=True) for k in (0, 1)}
    columns = Columns("label", ("t0", "t1"), ("r0", "r1"))
    assert bag(from_files(write(pa.table(wide), tmp_path / "w.csv"), columns)) == one


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.large_list(pa.float64()), pa.list_(pa.float64(), 3)])
def test_list_columns_of_k(kind):
    p = [[0.25, 0.25, 0.5], [0.5, 0.5, 0.0], [0.0, 0.0, 0.9995]]
    rows = pa.table({"label": [2, 0, 1], "t": pa.array(p, kind), "r": pa.array(p, kind)}).slice(1)
    records = from_frame(rows, BINARY)
    assert records.classes == 3
    assert records.labels.tolist() == [0, 1]
    assert records.target.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    assert records.target.dtype == np.float64


@pytest.mark.parametrize(
    "labels",
    [
        *(pa.array([0, 1, 1], t) for t in (pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.uint64(), pa.float32())),
        pa.array([0, 1, 1], pa.float16()),
        pa.array([False, True, True]),
        pa.array([0, 1, 1]).dictionary_encode(),
        pa.array([Decimal(0), Decimal(1), Decimal(1)]),
        pd.Series([0, 1, 1], dtype="category"),
        np.array([0, 1, 1], ">i4"),
        np.ma.array([0, 1, 1]),
        [0, True, 1.0],
        np.array([0, 1, 1], object),
    ],
    ids=str,
)
def test_labels_of_many_types(labels):
    records = from_arrays(labels, [0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
    assert records.labels.tolist() == [0, 1, 1]
    assert records.labels.dtype == np.int64


def test_probabilities_of_many_types():
    for kind in (np.float16, np.float32, ">f8", np.longdouble):
        p = np.array([0.25, 0.5], kind)
        assert from_arrays([0, 1], p, pa.array([0, 1])).target.tolist() == [[0.75, 0.25], [0.5, 0.5]]
    halves = pa.array([np.float16(0.5)] * 2, pa.float16())
    assert from_arrays([0, 1], halves, pa.array([Decimal("0.5")] * 2)).reference.tolist() == [[0.5, 0.5]] * 2


def test_ids_are_their_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,label,t,r\n17,True,0.25,0.5\n007,FALSE, 0.5 ,1\n-3,1.0,1e-1,0\n")
    by_csv = from_files(path, WITH_ID)
    assert by_csv.labels.tolist() == [1, 0, 1]
    numbers = from_arrays([1, 0, 1], [0.25, 0.5, 0.1], [0.5, 1, 0], ids=np.array([17, 7, -3], np.int16))
    assert (by_csv.keys == numbers.keys).tolist() == [True, False, True]
    text = from_arrays([1, 0, 1], [0.25, 0.5, 0.1], [0.5, 1, 0], ids=["17", "007", "-3"])
    assert bag(text) == bag(by_csv)
    decimal = from_arrays([1], [0.2], [0.2], ids=[Decimal(17)])
    assert decimal.keys[0] == by_csv.keys[0]


def test_ids_of_whole_numbers_and_of_text_meet(tmp_path):
    rows = make()
    numbers = rows.set_column(0, "id", pa.array(np.arange(-30, 30)))
    big = rows.set_column(0, "id", pa.array([2**64 - 1 - i for i in range(60)], pa.uint64()))
    for table in (numbers, big):
        text = table.set_column(0, "id", table["id"].cast(pa.string()))
        small = table.set_column(0, "id", table["id"].cast(pa.int8())) if table is numbers else table
        whole = bag(from_frame(text, WITH_ID))
        assert bag(from_frame(table, WITH_ID)) == bag(from_frame(small, WITH_ID)) == whole
        # Files of both kinds, together and joined.
        a = write(text.slice(0, 20), tmp_path / "a.parquet")
        b = write(table.slice(20), tmp_path / "b.parquet")
        assert bag(from_files([a, b], WITH_ID)) == whole
        left = write(table.select(["id", "label", "t"]), tmp_path / "l.parquet")
        right = write(text.select(["id", "r"]).slice(0, 60), tmp_path / "r.parquet")
        assert bag(from_files([left, right], WITH_ID)) == whole
        write(text.select(["id", "r"]).slice(0, 59), right)
        lost = repr(text["id"][59].as_py())
        fails(lambda: from_files([left, right], WITH_ID), f"column 'id', row 59 is {lost}")  # noqa: B023
        write(table.slice(5, 10), tmp_path / "c.parquet")
        twin = repr(text["id"][5].as_py())
        fails(lambda: from_files([a, tmp_path / "c.parquet"], WITH_ID), f"row 0 is {twin}", f"row 5 of {a}")  # noqa: B023
    grouped = Columns("label", "t", "r", id="id", group="g")
    users = pa.array(np.arange(60) // 7)
    by_number = from_frame(rows.append_column("g", users), grouped)
    by_text = from_frame(rows.append_column("g", users.cast(pa.string())), grouped)
    assert len(by_number) == 9
    assert bag(by_number) == bag(by_text)


def test_csv_with_quotes_newlines_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('note,label,t,r\n"a,\nb",1,0.25,0.5\n"NA",0,0.5,0.5\n', encoding="utf-8-sig")
    assert from_files(path, BINARY).labels.tolist() == [1, 0]
    assert from_files(path, Columns("label", "t", "r", id="note")).labels.tolist() == [1, 0]


def test_take_and_slices():
    slices = ["b", None, "a", "b"]
    records = from_arrays([0, 1, 1, 0], [0.1] * 4, [0.2] * 4, slices=slices)
    assert records.slice_names == ("a", "b", "null")
    assert [records.slice_names[c] for c in records.slices] == ["b", "null", "a", "b"]
    assert records.slices.dtype == np.int32
    some = records.take(np.array([True, False, False, True]))
    assert some.slices.tolist() == [1, 1]
    assert (some.keys == records.keys[[0, 3]]).all()
    assert records.take(np.array([2])).labels.tolist() == [1]
    assert len(some) == 2


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([1, 10, 2, None], ("1", "10", "2", "null")),
        ([True, False, True, None], ("false", "null", "true")),
        ([0.5, float("nan"), 1.5, 0.5], ("0.5", "1.5", "null")),
        (["", "x", "x", "null"], ("null", "x")),
        (pa.array(["b", None, "a", "b"]).dictionary_encode(), ("a", "b", "null")),
        (pl.Series(["b", None, "a", "b"], dtype=pl.Categorical), ("a", "b", "null")),
    ],
    ids=str,
)
def test_slice_names(values, names):
    assert from_arrays([0, 1, 1, 0], [0.1] * 4, [0.2] * 4, slices=values).slice_names == names


def test_slices_are_the_same_from_files_in_any_order(tmp_path):
    rows = make()
    columns = Columns("label", "t", "r", slice="s")

    def named(records):
        return sorted(
            zip(
                bag(records),
                [records.slice_names[c] for c in records.slices[np.argsort(records.keys)]],
                strict=True,
            )
        )

    whole = named(from_frame(rows, columns))
    order = np.random.default_rng(0).permutation(60)
    assert named(from_files(write(rows.take(order), tmp_path / "a.csv"), columns)) == whole
    by_label = Columns("label", "t", "r", slice="label")
    assert from_files(tmp_path / "a.csv", by_label).slice_names == ("0", "1")
    assert from_frame(rows, by_label).slice_names == ("0", "1")


def test_one_row_per_group(tmp_path):
    rows = make().append_column("user", pa.array([f"g{i % 6}" for i in range(60)]))
    columns = Columns("label", "t", "r", id="id", group="user", slice="s")
    records = from_frame(rows, columns)
    assert len(records) == 6
    assert len(records.slices) == 6
    assert set(records.keys.tolist()) < set(from_frame(rows, WITH_ID).keys.tolist())
    order = np.random.default_rng(0).permutation(60)
    assert bag(from_files(write(rows.take(order), tmp_path / "a.csv"), columns)) == bag(records)
    # The labels have no say in which row stays.
    flipped = rows.set_column(1, "label", pa.array(1 - rows["label"].to_numpy()))
    assert sorted(from_frame(flipped, columns).keys.tolist()) == sorted(records.keys.tolist())


# ---------------------------------------------------------------- what is wrong, where, and what to do


def test_groups_need_ids():
    fails(lambda: from_frame(make(), Columns("label", "t", "r", group="s")), "--group needs --id: ", "label")
    fails(lambda: from_arrays([0], [0.1], [0.1], groups=[1]), "groups need ids: ")


@pytest.mark.parametrize("end", ["parquet", "csv", "arrow"])
@pytest.mark.parametrize(
    ("column", "values", "parts"),
    [
        ("label", [0, 1, None, 1], ["row 2 is null", "0…1 for 2 classes"]),
        ("label", [0.0, 1.0, 0.5, 1.0], ["row 2 is 0.5", "whole numbers 0…1"]),
        ("label", [0, 1, 3, 1], ["row 2 is 3", "0…1 for 2 classes", "one per class"]),
        ("label", [1, 2, 2, 1], ["row 1 is 2", "subtract 1"]),
        ("label", [1, -1, 2, 1], ["row 1 is -1", "write 0 for -1"]),
        ("label", [1e300, 0.0, 0.0, 1.0], ["row 0 is 1e+300"]),
        ("label", [0.0, float("nan"), 0.0, 1.0], ["row 1 is nan", "0…1"]),
        ("label", ["yes", "no", "yes", "no"], ["row 0 is 'yes'"]),
        ("t", [0.1, None, 0.5, 1.0], ["row 1 is null", "give probabilities from 0 to 1"]),
        ("t", [0.1, float("nan"), 0.5, 1.0], ["row 1 is nan", "give probabilities"]),
        ("r", [0.1, 0.2, float("inf"), 1.0], ["row 2 is inf", "give probabilities"]),
        ("r", [0.1, 0.2, 0.5, 1.25], ["row 3 is 1.25", "not scores or logits"]),
        ("t", [-0.125, 0.2, 0.5, 1.0], ["row 0 is -0.125", "give probabilities"]),
        ("r", ["high", "low", "low", "low"], ["row 0 is 'high'"]),
        ("id", ["a", None, "b", "c"], ["row 1 is null", "whole numbers or text"]),
        ("id", ["a", "b", "c", "b"], ["row 3 is 'b'", "row 1 has the same id"]),
        ("group", ["a", None, "b", "c"], ["row 1 is null", "whole numbers or text"]),
    ],
)
def test_a_bad_value_is_named(tmp_path, end, column, values, parts):
    rows = table(**({"group": ["a"] * 4} | {column: values}))
    path = write(rows, tmp_path / f"day1.{end}")
    columns = Columns("label", "t", "r", id="id", group="group")
    fails(lambda: from_files(path, columns), f"{path}, column {column!r}", *parts)
    if column != "group":
        fails(lambda: from_frame(rows, columns, source="log"), f"log, column {column!r}", *parts)


@pytest.mark.parametrize(
    ("column", "values", "parts"),
    [
        ("t", pa.array([True, False]), ["bool", "row 0 is True", "give probabilities"]),
        ("label", pa.array(["1", "0"]), ["string", "'1'", "0…1"]),
        ("label", pa.array([None, None]), ["row 0 is null"]),
        ("label", pa.array([2**63, 0], pa.uint64()), ["row 0 is 9223372036854775808"]),
        ("id", pa.array([1.0, 2.0]), ["double", "row 0 is 1.0", "whole numbers or text"]),
        ("id", pa.array(["", "b"]), ["row 0 is ''", "whole numbers or text"]),
        ("id", pa.array([b"\xff", b"b"]), ["binary", "whole numbers or text"]),
        ("id", pa.array([[1], [2]]), ["list", "whole numbers or text"]),
        (
            "t",
            pa.array([[0.5, 0.5], [1.0]]),
            ["row 1 is a list of 1 and row 0 of 2", "one probability per class"],
        ),
        ("t", pa.array([[0.5, 0.5], None]), ["row 1 is null", "one probability per class"]),
        ("t", pa.array([[0.5, 0.5], [0.5, None]]), ["row 1 is null"]),
        ("t", pa.array([[0.5, 0.5], [0.5, 1.5]]), ["row 1 is 1.5"]),
        ("t", pa.array([[0.5, 0.5], [0.5, 0.7]]), ["row 1 sums to 1.2", "sum to 1"]),
        ("t", pa.array([[], []], pa.list_(pa.float64())), ["row 0 is []"]),
        ("t", pa.array([[["a"]], [["b"]]]), ["list", "give probabilities"]),
        ("t", pa.array([{"a": 1.0}, {"a": 1.0}]), ["struct", "give probabilities"]),
        ("slice", pa.array([[1], [2]]), ["list", "slice by"]),
    ],
    ids=str,
)
def test_a_bad_type_is_named(column, values, parts):
    rows = table(**({column: values} | ({} if column == "slice" else {"slice": ["a", "b"]})))
    columns = Columns("label", "t", "r", id="id", slice="slice")
    fails(lambda: from_frame(rows, columns), f"data frame, column {column!r}", *parts)


def test_rows_count_from_zero_within_their_own_file(tmp_path):
    for i in range(3):
        write(table(id=[f"{i}a", f"{i}b"]), tmp_path / f"{i}.csv")
    bad = write(table(t=[0.5] * 17 + [1.5]), tmp_path / "3.csv")
    fails(lambda: from_files(tmp_path, BINARY), f"{bad}, column 't', row 17 is 1.5")
    write(table(id=["x", "1b"]), bad)
    fails(
        lambda: from_files(tmp_path, WITH_ID),
        f"{bad}, column 'id', row 1 is '1b'",
        f"row 1 of {tmp_path / '1.csv'}",
    )


def test_classes_must_agree(tmp_path):
    three = pa.array([[0.25, 0.25, 0.5]] * 2)
    fails(lambda: from_frame(table(t=three), BINARY), "target of data frame has 3 classes", "reference", "has 2")
    a = write(table(t=three, r=three), tmp_path / "a.parquet")
    b = write(table(id=["x", "y"]), tmp_path / "b.parquet")
    fails(lambda: from_files([a, b], BINARY), f"target of {a} has 3 classes", f"of {b} has 2")
    halves = pa.table({"id": ["x", "y"], "r": three})
    c = write(halves, tmp_path / "c.parquet")
    d = write(pa.table({"id": ["x", "y"], "label": [0, 1], "t": [0.1, 0.2]}), tmp_path / "d.parquet")
    fails(lambda: from_files([c, d], WITH_ID), f"target of {d} has 2 classes", f"reference of {c} has 3")


def test_ids_that_do_not_match_are_named(tmp_path):
    a = write(pa.table({"id": ["x", "y", "z"], "label": [0, 1, 1], "t": [0.1] * 3}), tmp_path / "a.parquet")
    b = write(pa.table({"id": ["z", "x"], "r": [0.1] * 2}), tmp_path / "b.csv")
    fails(
        lambda: from_files([a, b], WITH_ID),
        f"{a}, column 'id', row 1 is 'y'",
        f"{b} does not have",
        "same ids",
    )
    b = write(pa.table({"id": ["z", "x", "q", "y", "p"], "r": [0.1] * 5}), tmp_path / "b.csv")
    fails(lambda: from_files(a, WITH_ID, b), f"{b}, column 'id', row 2 is 'q'", f"{a} does not have", "1 more")
    b = write(pa.table({"id": ["z", "x", "z"], "r": [0.1] * 3}), tmp_path / "b.csv")
    fails(lambda: from_files(a, WITH_ID, b), f"{b}, column 'id', row 2 is 'z'", "row 0 has the same id")
    fails(lambda: from_files(a, BINARY, b), "reference_data needs an id")


def test_a_missing_column_is_named_with_the_closest(tmp_path):
    path = write(make(), tmp_path / "a.parquet")
    text = fails(lambda: from_files(path, Columns("lable", "t", "r")), f"{path} has no column 'lable'")
    assert "'id', 'label', 't', 'r', 's': did you mean 'label'?" in text
    fails(
        lambda: from_frame(make(), Columns("label", "t", "zzz")),
        "data frame has no column 'zzz'",
        "name one of these",
    )
    left = write(make().select(["id", "label", "t"]), tmp_path / "left.csv")
    fails(lambda: from_files(left, WITH_ID), f"{left} has no column 'r'")
    fails(lambda: from_files([path, left], BINARY), f"{left} has no column 'r'")
    right = write(make().select(["id", "r"]), tmp_path / "right.csv")
    fails(lambda: from_files(right, WITH_ID), f"{right} has no column 'label'")
    (tmp_path / "twice.csv").write_text("label,t,t,r\n1,0.1,0.2,0.3\n")
    fails(lambda: from_files(tmp_path / "twice.csv", BINARY), "2 columns 't'", "its own name")


def test_columns_must_make_sense():
    fails(lambda: from_frame(make(), Columns("label", "t", "r", id="label")), "'label'", "of their own")
    fails(lambda: Columns("label", (), "r"), "target names no column")


@pytest.mark.parametrize("end", ["parquet", "csv", "arrow"])
def test_no_rows(tmp_path, end):
    path = write(make().slice(0, 0), tmp_path / f"a.{end}")
    fails(lambda: from_files(path, WITH_ID), f"{path} has no rows: ")
    fails(lambda: from_arrays([], [], []), "arrays has no rows")


def test_paths_that_are_not_there(tmp_path):
    fails(lambda: from_files(tmp_path / "a.csv", BINARY), f"{tmp_path}/a.csv does not exist: check the path")
    fails(lambda: from_files(tmp_path, BINARY), f"{tmp_path} is a folder without")
    fails(lambda: from_files(str(tmp_path / "*.csv"), BINARY), "*.csv matches no")
    fails(lambda: from_files([], BINARY), "no data files")
    fails(lambda: from_files("a\0.csv", BINARY), "a\\x00.csv")
    fails(lambda: from_files("x" * 5000 + ".csv", BINARY), "xxx.csv")
    fails(lambda: from_files([3], BINARY), "data is 3")
    fails(lambda: from_files(None, BINARY), "data is None")
    fails(lambda: from_files("", BINARY), "'' does not exist")
    fails(lambda: from_files(b"a.csv", BINARY), "give a file")
    (tmp_path / "a.txt").write_text("hello")
    fails(lambda: from_files(tmp_path / "a.txt", BINARY), "a.txt has no suffix", ".parquet, .pq, .csv")
    path = write(make(), tmp_path / "a.csv")
    fails(lambda: from_files([path, str(path)], BINARY), f"{path} is given twice")
    fails(lambda: from_files(f"{path}/b.csv", BINARY), "b.csv does not exist")


def test_a_url_that_fails_keeps_its_secret():
    text = fails(
        lambda: from_files("nosuch://key:hunter2@bucket/a.csv?secret_key=hunter2", BINARY),
        "nosuch://bucket/a.csv",
    )
    assert "hunter2" not in text


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = write(make(), tmp_path / "a.csv")
    if os.geteuid() == 0:

        def refuse(*_args, **_keywords):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(csv, "open_csv", refuse)
    else:
        path.chmod(0)
    fails(lambda: from_files(path, BINARY), f"{path} may not be read")


@pytest.mark.parametrize("end", ["parquet", "csv.gz", "arrow", "ipc", "feather"])
def test_a_file_cut_short(tmp_path, end):
    path = write(make(2000), tmp_path / f"a.{end}")
    whole = path.read_bytes()
    for size in (0, 5, len(whole) // 3, len(whole) - 4 if end != "ipc" else len(whole) - 300):
        path.write_bytes(whole[:size])
        fails(lambda: from_files(path, WITH_ID), f"{path} cannot be read as", "check that it is whole")


def test_a_csv_with_a_ragged_row_or_wrong_encoding(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label,t,r\n1,0.5,0.5\n1,0.5\n")
    fails(lambda: from_files(path, BINARY), f"{path} cannot be read as CSV", "Expected 3 columns, got 2")
    path.write_bytes(b"label,t,r,id\n1,0.5,0.5,\xe9\n")
    fails(lambda: from_files(path, WITH_ID), f"{path} cannot be read as CSV", "UTF")
    path.write_text("label,t,r\n1,0.5,0.5\n1,high\nlow,0.5\n".replace("high\nlow", '"high\nlow"'))
    fails(lambda: from_files(path, BINARY), f"{path}, column 't', row 1 is 'high\\nlow': give a number")


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"labels": [0, 1, 1]}, ["labels has 3 rows and target has 2", "one entry per row"]),
        ({"ids": ["a"]}, ["ids has 1", "one entry per row"]),
        ({"labels": 3}, ["labels", "shape ()"]),
        ({"labels": None}, ["labels", "shape ()"]),
        ({"target": np.zeros((2, 2, 2))}, ["target", "shape (2, 2, 2)"]),
        ({"target": np.zeros((2, 0))}, ["target", "shape (2, 0)"]),
        ({"labels": [0, "x"]}, ["column 'labels', row 1 is 'x'", "give a number"]),
        ({"labels": pd.Series([0, "x"], dtype=object)}, ["column 'labels', row 1 is 'x'"]),
        ({"target": [0.5, {}]}, ["column 'target', row 1 is {}"]),
        ({"target": [[0.5, 0.5], [0.5, "a"]]}, ["column 'target', row 1 is [0.5, 'a']"]),
        ({"labels": [0, 10**30]}, ["column 'labels', row 1 is 1000"]),
        ({"ids": [1, "x"]}, ["column 'ids'", "one type"]),
        ({"ids": ["b", "b"]}, ["column 'ids', row 1 is 'b'", "row 0 has the same id"]),
        ({"labels": np.ma.array([0, 1], mask=[False, True])}, ["column 'labels', row 1 is null"]),
        (
            {"target": np.ma.array([[0.5, 0.5]] * 2, mask=[[0, 0], [1, 0]])},
            ["column 'target', row 1 is null"],
        ),
        ({"target": np.array([1j, 1])}, ["target"]),
        ({"target": pd.DataFrame()}, ["target", "without columns"]),
        ({"slices": np.array(["2020", "x"])[:1]}, ["slices has 1"]),
    ],
    ids=str,
)
def test_bad_arrays(changes, parts):
    arrays = {"labels": [0, 1], "target": [0.5, 0.5], "reference": [0.5, 0.5]} | changes
    fails(lambda: from_arrays(**arrays), "arrays", *parts)
    if "column 'labels'" in parts[0]:
        fails(lambda: from_arrays(**arrays, source="my log"), "my log, column 'labels'")


def test_too_many_slices():
    n = 201
    call = lambda k: from_arrays([0] * n, [0.5] * n, [0.5] * n, slices=np.arange(n) % k)  # noqa: E731
    assert len(call(200).slice_names) == 200
    fails(lambda: call(201), "column 'slices' has 201 distinct values", "at most 200")


def test_what_is_no_frame():
    for thing in (3, None, {"label": [1]}, [1, 2], pd.Series([1])):
        fails(lambda thing=thing: from_frame(thing, BINARY), f"data frame is {type(thing).__name__}", "polars")
    rows = pd.DataFrame({"label": [0, "x"], "t": [0.1, 0.2], "r": [0.1, 0.2]})
    fails(lambda: from_frame(rows, BINARY), "data frame, column 'label', row 1 is 'x'")


def test_pandas_may_number_its_columns():
    frame = pd.DataFrame([[0, 0.1, 0.2], [1, 0.2, 0.3]])
    assert from_frame(frame, Columns("0", "1", "2")).labels.tolist() == [0, 1]
    fails(lambda: from_frame(frame, Columns("0", "1", "7")), "no column '7'", "'0', '1', '2'")


def test_strange_names_stay_on_one_line(tmp_path):
    path = tmp_path / "a\nb.csv"
    path.write_text("x\n1\n")
    fails(lambda: from_files(path, Columns("la\nbel", "t", "r")), "a\\nb.csv", "'la\\nbel'")
    odd = tmp_path / "run[1].csv"
    write(make(), odd)
    assert len(from_files(odd, BINARY)) == 60
    assert len(from_files(str(tmp_path / "run*"), BINARY)) == 60


# ---------------------------------------------------------------- anything at all: records or one clear line


def survives(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        message = ""
        try:
            records = call()
        except InputError as error:
            message = str(error)
        if message:
            assert not re.search(r"[\r\n]", message)
        else:
            assert len(records) > 0
            assert ((records.target >= 0) & (records.target <= 1)).all()
            assert np.allclose(records.target.sum(axis=1), 1)
            assert ((records.labels >= 0) & (records.labels < records.classes)).all()


QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@QUICK
@given(st.binary(max_size=300), st.sampled_from(["parquet", "csv", "csv.gz", "arrow", "ipc"]))
def test_random_bytes(tmp_path, data, end):
    path = tmp_path / f"x.{end}"
    path.write_bytes(data)
    survives(lambda: from_files(path, WITH_ID))


@QUICK
@given(st.text(max_size=60), st.booleans())
def test_random_csv_rows(tmp_path, text, ids):
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,label,t,r\n" + text.encode("utf-8", "surrogatepass"))
    survives(lambda: from_files(path, WITH_ID if ids else BINARY))


@QUICK
@given(
    st.sampled_from(["parquet", "arrow", "ipc", "csv", "csv.gz"]),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damaged_files(tmp_path, end, damage):
    path = write(make(12), tmp_path / f"x.{end}")
    data = bytearray(path.read_bytes())
    for place, byte in damage:
        data[int(place * len(data))] = byte
    path.write_bytes(data)
    survives(lambda: from_files(path, WITH_ID))


garbage = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.floats(0, 1),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.lists(st.floats(0, 1), max_size=3),
    st.dates(),
    st.decimals(allow_nan=False, places=2, min_value=-9, max_value=9),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=1),
)
one_kind = st.sampled_from([st.integers(0, 1), st.floats(0, 1), st.text(max_size=2), st.booleans(), garbage]).flatmap(
    lambda kind: st.lists(kind, min_size=3, max_size=3)
)


@QUICK
@given(st.lists(one_kind, min_size=5, max_size=5), st.booleans())
def test_random_columns(columns, ids):
    names = ["labels", "target", "reference", "ids", "slices"]
    arrays = dict(zip(names, columns, strict=True))
    if not ids:
        del arrays["ids"]
    survives(lambda: from_arrays(**arrays))
    frame = pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in arrays.items()})
    wanted = Columns("labels", "target", "reference", id="ids" if ids else None, slice="slices")
    survives(lambda: from_frame(frame, wanted))
