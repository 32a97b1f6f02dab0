"""Map batches and add up, on this machine's cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add

from bystander.records import Records
from bystander.summary import Accumulator, Job, Summary


def batches(records: Records, games: int) -> Iterator[Records]:
    """Rows in memory, in parts that take a moment each."""
    size = min(131_072, max(4096, 13_000_000 // max(1, games)))
    for start in range(0, len(records), size):
        yield records.take(slice(start, start + size))


def add_up(job: Job, parts: Iterable[Records], progress: Callable[[int], None] | None = None) -> Summary:
    """Do the job on every batch: workers take turns to read one, and add up what came of theirs."""
    turn, stop, source = threading.Lock(), threading.Event(), iter(parts)

    def work() -> Accumulator:
        mine = job.start()
        try:
            while not stop.is_set():
                with turn:
                    batch = next(source, None)
                if batch is None:
                    break
                mine.add(batch)
                if progress is not None:
                    progress(len(batch) * max(1, len(job.games)))
        except BaseException:
            stop.set()
            raise
        return mine

    workers = max(1, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as pool:
        running = [pool.submit(work) for _ in range(workers)]
        try:
            done = [worker.result() for worker in running]
        except BaseException:
            stop.set()
            raise
    return reduce(add, (mine.summary() for mine in done))
