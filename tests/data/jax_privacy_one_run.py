"""jax-privacy's one-run bounds at explicit thresholds, on scores that need no random numbers.

bench/.venvs/jax-privacy/bin/python tests/data/jax_privacy_one_run.py   (the environment: bench/venvs.py)
writes tests/data/jax_privacy_one_run.json, which tests/test_scores.py compares `bystander.scores` with.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Canaries of each kind, the gap between kinds, the threshold, δ, the significance.
CASES = (
    (1_000, 0.1, 0.95, 1e-5, 0.05),
    (1_000, 0.5, 1.2, 1e-5, 0.05),
    (5_000, 0.05, 0.5, 1e-6, 0.01),
    (5_000, 0.3, 1.1, 1e-5, 0.05),
    (50_000, 0.02, 0.9, 1e-5, 0.05),
    (50_000, 0.2, 1.15, 1e-7, 0.1),
    (50_000, 0.0, 0.9, 1e-5, 0.05),
)


def scores(rows: int, gap: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Members and others: evenly spread numbers; members are higher by the gap, and so is every 17th other."""
    spread = np.arange(1, rows + 1) * 0.6180339887498949 % 1.0
    return spread + gap, spread + gap * (np.arange(rows) % 17 == 0)


def measure(rows: int, gap: float, threshold: float, delta: float, significance: float) -> dict[str, Any]:
    """Both of its bounds."""
    from jax_privacy import auditing

    auditor, at = auditing.CanaryScoreAuditor(*scores(rows, gap)), auditing.Explicit(threshold)
    return {
        "case": [rows, gap, threshold, delta, significance],
        "epsilon_one_run": float(auditor.epsilon_one_run(significance, delta, threshold_strategy=at)),
        "epsilon_one_run_fdp": float(auditor.epsilon_one_run_fdp(significance, delta, threshold_strategy=at)),
    }


if __name__ == "__main__":
    packages = ("jax-privacy", "jax", "dp-accounting", "numpy", "scipy")
    record = {
        "command": "bench/.venvs/jax-privacy/bin/python tests/data/jax_privacy_one_run.py",
        "versions": {name: version(name) for name in packages},
        "measured": [measure(*case) for case in CASES],
    }
    Path(__file__).with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
