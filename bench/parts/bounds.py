"""One bound of one count: ours beside jax-privacy's one-run bounds and PrivacyGuard's f-DP node."""

from __future__ import annotations

from typing import Any

from bench.runs import Outcome, median, ratio, turns, values, worker

CANARIES = 1_000_000
COUNTS = {"c' = 100,000, c = 60,000": (100_000, 60_000), "c' = 1,000, c = 950": (1_000, 950)}
TIMES = 3
SLOW = 10_000  # guesses beyond which PrivacyGuard's grid takes too long to run whole


def measure() -> dict[str, Any]:
    """Every count by everyone."""
    return {"canaries": CANARIES, "counts": {name: _count(*count) for name, count in COUNTS.items()}}


def _count(guesses: int, correct: int) -> dict[str, Any]:
    count = {"canaries": CANARIES, "guesses": guesses, "correct": correct}
    mu = _ours(count, "gaussian")["mu"]
    slow = guesses > SLOW
    sampled = {"task": "fdp-sampled", "mu": mu, "times": 4}
    fdp = sampled if slow else {"task": "fdp"}
    outcomes = turns(
        TIMES,
        {
            "ours": lambda: _ours(count, "gaussian"),
            "jax-privacy": lambda: worker("jax-privacy", "one-run", **count, family="gaussian"),
            "ours, Steinke": lambda: _ours(count, "steinke"),
            "jax-privacy, Steinke": lambda: worker("jax-privacy", "one-run", **count, family="steinke"),
            "privacyguard": lambda: worker("privacyguard", **fdp, **count),
        },
    )
    check = None if slow else worker("privacyguard", **sampled, **count)["seconds"]
    times = {name: values(each, "seconds") for name, each in outcomes.items()}
    epsilon = {name: each[0]["epsilon"] for name, each in outcomes.items()}
    return {
        "sizes": count,
        "privacyguard_scaled_from_levels": fdp.get("times"),
        "privacyguard_scaled_over_whole": None
        if check is None
        else check / median(outcomes["privacyguard"], "seconds"),
        "ratios": {
            "jax-privacy": ratio(times["jax-privacy"], times["ours"]),
            "jax-privacy, Steinke": ratio(times["jax-privacy, Steinke"], times["ours, Steinke"]),
            "privacyguard": ratio(times["privacyguard"], times["ours"]),
        },
        "epsilon": epsilon,
        "difference_from_jax_privacy": {
            "gaussian": abs(epsilon["ours"] - epsilon["jax-privacy"]),
            "steinke": abs(epsilon["ours, Steinke"] - epsilon["jax-privacy, Steinke"]),
        },
        "outcomes": outcomes,
    }


def _ours(count: dict[str, int], family: str) -> Outcome:
    return worker("ours", "bound", **count, family=family, times=51)
