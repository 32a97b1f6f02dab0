"""The same rows, however they are kept: identical counts and ε."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from bystander import audit
from tests import makers

N = 3000
NAMES = {2: (["p"], ["q"]), 3: (["p0", "p1", "p2"], ["q0", "q1", "q2"])}


def numbers(result):
    said = dict(result.as_dict() if not isinstance(result, dict) else result)
    return {k: v for k, v in said.items() if k not in ("command", "descriptive")} | {
        k: pytest.approx(v, rel=1e-12) for k, v in said["descriptive"].items()
    }


def columns(classes, ids):
    rng = np.random.default_rng(classes)
    labels, target, law = makers.learned_nothing("noise", rng, N, classes)
    target = 0.5 * target + 0.5 * np.eye(classes)[labels]  # and it leaks
    p, q = NAMES[classes]
    take = slice(1, 2) if classes == 2 else slice(None)
    table = {"y": labels, **dict(zip(p, target.T[take], strict=True)), **dict(zip(q, law.T[take], strict=True))}
    if ids:
        table["id"] = [f"row-{i}" for i in rng.permutation(N)]
    return table


@pytest.fixture(params=[(2, False), (2, True), (3, False), (3, True)], ids=["2", "2-id", "3", "3-id"])
def data(request):
    classes, ids = request.param
    table = columns(classes, ids)
    p, q = NAMES[classes]
    names = {"labels": "y", "target": p, "reference": q, "games": 6, "seed": 3}
    return pa.table(table), names | ({"id": "id"} if ids else {})


def test_the_same_rows_give_the_same_counts_however_they_are_kept(data, tmp_path, answer):
    table, names = data
    whole = tmp_path / "whole.parquet"
    parquet.write_table(table, whole)
    expected = audit(str(whole), **names)
    assert expected.epsilon > 1

    shuffled = table.take(np.random.default_rng(0).permutation(N))
    parquet.write_table(shuffled, tmp_path / "shuffled.parquet", row_group_size=700)
    parts = tmp_path / "parts"
    parts.mkdir()
    for k in range(7):
        parquet.write_table(shuffled.slice(k * 450, 450), parts / f"part-{k}.parquet")
    csv.write_csv(table, tmp_path / "rows.csv")
    feather.write_feather(table, tmp_path / "rows.arrow")
    held = {
        "shuffled": str(tmp_path / "shuffled.parquet"),
        "folder": str(parts),
        "glob": str(parts / "*.parquet"),
        "list": sorted(map(str, parts.iterdir()), reverse=True),
        "csv": str(tmp_path / "rows.csv"),
        "arrow": str(tmp_path / "rows.arrow"),
        "table": table,
        "pandas": pd.DataFrame({name: table[name].to_numpy() for name in table.column_names}),
        "polars": pl.from_arrow(shuffled),
        "lazy": pl.from_arrow(table).lazy(),
    }
    for how, kept in held.items():
        found = audit(kept, **names)
        assert (found.guesses, found.correct, found.epsilon) == (
            expected.guesses, expected.correct, expected.epsilon,
        ), how  # fmt: skip
        assert numbers(found)["epsilon"] == expected.epsilon

    args = ["--label", "y", "--target", ",".join(names["target"]), "--reference", ",".join(names["reference"])]
    args += ["--games", 6, "--seed", 3] + (["--id", "id"] if "id" in names else [])
    for kept in (whole, tmp_path / "rows.csv", parts):
        said = answer("audit", kept, *args)
        assert {k: v for k, v in said.items() if k != "command"} == {
            k: v for k, v in json.loads(json.dumps(expected.as_dict())).items() if k != "command"
        }


def test_arrays_are_the_same_as_a_frame_of_them(data):
    table, names = data
    arrays = {"labels": table["y"].to_numpy()}
    for side in ("target", "reference"):
        held = [table[name].to_numpy() for name in names[side]]
        arrays[side] = held[0] if len(held) == 1 else np.column_stack(held)
    if "id" in names:
        arrays["id"] = table["id"].to_numpy()
    found = audit(**arrays, games=6, seed=3)
    assert found.as_dict() == audit(table, **names).as_dict()


def test_a_list_column_is_the_same_as_a_column_a_class():
    table = columns(3, ids=True)
    lists = {side: np.column_stack([table[f"{side}{k}"] for k in range(3)]).tolist() for side in "pq"}
    listed = pa.table({"y": table["y"], "id": table["id"], **lists})
    apart = audit(pa.table(table), labels="y", target=NAMES[3][0], reference=NAMES[3][1], id="id", games=6)
    assert audit(listed, labels="y", target="p", reference="q", id="id", games=6).as_dict() == apart.as_dict()


def test_two_files_joined_on_the_id_are_the_same_as_one(tmp_path):
    table = pa.table(columns(2, ids=True))
    new, old = tmp_path / "new.parquet", tmp_path / "old.csv"
    parquet.write_table(table.select(["id", "y", "p"]), new)
    csv.write_csv(table.select(["q", "id"]).take(np.random.default_rng(1).permutation(N)), old)
    names = {"labels": "y", "target": "p", "reference": "q", "id": "id", "games": 6}
    one = audit(table, **names)
    for joined in (audit(str(new), reference_data=str(old), **names), audit([str(new), str(old)], **names)):
        assert joined.as_dict() == one.as_dict()
