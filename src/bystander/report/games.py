"""What reports call the things of each game. A game that is not named here is spoken of in general."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bystander.result import Result


@dataclass(frozen=True, slots=True)
class Game:
    """The words of one game."""

    true: str = "true values"
    other: str = "counterfactual values"
    axis: str = "score: how sure the attack is of the true value"
    parted: str = "Where the two distributions part, the attack can tell a true value from a counterfactual one."
    doubt: str = "about one bit with two equally likely values"
    classes: bool = True  # whether the number of classes says anything
    spared: str = "No control is needed: nothing was drawn after training."  # said where nothing stands for the truth


LABEL = Game(
    true="true labels",
    other="counterfactual labels",
    axis="score: how sure the attack is of the label",
    parted="Where the two distributions part, the attack can tell a training label from an imputed one.",
    doubt="about one label with two equally likely values",
)
MEMBERSHIP = Game(
    true="members",
    other="others",
    axis="score: higher looks trained on",
    parted="Where the two distributions part, the attack can tell a row that was trained on from one that was not.",
    doubt="about whether one row was trained on, where a fair coin decided",
    classes=False,
    spared="No control is needed: the coins were tossed before training, and the rows that they left out are one.",
)
ATTRIBUTE = Game(
    true="true values of what is protected",
    other="drawn values",
    axis="score: how sure the attack is of the value",
    parted="Where the two distributions part, the attack can tell the value in a training record from a drawn one.",
    doubt="about one value where two are equally likely",
    classes=False,
)
CANARIES = Game(
    true="canaries planted with the first label",
    other="canaries planted with the second",
    axis="score: how sure the attack is of the first label",
    parted="Where the two distributions part, the attack can tell which of two labels a canary was trained with.",
    doubt="about which of two labels a canary was trained with",
    spared="No control is needed: the coins were tossed before training, and the label that each left out is one.",
)
_GAMES = {
    "label": LABEL,
    "membership": MEMBERSHIP,
    "membership-one-run": MEMBERSHIP,
    "attribute": ATTRIBUTE,
    "label-canaries": CANARIES,
}


def game(result: Result) -> Game:
    """The words of the game that was played."""
    return _GAMES.get(result.game, Game())
