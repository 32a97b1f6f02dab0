"""One audit, three engines: in memory, as a stream, on a Ray cluster. The numbers are the same, to the bit."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from bystander import Learned, audit
from tests import makers

RAY = Path(sys.executable).parent / "ray"
FILES = 12
CASES = {
    # rows, classes, the rest of the arguments; 12 files, several row groups in each
    "two": (6_000, 2, {"games": 5}),
    "three": (4_200, 3, {"games": 4, "seed": 7, "confidence": 0.9}),
    "slice": (6_000, 2, {"games": 4, "slice": "s"}),
    "control": (6_000, 2, {"games": 4, "slice": "s", "control": True}),
    "learned": (9_000, 3, {"games": 3, "control": True, "slice": "s", "attack": "learned"}),
    "beyond the sample": (130_000, 2, {"games": 2}),  # more rows than the pictures are drawn from
}
each_case = pytest.mark.parametrize("case", CASES)


def rows(seed, n, classes, leak):
    """Labels, ids in no order, a slice with nulls, and probabilities: of label 1, or a list a row."""
    rng = np.random.default_rng(seed)
    labels, target, law = makers.learned_nothing("noise", rng, n, classes)
    target = (1 - leak) * target + leak * np.eye(classes)[labels]
    sides = {"p": target, "q": law}
    held = {k: v[:, 1] if classes == 2 else pa.array(v.tolist()) for k, v in sides.items()}
    names = [None if i % 11 == 0 else f"s{i % 3}" for i in range(n)]
    return pa.table({"id": rng.permutation(n) + 10**9 * seed, "y": labels, "s": names, **held})


def in_files(table, folder, files=FILES, kind="parquet", backwards=False):
    """The table cut into files, in the order of their names or against it."""
    folder.mkdir(parents=True)
    each = -(-table.num_rows // files)
    for k in range(files):
        path = folder / f"{files - 1 - k if backwards else k:02}.{kind}"
        part = table.slice(k * each, each)
        if kind == "csv":
            csv.write_csv(part, path)
        else:
            parquet.write_table(part, path, row_group_size=max(1, each // 3))
    return folder


def numbers(result):
    """All that a result says of its numbers: counts, ε, descriptive, slices, control; through JSON, to the last bit."""
    said = json.loads(json.dumps(result.as_dict() if not isinstance(result, dict) else result))
    return {name: value for name, value in said.items() if name != "command"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Of every case its arguments, `control` being a folder."""
    home, found = tmp_path_factory.mktemp("engines"), {}
    for k, (case, (n, classes, more)) in enumerate(CASES.items()):
        table = rows(k + 1, n, classes, leak=0.5)
        folder = in_files(table, home / case.replace(" ", "-") / "members")
        names = {"labels": "y", "target": "p", "reference": "q", "id": "id", **more}
        if more.get("control"):
            held_out = rows(k + 101, n // 2, classes, leak=0.05)
            names["control"] = str(in_files(held_out, folder.parent / "control", 5))
        found[case] = (str(folder), names)
    return found


def run(folder, names, **more):
    names = dict(names)
    if names.get("attack") == "learned":
        names["attack"] = Learned()
    return audit(folder, **names, **more)


@pytest.fixture(scope="module")
def in_memory(data):
    return {case: numbers(run(*given, stream_above=None)) for case, given in data.items()}


DRIVER = """
import json, sys
from bystander import Learned, audit
from bystander._validate import InputError
from bystander.engines import Ray

cases = json.load(open(sys.argv[1]))
said = {}
for case, (folder, names) in cases.items():
    if names.get("attack") == "learned":
        names["attack"] = Learned()
    done = []
    try:
        result = audit(folder, **names, engine=Ray(), progress=lambda what, rows, of: done.append((what, rows, of)))
        said[case] = result.as_dict() | {"progress": done}
    except InputError as error:
        said[case] = {"error": str(error)}
json.dump(said, open(sys.argv[2], "w"))
"""


def bad(folder, tmp):
    """The same files, but for one row of the last."""
    tmp.mkdir()
    for path in Path(folder).iterdir():
        table = parquet.read_table(path)
        if path.name == f"{FILES - 1:02}.parquet":
            p = table["p"].to_pylist()
            p[321] = 1.5
            table = table.set_column(table.column_names.index("p"), "p", pa.array(p))
        parquet.write_table(table, tmp / path.name, row_group_size=100)
    return str(tmp)


@pytest.fixture(scope="module")
def on_ray(data, tmp_path_factory):
    """What every case says on a cluster that Ray starts for one process; Ray's own start takes 4 seconds."""
    pytest.importorskip("ray")
    home = tmp_path_factory.mktemp("ray")
    folder, names = data["two"]
    wrong = {"bad": (bad(folder, home / "bad"), names), "repeats": (repeats(home / "repeats"), names)}
    (home / "cases.json").write_text(json.dumps(data | wrong))
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, home / "cases.json", home / "said.json"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads((home / "said.json").read_text())


def repeats(folder):
    """Every id three times, once in each of three files."""
    table = rows(3, 1000, 2, leak=0.5)
    return str(in_files(pa.concat_tables([table] * 3), folder, 3))


# ---------------------------------------------------------------- the same numbers


@each_case
def test_a_stream_says_what_memory_says(case, data, in_memory):
    said = numbers(run(*data[case], stream_above=0))
    assert said == in_memory[case]
    assert said["epsilon"] > 0.5
    assert len(said["slices"]) == (4 if "slice" in data[case][1] else 0)
    assert (said["control"] is None) == ("control" not in data[case][1])


@each_case
def test_ray_says_what_memory_says(case, in_memory, on_ray):
    assert numbers({k: v for k, v in on_ray[case].items() if k != "progress"}) == in_memory[case]


@each_case
def test_progress_adds_up_to_the_rows(case, data, on_ray):
    told = []
    run(*data[case], stream_above=0, progress=lambda *said: told.append(said))
    for heard in (told, on_ray[case]["progress"]):
        done = {}
        for what, count, todo in heard:
            done[what, todo] = done.get((what, todo), 0) + count
        assert {todo for _, todo in done} <= {CASES[case][0], CASES[case][0] // 2}
        assert all(count == todo for (_, todo), count in done.items())
        assert next(iter(done))[0] == ("members" if case != "learned" else "rows that fit the attack")


@pytest.mark.parametrize("case", ["two", "three"])
def test_the_order_of_files_and_their_number_do_not_matter(case, data, in_memory, tmp_path):
    folder, names = data[case]
    table = pa.concat_tables([parquet.read_table(path) for path in sorted(Path(folder).iterdir())])
    backwards = in_files(table, tmp_path / "backwards", backwards=True)
    three = in_files(table.take(np.random.default_rng(0).permutation(table.num_rows)), tmp_path / "three", 3)
    for other in (backwards, three):
        assert numbers(run(str(other), names, stream_above=0)) == in_memory[case]
    listed = sorted(map(str, Path(folder).iterdir()), reverse=True)
    assert numbers(run(listed, names, stream_above=0)) == in_memory[case]


@pytest.mark.parametrize("case", ["two", "slice"])
def test_a_streamed_csv_says_what_parquet_says(case, data, in_memory, tmp_path):
    folder, names = data[case]
    table = pa.concat_tables([parquet.read_table(path) for path in sorted(Path(folder).iterdir())])
    said = numbers(run(str(in_files(table, tmp_path / "csv", 3, "csv")), names, stream_above=0))
    assert said == in_memory[case]


# ---------------------------------------------------------------- what is wrong


def test_a_bad_value_in_a_late_fragment_is_the_same_one_line(data, tmp_path, cli, on_ray):
    folder = bad(data["two"][0], tmp_path / "bad")
    args = ["--label", "y", "--target", "p", "--reference", "q", "--id", "id", "--games", 5]
    status, out, err = cli("audit", folder, *args, "--stream-above", 0)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"{folder}/11.parquet, column 'p', row 321 is 1.5: " in err
    told = on_ray["bad"]["error"]
    assert told[told.index("11.parquet") :] == err[err.index("11.parquet") :].strip()


def test_repeated_ids_are_refused(tmp_path, cli, on_ray):
    folder = repeats(tmp_path / "repeats")
    args = ["--label", "y", "--target", "p", "--reference", "q", "--id", "id", "--games", 5]
    status, out, err = cli("audit", folder, *args, "--stream-above", 0)
    assert (status, out, err.count("\n")) == (2, "", 1)
    said = ": 2,000 of 3,000 sampled rows repeat the id of another: an id must name one row; name another column, or "
    assert said in err
    assert said in on_ray["repeats"]["error"]


def test_one_repeated_id_in_a_stream_is_refused(tmp_path, cli):
    ids = np.arange(3000)
    ids[2999] = 7
    path, half = tmp_path / "rows.parquet", np.full(3000, 0.5)
    parquet.write_table(pa.table({"y": ids % 2, "p": half, "q": half, "id": ids}), path)
    args = ["--label", "y", "--target", "p", "--reference", "q", "--id", "id", "--games", 1]
    status, _, err = cli("audit", path, *args, "--stream-above", 0)
    assert status == 2
    assert "1 of 3,000 sampled rows" in err


@pytest.mark.slow
def test_the_command_line_on_ray(data, in_memory, tmp_path):
    pytest.importorskip("ray")
    folder, _ = data["control"]
    control = data["control"][1]["control"]
    args = ["--label", "y", "--target", "p", "--reference", "q", "--id", "id", "--games", "4"]
    command = [sys.executable, "-m", "bystander.cli", "audit", folder, *args, "--engine", "ray", "--json", "-"]
    done = subprocess.run(
        [*command, "--slice", "s", "--control", control], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert numbers(json.loads(done.stdout)) == in_memory["control"]
    wrong = bad(data["two"][0], tmp_path / "bad")
    command[4] = wrong
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"{wrong}/11.parquet, column 'p', row 321 is 1.5: " in done.stderr


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_is_one_line(data):
    pytest.importorskip("ray")
    folder, _ = data["two"]
    args = ["--label", "y", "--target", "p", "--reference", "q", "--id", "id", "--games", "4"]
    args += ["--engine", "ray", "--ray-address", f"127.0.0.1:{free_port()}"]
    begin = time.monotonic()
    command = [sys.executable, "-m", "bystander.cli", "audit", folder, *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert time.monotonic() - begin < 45
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "nothing answers there" in done.stderr


# ---------------------------------------------------------------- a worker is lost


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def family(root):
    """The process and all that it started, by /proc."""
    children = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    found, todo = [], [root]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def kill(processes):
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


CLUSTER_DRIVER = """
import json, os, sys, time
from pathlib import Path
from bystander import audit
from bystander.engines import Ray, ray as engine

folder, address, log, out, games = sys.argv[1:]
plain = engine._play

def logged(job, fragment):
    '''Leave a file that says who plays what; it is renamed when the fragment is done.'''
    began = Path(log) / f"{fragment.number}-{os.getpid()}-{time.time_ns()}"
    began.touch()
    summary = plain(job, fragment)
    began.rename(f"{began}.done")
    return summary

engine._play = logged
def progress(what, rows, of):
    print("rows", rows, flush=True)

result = audit(folder, labels="y", target="p", reference="q", id="id", games=int(games), engine=Ray(address),
               progress=progress)
json.dump(result.as_dict(), open(out, "w"))
"""


@pytest.mark.slow
def test_a_node_killed_half_way_changes_no_count(tmp_path):
    """Two nodes, 64 fragments; the second node's raylet and workers are killed with tasks running on them."""
    pytest.importorskip("ray")
    files, each, games = 64, 100_000, 400
    folder = tmp_path / "rows"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for k in range(files):
        y = rng.integers(0, 2, each)
        p = np.clip(0.5 + 0.2 * (2 * y - 1) + rng.normal(0, 0.15, each), 0.001, 0.999)
        table = pa.table({"id": np.arange(each) + k * each, "y": y, "p": p, "q": np.full(each, 0.5)})
        parquet.write_table(table, folder / f"{k:02}.parquet")
    local = numbers(audit(str(folder), labels="y", target="p", reference="q", id="id", games=games, stream_above=0))
    address, log = f"127.0.0.1:{free_port()}", tmp_path / "log"
    log.mkdir()
    started, mine = [], set()
    # `ray start --head` may ask for a token: one of this test's own, for its three processes.
    environment = os.environ | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}

    def node(name, *args):
        command = [RAY, "start", *args, "--num-cpus=1", "--disable-usage-stats", "--block"]
        with (tmp_path / f"{name}.txt").open("w") as say:
            process = subprocess.Popen(command, stdout=say, stderr=say, env=environment)
        started.append(process)
        end = time.monotonic() + 60
        while "--block" not in (tmp_path / f"{name}.txt").read_text():
            assert process.poll() is None, (tmp_path / f"{name}.txt").read_text()
            assert time.monotonic() < end, (tmp_path / f"{name}.txt").read_text()
            time.sleep(0.2)
        return process

    try:
        port = address.rpartition(":")[2]
        node("head", "--head", f"--port={port}", "--include-dashboard=false")
        second = node("second", f"--address={address}", "--node-ip-address=127.0.0.2")
        command = [sys.executable, "-c", CLUSTER_DRIVER, folder, address, log, tmp_path / "said.json", str(games)]
        with (tmp_path / "driver.txt").open("w") as say:
            driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=say, text=True, env=environment)
        started.append(driver)
        done, killed = 0, []
        for line in driver.stdout:
            if not line.startswith("rows "):  # Ray tells of lost tasks on standard output
                continue
            done += int(line.split()[1])
            if not killed and done >= files * each // 3:
                there = family(second.pid)
                playing = [p for p in log.iterdir() if p.suffix != ".done" and int(p.name.split("-")[1]) in there]
                if playing:
                    mine |= set(there)
                    killed = there
                    kill(there)
                    print(f"killed {len(there)} processes after {done:,} rows")  # noqa: T201
        assert driver.wait(timeout=120) == 0, (tmp_path / "driver.txt").read_text()
        driver.stdout.close()
    finally:
        for process in started:
            if process.poll() is None:
                mine |= set(family(process.pid))
        kill(mine)
        for process in started:
            process.wait(timeout=30)
    assert killed
    played = [path.name.removesuffix(".done").split("-") for path in log.iterdir()]
    lost = [path.name for path in log.iterdir() if path.suffix != ".done"]
    again = len(played) - files
    print(f"{len(lost)} fragments were being played when their node died; {again} were played again")  # noqa: T201
    assert {int(number) for number, *_ in played} == set(range(files))
    assert any(int(name.split("-")[1]) in killed for name in lost)
    assert again >= 1
    assert done == files * each
    assert numbers(json.loads((tmp_path / "said.json").read_text())) == local
