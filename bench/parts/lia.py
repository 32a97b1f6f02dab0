"""200,000 binary rows, 100 games: our default audit beside PrivacyGuard's label-inference attack and analysis."""

from __future__ import annotations

from typing import Any

from bench import problem
from bench.runs import ratio, turns, values, worker
from bench.venvs import HERE

ROWS, GAMES, SOME, TIMES = 200_000, 100, 10, 5
THEIRS = ("attack_seconds", "analysis_seconds")


def measure() -> dict[str, Any]:
    """Ours plays every game; theirs plays 10, counted ten times; their whole 100 once, for the memory."""
    arrays = problem.save(HERE / ".data", ROWS)
    outcomes = turns(
        TIMES,
        {
            "ours": lambda: worker("ours", "audit", **arrays, games=GAMES),
            "privacyguard": lambda: worker("privacyguard", "lia", **arrays, games=SOME),
        },
    )
    whole = worker("privacyguard", "lia", **arrays, games=GAMES)
    seconds, peak = values(outcomes["ours"], "seconds"), values(outcomes["ours"], "peak_mib")
    base = values(outcomes["ours"], "base_mib")
    scaled = {
        fields: [GAMES / SOME * each for each in values(outcomes["privacyguard"], *fields)]
        for fields in (THEIRS, THEIRS[1:])
    }
    return {
        "sizes": {"rows": ROWS, "games": GAMES, "games_scaled_from": SOME, "repetitions": TIMES},
        "ratios": {
            "time": ratio(scaled[THEIRS], seconds),
            "time_analysis_alone": ratio(scaled[THEIRS[1:]], seconds),
            "time_unscaled": ratio([sum(whole[field] for field in THEIRS)] * TIMES, seconds),
            "processor_time": ratio(
                [GAMES / SOME * each for each in values(outcomes["privacyguard"], "processor_seconds")],
                values(outcomes["ours"], "processor_seconds"),
            ),
            "memory": ratio(peak, [whole["peak_mib"]] * TIMES),
            "memory_net": ratio(
                [a - b for a, b in zip(peak, base, strict=True)], [whole["peak_mib"] - whole["base_mib"]] * TIMES
            ),
            "memory_ten_games": ratio(peak, values(outcomes["privacyguard"], "peak_mib")),
        },
        "profile": worker("ours", "phases", rows=ROWS, games=GAMES, times=5),
        "privacyguard_100_games": whole,
        "outcomes": outcomes,
    }
