"""Workers in fresh processes, taking turns, and the ratios of what they measure."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.venvs import ROOT, python

Outcome = dict[str, Any]
MODULES = {
    "ours": "ours",
    "privacyguard": "privacyguard",
    "jax-privacy": "jaxprivacy",
    "command": "command",
    "plain": "plain",
}


def worker(who: str, task: str, *, limit: float = 600, **arguments: Any) -> Outcome:
    """Run a task in a fresh process; `{"timed_out": limit}` where it takes longer than `limit` seconds."""
    interpreter = python("ours" if who in ("command", "plain") else who)
    command = [str(interpreter), "-m", f"bench.workers.{MODULES[who]}", json.dumps({"task": task, **arguments})]
    print(f"  {who}: {task} {arguments}", file=sys.stderr)
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"timed_out": limit}
    if done.returncode:
        raise RuntimeError(f"{who} failed at {task}:\n{done.stderr[-3000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def turns(times: int, tasks: Mapping[str, Callable[[], Outcome]]) -> dict[str, list[Outcome]]:
    """Each task so many times: A B A B …, so that the machine's moods strike all alike."""
    outcomes: dict[str, list[Outcome]] = {name: [] for name in tasks}
    for _ in range(times):
        for name, task in tasks.items():
            outcomes[name].append(task())
    return outcomes


def median(outcomes: Sequence[Outcome], *fields: str) -> float:
    """The median over repetitions of a field, or of a sum of fields."""
    return statistics.median(sum(outcome[field] for field in fields) for outcome in outcomes)


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> dict[str, float]:
    """How many times more theirs is: the ratio of medians, and the least and most over pairs of repetitions."""
    pairs = [a / b for a, b in zip(theirs, ours, strict=True)]
    return {"ratio": statistics.median(theirs) / statistics.median(ours), "min": min(pairs), "max": max(pairs)}


def values(outcomes: Sequence[Outcome], *fields: str) -> list[float]:
    """A field, or a sum of fields, of each repetition."""
    return [float(sum(outcome[field] for field in fields)) for outcome in outcomes]
