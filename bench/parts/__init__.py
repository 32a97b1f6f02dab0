"""The parts of the benchmark, in the order in which `make bench` runs them: each measures and returns its record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.parts import bounds, curves, huge, lia, streaming

PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "lia": lia.measure,
    "bounds": bounds.measure,
    "huge": huge.measure,
    "curves": curves.measure,
    "streaming": streaming.measure,
}
