"""A command line, measured from outside: wall and processor seconds, and peak memory. And PyArrow reading a file."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.workers import meter


def command(words: list[str]) -> dict[str, Any]:
    """Run a command of this environment; this process stays small, since the kernel counts it in the child's peak."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / words[0]), *words[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    text, complaint = process.stdout.read(), process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        return {"failed": complaint[-2000:] or f"status {status}"}
    return {
        "seconds": seconds,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "command_peak_mib": used.ru_maxrss / 1024,
        "output": text,
    }


def arrow(path: str, columns: list[str], times: int) -> dict[str, Any]:
    """PyArrow's reading of the same columns, batch by batch, keeping nothing."""
    from pyarrow import parquet

    def read() -> int:
        with parquet.ParquetFile(path) as file:
            return sum(batch.num_rows for batch in file.iter_batches(131_072, columns=columns))

    seconds, rows = meter.median_of(read, times)
    return {"seconds": seconds, "rows": rows}


if __name__ == "__main__":
    meter.main({"command": command, "arrow": arrow}, ("bystander", "pyarrow"))
