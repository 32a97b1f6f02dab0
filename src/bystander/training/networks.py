"""Networks as small frozen values, built for a shape of input and a number of classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from bystander._validate import InputError, inside, whole

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """Which network: a kind and its settings. `build` makes the module; its weights come from torch's own seed.

    >>> resnet18().build((3, 32, 32), 10)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    kind: str
    settings: tuple[tuple[str, Any], ...] = ()

    def build(self, shape: Shape, classes: int) -> nn.Module:
        """The module for inputs of this shape (channels first for images)."""
        wanted = 3 if self.kind in _IMAGES else 1
        if len(shape) != wanted:
            told = "images (rows, height, width, 3) of uint8" if wanted == 3 else "a table of numbers (rows, columns)"
            raise InputError(f"network is {self.kind}, which takes {told}; the rows given have shape {shape}")
        return _MAKERS[self.kind](shape, whole("classes", classes, 2, 1_000_000), **dict(self.settings))


def small_cnn(widths: tuple[int, int, int] = (32, 128, 128), *, whiten: bool = True) -> Network:
    """An airbench-like network: a 2×2 convolution, then three blocks. `whiten` sets the first from image patches."""
    sizes = tuple(whole("widths", width, 1, 4096) for width in widths)
    if len(sizes) != 3:
        raise InputError(f"widths is {widths}: give three widths")
    return Network("small_cnn", (("widths", sizes), ("whiten", bool(whiten))))


def resnet18(width: int = 64) -> Network:
    """ResNet-18 with CIFAR's stem: a 3×3 convolution, no pooling (He et al. 2016)."""
    return Network("resnet18", (("width", whole("width", width, 1, 4096)),))


def wide_resnet(depth: int = 28, width: int = 4) -> Network:
    """WRN-depth-width (Zagoruyko and Komodakis 2016)."""
    depth = whole("depth", depth, 10, 1000)
    if (depth - 4) % 6:
        raise InputError(f"depth is {depth}: give 6n + 4, such as 16, 28 or 40")
    return Network("wide_resnet", (("depth", depth), ("width", whole("width", width, 1, 100))))


def mlp(hidden: tuple[int, ...] = (128, 32), *, dropout: float = 0.0) -> Network:
    """Fully connected layers with ReLU, as for TF-IDF features."""
    sizes = tuple(whole("hidden", size, 1, 1_000_000) for size in hidden)
    drop = float(dropout) if dropout == 0 else inside("dropout", dropout, 0, 1)
    return Network("mlp", (("hidden", sizes), ("dropout", drop)))


def logistic() -> Network:
    """Logistic regression: one linear layer."""
    return Network("mlp", (("hidden", ()), ("dropout", 0.0)))


# ---- modules --------------------------------------------------------------------------------------------


class Scale(nn.Module):
    """A constant factor on the logits."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        """x times the factor."""
        return x * self.factor


class SmallCnn(nn.Module):
    """Blocks of (conv, pool, norm, GELU, conv, norm, GELU) after a 2×2 convolution (Jordan 2024's shape)."""

    def __init__(self, shape: Shape, classes: int, widths: tuple[int, int, int], whiten: bool) -> None:
        super().__init__()
        if min(shape[1:]) < 9:
            raise InputError(f"images are {shape[1]} × {shape[2]}: small_cnn takes them from 9 × 9; give larger ones")
        patch = shape[0] * 4
        self.first = nn.Conv2d(shape[0], 2 * patch, 2)
        self.whitened = whiten
        layers: list[nn.Module] = [nn.GELU()]
        inputs = 2 * patch
        for outputs in widths:
            one = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
            two = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
            layers += [one, nn.MaxPool2d(2), nn.BatchNorm2d(outputs), nn.GELU(), two, nn.BatchNorm2d(outputs)]
            layers += [nn.GELU()]
            inputs = outputs
        self.body = nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten())
        self.head = nn.Sequential(nn.Linear(inputs, classes, bias=False), Scale(1 / 3 if whiten else 1.0))

    def features(self, x: Tensor) -> Tensor:
        """What the head sees."""
        return torch.as_tensor(self.body(self.first(x)))

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        return torch.as_tensor(self.head(self.features(x)))

    @torch.no_grad()
    def prepare(self, x: Tensor) -> None:
        """Set and freeze the first layer: eigenvectors of 2×2 patches over the root of their variance, and minus them.

        It sees images alone. It shapes the rest of the training as normalised inputs do.
        """
        if not self.whitened:
            return
        patches = x.float().unfold(2, 2, 1).unfold(3, 2, 1).permute(0, 2, 3, 1, 4, 5)
        flat = patches.reshape(-1, patches.shape[3] * 4).cpu().double()
        values, vectors = torch.linalg.eigh(flat.T @ flat / len(flat))
        sign = torch.sign(vectors.sum(dim=0, keepdim=True)) + (vectors.sum(dim=0, keepdim=True) == 0)
        rows = (vectors * sign / torch.sqrt(values + 5e-4)).T.reshape(-1, patches.shape[3], 2, 2)
        self.first.weight.copy_(torch.cat((rows, -rows)).to(self.first.weight))
        self.first.weight.requires_grad_(False)


class Basic(nn.Module):
    """A basic block: two 3×3 convolutions beside the identity; `before` puts norm and ReLU first (Wide ResNets)."""

    def __init__(self, inputs: int, outputs: int, stride: int, *, before: bool) -> None:
        super().__init__()
        self.before = before
        self.norm1 = nn.BatchNorm2d(inputs if before else outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.short: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            straight = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.short = straight if before else nn.Sequential(straight, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """The block."""
        relu = nn.functional.relu
        if self.before:
            y = relu(self.norm1(x))
            beside = x if self.short is None else self.short(y)
            return torch.as_tensor(self.conv2(relu(self.norm2(self.conv1(y)))) + beside)
        beside = x if self.short is None else self.short(x)
        return relu(self.norm2(self.conv2(relu(self.norm1(self.conv1(x))))) + beside)


class Residual(nn.Module):
    """Stem, stages of basic blocks, mean over the image, a linear head."""

    def __init__(self, stem: nn.Module, stages: list[nn.Module], last: int, classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(last, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def features(self, x: Tensor) -> Tensor:
        """What the head sees."""
        return torch.as_tensor(self.body(x))

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        return torch.as_tensor(self.head(self.features(x)))


def _resnet18(shape: Shape, classes: int, width: int) -> nn.Module:
    stem = nn.Sequential(nn.Conv2d(shape[0], width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
    stages: list[nn.Module] = []
    inputs = width
    for stage in range(4):
        for block in range(2):
            stages.append(Basic(inputs, width << stage, 2 if stage and not block else 1, before=False))
            inputs = width << stage
    return Residual(stem, stages, inputs, classes)


def _wide_resnet(shape: Shape, classes: int, depth: int, width: int) -> nn.Module:
    stages: list[nn.Module] = []
    inputs = 16
    for stage in range(3):
        for block in range((depth - 4) // 6):
            stages.append(Basic(inputs, 16 * width << stage, 2 if stage and not block else 1, before=True))
            inputs = 16 * width << stage
    stages += [nn.BatchNorm2d(inputs), nn.ReLU()]
    return Residual(nn.Conv2d(shape[0], 16, 3, 1, 1, bias=False), stages, inputs, classes)


class Dense(nn.Module):
    """Fully connected layers."""

    def __init__(self, shape: Shape, classes: int, hidden: tuple[int, ...], dropout: float) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inputs = shape[0]
        for size in hidden:
            layers += [nn.Linear(inputs, size), nn.ReLU(), *([nn.Dropout(dropout)] if dropout else [])]
            inputs = size
        self.body, self.head = nn.Sequential(*layers), nn.Linear(inputs, classes)

    def features(self, x: Tensor) -> Tensor:
        """What the head sees."""
        return torch.as_tensor(self.body(x))

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        return torch.as_tensor(self.head(self.features(x)))


_IMAGES = ("small_cnn", "resnet18", "wide_resnet")
_MAKERS: dict[str, Callable[..., nn.Module]] = {
    "small_cnn": SmallCnn,
    "resnet18": _resnet18,
    "wide_resnet": _wide_resnet,
    "mlp": Dense,
}
