"""Augmentation of whole batches of images, on whatever device they lie. Images in: (rows, height, width, 3) uint8.

Out: floats, (x/255 − ½)·4, channels first in channels-last memory. All coins come from the generator given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from bystander._validate import InputError, fraction, whole


@dataclass(frozen=True, slots=True)
class Weak:
    """Mirror half of the images and shift each by up to `shift` pixels (edges reflected); `cutout` hides a square.

    >>> Weak(shift=4)
    Weak(flip=True, shift=4, cutout=0)
    """

    flip: bool = True
    shift: int = 2
    cutout: int = 0

    def __post_init__(self) -> None:
        whole("shift", self.shift, 0, 64)
        whole("cutout", self.cutout, 0, 64)

    def __call__(self, images: Tensor, chosen: Tensor, coins: torch.Generator) -> Tensor:
        """These rows of the images, augmented."""
        n, height, width = len(chosen), images.shape[1], images.shape[2]
        if self.shift >= min(height, width):
            raise InputError(f"shift is {self.shift}: images are {height} × {width}; give less")
        device = images.device
        ys = torch.arange(height, device=device).expand(n, height)
        xs = torch.arange(width, device=device).expand(n, width)
        if self.shift:
            moves = torch.randint(-self.shift, self.shift + 1, (2, n, 1), generator=coins, device=device)
            ys, xs = _reflect(ys + moves[0], height), _reflect(xs + moves[1], width)
        if self.flip:
            turn = torch.rand(n, 1, generator=coins, device=device) < 0.5
            xs = torch.where(turn, xs.flip(1), xs)
        x = scaled(images[chosen[:, None, None], ys[:, :, None], xs[:, None, :]])
        return cut(x, self.cutout, coins) if self.cutout else x


@dataclass(frozen=True, slots=True)
class Strong:
    """FixMatch's strong augmentation for a batch: the weak one, then `operations` of RandAugment's kind, then Cutout.

    Geometry (rotate, shear, shift, zoom) is one affine map an image; colour operations (brightness, contrast,
    saturation, posterize, solarize, grey, invert) are drawn per image.
    """

    shift: int = 4
    operations: int = 2
    cutout: int = 16
    strength: float = 1.0

    def __post_init__(self) -> None:
        whole("operations", self.operations, 0, 10)
        fraction("strength", self.strength, zero=True, one=True)

    def __call__(self, images: Tensor, chosen: Tensor, coins: torch.Generator) -> Tensor:
        """These rows of the images, augmented strongly."""
        x = Weak(shift=self.shift)(images, chosen, coins) / 4 + 0.5
        x = _affine(x, self.strength, coins)
        for _ in range(self.operations):
            x = _colour(x, self.strength, coins)
        return cut((x - 0.5) * 4, self.cutout, coins)


@dataclass(frozen=True, slots=True)
class Views:
    """SimCLR's: a random part of the image at full size, mirrored, colours moved, a fifth of them grey."""

    smallest: float = 0.25
    colour: float = 0.5

    def __post_init__(self) -> None:
        fraction("smallest", self.smallest, one=True)
        fraction("colour", self.colour, zero=True, one=True)

    def __call__(self, images: Tensor, chosen: Tensor, coins: torch.Generator) -> Tensor:
        """One view of each of these rows."""
        n = len(chosen)
        x = images[chosen].permute(0, 3, 1, 2).float().div_(255)

        def uniform(low: float, high: float) -> Tensor:
            return torch.rand(n, generator=coins, device=x.device) * (high - low) + low

        area, skew = uniform(self.smallest, 1).sqrt(), uniform(math.log(0.75), math.log(4 / 3)).div(2).exp()
        wide, high = (area * skew).clamp(max=1), (area / skew).clamp(max=1)
        turn = torch.where(uniform(0, 1) < 0.5, -1.0, 1.0)
        theta = torch.zeros(n, 2, 3, device=x.device)
        theta[:, 0, 0], theta[:, 1, 1] = wide * turn, high
        theta[:, 0, 2], theta[:, 1, 2] = uniform(-1, 1) * (1 - wide), uniform(-1, 1) * (1 - high)
        x = _sample(x, theta)
        jittered = _jitter(x, self.colour, coins)
        x = torch.where((uniform(0, 1) < 0.8)[:, None, None, None], jittered, x)
        x = torch.where((uniform(0, 1) < 0.2)[:, None, None, None], _grey(x), x)
        return ((x - 0.5) * 4).contiguous(memory_format=torch.channels_last)


def scaled(images: Tensor) -> Tensor:
    """(rows, height, width, 3) bytes to floats between −2 and 2, channels first, in channels-last memory."""
    return images.permute(0, 3, 1, 2).float().mul_(4 / 255).sub_(2)


def cut(x: Tensor, size: int, coins: torch.Generator) -> Tensor:
    """A square of this size set to 0 in every image, its middle anywhere (DeVries and Taylor 2017)."""
    n, _, height, width = x.shape
    middle = torch.rand(2, n, 1, generator=coins, device=x.device)
    ys = (torch.arange(height, device=x.device) + 0.5 - middle[0] * height).abs() < size / 2
    xs = (torch.arange(width, device=x.device) + 0.5 - middle[1] * width).abs() < size / 2
    return x.masked_fill((ys[:, :, None] & xs[:, None, :])[:, None], 0.0)


def _reflect(index: Tensor, size: int) -> Tensor:
    inner = index.abs()
    return torch.where(inner >= size, 2 * (size - 1) - inner, inner)


def _sample(x: Tensor, theta: Tensor) -> Tensor:
    grid = torch.nn.functional.affine_grid(theta, list(x.shape), align_corners=False)
    return torch.nn.functional.grid_sample(x, grid, padding_mode="reflection", align_corners=False)


def _affine(x: Tensor, strength: float, coins: torch.Generator) -> Tensor:
    """Rotate by up to 30°, shear and shift by up to .3, zoom by up to .2: each image gets one of the four."""
    n = len(x)
    which = torch.randint(0, 4, (n,), generator=coins, device=x.device)
    size = (torch.rand(4, n, generator=coins, device=x.device) * 2 - 1) * strength
    angle = torch.where(which == 0, size[0] * (math.pi / 6), torch.zeros_like(size[0]))
    shear = torch.where(which == 1, 0.3, 0.0) * size[:2]
    move = torch.where(which == 2, 0.3, 0.0) * size[2:]
    zoom = 1 + torch.where(which == 3, 0.2, 0.0) * size[3]
    cos, sin = angle.cos() * zoom, angle.sin() * zoom
    theta = torch.stack(
        (torch.stack((cos, shear[0] - sin, move[0]), 1), torch.stack((sin + shear[1], cos, move[1]), 1)), 1
    )
    return _sample(x, theta)


def _grey(x: Tensor) -> Tensor:
    weight = torch.tensor([0.299, 0.587, 0.114], device=x.device)[None, :, None, None]
    return (x * weight).sum(1, keepdim=True).expand_as(x)


def _jitter(x: Tensor, strength: float, coins: torch.Generator) -> Tensor:
    """Brightness, contrast, saturation, and a turn of the colours about the grey axis."""
    n = len(x)
    factor = 1 + (torch.rand(4, n, 1, 1, 1, generator=coins, device=x.device) * 2 - 1) * strength * 0.8
    x = x * factor[0]
    x = (x - _grey(x).mean((2, 3), keepdim=True)) * factor[1] + _grey(x).mean((2, 3), keepdim=True)
    x = (x - _grey(x)) * factor[2] + _grey(x)
    angle = (factor[3, :, 0, 0, 0] - 1) / 0.8 * 0.4 * math.pi
    third, root = (1 - angle.cos()) / 3, angle.sin() / math.sqrt(3)
    own = angle.cos() + third
    rows = [(own, third - root, third + root), (third + root, own, third - root), (third - root, third + root, own)]
    turn = torch.stack([torch.stack(row, 1) for row in rows], 1)
    return torch.einsum("nij,njhw->nihw", turn, x).clamp(0, 1)


def _colour(x: Tensor, strength: float, coins: torch.Generator) -> Tensor:
    """One of eight operations an image, at a random size."""
    n = len(x)
    which = torch.randint(0, 8, (n, 1, 1, 1), generator=coins, device=x.device)
    size = torch.rand(n, 1, 1, 1, generator=coins, device=x.device) * strength
    sign = torch.where(torch.rand(n, 1, 1, 1, generator=coins, device=x.device) < 0.5, -1.0, 1.0)
    factor = 1 + 0.9 * sign * size
    mean = _grey(x).mean((2, 3), keepdim=True)
    levels = 2.0 ** torch.round(8 - 4 * size)
    choices = (
        x,
        x * factor,
        (x - mean) * factor + mean,
        (x - _grey(x)) * factor + _grey(x),
        torch.floor(x * 255 / (256 / levels)) * (256 / levels) / 255,
        torch.where(x > 1 - size, 1 - x, x),
        (x - x.amin((2, 3), keepdim=True)) / (x.amax((2, 3), keepdim=True) - x.amin((2, 3), keepdim=True) + 1e-3),
        x + 0.4 * sign * size,
    )
    out = x
    for number, changed in enumerate(choices[1:], start=1):
        out = torch.where(which == number, changed, out)
    return out.clamp(0, 1)
