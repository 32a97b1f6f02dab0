"""Where games are played: here or on a cluster, with the same counts, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

from bystander.records import Records
from bystander.stream import Stream
from bystander.summary import Job, Summary

T = TypeVar("T")
Told = Callable[[int], None] | None


class Engine(Protocol):
    """Map rows and add up: the two verbs of every engine."""

    streams: ClassVar[bool]

    def run(self, job: Job, rows: Records | Stream, then: Callable[[Summary], T], progress: Told = None) -> T:
        """Do a job on all rows, then `then` with the sum, where the sum is."""


@dataclass(frozen=True, slots=True)
class Local:
    """This machine's cores; a stream's progress is kept at `checkpoint`, and the same audit goes on from there."""

    checkpoint: Path | None = None
    streams: ClassVar[bool] = False

    def run(self, job: Job, rows: Records | Stream, then: Callable[[Summary], T], progress: Told = None) -> T:
        """Threads take batches in turn."""
        from bystander.engines import local

        return local.run(job, rows, then, progress, checkpoint=self.checkpoint)


@dataclass(frozen=True, slots=True)
class Ray:
    """A Ray cluster: the one at `address`, or one started here."""

    address: str | None = None
    streams: ClassVar[bool] = True

    def run(self, job: Job, rows: Records | Stream, then: Callable[[Summary], T], progress: Told = None) -> T:
        """Fragments are tasks; sums are added up in a tree."""
        from bystander.engines import ray

        return ray.run(job, rows, then, progress, address=self.address)
