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
    """Write the whole file or nothing; a pipe or a device is written to, not replaced."""
    data = content.encode() if isinstance(content, str) else content
    aside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            aside.write_bytes(data)
            os.replace(aside, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another place") from None
    finally:
        aside.unlink(missing_ok=True)
