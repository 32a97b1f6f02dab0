"""Map batches and add up, on this machine's cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add
from pathlib import Path
from typing import TypeVar

from bystander.engines.checkpoint import Kept
from bystander.records import Records
from bystander.stream import Stream
from bystander.summary import Accumulator, Job, Summary

T = TypeVar("T")
Told = Callable[[int], None] | None


def run(
    job: Job,
    rows: Records | Stream,
    then: Callable[[Summary], T],
    progress: Told = None,
    *,
    checkpoint: Path | None = None,
) -> T:
    """Do the job on all rows, and what is wanted with what came of it."""
    workers = max(1, os.cpu_count() or 1)
    if checkpoint is not None and isinstance(rows, Stream):
        return then(_go_on(job, rows, workers, progress, Kept.open(checkpoint, job, rows)))
    return then(_add_up(job, _parts(rows, job.batch, workers), workers, progress))


def _parts(rows: Records | Stream, size: int, workers: int) -> Iterable[Iterable[Records]]:
    """What workers take in turn: a batch in memory, a fragment, or where those are few a batch of a fragment."""
    if isinstance(rows, Records):
        return ([rows.take(slice(start, start + size))] for start in range(0, len(rows), size))
    if len(rows.fragments) < 2 * workers:
        return ([batch] for batch in rows.batches(size))
    return (fragment.batches(size) for fragment in rows.fragments)


def _add_up(job: Job, parts: Iterable[Iterable[Records]], workers: int, progress: Told) -> Summary:
    turn, source = threading.Lock(), iter(parts)

    def work(stop: threading.Event) -> Accumulator:
        mine = job.start()
        while True:
            with turn:
                part = next(source, None)
            if part is None or not _play(mine, part, stop, progress):
                return mine

    return reduce(add, (mine.summary() for mine in _at_once(work, workers)))


def _go_on(job: Job, rows: Stream, workers: int, progress: Told, kept: Kept) -> Summary:
    """Play the fragments that are not done yet, each by itself, and keep what is done."""
    before = kept.stage
    if before is not None and progress is not None:
        progress(before.total.seen)
    turn = threading.Lock()
    left = iter(sorted(set(range(len(rows.fragments))) - (before.done if before else set())))

    def work(stop: threading.Event) -> None:
        while True:
            with turn:
                place = next(left, None)
            if place is None:
                return
            mine = job.start()
            if not _play(mine, rows.fragments[place].batches(job.batch), stop, progress):
                return
            kept.add(place, mine.summary())

    try:
        _at_once(work, workers)
    finally:
        kept.save()
    assert kept.stage is not None  # a stream has rows
    return kept.stage.total


def _play(mine: Accumulator, part: Iterable[Records], stop: threading.Event, progress: Told) -> bool:
    """Add a part's batches up; whether it came to its end."""
    for batch in part:
        if stop.is_set():
            return False
        mine.add(batch)
        if progress is not None:
            progress(len(batch))
    return True


def _at_once(work: Callable[[threading.Event], T], workers: int) -> list[T]:
    """What each worker returns; where one fails, or the user interrupts, the others are told to stop."""
    stop = threading.Event()

    def told() -> T:
        try:
            return work(stop)
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(workers) as pool:
        try:
            return [worker.result() for worker in [pool.submit(told) for _ in range(workers)]]
        except BaseException:
            stop.set()
            raise
