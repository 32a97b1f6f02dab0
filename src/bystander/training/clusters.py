"""k-means on the device, for clusters of public features and for the images that stand in their middle."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bystander._validate import InputError, whole


def clusters(
    features: NDArray[np.float32], many: int, *, seed: int = 0, rounds: int = 50, device: torch.device
) -> NDArray[np.int64]:
    """Lloyd's algorithm on features of length 1, from k-means++'s seeds: each row's cluster, 0…many − 1.

    >>> around = np.repeat(np.eye(3, 5, dtype=np.float32), 4, axis=0)
    >>> found = clusters(around, 3, device=torch.device("cpu"))
    >>> [len(set(found[i : i + 4])) for i in (0, 4, 8)], len(set(found))
    ([1, 1, 1], 3)
    """
    return _lloyd(features, many, seed, rounds, device)[0]


def typical(
    features: NDArray[np.float32], many: int, *, seed: int = 0, rounds: int = 20, device: torch.device
) -> NDArray[np.int64]:
    """One row of each cluster, the nearest to its middle: which rows to ask about, where every answer has a price."""
    which, near = _lloyd(features, many, seed, rounds, device)
    order = np.lexsort((-near, which))
    first = np.unique(which[order], return_index=True)[1]
    found = order[first]
    rest = np.setdiff1d(order, found)[: many - len(found)]  # for clusters that emptied
    return np.sort(np.concatenate((found, rest)))


def normalised(features: NDArray[np.float32], device: torch.device) -> Tensor:
    """On the device, centred, each row of length 1."""
    x = torch.from_numpy(np.asarray(features, dtype=np.float32)).to(device)
    return torch.nn.functional.normalize(x - x.mean(0), dim=1)


def _lloyd(
    features: NDArray[np.float32], many: int, seed: int, rounds: int, device: torch.device
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    if whole("many", many, 1) > len(features):
        raise InputError(f"many is {many}: there are {len(features)} rows; give no more clusters than rows")
    x = normalised(features, device)
    coins = torch.Generator(device).manual_seed(seed)
    middles = _spread(x, many, coins)
    which = torch.zeros(len(x), dtype=torch.int64, device=device)
    for _ in range(whole("rounds", rounds, 1)):
        which = (x @ middles.T).argmax(1)
        sums = torch.zeros_like(middles).index_add_(0, which, x)
        empty = sums.norm(dim=1, keepdim=True) < 1e-6
        middles = torch.where(empty, middles, torch.nn.functional.normalize(sums, dim=1))
    near = (x * middles[which]).sum(1)
    return which.cpu().numpy(), near.cpu().numpy()


def _spread(x: Tensor, many: int, coins: torch.Generator) -> Tensor:
    """k-means++: each next middle drawn in proportion to its squared distance from those there are."""
    picked = [int(torch.randint(len(x), (1,), generator=coins, device=x.device))]
    far = (2 - 2 * x @ x[picked[0]]).clamp_min(0)
    for _ in range(many - 1):
        weights = far + 1e-9
        picked.append(int(torch.multinomial(weights, 1, generator=coins)))
        far = torch.minimum(far, (2 - 2 * x @ x[picked[-1]]).clamp_min(0))
    return x[picked].clone()
