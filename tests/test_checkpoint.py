"""An audit that is interrupted and goes on says what one that never stopped says, and plays only what was left."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from bystander import InputError, Learned, LogRatio, audit
from bystander.engines import Local, checkpoint

FILES, EACH = 30, 200
NAMES = {"labels": "y", "target": "p", "reference": "q", "id": "id", "games": 3, "stream_above": 0}
ARGS = ("--label", "y", "--target", "p", "--reference", "q", "--id", "id", "--games", 3, "--stream-above", 0)
CASES = {
    "plain": {},
    "slices": {"slice": "s"},
    "no id": {"id": None},
    "learned": {"attack": Learned(), "slice": "s"},
}


def write(folder, first=0, files=FILES, each=EACH):
    folder.mkdir()
    rng = np.random.default_rng(first)
    for k in range(files):
        y = rng.integers(0, 2, each)
        p = np.clip(0.5 + 0.2 * (2 * y - 1) + rng.normal(0, 0.15, each), 0.001, 0.999)
        names = [f"s{i % 3}" for i in range(each)]
        table = pa.table(
            {"id": np.arange(each) + first + k * each, "y": y, "p": p, "q": np.full(each, 0.5), "s": names}
        )
        parquet.write_table(table, folder / f"{k:02}.parquet")
    return folder


@pytest.fixture
def logs(tmp_path):
    return write(tmp_path / "logs")


@pytest.fixture
def control(tmp_path):
    return write(tmp_path / "control", 10**6, files=10)


def said(result):
    return json.dumps(result.as_dict())


def interrupted(folder, path, after, **more):
    """Audit until so many rows were played, then stop as Ctrl-C does."""
    played = [0]

    def progress(what, rows, of):
        played[0] += rows
        if played[0] >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(str(folder), **(NAMES | more), engine=Local(path), progress=progress)
    assert path.exists()


def resumed(folder, path, **more):
    """The audit's numbers; rows by what they are for; and how many of them were really read."""
    told, read = {}, []
    with pytest.MonkeyPatch.context() as patch:
        plain = checkpoint.Kept.add
        patch.setattr(checkpoint.Kept, "add", lambda self, *new: (read.append(new[1].seen), plain(self, *new)))

        def progress(what, rows, of):
            told[what] = told.get(what, 0) + rows

        result = audit(str(folder), **(NAMES | more), engine=Local(path), progress=progress)
    return said(result), told, sum(read)


@pytest.mark.parametrize("case", CASES)
def test_it_goes_on_with_the_same_numbers(case, logs, control, tmp_path):
    more = CASES[case] | {"control": str(control)}
    whole = said(audit(str(logs), **(NAMES | more)))
    path, jobs = tmp_path / "kept", 2 if case == "learned" else 1
    rows = FILES * EACH
    for after in (rows // 2, jobs * rows + EACH * 5):  # in the first job; and in the control, after the others' rows
        interrupted(logs, path, after, **more)
    numbers, told, read = resumed(logs, path, **more)
    assert numbers == whole
    assert set(told.values()) == {rows, 10 * EACH}  # what was done before is told too
    assert read <= 10 * EACH - 3 * EACH  # of the control, what was left; no member is read again
    again, _, read = resumed(logs, path, **more)
    assert (again, read) == (whole, 0)


def test_rows_done_are_told_at_once(logs, tmp_path):
    path = tmp_path / "kept"
    interrupted(logs, path, FILES * EACH // 2)
    heard = []
    audit(str(logs), **NAMES, engine=Local(path), progress=lambda what, rows, of: heard.append(rows))
    assert heard[0] > EACH
    assert sum(heard) == FILES * EACH


def test_progress_is_saved_on_the_way(logs, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", 0.0)
    path, sizes = tmp_path / "kept", []
    plain = checkpoint._write
    monkeypatch.setattr(checkpoint, "_write", lambda *given: (plain(*given), sizes.append(path.stat().st_mode & 0o777)))
    audit(str(logs), **NAMES, engine=Local(path))
    assert len(sizes) > 1
    assert set(sizes) == {0o600}
    assert [p.name for p in tmp_path.iterdir() if "kept" in p.name] == ["kept"]


def test_changed_files_and_other_settings_start_afresh(logs, tmp_path):
    path = tmp_path / "kept"
    interrupted(logs, path, FILES * EACH // 2)
    for more in ({"seed": 1}, {"games": 4}, {"attack": LogRatio(1.0)}, {"slice": "s"}):
        numbers, _, read = resumed(logs, path, **more)
        assert numbers == said(audit(str(logs), **(NAMES | more)))
        assert read == FILES * EACH
    assert len(checkpoint._load(path)) == checkpoint._STAGES  # the oldest were forgotten
    path.unlink()
    interrupted(logs, path, FILES * EACH // 2)
    changed = logs / "07.parquet"
    table = parquet.read_table(changed)
    parquet.write_table(table.set_column(2, "p", pa.array(np.full(EACH, 0.4))), changed)
    numbers, _, read = resumed(logs, path)
    assert numbers == said(audit(str(logs), **NAMES))
    assert read == FILES * EACH


def test_a_file_that_is_no_checkpoint_is_one_line(logs, tmp_path, cli, monkeypatch):
    path = tmp_path / "kept"
    interrupted(logs, path, FILES * EACH // 2)
    good = path.read_bytes()
    damaged = bytearray(good)
    damaged[len(good) // 3] ^= 1
    array = tmp_path / "array.npz"
    np.savez(array, about=np.arange(3))
    for wrong in (b"", b"hello", good[:-30], good[: len(good) // 2], (logs / "00.parquet").read_bytes(),
                  array.read_bytes(), bytes(damaged)):  # fmt: skip
        path.write_bytes(wrong)
        with pytest.raises(InputError, match="is no checkpoint of this version: delete it, or name another"):
            audit(str(logs), **NAMES, engine=Local(path))
        status, out, err = cli("audit", logs, *ARGS, "--checkpoint", path)
        assert (status, out) == (2, "")
        assert err == f"bystander: {path} is no checkpoint of this version: delete it, or name another\n"
        assert path.read_bytes() == wrong
    path.write_bytes(good)
    monkeypatch.setattr(checkpoint, "_FORMAT", "bystander checkpoint 0.0.0")
    with pytest.raises(InputError, match="is no checkpoint of this version"):
        audit(str(logs), **NAMES, engine=Local(path))


def test_the_command_line_deletes_it_in_the_end(logs, tmp_path, answer):
    path = tmp_path / "kept"
    args = ["audit", logs, *ARGS]
    whole = answer(*args)
    interrupted(logs, path, FILES * EACH // 2)
    numbers = answer(*args, "--checkpoint", path)
    assert not path.exists()
    assert {k: v for k, v in numbers.items() if k != "command"} == {k: v for k, v in whole.items() if k != "command"}


def test_the_command_line_never_deletes_what_is_not_its_own(logs, tmp_path, cli):
    data = logs / "00.parquet"
    bytes_before = data.read_bytes()
    args = ("audit", data, *ARGS[:-2])  # rows in memory: the checkpoint is not used
    for path, said in ((data, "which is read"), (logs / "01.parquet", "is no checkpoint of this version")):
        status, _, err = cli(*args, "--checkpoint", path)
        assert (status, data.read_bytes()) == (2, bytes_before)
        assert said in err
    out = tmp_path / "out.json"
    status, _, err = cli(*args, "--checkpoint", out, "--json", out)
    assert (status, err) == (2, f"bystander: --checkpoint is {out}, and so is --json: give each a file of its own\n")
    status, _, err = cli(*args, "--checkpoint", tmp_path / "nowhere" / "kept")
    assert (status, err.count("\n")) == (2, 1)
    status, _, err = cli(*args, "--checkpoint", tmp_path / "kept", "--engine", "ray")
    assert (status, "it goes with --engine local" in err) == (2, True)
    assert cli(*args, "--checkpoint", tmp_path / "kept")[0] == 0
    assert not (tmp_path / "kept").exists()


def test_an_interrupted_command_says_how_to_go_on(tmp_path):
    logs, path = write(tmp_path / "logs", files=40, each=20_000), tmp_path / "kept"
    args = [str(arg) for arg in (*ARGS, "--games", 300, "--checkpoint", path, "--json", "-")]
    slow = "import bystander.engines.checkpoint as c; c._SECONDS = 0.0; from bystander.cli import main; main()"
    command = [sys.executable, "-c", slow, "audit", str(logs), *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not path.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert err == f"bystander: interrupted; the same command goes on from {path}\n"
    (stage,) = checkpoint._load(path).values()
    assert 0 < len(stage.done) < 40
