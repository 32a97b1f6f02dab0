import csv as plain_csv
import pickle
import threading

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, fs, ipc, parquet

from bystander import _keys, stream
from bystander._validate import InputError
from bystander.records import Columns, from_files
from bystander.stream import open_stream, same_classes

BINARY = Columns("label", "t", "r")
WITH_ID = Columns("label", "t", "r", id="id")
ENDS = ["parquet", "csv", "csv.gz", "arrow", "ipc"]


def make(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    t, r = rng.random((2, n))
    t[:3] = 0.0, -0.0, 1.0
    return pa.table(
        {
            "other": rng.random(n),
            "id": rng.permutation(n) + seed * 10**9,
            "label": rng.integers(0, 2, n).astype(np.int32),
            "t": t,
            "r": r.astype(np.float32),
            "s": pa.array([f"s{i % 3}" if i % 7 else None for i in range(n)]),
        }
    )


def write(table, path, rows=700):
    name = str(path)
    if name.endswith(".parquet"):
        parquet.write_table(table, path, row_group_size=rows)
    elif name.endswith(".csv"):
        csv.write_csv(table, path)
    elif name.endswith(".csv.gz"):
        with pa.CompressedOutputStream(name, "gzip") as out:
            csv.write_csv(table, out)
    else:
        with (ipc.new_stream if name.endswith(".ipc") else ipc.new_file)(path, table.schema) as out:
            out.write_table(table, max_chunksize=rows)
    return path


def fails(call, *parts):
    with pytest.raises(InputError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    for part in parts:
        assert part in text, f"{part!r} is not in: {text}"
    assert ": " in text


def drain(data, columns=BINARY, size=300):
    return list(open_stream(data, columns).batches(size))


def joined(batches, part):
    return np.concatenate([getattr(batch, part) for batch in batches])


def agree(batches, whole, keys=True):
    for part in ("labels", "target", "reference", *(("keys",) if keys else ())):
        got, want = joined(batches, part), getattr(whole, part)
        assert got.dtype == want.dtype
        assert got.tobytes() == want.tobytes()  # to the last bit: -0.0 is not 0.0


@pytest.fixture
def small_fragments(monkeypatch):
    monkeypatch.setattr(stream, "_FRAGMENT", 1000)


# ---------------------------------------------------------------- the same rows as in memory


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("text_ids", [False, True])
def test_streamed_rows_are_the_rows_in_memory(tmp_path, small_fragments, end, text_ids):
    rows = make()
    if text_ids:
        rows = rows.set_column(1, "id", pa.array([f"user-{i}" for i in range(5000)]))
    path = write(rows, tmp_path / f"a.{end}")
    batches = drain(path, WITH_ID)
    agree(batches, from_files(path, WITH_ID))
    assert max(map(len, batches)) == 300
    opened = open_stream(path, WITH_ID)
    assert opened.source == f"a.{end}"
    assert opened.rows == (5000 if end in ("parquet", "arrow") else None)
    assert {batch.source for batch in batches} == {str(path)}
    agree(drain(path, BINARY, 10**6), from_files(path, BINARY), keys=False)


@pytest.mark.parametrize("columns", [BINARY, WITH_ID], ids=["place", "id"])
def test_many_files_in_any_order_and_in_any_batches(tmp_path, small_fragments, columns):
    ends = [*ENDS, "parquet"]
    paths = [write(make(1500, i), tmp_path / f"{i}.{end}") for i, end in enumerate(ends)]
    write(make(9).slice(0, 0), tmp_path / "empty.parquet")
    write(make(9).slice(0, 0), tmp_path / "none.csv")
    write(make(9).slice(0, 0), tmp_path / "none.arrow")
    write(make(9).slice(0, 0), tmp_path / "none.ipc")
    opened = open_stream(tmp_path, columns)
    assert opened.rows is None
    assert opened.source == f"10 files in {tmp_path}/"
    batches = list(opened.batches())
    agree(batches, from_files(paths, columns), keys=columns is WITH_ID)
    keys = joined(batches, "keys")
    assert len(set(keys.tolist())) == len(keys) == 9000
    if columns is WITH_ID:
        assert joined(drain(paths[::-1], columns), "keys").tolist() == keys.tolist()
    again = [batch for part in opened.fragments[::-1] for batch in part.batches(77)]
    assert set(joined(again, "keys").tolist()) == set(keys.tolist())
    order, other = np.argsort(keys), np.argsort(joined(again, "keys"))
    assert (joined(batches, "target")[order] == joined(again, "target")[other]).all()


def test_without_ids_a_key_is_a_place(tmp_path):
    for name in "ab":
        write(make(1000), tmp_path / f"{name}.parquet")
    keys = joined(drain(tmp_path), "keys")
    assert keys.tolist() == [*_keys.place_keys(0, 0, 1000), *_keys.place_keys(1, 0, 1000)]
    assert len(set(keys.tolist())) == 2000
    # The file's format does not matter, nor the order in which the files are named.
    write(make(1000), tmp_path / "a.csv")
    assert (joined(drain([tmp_path / "b.parquet", tmp_path / "a.csv"]), "keys") == keys).all()


@pytest.mark.parametrize("end", ["parquet", "arrow"])
@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float64(), 3)], ids=str
)
def test_columns_of_lists(tmp_path, small_fragments, end, kind):
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 2500)
    rows = pa.table({"label": np.arange(2500) % 3, "t": pa.array(p.tolist(), kind)})
    path = write(rows, tmp_path / f"a.{end}")
    columns = Columns("label", "t", "t")  # a null audit: target and reference are one column
    agree(drain(path, columns), from_files(path, columns), keys=False)


def test_one_column_per_class(tmp_path, small_fragments):
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 2500)
    rows = {"label": np.arange(2500) % 3} | {f"{m}{k}": p[:, k] for m in "tr" for k in range(3)}
    columns = Columns("label", ("t0", "t1", "t2"), ("r0", "r1", "r2"))
    for end in ("parquet", "csv"):
        path = write(pa.table(rows), tmp_path / f"a.{end}")
        agree(drain(path, columns), from_files(path, columns), keys=False)


@pytest.mark.parametrize("end", ENDS)
def test_slices_have_their_own_codes_in_each_batch(tmp_path, end):
    path = write(make(2000), tmp_path / f"a.{end}")
    columns = Columns("label", "t", "r", slice="s")

    def spelled(batches):
        return [batch.slice_names[code] for batch in batches for code in batch.slices]

    assert spelled(drain(path, columns, 1)) == spelled([from_files(path, columns)])
    assert spelled(drain(path, columns)) == spelled([from_files(path, columns)])


def test_seventeen_is_seventeen(tmp_path):
    rows = pa.table({"id": [17, -3, 2**63 - 1], "label": [0, 1, 1], "t": [0.5] * 3, "r": [0.5] * 3})
    keys = [joined(drain(write(rows, tmp_path / f"a.{end}"), WITH_ID), "keys").tolist() for end in ENDS]
    assert keys == [keys[0]] * len(ENDS)


# ---------------------------------------------------------------- fragments


def test_a_parquet_file_is_cut_between_row_groups(tmp_path):
    path = write(make(5000), tmp_path / "a.parquet")
    (one,) = open_stream(path, BINARY).fragments
    assert (one.start, one.rows, one.groups) == (0, 5000, tuple(range(8)))


def test_fragments_are_pickled_and_read_elsewhere(tmp_path, small_fragments):
    for i, end in enumerate(ENDS):
        write(make(2500, i), tmp_path / f"{i}.{end}")
    opened = pickle.loads(pickle.dumps(open_stream(f"file://{tmp_path}", WITH_ID)))
    cuts = [(part.number, part.start, part.rows, part.groups) for part in opened.fragments]
    assert cuts == [
        (0, 0, 1400, (0, 1)),
        (0, 1400, 1100, (2, 3)),
        (1, 0, None, ()),
        (2, 0, None, ()),
        (3, 0, 2500, ()),
        (4, 0, None, ()),
    ]
    assert opened.fragments[0].name.endswith("0.parquet")
    agree(list(opened.batches()), from_files(tmp_path, WITH_ID))


def test_a_remote_file_system(tmp_path, small_fragments, monkeypatch):
    path = write(make(), tmp_path / "a.parquet")
    remote = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr("bystander._tables._expand", lambda _: [stream.File("far://a", remote, "a.parquet")])
    opened = pickle.loads(pickle.dumps(open_stream("far://a", WITH_ID)))
    assert not opened.fragments[0].file.local
    monkeypatch.undo()
    agree(list(opened.batches()), from_files(path, WITH_ID))


@pytest.mark.parametrize("end", ENDS)
def test_a_reader_may_stop_early(tmp_path, end):
    path = write(make(), tmp_path / f"a.{end}")
    (fragment,) = open_stream(path, WITH_ID).fragments
    batches = fragment.batches(100)
    assert len(next(batches)) == 100
    batches.close()
    assert sum(map(len, fragment.batches(100))) == 5000


def test_memory_holds_a_batch_not_the_file(tmp_path):
    n = 2_000_000
    path = tmp_path / "a.parquet"
    rows = pa.table({"id": np.arange(n), "label": np.arange(n) % 2, "t": np.random.rand(n), "r": np.random.rand(n)})  # noqa: NPY002
    parquet.write_table(rows, path, row_group_size=250_000)
    del rows
    before = pa.total_allocated_bytes()
    most, count = 0, 0
    for batch in open_stream(path, WITH_ID).batches():
        count += len(batch)
        most = max(most, pa.total_allocated_bytes() - before)
    assert count == n
    assert most < 50e6


# ---------------------------------------------------------------- what is wrong, where, and what to do


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    ("column", "value", "parts"),
    [
        ("t", 1.25, ["is 1.25", "not scores or logits"]),
        ("t", float("nan"), ["is nan"]),
        ("r", None, ["is null"]),
        ("label", 7, ["is 7", "0…1 for 2 classes"]),
        ("label", None, ["is null", "0…1"]),
        ("id", None, ["is null", "whole numbers or text"]),
    ],
)
def test_an_error_names_the_row_of_the_file(tmp_path, small_fragments, end, column, value, parts):
    rows = make()
    values = rows[column].to_pylist()
    values[4321] = value
    rows = rows.set_column(rows.column_names.index(column), column, pa.array(values))
    path = write(rows, tmp_path / f"a.{end}")
    for columns, size in ((WITH_ID, 300), (WITH_ID, 10**6)):
        batches = open_stream(path, columns).batches(size)
        fails(lambda batches=batches: list(batches), f"{path}, column {column!r}, row 4321 {parts[0]}", *parts)


def test_errors_of_lists_sums_and_text_name_the_row_too(tmp_path, small_fragments):
    p = [[0.5, 0.5]] * 3000
    p[2000] = [0.5, 0.75]
    path = write(pa.table({"label": [0] * 3000, "t": p}), tmp_path / "a.parquet")
    fails(lambda: drain(path, Columns("label", "t", "t")), "column 't', row 2000 sums to 1.25")
    p[2000], p[2050] = [0.5, 0.5], [0.5, 0.25, 0.25]
    path = write(pa.table({"label": [0] * 3000, "t": p}), tmp_path / "a.parquet")
    fails(lambda: drain(path, Columns("label", "t", "t")), "'t', row 2050 is a list of 3 and row 2000 of 2")
    with (tmp_path / "a.csv").open("w") as out:
        lines = [["label", "t", "r"], *([0, 0.5, 0.5] for _ in range(3000))]
        lines[2001][2] = "high"
        plain_csv.writer(out).writerows(lines)
    fails(lambda: drain(tmp_path / "a.csv"), "a.csv, column 'r', row 2000 is 'high': give a number")


def test_a_csv_of_several_blocks_names_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "_CSV_BLOCK", 1 << 12)
    rows = make()
    path = write(rows, tmp_path / "a.csv")
    agree(drain(path, WITH_ID, 10**6), from_files(path, WITH_ID))
    assert len(drain(path, WITH_ID, 10**6)) > 5
    text = path.read_text().split("\n")
    path.write_text("\n".join([*text[:4501], text[4501].replace(",", ",x", 3), *text[4502:]]))
    fails(lambda: drain(path, WITH_ID, 10**6), "row 4500 is 'x")


def test_what_needs_the_rows_in_memory_is_refused(tmp_path):
    rows = make(50)
    path = write(rows, tmp_path / "a.parquet")
    grouped = Columns("label", "t", "r", id="id", group="s")
    fails(lambda: open_stream(path, grouped), "--group 's' needs the rows in memory: ")
    a = write(rows.select(["id", "label", "t"]), tmp_path / "b.parquet")
    b = write(rows.select(["id", "r"]), tmp_path / "c.parquet")
    fails(lambda: open_stream([a, b], WITH_ID), f"{a} and {b} would be joined on 'id'", "in memory: ")
    fails(lambda: open_stream(a, WITH_ID), f"{a} has no column 'r'")
    fails(lambda: open_stream([path, b], WITH_ID), f"{b} has no column 'label'")
    fails(lambda: open_stream(path, Columns("label", "t", "r", id="label")), "'label'", "of their own")


@pytest.mark.parametrize("end", ENDS)
def test_no_rows(tmp_path, end):
    path = write(make(9).slice(0, 0), tmp_path / f"a.{end}")
    fails(lambda: open_stream(path, WITH_ID), f"{path} has no rows: give at least one row")


def test_batches_of_different_classes(tmp_path):
    for i, k in enumerate((2, 3)):
        lists = pa.array([[1 / k] * k] * 4)
        write(pa.table({"label": [0] * 4, "t": lists, "r": lists}), tmp_path / f"{i}.parquet")
    two, three = (next(part.batches()) for part in open_stream(tmp_path, BINARY).fragments)
    assert same_classes(None, two) == same_classes(2, two) == 2
    fails(lambda: same_classes(2, three), "1.parquet has 3 classes and the rows before it have 2: ")
    fails(lambda: drain(tmp_path), "1.parquet has 3 classes and the rows before it have 2: ")
    mixed = pa.table({"label": [0] * 4, "t": pa.array([[0.5] * 2] * 4), "r": pa.array([[0.25] * 4] * 4)})
    path = write(mixed, tmp_path / "mixed.parquet")
    fails(lambda: drain(path), f"target of {path} has 2 classes and reference of {path} has 4")


def test_too_many_slices(tmp_path):
    rows = make(500).set_column(0, "many", pa.array(np.arange(500)))
    path = write(rows, tmp_path / "a.parquet")
    fails(lambda: drain(path, Columns("label", "t", "r", slice="many"), 500), "'many' has 500 distinct")


@pytest.mark.parametrize("end", ENDS)
def test_a_file_cut_short_after_it_was_opened(tmp_path, end):
    path = write(make(200_000), tmp_path / f"a.{end}")
    opened = open_stream(path, WITH_ID)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    # Half a CSV is still a CSV, but for its last line: here half a number and then nothing.
    path.write_bytes(path.read_bytes().rstrip(b"\n").rpartition(b",")[0] if end == "csv" else path.read_bytes())
    fails(lambda: list(opened.batches()), f"{path} cannot be read as", "check that it is whole")
    path.unlink()
    fails(lambda: list(opened.batches()), f"{path} does not exist")


@pytest.mark.parametrize("end", ["parquet", "arrow", "ipc"])  # CSV is read 32 MB ahead
def test_a_file_damaged_while_it_is_read(tmp_path, end):
    path = write(make(400_000), tmp_path / f"a.{end}", 10_000)
    batches = open_stream(path, WITH_ID).batches(1000)
    next(batches)
    size = path.stat().st_size
    with path.open("r+b") as out:
        out.seek(size // 2)
        out.write(b"\xff" * (size // 4))
    fails(lambda: list(batches), str(path))


@pytest.mark.parametrize("end", ["parquet", "arrow"])
def test_a_file_replaced_by_another(tmp_path, small_fragments, end):
    path = write(make(5000), tmp_path / f"a.{end}")
    opened = open_stream(path, WITH_ID)
    write(make(4900), path)
    fails(lambda: list(opened.batches()), f"{path} has changed since it was opened: ")


def test_a_bad_size(tmp_path):
    (fragment,) = open_stream(write(make(50), tmp_path / "a.parquet"), BINARY).fragments
    fails(lambda: next(fragment.batches(0)), "size is 0")


def test_threads_may_read_fragments_at_once(tmp_path, small_fragments):
    path = write(make(20_000), tmp_path / "a.parquet")
    opened = open_stream(path, WITH_ID)
    found = {}

    def work(part):
        found[part.start] = list(part.batches())

    threads = [threading.Thread(target=work, args=(part,)) for part in opened.fragments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    agree([batch for start in sorted(found) for batch in found[start]], from_files(path, WITH_ID))
