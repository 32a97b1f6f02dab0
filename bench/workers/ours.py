"""This project's side: an audit, a bound, and its cost against rows, games, classes and canaries."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bench import problem
from bench.workers import meter
from bystander import ApproxDP, Gaussian, Steinke, audit, bound
from bystander.attacks import LogRatio
from bystander.engines import local
from bystander.games.label import game_keys
from bystander.records import Records, from_arrays
from bystander.summary import Job

FAMILIES = {"approx": ApproxDP, "gaussian": Gaussian, "steinke": Steinke}
DELTA = 1e-5


def warm() -> float:
    """Import and load everything, by one small audit; the memory that this takes in MiB."""
    audit_arrays(problem.binary(2000), 2)
    return meter.memory()[0]


def audit_arrays(arrays: problem.Arrays, games: int) -> Any:
    """The default audit."""
    labels, target, reference = arrays
    return audit(labels=labels, target=target, reference=reference, games=games)


def one_audit(labels: str, target: str, reference: str, games: int) -> dict[str, Any]:
    """The default audit of arrays in files, once in this process."""
    base = warm()
    arrays = np.load(labels), np.load(target), np.load(reference)
    processor = time.process_time()
    seconds, result = meter.timed(lambda: audit_arrays(arrays, games))
    processor = time.process_time() - processor
    return {"seconds": seconds[0], "processor_seconds": processor, "base_mib": base, "epsilon": result.epsilon}


def phases(rows: int, games: int, times: int) -> dict[str, Any]:
    """Where an audit's time goes: the functions below `audit` that it spends most in, in ms."""
    import cProfile
    import pstats

    warm()
    arrays = problem.binary(rows)
    whole, _ = meter.median_of(lambda: audit_arrays(arrays, games), times)
    profile = cProfile.Profile()
    profile.runcall(audit_arrays, arrays, games)
    found = {}
    for (path, _, name), (calls, _, _, total, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if "bystander" in path:
            module = path.rsplit("bystander/", 1)[1].removesuffix(".py").replace("/", ".")
            found[f"{module}.{name}"] = {"calls": calls, "ms": 1e3 * total}
    top = sorted(found.items(), key=lambda item: -item[1]["ms"])[:24]
    return {"seconds": whole, "functions": dict(top)}


def one_bound(canaries: int, guesses: int, correct: int, family: str, times: int) -> dict[str, Any]:
    """One bound: all of `bound` (with τ*), and the evaluation alone."""
    from bystander.bound import rejected
    from bystander.tradeoff import Shift

    chosen = FAMILIES[family](DELTA)
    bound(canaries=1000, guesses=100, correct=90, family=chosen)
    whole, result = meter.median_of(
        lambda: bound(canaries=canaries, guesses=guesses, correct=correct, family=chosen), times
    )
    alone, _ = meter.median_of(lambda: rejected(chosen, Shift(), 2, canaries, guesses, correct, 0.05), times)
    return {"seconds": whole, "rejected_seconds": alone, "epsilon": result.epsilon, "mu": result.mu}


def play(records: Records, games: int) -> Any:
    """The games alone: no selection, no bound, no picture."""
    return local.run(Job(LogRatio(), game_keys(0, games)), records, lambda summary: summary)


def rows_curve(sizes: list[int], games: int, times: int) -> dict[str, Any]:
    """Cost against rows."""
    warm()
    most = problem.binary(max(sizes))
    return _curve(sizes, times, lambda size: tuple(array[:size] for array in most), lambda _: games)


def stream_curve(paths: list[str], sizes: list[int], games: int, times: int) -> dict[str, Any]:
    """Cost against rows of Parquet files that are streamed, the sizes taking turns."""
    warm()

    def streamed(path: str) -> Any:
        columns = {"labels": "click", "target": "p_new", "reference": "p_old", "id": "id"}
        return audit(path, **columns, games=games, stream_above=0)

    streamed(paths[0])
    seconds: list[list[float]] = [[] for _ in sizes]
    for _ in range(times):
        for k, path in enumerate(paths):
            seconds[k] += meter.timed(partial(streamed, path))[0]
    return {"sizes": sizes, "seconds": {"audit": [statistics.median(each) for each in seconds]}, "all": seconds}


def games_curve(sizes: list[int], rows: int, times: int) -> dict[str, Any]:
    """Cost against games."""
    warm()
    arrays = problem.binary(rows)
    return _curve(sizes, times, lambda _: arrays, lambda size: size)


def classes_curve(sizes: list[int], rows: int, games: int, times: int) -> dict[str, Any]:
    """Cost against classes, at equal rows."""
    warm()
    audit_arrays(problem.classes(2000, 3), 2)
    made = {size: problem.classes(rows, size) for size in sizes}
    return _curve(sizes, times, lambda size: made[size], lambda _: games)


def _curve(sizes: list[int], times: int, arrays: Callable[[int], Any], games: Callable[[int], int]) -> dict[str, Any]:
    """The median seconds of whole audits, of the games alone, and of reading arrays, the sizes taking turns."""
    seconds: dict[str, list[list[float]]] = {what: [[] for _ in sizes] for what in ("audit", "games", "records")}
    for _ in range(times):
        for k, size in enumerate(sizes):
            given, count = arrays(size), games(size)
            once, records = meter.timed(partial(from_arrays, *given))
            seconds["records"][k] += once
            seconds["games"][k] += meter.timed(partial(play, records, count))[0]
            del records
            seconds["audit"][k] += meter.timed(partial(audit_arrays, given, count))[0]
    return {
        "sizes": sizes,
        "seconds": {what: [statistics.median(each) for each in rows] for what, rows in seconds.items()},
        "all": seconds,
    }


if __name__ == "__main__":
    meter.main(
        {
            "audit": one_audit, "phases": phases, "bound": one_bound,
            "rows": rows_curve, "stream": stream_curve, "games": games_curve, "classes": classes_curve,
        },
        ("bystander", "numpy", "numba", "pyarrow"),
    )  # fmt: skip
