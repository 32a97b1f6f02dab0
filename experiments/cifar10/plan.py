"""Which cells a profile has, what each needs first, and its settings as the library's own values."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bystander.mechanisms import ConfidentGnmax
from bystander.mechanisms.accounting import least_noise
from bystander.training.augment import Weak
from bystander.training.fixmatch import FixMatch
from bystander.training.loop import Recipe
from bystander.training.networks import Network, resnet18, small_cnn, wide_resnet
from bystander.training.pate_fm import Heads
from bystander.training.simclr import SimClr

Settings = Mapping[str, Any]
CLASSES = 10
KINDS = ("lp1st", "lp1st-prior", "alibi", "pate-fm")
FEW = 250
_ON_TRUNK = ("lp1st-prior", "pate-fm", "fixmatch-250-trunk")


@dataclass(frozen=True, slots=True)
class Cell:
    """One training: the reference, the trunk, a target at an ε, or a comparison on few labels."""

    kind: str
    epsilon: float = math.inf

    @property
    def name(self) -> str:
        """The name of its files."""
        return f"{self.kind}-{self.epsilon:g}" if self.kind in KINDS else self.kind

    @property
    def needs(self) -> tuple[str, ...]:
        """The cells whose files it reads."""
        hard = self.kind == "lp1st-prior" and self.epsilon == math.inf
        return ("trunk",) if self.kind in _ON_TRUNK and not hard else ()


def cells(settings: Settings) -> list[Cell]:
    """All of them, or those that `cells` names; what others wait for comes first."""
    epsilons = [float(epsilon) for epsilon in settings["epsilons"]]
    few = [f"{how}-{FEW}" for how in ("supervised", "fixmatch")] + [f"fixmatch-{FEW}-trunk"]
    targets = [Cell(kind, epsilon) for kind in KINDS for epsilon in epsilons]
    every = [Cell("trunk"), Cell("reference"), *targets, *map(Cell, few)]
    return [cell for cell in every if cell.name in settings.get("cells", [one.name for one in every])]


def at(table: Mapping[str, Any], epsilon: float) -> Any:
    """The entry for this ε."""
    return table[f"{epsilon:g}"]


def seed(settings: Settings, cell: Cell) -> int:
    """A seed of its own for every cell."""
    text = f"{settings['seed']} {cell.name}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def digest(settings: Settings, cell: Cell) -> str:
    """What the cell's file knows its settings by: those that have a part in it, or in what it needs."""
    parts = {"seed", "network"}
    if cell.kind == "trunk" or cell.needs:
        parts |= {"trunk", "simclr", "clusters"}
    if cell.kind == "reference" or cell.kind in KINDS[:3]:
        parts |= {"target", "mixup", "alibi_warmup", "epsilon_prior"}
    if cell.kind == "pate-fm":
        parts |= {"teachers", "questions", "answers", "sigma1", "agreement", "delta", "student", "fixmatch"}
    if cell.kind.startswith("fixmatch"):
        parts |= {"student", "fixmatch"}
    if cell.kind.startswith("supervised"):
        parts |= {"supervised"}
    text = json.dumps({name: settings[name] for name in sorted(parts)}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def network(settings: Settings) -> Network:
    """The profile's."""
    held = dict(settings["network"])
    kind = held.pop("kind")
    if kind == "small_cnn":
        return small_cnn(tuple(held["widths"]))
    return {"resnet18": resnet18, "wide_resnet": wide_resnet}[kind](**held)


def recipe(settings: Settings, part: str, **more: Any) -> Recipe:
    """Of a target, the trunk, a student, or training on few labels."""
    held = dict(settings[part])
    shift = held.pop("shift", None)
    if part in ("trunk", "student"):
        held |= {"schedule": "cosine", "warmup": 0.1}
    return Recipe(**held, augment=None if shift is None else Weak(shift=shift), **more)


def mixup(settings: Settings, cell: Cell) -> float:
    """Mixup's α: for LP-1ST alone, at small ε."""
    return float(settings["mixup"].get(f"{cell.epsilon:g}", 0.0)) if cell.kind.startswith("lp1st") else 0.0


def heads(settings: Settings) -> Heads:
    """The teachers."""
    return Heads(**settings["teachers"])


def simclr(settings: Settings) -> SimClr:
    """The trunk's loss."""
    return SimClr(**settings["simclr"])


def fixmatch(settings: Settings) -> FixMatch:
    """The students' loss."""
    return FixMatch(**settings["fixmatch"])


def gnmax(settings: Settings, epsilon: float) -> ConfidentGnmax:
    """Confident-GNMax at (ε, δ) between two labels: σ₁, questions and answers given, σ₂ is the least that will do."""
    teachers = heads(settings).teachers

    def make(sigma: float) -> ConfidentGnmax:
        return ConfidentGnmax(
            classes=CLASSES,
            sigma2=sigma,
            answers=at(settings["answers"], epsilon),
            sigma1=at(settings["sigma1"], epsilon),
            threshold=settings["agreement"] * teachers,
            queries=at(settings["questions"], epsilon),
            teachers=teachers,
            delta=settings["delta"],
        )

    return make(least_noise(make, epsilon=epsilon, delta=settings["delta"]))
