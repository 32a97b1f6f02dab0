"""What an audit says: one small frozen value. Reports draw it and compute nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bystander._version import __version__
from bystander.tradeoff import Family

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on ε from one count, and what it rests on."""

    epsilon: float
    confidence: float
    family: Family
    mu: float | None
    canaries: int
    guesses: int
    correct: int
    tau: float
    tau_star: float | None
    assumptions: tuple[str, ...]
    valid: bool = True
    tau_form: str = "theorem"
    stand_in: str | None = "counterfactual"  # what stood for the truth, in words; None where nothing had to

    @property
    def delta(self) -> float:
        """The δ at which ε is stated."""
        return self.family.delta

    def __float__(self) -> float:
        return self.epsilon

    def as_dict(self) -> dict[str, Any]:
        """The names of the command line's `--json`."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "confidence": self.confidence,
            "family": self.family.name,
            "mu": self.mu,
            "canaries": self.canaries,
            "guesses": self.guesses,
            "correct": self.correct,
            "tau": self.tau,
            "tau_form": self.tau_form,
            "tau_star": self.tau_star,
            "valid": self.valid,
            "assumptions": list(self.assumptions),
            "version": __version__,
        }


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of a picture: x, y and, where there is one, a second y."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    other: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Pictures:
    """What the pictures draw, computed by the audit. None of it is a bound but `bounds`."""

    guesses: Curve  # x: fraction guessed; y: mean over games of ε at that fraction alone; other: its sd
    bounds: Curve  # x: the selection's candidate fractions; y: the valid bound each gives (0 where none)
    shift: Curve  # x: τ; y: ε with that τ assumed, at the selected count
    scores: Curve  # x: bin edges (one more than y); y: density of true labels; other: of counterfactual ones
    reliability: Curve  # x: mean reference probability of a bin; y: observed rate; other: rows in the bin


@dataclass(frozen=True, slots=True)
class Slice:
    """The same audit on the rows of one group, at a confidence corrected over the groups."""

    value: str
    bound: Bound
    control: Bound | None = None


@dataclass(frozen=True, slots=True)
class Quality:
    """How well what stood for the truth did on control rows.

    `shift` is by how much one set of (row, version), learned on other rows, tells true versions from stand-ins; `low`
    and `high` enclose it at this confidence. A positive `low` bounds the mean total variation τ of the tested rows
    from below. `high` bounds no τ: another set might see more.
    """

    rows: int
    confidence: float
    shift: float
    low: float
    high: float
    log_loss: float | None = None
    constant: float | None = None  # log-loss of the best constant
    calibrated: Mapping[str, float] = field(default_factory=dict)  # log-loss after each calibration that lowers it
    advice: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The names of the JSON's `quality`."""
        return {
            "rows": self.rows,
            "confidence": self.confidence,
            "shift": self.shift,
            "shift_low": self.low,
            "shift_high": self.high,
            "tau_at_least": max(0.0, self.low),
            "log_loss": self.log_loss,
            "log_loss_constant": self.constant,
            "log_loss_calibrated": dict(self.calibrated),
            "advice": list(self.advice),
        }


@dataclass(frozen=True, slots=True)
class Result(Bound):
    """One audit: a lower bound on ε, with its confidence, and everything that it rests on.

    `guesses` and `correct` are the count that gave the bound, `level` the γ at which it was evaluated, after
    corrections: `bound(canaries, guesses, correct, confidence=1 − level)` gives `epsilon` again. It is None
    where no single count gives the number: for the e-process and for the paper's sweep. `game` is what was played, and
    `stand_in` what stood for the truth in it, None where nothing had to. Where whole rows are shown, `classes` is 3:
    what can stand there has more than two values.
    """

    selection: str = ""
    combination: str = ""
    attack: str = ""
    classes: int = 2
    level: float | None = None
    games: int = 1
    seed: int = 0
    descriptive: Mapping[str, float] = field(default_factory=dict)
    control: Result | None = None
    control_note: str | None = None
    slice_column: str | None = None
    slices: tuple[Slice, ...] = ()
    pictures: Pictures | None = None
    notes: tuple[str, ...] = ()
    command: str | None = None
    game: str = "label"
    stand_in: str | None = "reference"
    quality: Quality | None = None

    def as_dict(self) -> dict[str, Any]:
        """The names of the command line's `--json`."""
        return Bound.as_dict(self) | {
            "game": self.game,
            "stand_in": self.stand_in,
            "selection": self.selection,
            "combination": self.combination,
            "attack": self.attack,
            "classes": self.classes,
            "level": self.level,
            "games": self.games,
            "seed": self.seed,
            "descriptive": dict(self.descriptive),
            "control": None if self.control is None else self.control.as_dict(),
            "control_note": self.control_note,
            "quality": None if self.quality is None else self.quality.as_dict(),
            "slice_column": self.slice_column,
            "slices": [
                {"value": part.value}
                | part.bound.as_dict()
                | {"control": None if part.control is None else part.control.as_dict()}
                for part in self.slices
            ],
            "notes": list(self.notes),
            "command": self.command,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the main figure: ε against the fraction guessed, members beside control."""
        from bystander.report.plot import draw

        return draw(self, ax)

    def to_html(self) -> str:
        """The whole report as one self-contained page."""
        from bystander.report.html import page

        return page(self)

    def __str__(self) -> str:
        from bystander.report.text import plain

        return plain(self)
