"""The training loop: seeds, schedule, bf16 where the machine has it, checkpoints that resume to the same weights."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bystander._validate import InputError, fraction, inside, whole
from bystander.training.augment import Weak
from bystander.training.batches import Rows
from bystander.training.losses import CrossEntropy, Loss

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


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A file that training resumes from, written whole every few epochs."""

    path: Path
    every: int = 1

    def load(self, settings: str, device: torch.device) -> dict[str, Any] | None:
        """What was saved, if it is of the same training."""
        if not self.path.exists():
            return None
        try:
            held = torch.load(self.path, map_location=device, weights_only=True)
            same = held["settings"] == settings
        except Exception:
            raise InputError(f"{self.path}: it is no checkpoint that can be read; delete it") from None
        if not same:
            raise InputError(f"{self.path}: a checkpoint of another training; delete it or give another path")
        return dict(held)

    def save(self, state: dict[str, Any]) -> None:
        """Aside, then renamed."""
        aside = self.path.with_name(f".{self.path.name}.{os.getpid()}.partial")
        try:
            torch.save(state, aside)
            os.replace(aside, self.path)
        except (OSError, RuntimeError):
            raise InputError(f"{self.path}: cannot be written; choose another place") from None
        finally:
            aside.unlink(missing_ok=True)


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


def train(
    net: nn.Module,
    rows: Rows,
    targets: Tensor,
    recipe: Recipe,
    *,
    loss: Loss | None = None,
    seed: int = 0,
    device: torch.device,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> nn.Module:
    """Train the module in place on what was released for these rows; the same seed gives the same weights."""
    loss = CrossEntropy() if loss is None else loss
    if len(targets) != len(rows):
        raise InputError(f"y has {len(targets)} rows: X has {len(rows)}; give one target a row")
    targets = targets.to(device)
    prepare(net, rows, device)
    optimizer = sgd(net, recipe)
    size = min(recipe.batch, len(rows))
    steps = len(rows) // size
    weights = [tuple(weight.shape) for weight in net.parameters()]
    settings = repr((recipe, loss, seed, type(net).__name__, weights, rows.shape, digest(targets)))
    held = checkpoint.load(settings, device) if checkpoint else None
    start = 0
    if held is not None:
        net.load_state_dict(held["net"])
        optimizer.load_state_dict(held["optimizer"])
        start = int(held["epoch"])
    stepped = torch.compile(net) if recipe.compiled else net
    for epoch in range(start, recipe.epochs):
        net.train()
        total = torch.zeros((), device=device)
        with seeded(seed, epoch, device, recipe.deterministic) as coins:
            order = torch.randperm(len(rows), generator=coins, device=device)
            for step in range(steps):
                chosen = order[step * size : (step + 1) * size]
                x = rows.augmented(chosen, recipe.augment, coins)
                weight, other = mixed(x, recipe.mixup, coins)
                if other is not None:
                    x = weight * x + (1 - weight) * x[other]
                for group in optimizer.param_groups:
                    group["lr"] = recipe.at((epoch * steps + step) / (recipe.epochs * steps))
                with cast(recipe.precision, device):
                    logits = stepped(x).float()
                value = loss(logits, targets[chosen], epoch)
                if other is not None:
                    value = weight * value + (1 - weight) * loss(logits, targets[chosen[other]], epoch)
                optimizer.zero_grad(set_to_none=True)
                torch.autograd.backward(value)
                optimizer.step()
                total += value.detach()
        mean = float(total) / steps
        if not math.isfinite(mean):
            raise InputError(
                f"rate is {recipe.rate:g}: the loss is {mean} after epoch {epoch + 1}; give a smaller rate"
            )
        if checkpoint and ((epoch + 1) % checkpoint.every == 0 or epoch + 1 == recipe.epochs):
            state = {"net": net.state_dict(), "optimizer": optimizer.state_dict()}
            checkpoint.save({"settings": settings, "epoch": epoch + 1, **state})
        if progress:
            progress(epoch + 1, recipe.epochs, mean)
    return net.eval()


def prepare(net: nn.Module, rows: Rows, device: torch.device) -> None:
    """Let the module look at up to 2,000 rows (never at a label) before it trains."""
    look: Any = getattr(net, "prepare", None)
    if look is not None:
        look(rows.take(torch.arange(min(2000, len(rows)), device=device)))


def mixed(x: Tensor, alpha: float, coins: torch.Generator) -> tuple[Tensor, Tensor | None]:
    """Mixup's weight, from Beta(α, α), and each row's partner (Zhang et al. 2018)."""
    if alpha == 0:
        return torch.ones((), device=x.device), None
    draw = torch._standard_gamma(torch.full((2,), float(alpha), device=x.device), generator=coins)
    return draw[0] / draw.sum().clamp_min(1e-12), torch.randperm(len(x), generator=coins, device=x.device)


def digest(targets: Tensor) -> str:
    """What a checkpoint knows its targets by."""
    return hashlib.sha256(targets.cpu().contiguous().numpy().tobytes()).hexdigest()[:16]


@torch.no_grad()
def predict(
    net: nn.Module,
    rows: Rows,
    *,
    device: torch.device,
    precision: str = "auto",
    mirror: bool = False,
    batch: int = 1000,
    features: bool = False,
) -> NDArray[np.float32]:
    """(rows, classes): the logarithm of each class's probability. `mirror` averages with the mirrored image's logits.

    With `features`, what the network's head sees instead.
    """
    net.eval()
    see: Any = net.features if features else net
    parts = []
    for start in range(0, len(rows), batch):
        x = rows.take(torch.arange(start, min(start + batch, len(rows)), device=device))
        with cast(precision, device):
            out = see(x).float()
            if mirror:
                out = (out + see(x.flip(3)).float()) / 2
        parts.append((out if features else torch.log_softmax(out, 1)).cpu().numpy())
    return np.concatenate(parts)
