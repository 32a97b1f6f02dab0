"""What an experiment is: a sentence, profiles, and a function that fills a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from experiments._record import HERE, Record


@dataclass(frozen=True, slots=True)
class Experiment:
    """One table or figure. `run` fills cells; figures and tables are drawn from the record by its draw.py."""

    reproduces: str
    profiles: Mapping[str, Mapping[str, Any]]
    run: Callable[[Record], None]


def every() -> dict[str, Experiment]:
    """Every folder of experiments/ that holds one."""
    found = {}
    for module in iter_modules([str(HERE)]):
        if module.ispkg:
            package = import_module(f"experiments.{module.name}")
            if hasattr(package, "EXPERIMENT"):
                found[module.name] = package.EXPERIMENT
    return found
