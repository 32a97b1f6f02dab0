"""A trunk trained without labels: two views of one image should look alike (SimCLR; Chen et al. 2020).

No argument is a label, so what it makes is public wherever the images are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from bystander._validate import InputError, inside, whole
from bystander.training.augment import Views
from bystander.training.batches import Images
from bystander.training.epochs import Checkpoint, known_by, run
from bystander.training.loop import prepare
from bystander.training.recipe import Progress, Recipe, cast, initial, sgd


@dataclass(frozen=True, slots=True, kw_only=True)
class SimClr:
    """Views, the temperature of the loss, and the width of what it compares."""

    views: Views = field(default_factory=Views)
    temperature: float = 0.2
    width: int = 128

    def __post_init__(self) -> None:
        inside("temperature", self.temperature, 0, 100)
        whole("width", self.width, 1, 65_536)


class Projected(nn.Module):
    """A network's features through two dense layers, of length 1. Its own head is left alone."""

    def __init__(self, net: nn.Module, inputs: int, width: int) -> None:
        super().__init__()
        self.net = net
        self.project = nn.Sequential(nn.Linear(inputs, inputs), nn.ReLU(), nn.Linear(inputs, width))

    def forward(self, x: Tensor) -> Tensor:
        """(rows, width)."""
        see = self.net.features
        return nn.functional.normalize(self.project(see(x)).float(), dim=1)  # type: ignore[operator]


def contrast(one: Tensor, two: Tensor, temperature: float) -> Tensor:
    """NT-Xent (Chen et al. 2020, equation 1): each view must find its partner among all others.

    >>> apart = torch.eye(4)
    >>> contrast(apart, apart, 0.1).item() < 1e-3, round(contrast(apart, apart.roll(1, 0), 0.1).item(), 2)
    (True, 10.0)
    """
    n = len(one)
    both = torch.cat((one, two))
    alike = (both @ both.T / temperature).fill_diagonal_(-torch.inf)
    partner = torch.arange(2 * n, device=both.device).roll(n)
    return nn.functional.cross_entropy(alike, partner)


def pretrain(
    net: nn.Module,
    images: Images,
    recipe: Recipe,
    how: SimClr | None = None,
    *,
    seed: int = 0,
    device: torch.device,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> nn.Module:
    """Train the features of the module in place. Of the recipe, `augment` and `mixup` have no part in it."""
    how = SimClr() if how is None else how
    if not hasattr(net, "features"):
        raise InputError(f"net is {type(net).__name__}, which has no features(); give a network of this library")
    settings = repr((recipe, how, seed, type(net).__name__, known_by(checkpoint, net, images)))
    prepare(net, images, device)
    with torch.no_grad():
        net.eval()
        inputs = net.features(images.take(torch.arange(1, device=device))).shape[1]  # type: ignore[operator]
    whole_net = initial(lambda: Projected(net, inputs, how.width), seed, device)
    optimizer = sgd(whole_net, recipe)
    size = min(recipe.batch, len(images))
    stepped = torch.compile(whole_net) if recipe.compiled else whole_net

    def step(chosen: Tensor, epoch: int, coins: torch.Generator) -> Tensor:
        x = torch.cat([how.views(images.bytes, chosen, coins) for _ in range(2)])
        with cast(recipe.precision, device):
            seen = stepped(x.contiguous(memory_format=torch.channels_last))
        one, two = seen.float().chunk(2)
        return contrast(one, two, how.temperature)

    whole_net.train()
    around: dict[str, Any] = {
        "settings": settings,
        "seed": seed,
        "device": device,
        "checkpoint": checkpoint,
        "progress": progress,
    }
    run(step, len(images), size, recipe, optimizer, {"net": whole_net}, **around)
    return net.eval()
