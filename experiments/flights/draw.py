"""The same tables and figures on flights, from the record."""

from __future__ import annotations

from typing import Any

from experiments import _label_dp_draw as draw
from experiments._record import Record


def figures(record: Record) -> dict[str, Any]:
    """ε found against ε spent; and beside membership inference."""
    return draw.figures(
        record, "flights", "Flights in time order (real rows, stand-in for Criteo's days): 95 %, δ = 1e-5"
    )


def tables(record: Record) -> dict[str, str]:
    """ε, membership inference, log-loss, the reference, what it cost."""
    return draw.tables(record, "flights")
