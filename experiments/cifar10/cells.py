"""What each cell does: train, predict members and control, and say how. NumPy and torch alone."""

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bystander.datasets import cifar10
from bystander.mechanisms import Alibi, RandomizedResponse, RRWithPrior
from bystander.mechanisms.base import Release
from bystander.mechanisms.priors import from_clusters
from bystander.training.batches import Images
from bystander.training.clusters import clusters, typical
from bystander.training.fixmatch import train_fixmatch
from bystander.training.loop import Checkpoint, initial, predict, train
from bystander.training.losses import AlibiLoss, Loss
from bystander.training.pate_fm import votes
from bystander.training.simclr import pretrain
from experiments.cifar10 import plan
from experiments.cifar10.plan import CLASSES, FEW, Cell, Settings

Labels = NDArray[np.int64]
Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Data:
    """All images, and who has which: rows of the 50,000 for the reference and for the targets."""

    images: NDArray[np.uint8]
    labels: Labels
    test_images: NDArray[np.uint8]
    test_labels: Labels
    reference: Labels
    members: Labels

    @classmethod
    def load(cls, where: Path, settings: Settings) -> Data:
        """From the official batches; halves by the profile's seed."""
        held = cifar10.load(where)
        order = np.random.default_rng([settings["seed"], 50]).permutation(len(held.train))
        half = len(order) // 2
        parts = np.sort(order[:half]), np.sort(order[half:])
        return cls(held.train, held.train_labels, held.test, held.test_labels, *parts)


@dataclass(frozen=True, slots=True)
class Work:
    """One cell being trained."""

    cell: Cell
    settings: Settings
    data: Data
    out: Path
    device: torch.device
    say: Told

    @property
    def seed(self) -> int:
        """The cell's."""
        return plan.seed(self.settings, self.cell)

    def rows(self, chosen: Labels | None = None) -> Images:
        """Training images on the device."""
        held = self.data.images if chosen is None else self.data.images[chosen]
        return Images(torch.from_numpy(np.ascontiguousarray(held)).to(self.device))

    def net(self) -> nn.Module:
        """The profile's network with this cell's weights."""
        build = plan.network(self.settings)
        return initial(lambda: build.build((3, 32, 32), CLASSES), self.seed, self.device)

    def trunk(self) -> nn.Module:
        """The network as SimCLR left it."""
        net = self.net()
        net.load_state_dict(torch.load(self.out / "trunk.pt", map_location=self.device, weights_only=True))
        return net

    def features(self) -> NDArray[np.float32]:
        """The trunk's, of all training images."""
        with np.load(self.out / "trunk.npz") as held:
            return held["features"].astype(np.float32)

    def around(self) -> dict[str, Any]:
        """What every loop takes."""
        at = self.out / f".{self.cell.name}.checkpoint"
        return {
            "seed": self.seed, "device": self.device, "checkpoint": Checkpoint(at, 10),
            "progress": lambda done, of, loss: self.say(f"{self.cell.name}: {done}/{of}, loss {loss:.3f}"),
        }  # fmt: skip


def train_cell(work: Work) -> dict[str, Any]:
    """Train it, write NAME.npz and then NAME.json, and return the latter."""
    start = time.perf_counter()
    cell, data = work.cell, work.data
    if cell.kind == "trunk":
        arrays, notes = _trunk(work)
        told: dict[str, Any] = {}
    else:
        net, notes = _network(work)
        part = {
            name: predict(net, Images(torch.from_numpy(images).to(work.device)), device=work.device)
            for name, images in (("members", data.images[data.members]), ("control", data.test_images))
        }
        arrays = part
        truth = {"members": data.labels[data.members], "control": data.test_labels}
        right = {name: float((logs.argmax(1) == truth[name]).mean()) for name, logs in part.items()}
        told = {"test_accuracy": right["control"], "members_accuracy": right["members"]}
    body = {
        "cell": cell.name, "kind": cell.kind, "epsilon": None if cell.epsilon == math.inf else cell.epsilon, **told,
        "seconds": round(time.perf_counter() - start, 1), "seed": work.seed,
        "settings": plan.digest(work.settings, cell), **machine(work.device), "notes": notes,
    }  # fmt: skip
    _write(work.out / f"{cell.name}.npz", lambda path: np.savez_compressed(path, **arrays))
    _write(work.out / f"{cell.name}.json", lambda path: path.write_text(json.dumps(body, indent=1) + "\n"))
    (work.out / f".{cell.name}.checkpoint").unlink(missing_ok=True)
    return body


def machine(device: torch.device) -> dict[str, Any]:
    """Where it was trained."""
    name = f"CPU, {os.cpu_count()} cores" if device.type == "cpu" else torch.cuda.get_device_name(device)
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    return {"device": name, "versions": versions}


def _trunk(work: Work) -> tuple[dict[str, Any], dict[str, Any]]:
    images, net = work.rows(), work.net()
    recipe = plan.recipe(work.settings, "trunk")
    pretrain(net, images, recipe, plan.simclr(work.settings), **work.around())
    features = predict(net, images, device=work.device, features=True)
    _write(work.out / "trunk.pt", lambda path: torch.save(net.state_dict(), path))
    found = clusters(features[work.data.members], work.settings["clusters"], seed=work.seed, device=work.device)
    counts = np.zeros((work.settings["clusters"], CLASSES))
    np.add.at(counts, (found, work.data.labels[work.data.members]), 1)
    notes = {
        "epochs": recipe.epochs,
        "images": len(images),
        "cluster_purity": float(counts.max(1).sum() / counts.sum()),
    }
    return {"features": features.astype(np.float16), "clusters": found}, notes


def _network(work: Work) -> tuple[nn.Module, dict[str, Any]]:
    cell, data, settings = work.cell, work.data, work.settings
    if cell.kind == "reference":
        return _target(work, data.reference, data.labels[data.reference])
    if cell.kind == "pate-fm":
        return _pate(work)
    if cell.kind.endswith(f"-{FEW}") or cell.kind.endswith("-trunk"):
        return _few(work)
    rng, labels = np.random.default_rng([work.seed, 1]), data.labels[data.members]
    if cell.epsilon == math.inf:
        return _target(work, data.members, labels)
    if cell.kind == "alibi":
        mechanism = Alibi(epsilon=cell.epsilon, classes=CLASSES)
        release = mechanism.randomize(labels, rng=rng)
        loss = AlibiLoss.of(mechanism, warmup=settings["alibi_warmup"])
        net, notes = _target(work, data.members, release.output.astype(np.float32), loss)
        return net, {**notes, **promised(release)}
    if cell.kind == "lp1st":
        release = RandomizedResponse(epsilon=cell.epsilon, classes=CLASSES).randomize(labels, rng=rng)
    else:
        paid = settings["epsilon_prior"]
        with np.load(work.out / "trunk.npz") as held:
            prior = from_clusters(held["clusters"], labels, classes=CLASSES, epsilon=paid, rng=rng)
        release = RRWithPrior(epsilon=cell.epsilon - paid, classes=CLASSES).randomize(labels, prior, rng)
    kept: dict[str, Any] = {"labels_true": float((release.output == labels).mean())}
    if release.sizes is not None:
        kept |= {"share_k1": float((release.sizes == 1).mean()), "mean_k": float(release.sizes.mean())}
    net, notes = _target(work, data.members, release.output)
    return net, {**notes, **promised(release), **kept}


def _target(
    work: Work, chosen: Labels, released: NDArray[Any], loss: Loss | None = None
) -> tuple[nn.Module, dict[str, Any]]:
    recipe = plan.recipe(work.settings, "target", mixup=plan.mixup(work.settings, work.cell))
    net = train(work.net(), work.rows(chosen), torch.tensor(released), recipe, loss=loss, **work.around())
    return net, {"epochs": recipe.epochs, "mixup": recipe.mixup}


def _pate(work: Work) -> tuple[nn.Module, dict[str, Any]]:
    cell, data, settings = work.cell, work.data, work.settings
    features, labels, rng = work.features()[data.members], data.labels[data.members], np.random.default_rng(work.seed)
    asked = typical(features, plan.at(settings["questions"], cell.epsilon), seed=work.seed, device=work.device)
    asked = rng.permutation(asked)
    many = {"classes": CLASSES, "seed": work.seed, "device": work.device}
    counts = votes(features, labels, asked, plan.heads(settings), **many)
    notes: dict[str, Any] = {"agreement": float(counts.max(1).mean() / counts.sum(1).mean())}
    if cell.epsilon == math.inf:
        answers = counts.argmax(1)
    else:
        mechanism = plan.gnmax(settings, cell.epsilon)
        release = mechanism.randomize(counts, rng=rng)
        answers = release.output
        notes |= {"sigma1": mechanism.sigma1, "sigma2": mechanism.sigma2, **promised(release)}
    told = answers >= 0
    right = float((answers[told] == labels[asked[told]]).mean())
    notes |= {"questions": len(asked), "answers": int(told.sum()), "answers_right": right}
    net = _student(work, work.trunk(), data.members[asked[told]], answers[told])
    return net, notes


def _student(work: Work, net: nn.Module, chosen: Labels, answers: Labels) -> nn.Module:
    recipe, how = plan.recipe(work.settings, "student"), plan.fixmatch(work.settings)
    given = work.rows(chosen), torch.tensor(answers), work.rows()
    return train_fixmatch(net, *given, recipe, how, **work.around())


def few(data: Data, settings: Settings) -> Labels:
    """The same rows for every way of training on few labels: as many of each class, from the targets' half."""
    rng, labels = np.random.default_rng([settings["seed"], FEW]), data.labels[data.members]
    return np.sort(np.concatenate([rng.choice(np.flatnonzero(labels == c), FEW // CLASSES, False) for c in range(10)]))


def _few(work: Work) -> tuple[nn.Module, dict[str, Any]]:
    chosen = work.data.members[few(work.data, work.settings)]
    labels = work.data.labels[chosen]
    if work.cell.kind.startswith("supervised"):
        recipe = plan.recipe(work.settings, "supervised")
        net = train(work.net(), work.rows(chosen), torch.tensor(labels), recipe, **work.around())
        return net, {"labels": FEW, "epochs": recipe.epochs}
    net = work.trunk() if work.cell.kind.endswith("-trunk") else work.net()
    return _student(work, net, chosen, labels), {"labels": FEW, "epochs": work.settings["student"]["epochs"]}


def promised(release: Release) -> dict[str, Any]:
    """ε and δ of the release under both relations; what the prior has cost is in them."""
    found = {which: release.guarantee(which) for which in ("replace", "label")}  # type: ignore[arg-type]
    return {f"epsilon_{which}": each.epsilon for which, each in found.items()} | {"delta": found["replace"].delta}


def _write(path: Path, how: Callable[[Path], Any]) -> None:
    """Aside, then renamed; NumPy adds .npz to names that lack it."""
    aside = path.with_name(f".{os.getpid()}-{path.name}")
    how(aside)
    os.replace(aside, path)
