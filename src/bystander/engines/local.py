"""Map batches and add up, on this machine's cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add
from typing import TypeVar

from bystander.records import Records
from bystander.stream import Stream
from bystander.summary import Accumulator, Job, Summary

T = TypeVar("T")


def run(
    job: Job, rows: Records | Stream, then: Callable[[Summary], T], progress: Callable[[int], None] | None = None
) -> T:
    """Do the job on all rows, and what is wanted with what came of it."""
    workers = max(1, os.cpu_count() or 1)
    return then(_add_up(job, _parts(rows, job.batch, workers), workers, progress))


def _parts(rows: Records | Stream, size: int, workers: int) -> Iterable[Iterable[Records]]:
    """What workers take in turn: a batch in memory, a fragment, or where those are few a batch of a fragment."""
    if isinstance(rows, Records):
        return ([rows.take(slice(start, start + size))] for start in range(0, len(rows), size))
    if len(rows.fragments) < 2 * workers:
        return ([batch] for batch in rows.batches(size))
    return (fragment.batches(size) for fragment in rows.fragments)


def _add_up(
    job: Job, parts: Iterable[Iterable[Records]], workers: int, progress: Callable[[int], None] | None
) -> Summary:
    turn, stop, source = threading.Lock(), threading.Event(), iter(parts)

    def work() -> Accumulator:
        mine = job.start()
        try:
            while True:
                with turn:
                    part = next(source, None)
                if part is None:
                    return mine
                for batch in part:
                    if stop.is_set():
                        return mine
                    mine.add(batch)
                    if progress is not None:
                        progress(len(batch))
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(workers) as pool:
        running = [pool.submit(work) for _ in range(workers)]
        try:
            done = [worker.result() for worker in running]
        except BaseException:
            stop.set()
            raise
    return reduce(add, (mine.summary() for mine in done))
