"""FixMatch: a few labels, many images without (Sohn et al. 2020).

Where the network is sure of a weakly augmented image, its class becomes the target of the strongly augmented one.
What is returned is the running mean of the weights.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bystander._validate import InputError, fraction, inside, whole
from bystander.training.augment import Strong, Weak
from bystander.training.batches import Images
from bystander.training.epochs import Checkpoint, known_by, run
from bystander.training.loop import prepare
from bystander.training.recipe import Progress, Recipe, cast, sgd


@dataclass(frozen=True, slots=True, kw_only=True)
class FixMatch:
    """μ, the threshold τ, the weight λ of the unlabelled loss, and the decay of the weights' running mean.

    A recipe's epoch is one pass over the unlabelled images in batches of μ·batch, each beside `batch` labelled ones.
    """

    ratio: int = 7
    threshold: float = 0.95
    weight: float = 1.0
    average: float = 0.999
    weak: Weak = field(default_factory=lambda: Weak(shift=4))
    strong: Strong = field(default_factory=Strong)

    def __post_init__(self) -> None:
        whole("ratio", self.ratio, 1)
        fraction("threshold", self.threshold, zero=True)
        inside("weight", self.weight, 0, 1e6)
        fraction("average", self.average, zero=True)


def train_fixmatch(
    net: nn.Module,
    labelled: Images,
    targets: Tensor,
    unlabelled: Images,
    recipe: Recipe,
    how: FixMatch | None = None,
    *,
    seed: int = 0,
    device: torch.device,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> nn.Module:
    """Train the module in place and return the mean one. `targets` (labels, or probabilities) are the labelled images'.

    Of the recipe, `augment` and `mixup` have no part in it. Weak images pass without a gradient.
    """
    how = FixMatch() if how is None else how
    if len(targets) != len(labelled):
        raise InputError(f"targets has {len(targets)} rows: there are {len(labelled)} labelled images; give one each")
    targets = targets.to(device)
    known = known_by(checkpoint, net, targets, labelled, unlabelled)
    settings = repr((recipe, how, seed, type(net).__name__, known))
    prepare(net, unlabelled, device)
    optimizer, mean = sgd(net, recipe), copy.deepcopy(net).requires_grad_(False)
    size = min(how.ratio * recipe.batch, len(unlabelled))
    stepped = torch.compile(net) if recipe.compiled else net

    def step(chosen: Tensor, epoch: int, coins: torch.Generator) -> Tensor:
        known = torch.randint(len(labelled), (recipe.batch,), generator=coins, device=device)
        x = how.weak(labelled.bytes, known, coins)
        weak, strong = (each(unlabelled.bytes, chosen, coins) for each in (how.weak, how.strong))
        with cast(recipe.precision, device):
            with torch.no_grad():
                guess = torch.softmax(stepped(weak).float(), 1)
            together = torch.cat((x, strong)).contiguous(memory_format=torch.channels_last)
            logits = stepped(together).float()
        sure, label = guess.max(1)
        unseen = cross_entropy(logits[len(known) :], label, reduction="none")
        kept = (sure >= how.threshold).float()
        return cross_entropy(logits[: len(known)], targets[known]) + how.weight * (unseen * kept).mean()

    follow = follower(mean, net)

    def after(done: int) -> None:
        follow(min(how.average, done / (9 + done)))

    net.train()
    modules = {"net": net, "mean": mean}
    around: dict[str, Any] = {
        "settings": settings,
        "seed": seed,
        "device": device,
        "checkpoint": checkpoint,
        "progress": progress,
    }
    run(step, len(unlabelled), size, recipe, optimizer, modules, after=after, **around)
    return mean.eval()


def follower(mean: nn.Module, net: nn.Module) -> Callable[[float], None]:
    """mean ← keep·mean + (1 − keep)·net, for weights and running statistics alike, whenever it is called."""
    pairs = list(zip(mean.state_dict().values(), net.state_dict().values(), strict=True))
    moving = [pair for pair in pairs if pair[0].is_floating_point()]
    old, new = [each for each, _ in moving], [each.detach() for _, each in moving]

    @torch.no_grad()
    def follow(keep: float) -> None:
        torch._foreach_lerp_(old, new, 1 - keep)

    return follow
