"""Outputs: checked before the work begins, written aside, renamed."""

from __future__ import annotations

import os
from pathlib import Path

from bystander._validate import InputError


def check(path: Path) -> None:
    """Refuse, before any work, a path that could not be written after it."""
    folder = path.parent
    if path.is_dir():
        raise InputError(f"{path}: it is a folder; give a file to write")
    if not folder.is_dir():
        raise InputError(f"{path}: there is no folder {folder}; make it first")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise InputError(f"{path}: cannot be written; choose another place")


def write(path: Path, content: str | bytes) -> None:
    """Write the whole file or nothing."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(aside, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another place") from None
    finally:
        aside.unlink(missing_ok=True)
