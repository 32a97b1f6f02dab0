"""Map fragments and add up on a Ray cluster: the driver holds no rows, lost workers' fragments are done again."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial, reduce
from operator import add
from typing import Any, TypeVar

from bystander._validate import InputError
from bystander.records import Records
from bystander.stream import Fragment, Stream
from bystander.summary import Job, Summary

T = TypeVar("T")

_WIDTH = 8  # summaries that one task adds up
_RETRIES = 20  # of a task whose worker or node was lost


def run(
    job: Job,
    rows: Records | Stream,
    then: Callable[[Summary], T],
    progress: Callable[[int], None] | None = None,
    *,
    address: str | None = None,
) -> T:
    """Do the job on every fragment, add up in a tree, and do what is wanted with it where the sum is."""
    if isinstance(rows, Records):
        raise InputError(
            "engine ray reads files: give files, without --group, --canaries or a join, or use engine local"
        )
    ray = _connect(address)
    from ray.exceptions import RayError, RayTaskError

    play = ray.remote(num_cpus=1, max_retries=_RETRIES)(_play)
    merge = ray.remote(num_cpus=1, max_retries=_RETRIES)(_merge)
    finish = ray.remote(num_cpus=1, max_retries=_RETRIES)(_finish)
    quiet = partial(redirect_stdout, sys.stderr)  # where Ray's own lines on lost nodes belong
    try:
        shared = ray.put(job)
        sizes = {play.remote(shared, fragment): fragment.rows or 0 for fragment in rows.fragments}
        waiting, sums = list(sizes), []
        while waiting:
            with quiet():
                done, waiting = ray.wait(waiting, num_returns=1)
            sums += done
            played = [sizes.pop(ref, 0) for ref in done]  # popped: a reference kept keeps its summary alive
            if progress is not None:
                progress(sum(played))
            if len(sums) == _WIDTH:  # a sum waits its turn among the fragments that are still played
                waiting.append(merge.remote(*sums))
                sums = []
        with quiet():
            result: T = ray.get(finish.remote(then, *sums))
    except RayTaskError as error:
        if isinstance(error.cause, InputError):
            raise InputError(str(error.cause)) from None
        raise InputError(f"engine ray: a task failed: {_line(error.cause)}") from None
    except RayError as error:
        raise InputError(f"engine ray: the cluster gave up: {_line(error)}") from None
    return result


def _play(job: Job, fragment: Fragment) -> Summary:
    mine = job.start()
    for batch in fragment.batches(job.batch):
        mine.add(batch)
    return mine.summary()


def _merge(*sums: Summary) -> Summary:
    return reduce(add, sums)


def _finish(then: Callable[[Summary], T], *sums: Summary) -> T:
    return then(reduce(add, sums))


def _connect(address: str | None) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise InputError("engine ray is not installed: pip install 'bystander[ray]'") from None
    if not ray.is_initialized():
        if address is not None:
            _answers(address)
        try:
            ray.init(
                address=address or "local", log_to_driver=False, logging_level=logging.ERROR, include_dashboard=None
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise InputError(f"--ray-address {address}: no cluster answers ({_line(error)})") from None
    return ray


def _answers(address: str) -> None:
    """Refuse at once an address where nothing listens: Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, ValueError, OverflowError) as error:
        advice = "give the HOST:PORT of a running cluster's head"
        raise InputError(f"--ray-address is {address!r}: nothing answers there ({_line(error)}); {advice}") from None


def _line(error: object) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:197] + "…"
