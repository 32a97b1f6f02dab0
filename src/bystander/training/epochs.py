"""What every loop over epochs does around its step: coins, learning rate, checkpoints, progress, a finite loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from bystander._validate import InputError
from bystander.training.loop import Checkpoint, Progress, Recipe, seeded

Step = Callable[[Tensor, int, torch.Generator], Tensor]
"""The loss of one step, its gradient not yet taken: the epoch's order of rows, the step in the epoch, the coins."""


def run(
    step: Step,
    rows: int,
    steps: int,
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
    """Take every step of every epoch, from the checkpoint on where there is one.

    `modules` are what a checkpoint holds beside the optimizer; `after` is told how many steps are done, after each.
    """
    held = checkpoint.load(settings, device) if checkpoint else None
    start = 0
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
                value = step(order, number, coins)
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
