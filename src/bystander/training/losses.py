"""Losses of label-DP training. Each reads what was released, never a label: a frozen value, called on a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, softmax

from bystander._validate import InputError, fraction, inside, whole
from bystander.mechanisms import Alibi


class Loss(Protocol):
    """Mean loss of a batch. `targets` is what was released for its rows; `epoch` counts from 0."""

    def __call__(self, logits: Tensor, targets: Tensor, epoch: int) -> Tensor:
        """One number to go down."""


@dataclass(frozen=True, slots=True)
class CrossEntropy:
    """Cross-entropy with hard labels, or with (rows, classes) probabilities; `smoothing` of the mass spread evenly."""

    smoothing: float = 0.0

    def __post_init__(self) -> None:
        fraction("smoothing", self.smoothing, zero=True)

    def __call__(self, logits: Tensor, targets: Tensor, epoch: int) -> Tensor:
        """The mean over rows."""
        return cross_entropy(logits, targets, label_smoothing=self.smoothing)


@dataclass(frozen=True, slots=True)
class ForwardLoss:
    """Cross-entropy of softmax(logits)·T with the released label (Patrini et al. 2017): T is the channel.

    The network itself then predicts the true label: its noise is in T.
    """

    channel: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        matrix = np.asarray(self.channel, dtype=np.float64)
        square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
        if not square or (matrix < 0).any() or (np.abs(matrix.sum(axis=1) - 1) > 1e-6).any():
            raise InputError(f"channel has shape {matrix.shape}: give classes × classes rows that add up to 1")
        object.__setattr__(self, "channel", tuple(tuple(float(p) for p in row) for row in matrix))

    def __call__(self, logits: Tensor, targets: Tensor, epoch: int) -> Tensor:
        """The mean over rows; `targets` are released labels, or probabilities of them."""
        seen = softmax(logits, 1) @ torch.tensor(self.channel, device=logits.device, dtype=logits.dtype)
        logs = seen.clamp_min(1e-12).log()
        if targets.ndim == 1:
            return -logs.gather(1, targets[:, None]).mean()
        return -(targets * logs).sum(1).mean()


@dataclass(frozen=True, slots=True)
class MarginalLoss:
    """−log Σ_y softmax(logits)_y·P(released | y): `targets` are (rows, classes) likelihoods, each row on its own scale.

    With one channel for all rows it is `ForwardLoss`; it also takes channels that differ by row.
    """

    def __call__(self, logits: Tensor, targets: Tensor, epoch: int) -> Tensor:
        """The mean over rows."""
        return -(softmax(logits, 1) * targets).sum(1).clamp_min(1e-12).log().mean()


@dataclass(frozen=True, slots=True)
class AlibiLoss:
    """ALIBI's: soft cross-entropy with the posterior of the label given its release (Malek et al. 2021, Algorithm 1).

    `targets` are the released vectors o (`Alibi.randomize(y).output`). The prior is the network's own softmax on the
    batch, detached and clamped to at least `floor`; uniform in the first `warmup` epochs, where the network knows
    nothing.
    """

    scale: float
    warmup: int = 0
    floor: float = 1e-6

    def __post_init__(self) -> None:
        inside("scale", self.scale, 0, 1e300)
        whole("warmup", self.warmup, 0)
        inside("floor", self.floor, 0, 0.5)

    @classmethod
    def of(cls, mechanism: Alibi, *, warmup: int = 0) -> AlibiLoss:
        """The loss of this mechanism's releases."""
        return cls(mechanism.scale, warmup)

    def posterior(self, logits: Tensor, released: Tensor, epoch: int) -> Tensor:
        """softmax((|o_i| − |o_i − 1|)/b + log prior_i)."""
        if released.shape != logits.shape:
            told = "give what ALIBI released, (rows, classes): Alibi(…).randomize(y).output"
            raise InputError(f"y has rows of shape {tuple(released.shape[1:])}: {told}")
        likely = (released.abs() - (released - 1).abs()) / self.scale
        if epoch >= self.warmup:
            likely = likely + softmax(logits.detach(), 1).clamp_min(self.floor).log()
        return softmax(likely, 1)

    def __call__(self, logits: Tensor, targets: Tensor, epoch: int) -> Tensor:
        """The mean over rows."""
        return -(self.posterior(logits, targets, epoch) * log_softmax(logits, 1)).sum(1).mean()
