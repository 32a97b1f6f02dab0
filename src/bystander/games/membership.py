"""Membership, played on one score a row: was the row shown trained on?

`paired` is observational: each trained row has a fresh one beside it, and a fair coin shows one of the two. `given`
is interventional: the coins were tossed before training and decided who was in it. Proofs: docs/games/membership.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bystander._keys import mix64
from bystander.counts import Tally
from bystander.games.guesses import Guess

Keys = NDArray[np.uint64]
_MEMBER, _OTHER, _TIE = np.uint64(0x8CB92BA72F3D8DD7), np.uint64(0x2545F4914F6CDD1D), np.uint64(0xD1B54A32D192ED03)


def _start(seed: int) -> Keys:
    return mix64(np.array([seed & (1 << 64) - 1], dtype=np.uint64))


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Rows of one kind: a score and a key each."""

    scores: NDArray[np.float64]
    keys: Keys

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.scores)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Member i beside other i, in an order that hashes of their keys fix; and the key that its coins hash."""

    scores: NDArray[np.float64]  # (2, m): members, others
    ties: Keys  # (2, m)
    keys: Keys  # (m,)

    @classmethod
    def of(cls, members: Scored, others: Scored, seed: int) -> Pairs:
        """Pair as many rows as there are of the rarer kind."""
        m = min(len(members), len(others))
        start = _start(seed)
        chosen = []
        for rows, salt in ((members, _MEMBER), (others, _OTHER)):
            place = mix64(mix64(rows.keys ^ start) + salt)
            order = np.argsort(place, kind="stable")[:m]
            chosen.append((rows.scores[order], mix64(place[order] ^ _TIE), rows.keys[order]))
        (scores, ties, first), (other_scores, other_ties, second) = chosen
        keys = mix64(mix64(first + _MEMBER) ^ (second + _OTHER))
        return cls(np.stack((scores, other_scores)), np.stack((ties, other_ties)), keys)


def paired(pairs: Pairs, guess: Guess, games: Keys, cuts: tuple[int, ...]) -> Tally:
    """Play every game on the pairs. All 2m rows are sorted once; a game keeps the m that its coins show."""
    from bystander._play import shown

    m, guesses = len(pairs.keys), np.asarray(cuts, dtype=np.int64)
    order = guess.order(pairs.scores.ravel(), pairs.ties.ravel())
    other, keys, scores = order >= m, pairs.keys[order % m], pairs.scores.ravel()[order]
    correct = np.empty((len(games), len(cuts)), dtype=np.int64)
    held = np.empty(m + 1, dtype=np.int64)
    for g, game in enumerate(games):
        shown(game, keys, other, held)
        rows = held[:m]
        correct[g] = guess.correct(scores[rows], ~other[rows], guesses)
    return Tally(m, guesses, correct)


def given(rows: Scored, member: NDArray[np.bool_], guess: Guess, seed: int, cuts: tuple[int, ...]) -> Tally:
    """The one game whose coins, `member`, were tossed before training."""
    salt = np.where(member, _MEMBER, _OTHER)  # a member and an other of one key are different rows
    order = guess.order(rows.scores, mix64(mix64(rows.keys ^ _start(seed)) + salt))
    guesses = np.asarray(cuts, dtype=np.int64)
    return Tally(len(rows), guesses, guess.correct(rows.scores[order], member[order], guesses)[None])
