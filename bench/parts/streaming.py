"""Parquet larger than memory: the command line on 10⁷ rows × 100 games, one game beside PyArrow's reading, 10⁸ rows."""

from __future__ import annotations

import json
import math
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bench import problem
from bench.records import machine
from bench.runs import Outcome, median, ratio, turns, values, worker
from bench.venvs import HERE

ROWS, MORE, GAMES, TIMES = 10_000_000, 100_000_000, 100, 3
GROUP, ROW_BYTES, LIMIT = 1_000_000, 28, 400.0
COLUMNS = ["id", "click", "p_new", "p_old"]
SMALL = 1_000  # rows of a file on which a command only starts and stops


def measure() -> dict[str, Any]:
    """Both sizes; the files are deleted afterwards."""
    folder = HERE / ".data" / "streaming"
    free = shutil.disk_usage(HERE).free
    if free < 3 * MORE * ROW_BYTES:
        raise RuntimeError(
            f"{free / 2**30:.0f} GiB are free on the disk: {3 * MORE * ROW_BYTES / 2**30:.0f} are needed"
        )
    try:
        start, path = generate(folder, SMALL), generate(folder, ROWS)
        outcomes = turns(
            TIMES,
            {
                "start": lambda: audit(start, 1),
                "one game": lambda: audit(path, 1),
                "arrow": lambda: worker("command", "arrow", path=str(path), columns=COLUMNS, times=3),
            },
        )
        outcomes["all games"] = [audit(path, GAMES)]
        path.unlink()
        skipped = too_large(outcomes["one game"])
        if not skipped:
            outcomes["more rows"] = [audit(generate(folder, MORE), 1)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "sizes": {"rows": ROWS, "more_rows": MORE, "games": GAMES},
        "skipped": skipped,
        **figures(outcomes),
        "outcomes": outcomes,
    }


def too_large(outcomes: list[Outcome]) -> str:
    """Why the larger file is not tried: an audit that does not stream would take all of this machine's memory."""
    peak = max((each["command_peak_mib"] for each in outcomes if "command_peak_mib" in each), default=math.inf)
    expected, held = peak * MORE / ROWS / 1024, machine()["memory_gib"]
    if peak < 1024 or expected < held / 2:
        return ""
    return f"not tried: {peak:,.0f} MiB at {ROWS:,} rows would be {expected:.0f} GiB, of {held}"


def figures(outcomes: dict[str, list[Outcome]]) -> dict[str, Any]:
    """Ratios and nanoseconds; of a command that failed, what it said."""
    failed = {name: each[0]["failed"] for name, each in outcomes.items() if "failed" in each[0]}
    timed_out = [name for name, each in outcomes.items() if "timed_out" in each[0]]
    if failed or timed_out:
        return {"failed": failed, "timed_out": timed_out}
    start = median(outcomes["start"], "seconds")
    read, one = values(outcomes["arrow"], "seconds"), values(outcomes["one game"], "seconds")
    every = median(outcomes["all games"], "seconds")
    return {
        "ratios": {
            "one_game_over_arrow": ratio(one, read),
            "one_game_less_start_over_arrow": ratio([each - start for each in one], read),
        },
        "start_seconds": start,
        "ns_per_row_game": 1e9 * every / (ROWS * GAMES),
        "ns_per_row_game_less_start": 1e9 * (every - start) / (ROWS * GAMES),
        "peak_mib": {name: median(each, "command_peak_mib") for name, each in outcomes.items() if name != "arrow"},
    }


def generate(folder: Path, rows: int) -> Path:
    """Write so many rows of a binary problem, one row group at a time."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{rows}.parquet"
    print(f"  writing {path.name}", file=sys.stderr)
    types = (pa.int64(), pa.int32(), pa.float64(), pa.float64())
    schema = pa.schema(list(zip(COLUMNS, types, strict=True)))
    with parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for first in range(0, rows, GROUP):
            count = min(GROUP, rows - first)
            columns = (np.arange(first, first + count), *problem.binary(count, seed=first))
            writer.write_table(pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], schema=schema))
    return path


def audit(path: Path, games: int) -> Outcome:
    """The command line's audit of a file, in a process of its own; of its result only ε is kept."""
    columns = [f"--{what}={name}" for what, name in zip(("id", "label", "target", "reference"), COLUMNS, strict=True)]
    words = ["bystander", "audit", str(path), *columns, f"--games={games}", "--json", "-"]
    outcome = worker("command", "command", words=words, limit=LIMIT)
    if "output" in outcome:
        result = json.loads(outcome.pop("output"))
        outcome |= {"epsilon": result["epsilon"], "canaries": result["canaries"]}
    return outcome
