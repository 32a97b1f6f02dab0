"""Outputs: checked before the work begins, written aside, renamed."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping
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


def check_all(outputs: Mapping[str, Path | None], inputs: Iterable[str | None]) -> None:
    """The same of several outputs by option; each is a file of its own, and none is read by the same command."""
    read = {os.path.realpath(name) for each in inputs if each is not None for name in (each, *glob.glob(each))}
    seen: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        check(path)
        place = os.path.realpath(path)
        if place in read:
            raise InputError(f"{option} is {path}, which is read: give a file of its own")
        if place in seen and not (path.exists() and not path.is_file()):  # a device takes several
            raise InputError(f"{option} is {path}, and so is {seen[place]}: give each a file of its own")
        seen[place] = option


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
