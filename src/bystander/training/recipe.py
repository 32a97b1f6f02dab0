"""How a network is trained: a recipe, the device and its precision, seeds that leave torch's own state alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from bystander._validate import InputError, fraction, inside, whole
from bystander.training.augment import Weak

Progress = Callable[[int, int, float], None]
"""Told after every epoch: how many are done, how many there are, the epoch's mean loss."""


MILD = Weak()
"""Mirror and shift by up to two pixels: what a recipe does to images unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How to train: SGD with Nesterov's momentum (or Adam), one schedule, one augmentation.

    `schedule`: "triangle" and "cosine" rise over the `warmup` share of the steps and fall to 0; "drops" multiplies
    the rate by .2 at each of `drops` (shares of the epochs). `mixup` is its α (0: none). `precision` "auto" is bf16
    where the device computes in it, fp32 elsewhere. On a GPU the same seed gives the same weights only if
    `deterministic`.
    """

    epochs: int = 24
    batch: int = 250
    rate: float = 0.2
    momentum: float = 0.9
    decay: float = 5e-4
    schedule: Literal["triangle", "cosine", "drops"] = "triangle"
    warmup: float = 0.2
    drops: tuple[float, ...] = (0.3, 0.6, 0.9)
    augment: Weak | None = MILD
    mixup: float = 0.0
    optimizer: Literal["sgd", "adam"] = "sgd"
    precision: Literal["auto", "bf16", "fp32"] = "auto"
    deterministic: bool = False
    compiled: bool = False

    def __post_init__(self) -> None:
        whole("epochs", self.epochs, 1)
        whole("batch", self.batch, 2)
        inside("rate", self.rate, 0, 1e6)
        fraction("momentum", self.momentum, zero=True)
        fraction("decay", self.decay, zero=True, one=True)
        fraction("warmup", self.warmup, zero=True, one=True)
        if not 0 <= self.mixup < 1e3:
            raise InputError(f"mixup is {self.mixup}: give α of Beta(α, α), or 0 for none")
        for name, given, known in (
            ("schedule", self.schedule, ("triangle", "cosine", "drops")),
            ("optimizer", self.optimizer, ("sgd", "adam")),
            ("precision", self.precision, ("auto", "bf16", "fp32")),
        ):
            if given not in known:
                raise InputError(f"{name} is {given!r}: give {', '.join(known)}")

    def at(self, done: float) -> float:
        """The learning rate when this share of the steps is done."""
        if self.schedule == "drops":
            return float(self.rate * 0.2 ** sum(done >= drop for drop in self.drops))
        if done < self.warmup:
            return self.rate * max(done, 1e-3) / self.warmup
        left = (1 - done) / max(1 - self.warmup, 1e-9)
        return self.rate * (left if self.schedule == "triangle" else 0.5 - 0.5 * math.cos(math.pi * left))


def pick(device: str | torch.device = "auto") -> torch.device:
    """The GPU where there is one, else the CPU; or what is named."""
    if str(device) == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
    except RuntimeError:
        raise InputError(f"device is {device!r}: give auto, cpu or cuda") from None
    if found.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device is {device!r}: there is no GPU here; give cpu or auto")
    return found


def half(precision: str, device: torch.device) -> bool:
    """Is it worth computing in bf16? On a CPU, only where it has instructions for it."""
    if precision != "auto":
        return precision == "bf16"
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    known = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return device.type == "cpu" and any(bool(getattr(torch.cpu, name, bool)()) for name in known)


def cast(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """Autocast to bf16, or nothing."""
    return torch.autocast(device.type, torch.bfloat16) if half(precision, device) else nullcontext()


@contextmanager
def seeded(seed: int, part: int, device: torch.device, deterministic: bool = False) -> Iterator[torch.Generator]:
    """A generator for this part of a training, torch's own state set for it, and put back after."""
    mixed = int(np.random.SeedSequence((seed, part)).generate_state(1, np.uint64)[0]) >> 1
    devices = [device] if device.type == "cuda" else []
    quick = device.type == "cuda" and not deterministic
    flags = torch.backends.cudnn.flags(enabled=True, benchmark=quick, deterministic=not quick)
    with torch.random.fork_rng(devices=devices), flags:
        torch.manual_seed(mixed)
        yield torch.Generator(device).manual_seed(mixed)


def initial(make: Callable[[], nn.Module], seed: int, device: torch.device) -> nn.Module:
    """A module with the weights of this seed, on the device, channels last."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        net = make()
    moved: Any = net
    moved.to(device, memory_format=torch.channels_last)
    return net


def sgd(net: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """The optimizer of a recipe, for the weights that train."""
    weights = [weight for weight in net.parameters() if weight.requires_grad]
    if recipe.optimizer == "adam":
        return torch.optim.Adam(weights, recipe.rate, weight_decay=recipe.decay)
    return torch.optim.SGD(
        weights, recipe.rate, momentum=recipe.momentum, nesterov=recipe.momentum > 0, weight_decay=recipe.decay
    )
