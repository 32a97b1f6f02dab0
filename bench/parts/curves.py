"""How cost grows: with rows, games, classes, and canaries of one bound."""

from __future__ import annotations

import shutil
from typing import Any

from bench import figures
from bench.fits import exponents
from bench.parts.streaming import generate
from bench.runs import worker
from bench.venvs import HERE

ROWS = [10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000]
GAMES = [1, 2, 5, 10, 20, 50, 100, 200, 400]
CLASSES = [2, 3, 4, 6, 8, 10, 14, 20]
CANARIES = [10**k for k in range(3, 10)]
STREAMED = [1_000_000, 2_000_000, 4_000_000, 8_000_000, 16_000_000]
TIMES, LIMIT = 3, 20.0


def measure() -> dict[str, Any]:
    """Four curves, their exponents and their figures."""
    found = {
        "stream": _stream(),
        "rows": worker("ours", "rows", sizes=ROWS, games=20, times=TIMES),
        "games": worker("ours", "games", sizes=GAMES, rows=1_000_000, times=TIMES),
        "classes": worker("ours", "classes", sizes=CLASSES, rows=200_000, games=100, times=TIMES),
        "canaries": _canaries(),
    }
    for name, curve in found.items():
        curve["exponents"] = {what: exponents(curve["sizes"], each) for what, each in curve["seconds"].items()}
        figures.cost(name, curve)
    classes = found["classes"]
    ten = CLASSES.index(10)
    return {
        "sizes": {
            "stream": {"games": 20},
            "rows": {"games": 20},
            "games": {"rows": 1_000_000},
            "classes": {"rows": 200_000, "games": 100},
        },
        "repetitions": TIMES,
        "ten_classes_over_two": {what: each[ten] / each[0] for what, each in classes["seconds"].items()},
        "curves": found,
    }


def _stream() -> dict[str, Any]:
    """Parquet files, streamed: what grows with rows alone."""
    folder = HERE / ".data" / "curves"
    try:
        paths = [str(generate(folder, size)) for size in STREAMED]
        return worker("ours", "stream", paths=paths, sizes=STREAMED, games=20, times=TIMES)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _canaries() -> dict[str, Any]:
    """One bound, 60 % of the guesses right; nothing beyond what takes more than the limit is tried."""
    seconds: dict[str, list[float | None]] = {}
    for family in ("approx", "gaussian"):
        for share in (0.01, 1.0):
            each: list[float | None] = []
            for m in CANARIES:
                count = {"canaries": m, "guesses": round(m * share), "correct": round(0.6 * m * share)}
                late = bool(each) and each[-1] is None
                done = {} if late else worker("ours", "bound", limit=LIMIT, **count, family=family, times=5)
                each.append(done.get("seconds"))
            seconds[f"{family}, c' = {share:.0%} of m"] = each
    return {"sizes": CANARIES, "seconds": seconds, "limit_seconds": LIMIT}
