"""PrivacyGuard's side: its label-inference attack with its analysis, and its one-run f-DP node."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from privacy_guard.analysis.lia.lia_analysis_node import LIAAnalysisNode
from privacy_guard.analysis.mia.aggregate_analysis_input import AggregationType
from privacy_guard.analysis.mia.fdp_analysis_node import FDPAnalysisNode
from privacy_guard.attacks.lia_attack import LIAAttack, LIAAttackInput

from bench.workers import meter

DELTA = 1e-5
warnings.filterwarnings("ignore")


def attack(labels: Any, target: Any, reference: Any, games: int) -> Any:
    """Its attack with its defaults: one row a user, labels redrawn from the calibration model's predictions."""
    ids = np.arange(len(labels))
    here = pd.DataFrame({"user_id": ids, "label": labels, "predictions": target})
    there = pd.DataFrame({"user_id": ids, "predictions": reference})
    given = LIAAttackInput(here, there, AggregationType.NONE).prepare_attack_input()
    return LIAAttack(given, AggregationType.NONE, num_resampling_times=games).run_attack()


def analyse(given: Any) -> Any:
    """Its analysis with its defaults (10 bootstraps a game)."""
    return LIAAnalysisNode(given, delta=DELTA).run_analysis()


def lia(labels: str, target: str, reference: str, games: int) -> dict[str, Any]:
    """The attack and its analysis, once in this process."""
    rng = np.random.default_rng(0)
    analyse(attack(rng.integers(0, 2, 2000), rng.uniform(0.1, 0.9, 2000), rng.uniform(0.1, 0.9, 2000), 2))
    base = meter.memory()[0]
    arrays = np.load(labels), np.load(target), np.load(reference)
    processor = time.process_time()
    first, given = meter.timed(lambda: attack(*arrays, games))
    second, result = meter.timed(lambda: analyse(given))
    processor = time.process_time() - processor
    return {
        "attack_seconds": first[0], "analysis_seconds": second[0], "processor_seconds": processor,
        "base_mib": base, "epsilon": result.eps,
    }  # fmt: skip


def fdp(canaries: int, guesses: int, correct: int) -> dict[str, Any]:
    """Its f-DP node, with its default grid of 1,000 noise levels."""
    node = FDPAnalysisNode(m=canaries, c=correct, c_cap=guesses, delta=DELTA)
    seconds, result = meter.timed(node.run_analysis)
    return {"seconds": seconds[0], "epsilon": result.eps}


def fdp_sampled(canaries: int, guesses: int, correct: int, mu: float, times: int) -> dict[str, Any]:
    """The same where the whole would take half an hour or more: a few of the noise levels that it would try, scaled.

    It tries noise levels from the least on and stops at the first that it rejects, the one at 1/μ. The levels before
    run the recursion to its end and cost alike; the last is cheaper, and counted once. The μ given is checked against
    its own test there, and the scaling where the whole can be run too (part `bounds`).
    """
    node = FDPAnalysisNode(m=canaries, c=correct, c_cap=guesses, delta=DELTA)
    last = next(k for k, noise in enumerate(node.candidate_noises) if noise >= 1 / mu)
    seconds, rejected = [], []
    for k in (*np.linspace(0, last - 1, times - 1).astype(int), last):
        once, accepted = meter.timed(
            lambda k=k: node.audit_rh_with_cap(node.inverse_blow_up_functions[k], canaries, correct, guesses)
        )
        seconds += once
        rejected.append(not accepted)
    return {
        "seconds": float(np.mean(seconds[:-1])) * last + seconds[-1],
        "each_seconds": seconds,
        "levels": last + 1,
        "stops_where_expected": rejected == [False] * (times - 1) + [True],
        "epsilon": node.calculate_epsilon_gaussian(node.candidate_noises[last]),
    }


if __name__ == "__main__":
    meter.main(
        {"lia": lia, "fdp": fdp, "fdp-sampled": fdp_sampled},
        ("privacyguard-platform", "torch", "numpy", "pandas", "scipy"),
    )
