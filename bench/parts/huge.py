"""A bound at m = 10⁹ canaries, and the Gaussian ones checked against the recursion written out step by step."""

from __future__ import annotations

from typing import Any

from bench.runs import worker

CANARIES, LIMIT = 10**9, 60.0
SHARES = (0.01, 1.0)
ACCURACIES = (0.5001, 0.51, 0.6, 0.95, 0.9999)  # close to none, close to all: there the recursion may go slowly


def measure() -> dict[str, Any]:
    """Both families, few guesses and all, at several accuracies; what takes more than a minute is stopped."""
    found = {}
    for family in ("approx", "gaussian"):
        for share in SHARES:
            for accuracy in ACCURACIES:
                guesses = round(share * CANARIES)
                count = {"canaries": CANARIES, "guesses": guesses, "correct": round(accuracy * guesses)}
                done = worker("ours", "bound", limit=LIMIT, **count, family=family, times=3)
                if family == "gaussian":
                    done["plain"] = worker("plain", "largest", limit=LIMIT, **count)
                found[f"{family}, c' = {share:.0%} of m, {accuracy:.2%} right"] = done
    return {"canaries": CANARIES, "limit_seconds": LIMIT, "bounds": found}
