"""What a training has spent, told with it: `privacy_`, and warnings of labels that went another way."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field

from bystander.mechanisms import Guarantee, Ledger, Release
from bystander.mechanisms.base import Mechanism


class PrivacyWarning(UserWarning):
    """Labels may reach the model past the mechanism: no guarantee covers what they give away."""


@dataclass(frozen=True, slots=True, eq=False)
class Privacy:
    """What a fitted classifier promises about each label it was trained on.

    `replace` and `label` are the guarantees under both neighbouring relations; None without a mechanism. `ledger` holds
    the releases they are composed of. `share_of_one`: the rows whose label is never used, since k = 1 there.
    """

    replace: Guarantee | None = None
    label: Guarantee | None = None
    ledger: Ledger = field(default_factory=Ledger)
    share_of_one: float | None = None

    @classmethod
    def of(cls, release: Release, name: str) -> Privacy:
        """Of one release, what its prior has cost included."""
        sides = release.guarantee("replace"), release.guarantee("label")
        ones = None if release.sizes is None else float((release.sizes == 1).mean())
        return cls(*sides, Ledger().add(release, name=name), ones)

    @property
    def epsilon(self) -> float:
        """ε of replacing a label; infinite without a mechanism."""
        return math.inf if self.replace is None else self.replace.epsilon

    @property
    def delta(self) -> float:
        """The δ beside it."""
        return 0.0 if self.replace is None else self.replace.delta

    def __str__(self) -> str:
        if self.replace is None or self.label is None:
            return "No mechanism: the labels are not protected (ε = ∞)."
        delta = f", δ = {self.delta:g}" if self.delta else ""
        told = [f"Replacing one label: ε = {self.replace.epsilon:.4g}{delta}."]
        told.append(f"A label against none ({self.label.bottom}): ε = {self.label.epsilon:.4g}{delta}.")
        told += [f"Spent on: {entry.name}." for entry in self.ledger.entries]
        if self.share_of_one:
            told.append(f"On {self.share_of_one:.1%} of the rows k = 1: their label is not used.")
        return " ".join(told)


def named(mechanism: Mechanism, release: Release) -> str:
    """What a ledger calls this release."""
    paid = "" if release.prior is None or not release.prior.epsilon else f" and its prior ({release.prior.source})"
    return f"one release by {type(mechanism).__name__}{paid}"


def warn(told: str, depth: int = 1) -> None:
    """A PrivacyWarning at the caller of `fit`, which is so many calls up."""
    warnings.warn(told, PrivacyWarning, stacklevel=depth + 2)
