"""A stream's progress in a file: which fragments are done, and their sum, for each job of an audit."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bystander._tables import reading
from bystander._validate import InputError
from bystander._version import __version__
from bystander.counts import Sketch
from bystander.records import Records
from bystander.stream import Stream
from bystander.summary import Job, Summary

_SECONDS = 20.0  # at least so long between two saves
_STAGES = 3  # jobs of one audit: the rows that fit the attack, the members, the control
_FORMAT = f"bystander checkpoint {__version__}"
_SAMPLE = ("labels", "target", "reference", "keys")


@dataclass(frozen=True, slots=True)
class Stage:
    """Of one job the fragments that are done, and their sum."""

    done: frozenset[int]
    total: Summary


@dataclass(slots=True)
class Kept:
    """One job's stage, beside the audit's others; threads add to it, and it is saved now and then."""

    path: Path
    mine: str  # the fingerprint of the job and its rows
    stages: dict[str, Stage]
    due: float
    saved: bool = True
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def open(cls, path: Path, job: Job, stream: Stream) -> Kept:
        """What the file holds of this job on these very files; nothing where either has changed."""
        path = Path(path)
        if not os.access(path.parent, os.W_OK):
            raise InputError(f"{path}: cannot be written; choose another place")
        return cls(path, fingerprint(job, stream), _load(path), time.monotonic() + _SECONDS)

    @property
    def stage(self) -> Stage | None:
        """What is done, if anything is."""
        return self.stages.get(self.mine)

    def add(self, fragment: int, summary: Summary) -> None:
        """A fragment is done."""
        with self.lock:
            # Taken out and put in last: of the stages of other settings, the oldest are forgotten.
            had = self.stages.pop(self.mine, None)
            new = Stage(frozenset({fragment}), summary)
            self.stages[self.mine] = new if had is None else Stage(had.done | new.done, had.total + summary)
            self.saved = False
            if time.monotonic() >= self.due:
                self._save()

    def save(self) -> None:
        """Write what is not yet written."""
        with self.lock:
            if not self.saved:
                self._save()

    def _save(self) -> None:
        began = time.monotonic()
        self.stages = dict(list(self.stages.items())[-_STAGES:])
        _write(self.path, self.stages)
        self.saved, now = True, time.monotonic()
        self.due = now + max(_SECONDS, 10 * (now - began))


def check(path: Path) -> None:
    """Refuse a file that is something else: it would be replaced, and deleted in the end."""
    _load(path, whole=False)


def fingerprint(job: Job, stream: Stream) -> str:
    """One hash of the job and of every fragment: its file's size and time, and what is read of it."""
    try:
        said = hashlib.sha256(pickle.dumps((_FORMAT, job), protocol=5))
    except (pickle.PicklingError, AttributeError, TypeError):
        raise InputError(f"attack {job.attack.name!r} cannot be pickled: leave the checkpoint out") from None
    files: dict[int, tuple[str, int, int | None]] = {}
    for part in stream.fragments:
        if part.number not in files:
            with reading(part.name, part.file.kind):
                info = part.file.filesystem.get_file_info(part.file.path)
            files[part.number] = (part.name, info.size, info.mtime_ns)
        each = (*files[part.number], part.number, part.columns, part.start, part.rows, part.groups)
        said.update(repr(each).encode("utf-8", "surrogatepass"))
    return said.hexdigest()


def _write(path: Path, stages: dict[str, Stage]) -> None:
    """The whole file or nothing; it holds rows, so it is for its owner alone."""
    arrays: dict[str, Any] = {}
    about = [_pack(f"{place}/", name, stage, arrays) for place, (name, stage) in enumerate(stages.items())]
    told = json.dumps({"format": _FORMAT, "stages": about}).encode()
    aside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(aside, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as stream:
            np.savez(stream, about=np.frombuffer(told, dtype=np.uint8), **arrays)
        os.replace(aside, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another place") from None
    finally:
        aside.unlink(missing_ok=True)


def _load(path: Path, whole: bool = True) -> dict[str, Stage]:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as held:
            about = json.loads(held["about"].tobytes())
            if about["format"] != _FORMAT:
                raise ValueError(about["format"])
            found = enumerate(about["stages"] if whole else [])
            return {each["name"]: _unpack(f"{place}/", each, held) for place, each in found}
    except FileNotFoundError:
        return {}
    except PermissionError:
        raise InputError(f"{path} may not be read: check its permissions") from None
    except MemoryError:
        raise
    except Exception:  # a damaged file makes its reader raise nearly anything
        raise InputError(f"{path} is no checkpoint of this version: delete it, or name another") from None


def _pack(at: str, name: str, stage: Stage, arrays: dict[str, Any]) -> dict[str, Any]:
    """A stage's arrays, and what is to be known beside them."""
    total = stage.total
    arrays[at + "done"] = np.array(sorted(stage.done), dtype=np.int64)
    for place, sketch in enumerate((total.sketch, *total.slices.values())):
        arrays[f"{at}rows/{place}"], arrays[f"{at}right/{place}"] = sketch.rows, sketch.right
    if total.sample is not None:
        arrays |= {at + part: getattr(total.sample, part) for part in _SAMPLE}
    return {
        "name": name,
        "slices": list(total.slices),
        "source": None if total.sample is None else total.sample.source,
        "impossible": total.impossible,
        "seen": total.seen,
    }


def _unpack(at: str, about: dict[str, Any], held: Any) -> Stage:
    def sketch(place: int) -> Sketch:
        return Sketch(held[f"{at}rows/{place}"], held[f"{at}right/{place}"])

    sample = None
    if about["source"] is not None:
        labels, target, reference, keys = (held[at + part] for part in _SAMPLE)
        sample = Records(labels, target, reference, keys, slices=None, slice_names=(), source=about["source"])
    slices = {name: sketch(place) for place, name in enumerate(about["slices"], 1)}
    total = Summary(sketch(0), slices, sample, about["impossible"], about["seen"])
    return Stage(frozenset(held[at + "done"].tolist()), total)
