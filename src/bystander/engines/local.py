"""Play games on this machine's cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np
from numpy.typing import NDArray

from bystander.counts import Tally
from bystander.games.label import LabelGame


def game_key(seed: int, game: int) -> np.uint64:
    """The key under which one game hashes its rows."""
    mask = (1 << 64) - 1

    def mix(x: int) -> int:
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        return x ^ (x >> 31)

    return np.uint64(mix((mix((seed + 1) & mask) + (game + 1) * 0x9E3779B97F4A7C15) & mask))


def play(
    game: LabelGame, cuts: tuple[int, ...], *, games: int, seed: int, progress: Callable[[int], None] | None = None
) -> Tally:
    """Play `games` games and count how many of the strongest guesses are right, at every cut."""
    from bystander._kernels import BINS
    from bystander._kernels import play as kernel

    guesses = np.asarray(cuts, dtype=np.int64)
    correct = np.zeros((games, len(cuts)), dtype=np.int64)
    workers = max(1, min(os.cpu_count() or 1, games))

    def share(mine: range) -> None:
        ranks: NDArray[np.uint64] = np.empty(len(game), dtype=np.uint64)
        bins: NDArray[np.int64] = np.empty(BINS, dtype=np.int64)
        for g in mine:
            if stop:
                return
            kernel(
                game_key(seed, g), game.keys, game.labels, game.thresholds, game.ranking.place, game.ranking.spread,
                guesses, ranks, bins, correct[g],
            )  # fmt: skip
            if progress is not None:
                progress(len(game))

    stop: list[bool] = []
    with ThreadPoolExecutor(workers) as pool:
        shares = [pool.submit(share, range(w, games, workers)) for w in range(workers)]
        try:
            for done in as_completed(shares):
                done.result()
        except BaseException:
            stop.append(True)
            raise
    return Tally(len(game), guesses, correct)
