"""The training loop of one network, and its predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bystander._validate import InputError
from bystander.training.batches import Rows
from bystander.training.epochs import Checkpoint, known_by, run
from bystander.training.losses import CrossEntropy, Loss
from bystander.training.recipe import Progress, Recipe, cast, initial, pick, sgd

__all__ = ["Checkpoint", "Progress", "Recipe", "initial", "pick", "predict", "train"]


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
    criterion = CrossEntropy() if loss is None else loss
    if len(targets) != len(rows):
        raise InputError(f"y has {len(targets)} rows: X has {len(rows)}; give one target a row")
    targets = targets.to(device)
    known = known_by(checkpoint, net, targets, rows)
    settings = repr((recipe, criterion, seed, type(net).__name__, known))
    prepare(net, rows, device)
    size = min(recipe.batch, len(rows))
    stepped = torch.compile(net) if recipe.compiled else net

    def step(chosen: Tensor, epoch: int, coins: torch.Generator) -> Tensor:
        net.train()  # whoever is told of the progress may have predicted
        x = rows.augmented(chosen, recipe.augment, coins)
        weight, other = mixed(x, recipe.mixup, coins)
        if other is not None:
            x = weight * x + (1 - weight) * x[other]
        with cast(recipe.precision, device):
            logits = stepped(x).float()
        value = criterion(logits, targets[chosen], epoch)
        if other is None:
            return value
        return weight * value + (1 - weight) * criterion(logits, targets[chosen[other]], epoch)

    around: dict[str, Any] = {"seed": seed, "device": device, "checkpoint": checkpoint, "progress": progress}
    run(step, len(rows), size, recipe, sgd(net, recipe), {"net": net}, settings=settings, **around)
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
