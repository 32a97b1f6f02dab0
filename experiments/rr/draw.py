"""The figures of randomized response, from the record."""

from __future__ import annotations

from experiments._record import Record


def figures(record):
    return {}


def tables(record):
    return {}
