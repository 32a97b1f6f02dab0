"""Records of what was measured, when, on what, and by which versions."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.venvs import HERE, ROOT

FOLDER = HERE / "records"


def machine() -> dict[str, Any]:
    """The machine, how busy it is, and the commit."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _git("rev-parse", "HEAD"),
        "source": source(),
        "source_changed": bool(_git("status", "--porcelain", "--", "src")),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "system": platform.platform(),
        "load": os.getloadavg(),
    }


def source() -> str:
    """A digest of the package's own files: a commit does not tell what is being edited."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def write(part: str, begun: Mapping[str, Any], outcome: Mapping[str, Any]) -> Path:
    """Keep a part's outcome; `begun` is the machine as it was before."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{part}.json"
    record = {"part": part, "command": f"python -m bench {part}", **begun, "load_after": os.getloadavg()}
    record |= {"source_after": source(), **outcome}
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


def read(part: str) -> dict[str, Any] | None:
    """A part's record, where there is one."""
    path = FOLDER / f"{part}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def _cpu() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()
