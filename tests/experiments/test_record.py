"""Records: every cell is written when it is found, and a run goes on where the last one ended."""

import json

import numpy as np
import pytest
from experiments._record import Record, plain


def opened(root, settings=None, **more):
    return Record.open("made-up", "small", settings or {"seed": 1, "epsilons": (4, 2)}, root=root, **more)


def fail():
    raise AssertionError("this cell was there already")


def test_a_run_goes_on_where_the_last_one_ended(tmp_path):
    record = opened(tmp_path)
    record.cell("one", lambda: {"epsilon": np.float64(0.5)})
    with pytest.raises(ZeroDivisionError):
        record.cell("two", lambda: {"epsilon": 1 / 0})
    again = opened(tmp_path)
    again.cell("one", fail)
    again.cell("two", lambda: {"epsilon": 0.25})
    held = Record.load("made-up", "small", tmp_path)
    assert {key: cell["epsilon"] for key, cell in held.cells.items()} == {"one": 0.5, "two": 0.25}
    assert [cell["run"] for cell in held.cells.values()] == [0, 1]  # each says which run found it
    assert len(held.body["runs"]) == 2
    assert held.body["wall_seconds"] == pytest.approx(held.seconds, abs=0.1)
    assert list(tmp_path.rglob("*.partial")) == []


def test_other_settings_and_fresh_runs_start_over(tmp_path):
    opened(tmp_path).cell("one", lambda: {"epsilon": 0.5})
    assert list(opened(tmp_path).cells) == ["one"]
    assert list(opened(tmp_path, {"seed": 2}).cells) == []
    assert list(opened(tmp_path, fresh=True).cells) == []


def test_a_run_that_found_nothing_new_leaves_no_trace(tmp_path):
    opened(tmp_path).cell("one", lambda: {"epsilon": 0.5})
    before = Record.load("made-up", "small", tmp_path).body["runs"]
    again = opened(tmp_path)
    again.cell("one", fail)
    again.write()
    assert Record.load("made-up", "small", tmp_path).body["runs"] == before


def test_a_record_says_how_it_was_made(tmp_path):
    record = opened(tmp_path)
    record.cell("one", lambda: {"epsilon": 0.5})
    run = json.loads(record.path.read_text())["runs"][0]
    assert set(run) == {"started", "commit", "source_sha256", "machine", "versions"}
    assert {"python", "numpy", "bystander"} <= set(run["versions"])


def test_numbers_are_plain_and_have_six_digits():
    found = plain({"a": np.float64(1 / 3), "b": np.int64(3), "c": (np.bool_(True), np.inf), 4: np.array([1.0, np.nan])})
    assert found == {"a": 0.333333, "b": 3, "c": [True, None], "4": [1.0, None]}
    assert json.loads(json.dumps(found)) == found
