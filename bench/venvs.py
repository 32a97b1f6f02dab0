"""The peers' virtual environments, made from bench/requirements-*.txt where they are missing or out of date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
OURS = "ours"
PEERS = ("privacyguard", "jax-privacy")


def python(name: str) -> Path:
    """The Python that runs a peer, or us; the peer is installed first where it is not."""
    if name == OURS:
        return Path(sys.executable)
    folder = HERE / ".venvs" / name
    wanted = [path for path in (_requirements(name), _requirements(f"{name}-nodeps")) if path.exists()]
    pins, mark = "".join(path.read_text() for path in wanted), folder / ".installed"
    if not mark.exists() or mark.read_text() != pins:
        print(f"installing {name} into {folder.relative_to(ROOT)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        for path in wanted:
            alone = ["--no-deps"] if path.stem.endswith("-nodeps") else []
            pip = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, *alone, "-r", path], check=True)
        mark.write_text(pins)
    return folder / "bin/python"


def _requirements(name: str) -> Path:
    return HERE / f"requirements-{name}.txt"
