"""What every worker shares: a task from the command line, a clock, peak memory, and one line of JSON at the end.

Standard library alone: every peer's Python runs it.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

Task = Callable[..., dict[str, Any]]


def memory() -> tuple[float, float]:
    """Resident memory now and at its peak, in MiB.

    Linux keeps in getrusage's ru_maxrss what the parent held when it forked, so the peak is read from /proc where
    there is one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmRSS"].split()[0]) / 1024, int(lines["VmHWM"].split()[0]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return peak, peak


def timed(work: Callable[[], Any], times: int = 1) -> tuple[list[float], Any]:
    """The seconds of each of several calls, and what the last one returned."""
    seconds, result = [], None
    for _ in range(times):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return seconds, result


def median_of(work: Callable[[], Any], times: int) -> tuple[float, Any]:
    """The median seconds of several calls, and what the last one returned."""
    seconds, result = timed(work, times)
    return statistics.median(seconds), result


def main(tasks: dict[str, Task], packages: tuple[str, ...]) -> None:
    """Do the task that the command line names and print what came of it, with peak memory and versions."""
    task = json.loads(sys.argv[1])
    outcome = tasks[task.pop("task")](**task)
    outcome["peak_mib"] = memory()[1]
    outcome["versions"] = {name: metadata.version(name) for name in packages}
    print(json.dumps(outcome))
