"""What every loop over epochs does around its step: coins, learning rate, checkpoints, progress, a finite loss."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bystander._validate import InputError
from bystander.training.batches import Rows
from bystander.training.recipe import Progress, Recipe, seeded

Step = Callable[[Tensor, int, torch.Generator], Tensor]
"""The loss of one step, its gradient not yet taken: of these rows, in this epoch (from 0), with these coins."""


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


def known_by(checkpoint: Checkpoint | None, net: nn.Module, *held: Tensor | Rows) -> str:
    """What a checkpoint knows a training by, beside its settings: the first weights, and all that is learned from."""
    if checkpoint is None:
        return ""
    found = hashlib.sha256()
    for each in (*net.state_dict().values(), *held):
        for array in (each,) if isinstance(each, Tensor) else each.content:
            found.update(f"{tuple(array.shape)} {array.dtype}".encode())
            found.update(plain_bytes(array))
    return found.hexdigest()


def plain_bytes(array: Tensor | NDArray[Any]) -> memoryview:
    """As they lie in memory, one after the other."""
    if isinstance(array, Tensor):
        return array.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
    return np.ascontiguousarray(array).data


def run(
    step: Step,
    rows: int,
    size: int,
    recipe: Recipe,
    optimizer: torch.optim.Optimizer,
    modules: Mapping[str, nn.Module],
    *,
    after: Callable[[int], None] | None = None,
    settings: str,
    seed: int,
    device: torch.device,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> None:
    """Take every step of every epoch, `size` rows each, from the checkpoint on where there is one.

    `modules` are what a checkpoint holds beside the optimizer; `after` is told how many steps are done, after each.
    """
    held = checkpoint.load(settings, device) if checkpoint else None
    start, steps = 0, rows // size
    if held is not None:
        for name, module in modules.items():
            module.load_state_dict(held[name])
        optimizer.load_state_dict(held["optimizer"])
        start = int(held["epoch"])
    for epoch in range(start, recipe.epochs):
        total = torch.zeros((), device=device)
        with seeded(seed, epoch, device, recipe.deterministic) as coins:
            order = torch.randperm(rows, generator=coins, device=device)
            for number in range(steps):
                done = epoch * steps + number
                for group in optimizer.param_groups:
                    group["lr"] = recipe.at(done / (recipe.epochs * steps))
                value = step(order[number * size : (number + 1) * size], epoch, coins)
                optimizer.zero_grad(set_to_none=True)
                value.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                if after:
                    after(done + 1)
                total += value.detach()
        mean = float(total) / steps
        if not math.isfinite(mean):
            told = f"the loss is {mean} after epoch {epoch + 1}; give a smaller rate"
            raise InputError(f"rate is {recipe.rate:g}: {told}")
        if checkpoint and ((epoch + 1) % checkpoint.every == 0 or epoch + 1 == recipe.epochs):
            state = {name: module.state_dict() for name, module in modules.items()}
            checkpoint.save({"settings": settings, "epoch": epoch + 1, "optimizer": optimizer.state_dict(), **state})
        if progress:
            progress(epoch + 1, recipe.epochs, mean)
