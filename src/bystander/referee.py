"""Any game of Algorithm 1, a user's own too: played, counted, and judged as every other audit is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from bystander._validate import InputError
from bystander.asked import RECORDS, Asked
from bystander.counts import Tally
from bystander.games.game import Attack, Data, Ended, Game, H, O, S, play
from bystander.games.label import game_keys
from bystander.outcome import saw_two
from bystander.result import Result
from bystander.selection import Quantile, Selection
from bystander.tradeoff import Family, Shift
from bystander.verdict import Played, verdict


def audit_game(
    game: Game[S, H],
    data: Data,
    mechanism: Callable[[Data], O],
    attack: Attack[O, H],
    *,
    selection: Selection | None = None,
    combination: Quantile | None = None,
    family: Family | None = None,
    confidence: float = 0.95,
    tau: float | Shift = 0.0,
    games: int = 1,
    seed: int = 0,
) -> Result:
    """Play Algorithm 1 and bound ε from what comes of it. `mechanism` trains; `attack` scores what it is told.

    A game that hands the training data back unchanged is observational: the mechanism then runs once, however many
    games there are. Another trains anew for every game.

    >>> import numpy as np
    >>> from bystander.games.game import Data
    >>> from bystander.games.interventional import Inclusion
    >>> rows = Data(np.zeros((2000, 0)), np.arange(2000), np.arange(2000, dtype=np.uint64))
    >>> def release(data):  # of every row a noisy bit: was it there?
    ...     rng = np.random.default_rng(0)
    ...     return np.isin(np.arange(2000), data.y) + rng.laplace(0, 1 / 2, 2000)  # 2-DP for adding a row
    >>> result = audit_game(Inclusion(), rows, release, lambda noisy, told: noisy[told.y] - 0.5)
    >>> 1.2 < result.epsilon < 2, result.notes
    (True, ('Training was intervened in: the game changed what was trained on.', 'Trained 1 time.'))
    """
    asked = Asked.of(
        None, game.name, selection=selection, combination=combination, family=family, confidence=confidence, tau=tau,
        games=games, seed=seed,
    )  # fmt: skip
    if game.stand_in is None and asked.question.shift.tau > 0:
        raise InputError(f"tau is {asked.question.shift.tau:g}: nothing stands for the truth in {game.name}; use tau 0")
    once = _Once(mechanism)
    ended = [play(game, once, attack, data, key) for key in game_keys(asked.seed, asked.games)]
    canaries = len(ended[0])
    if odd := [len(each) for each in ended if len(each) != canaries]:
        raise InputError(
            f"{game.name} has {canaries:,} canaries in one game and {odd[0]:,} in another: give every game the same"
        )
    first = ended[0]
    alone = all(each.observational for each in ended)
    told = (
        "Training was left alone: every game handed the training data back unchanged."
        if alone
        else "Training was intervened in: the game changed what was trained on."
    )
    return verdict(
        Played(
            game=game.name,
            attack=getattr(attack, "__name__", type(attack).__name__),
            canaries=canaries,
            classes=RECORDS,
            games=asked.games,
            seed=asked.seed,
            tally=lambda cuts: _tally(ended, cuts),
            seen=saw_two(first.scores[~first.bits], first.scores[first.bits]),
            assumptions=(*game.assumptions, "The attack reads the mechanism's output and what it is told, and no bit."),
            stand_in=game.stand_in,
            notes=(told, f"Trained {once.runs:,} time{'s' * (once.runs != 1)}."),
        ),
        asked.selection,
        asked.question,
    )


class _Once(Generic[O]):
    """A mechanism that does not train again on the data that it was trained on last."""

    def __init__(self, mechanism: Callable[[Data], O]) -> None:
        self.mechanism, self.runs = mechanism, 0
        self.last: tuple[Data, O] | None = None

    def __call__(self, data: Data) -> O:
        """Train, or hand out what came of the same data."""
        if self.last is None or not self.last[0].same(data):
            self.last, self.runs = (data.copy(), self.mechanism(data)), self.runs + 1
        return self.last[1]


def _tally(ended: list[Ended], cuts: tuple[int, ...]) -> Tally:
    guesses: NDArray[np.int64] = np.asarray(cuts, dtype=np.int64)
    return Tally(len(ended[0]), guesses, np.stack([each.correct(cuts) for each in ended]))
