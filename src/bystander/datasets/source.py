"""Where a data set comes from, and how its files get into a folder: whole, checked, or not at all."""

from __future__ import annotations

import hashlib
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from bystander._validate import InputError

_BLOCK = 1 << 20
_PATIENCE = 60  # seconds without a byte
Broken = (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error)  # what an unreadable archive raises


@dataclass(frozen=True, slots=True)
class File:
    """One file at its official address; `digest` is "md5:…" or "sha256:…", None where its publisher gives none."""

    name: str
    url: str
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A data set's origin: its name and home, its licence in words, whom to cite, and its files."""

    name: str
    home: str
    licence: str
    cite: str
    files: tuple[File, ...]

    def file(self, name: str) -> File:
        """The file of this name."""
        return next(file for file in self.files if file.name == name)


def existing(folder: str | os.PathLike[str], names: tuple[str, ...], source: Source, advice: str) -> Path:
    """The first of these files that the folder has."""
    found = next((Path(folder, name) for name in names if Path(folder, name).is_file()), None)
    if found is None:
        raise InputError(f"{os.fspath(folder)} has no {' or '.join(names)} ({source.name}): {advice}")
    return found


def check(path: Path, digest: str | None) -> Path:
    """The path, if its content is what its publisher says."""
    if digest is None:
        return path
    algorithm, _, expected = digest.partition(":")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, algorithm).hexdigest()
    if found != expected:
        raise InputError(f"{path}: its {algorithm} is {found}, not {expected}: delete it and fetch it again")
    return path


def download(file: File, folder: str | os.PathLike[str]) -> Path:
    """The file in this folder: as it is, where it is there and right; else from its address, checked, then named."""
    path = Path(folder, file.name)
    if path.exists():
        return check(path, file.digest)
    with aside(path) as scratch:
        with opened(file.url) as answer, scratch.open("wb") as out:
            while block := answer.read(_BLOCK):
                out.write(block)
        try:
            check(scratch, file.digest)
        except InputError as error:
            told = str(error).partition(": its ")[2].partition(": ")[0]
            raise InputError(f"{file.url}: the {told}: it was cut off or changed; fetch it again") from None
    return path


@contextmanager
def opened(url: str) -> Iterator[IO[bytes]]:
    """What an address answers, as a stream."""
    try:
        with urlopen(Request(url, headers={"User-Agent": "bystander"}), timeout=_PATIENCE) as answer:
            yield answer
    except URLError as error:
        raise InputError(f"{url} cannot be fetched ({error.reason}): see that this machine has a network") from None
    except TimeoutError:
        raise InputError(f"{url} sent nothing for {_PATIENCE} seconds: try again") from None


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """A scratch file that takes the path's name if all goes well, and goes away if not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        yield scratch
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def unpack(archive: Path, members: dict[str, str], folder: str | os.PathLike[str]) -> None:
    """Some files of a tar or zip archive, by their names inside, under these names; those there already stay."""
    missing = {inside: name for inside, name in members.items() if not Path(folder, name).exists()}
    try:
        for inside, name in missing.items():
            with member(archive, inside) as stream, aside(Path(folder, name)) as scratch, scratch.open("wb") as out:
                while block := stream.read(_BLOCK):
                    out.write(block)
    except Broken as error:
        raise unreadable(archive, error) from None


@contextmanager
def member(archive: Path, inside: str) -> Iterator[IO[bytes]]:
    """One file inside a tar or zip archive, as a stream."""
    try:
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as packed, packed.open(inside) as stream:
                yield stream
            return
        with tarfile.open(archive) as tar:
            held = tar.extractfile(inside)
            if held is None:
                raise KeyError(inside)
            yield held
    except KeyError:
        raise InputError(f"{archive} has no {inside}: fetch it again") from None


def pandas() -> Any:
    """pandas, which the tables are read with."""
    try:
        return import_module("pandas")
    except ModuleNotFoundError:
        raise InputError("this data set is read as a data frame, by pandas: pip install pandas") from None


def unreadable(path: Path, error: BaseException) -> InputError:
    """A damaged file, told in one line."""
    told = str(error).partition("\n")[0]
    return InputError(f"{path} cannot be read ({told}): delete it and fetch it again")
