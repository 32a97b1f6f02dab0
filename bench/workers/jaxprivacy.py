"""jax-privacy's side: its two one-run bounds of one count."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax_privacy import auditing

from bench.workers import meter

DELTA, LEVEL = 1e-5, 0.05


def auditor(canaries: int, guesses: int, correct: int) -> Any:
    """Scores that make so many guesses at a threshold of 1, of which so many are right."""
    member = np.zeros(canaries // 2)
    other = np.zeros(canaries - len(member))
    member[:correct] = 1.0
    other[: guesses - correct] = 1.0
    return auditing.CanaryScoreAuditor(member, other)


def one_run(canaries: int, guesses: int, correct: int, family: str) -> dict[str, Any]:
    """Its bound at one threshold; the making of the auditor is not timed."""
    made = auditor(canaries, guesses, correct)
    method = made.epsilon_one_run_fdp if family == "gaussian" else made.epsilon_one_run
    auditor(1000, 100, 90).epsilon_one_run(LEVEL, DELTA, threshold_strategy=auditing.Explicit(1.0))
    seconds, epsilon = meter.timed(lambda: method(LEVEL, DELTA, threshold_strategy=auditing.Explicit(1.0)))
    return {"seconds": seconds[0], "epsilon": float(epsilon)}


if __name__ == "__main__":
    meter.main({"one-run": one_run}, ("jax-privacy", "jax", "numpy", "scipy", "dp-accounting"))
