"""Records: every number an experiment found, and how it was found. Written cell by cell, so that a run resumes."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
_PACKAGES = ("bystander", "numpy", "numba", "scipy", "scikit-learn", "pyarrow", "catboost", "torch")


@dataclass(slots=True)
class Record:
    """One experiment under one profile: settings, runs (versions, commit, time) and cells (the numbers)."""

    path: Path
    body: dict[str, Any]

    @classmethod
    def load(cls, name: str, profile: str, root: Path = HERE) -> Record | None:
        """The record as it is, or none."""
        path = where(name, profile, root)
        return cls(path, json.loads(path.read_text())) if path.exists() else None

    @classmethod
    def open(
        cls, name: str, profile: str, settings: Mapping[str, Any], *, fresh: bool = False, root: Path = HERE
    ) -> Record:
        """Resume the record; start over if the settings are no longer the same."""
        wanted = json.loads(json.dumps(settings))
        record = None if fresh else cls.load(name, profile, root)
        if record is None or record.body["settings"] != wanted:
            body = {"experiment": name, "profile": profile, "settings": wanted, "runs": [], "cells": {}}
            record = cls(where(name, profile, root), body)
        record.body["runs"].append(_circumstances())
        return record

    @property
    def settings(self) -> dict[str, Any]:
        """What the profile fixes."""
        return dict(self.body["settings"])

    @property
    def cells(self) -> dict[str, dict[str, Any]]:
        """The numbers, by cell."""
        cells: dict[str, dict[str, Any]] = self.body["cells"]
        return cells

    @property
    def seconds(self) -> float:
        """Wall time of all cells together."""
        return float(sum(cell["seconds"] for cell in self.cells.values()))

    def cell(self, key: str, compute: Callable[[], Mapping[str, Any]]) -> None:
        """Compute one cell unless it is there, and write the record."""
        if key in self.cells:
            return
        start = time.perf_counter()
        numbers = plain(dict(compute()))
        seconds = round(time.perf_counter() - start, 2)
        self.cells[key] = {"run": len(self.body["runs"]) - 1, "seconds": seconds, **numbers}
        self.write()
        print(f"  {key}: {seconds:.1f} s", file=sys.stderr, flush=True)

    def write(self) -> None:
        """Whole or not at all."""
        used = sorted({cell["run"] for cell in self.cells.values()})
        runs = [self.body["runs"][k] for k in used]
        cells = {key: {**cell, "run": used.index(cell["run"])} for key, cell in self.cells.items()}
        body = {**self.body, "wall_seconds": round(self.seconds, 1), "runs": runs, "cells": cells}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        scratch = self.path.with_name(f"{self.path.name}.partial")
        scratch.write_text(_text(body))
        os.replace(scratch, self.path)


def where(name: str, profile: str, root: Path = HERE) -> Path:
    """The file of a record."""
    return root / name / "records" / f"{name}-{profile}.json"


def plain(value: Any) -> Any:
    """JSON's own types; floats to six significant digits."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(f"{float(value):.6g}") if np.isfinite(value) else None
    return value


def _text(body: Mapping[str, Any]) -> str:
    """JSON with one line a cell."""
    head = json.dumps({key: value for key, value in body.items() if key != "cells"}, indent=1)
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(cell)}" for key, cell in body["cells"].items())
    return f'{head[:-2]},\n "cells": {{\n{lines}\n }}\n}}\n'


def _package() -> Path:
    import bystander

    return Path(bystander.__file__).parent


def _source() -> str:
    """A hash of the package that runs: a commit says nothing of a tree that others are editing."""
    files = sorted(_package().rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def _circumstances() -> dict[str, Any]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue

    command = ["git", "rev-parse", "HEAD"]  # of the tree that the imported package stands in
    found = subprocess.run(command, cwd=_package(), capture_output=True, text=True, check=False)
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": found.stdout.strip(),
        "source_sha256": _source(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": versions,
    }
