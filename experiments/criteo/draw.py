"""The Criteo tables and figures, from the record."""

from __future__ import annotations

from typing import Any

from experiments import _label_dp_draw as draw
from experiments._record import Record


def figures(record: Record) -> dict[str, Any]:
    """ε found against ε spent; and beside membership inference."""
    rows = record.settings["rows"]
    what = "Made-up rows in Criteo's shape (stand-in)" if record.settings["stand_in"] else "Criteo"
    if "file" in record.settings:
        what = "Criteo, 8,000 real rows of no day (a sample)"
    return draw.figures(record, "criteo", f"{what}: {rows:,} rows a day, 95 %, δ = 1e-5")


def tables(record: Record) -> dict[str, str]:
    """ε, membership inference, log-loss, the reference, what it cost."""
    return draw.tables(record, "criteo")
