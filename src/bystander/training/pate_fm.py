"""PATE-FM, scaled down: teachers are linear heads on a public trunk, the student is FixMatch's (Malek et al. 2021).

Images are public, labels private. The trunk sees images alone; each teacher sees the labels of its own shard; the
student sees what Confident-GNMax answers. Published PATE-FM trains every teacher by FixMatch.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from bystander._validate import InputError, inside, whole
from bystander.mechanisms import ConfidentGnmax, pate
from bystander.mechanisms.base import Rng, read_labels
from bystander.training import batches
from bystander.training.augment import Weak
from bystander.training.base import Classifier
from bystander.training.batches import Images
from bystander.training.clusters import normalised, typical
from bystander.training.epochs import Checkpoint
from bystander.training.fixmatch import FixMatch, train_fixmatch
from bystander.training.loop import predict
from bystander.training.networks import Network, resnet18
from bystander.training.privacy import Privacy, named
from bystander.training.recipe import Progress, Recipe, initial, pick
from bystander.training.simclr import SimClr, pretrain

TRUNK = Recipe(epochs=100, batch=512, rate=0.5, decay=1e-4, schedule="cosine", warmup=0.1)
STUDENT = Recipe(epochs=100, batch=64, rate=0.03, decay=5e-4, schedule="cosine", warmup=0.0, augment=Weak(shift=4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """How the teachers' heads are trained: all at once, each on its whole shard at every step, by Adam."""

    teachers: int = 250
    steps: int = 200
    rate: float = 0.05
    decay: float = 1e-3
    scale: float = 8.0

    def __post_init__(self) -> None:
        whole("teachers", self.teachers, 1)
        whole("steps", self.steps, 1)
        inside("rate", self.rate, 0, 1e3)
        inside("scale", self.scale, 0, 1e6)


def shards(rows: int, teachers: int, rng: Rng = None) -> NDArray[np.int64]:
    """(teachers, rows // teachers): disjoint rows at random. The few left over teach nobody.

    >>> held = shards(11, 3, 0)
    >>> held.shape, len(set(held.ravel().tolist()))
    ((3, 3), 9)
    """
    return np.stack([part[: rows // teachers] for part in pate.shards(rows, teachers, rng)])


def votes(
    features: NDArray[np.float32],
    y: ArrayLike,
    asked: ArrayLike,
    how: Heads | None = None,
    *,
    classes: int,
    seed: int = 0,
    device: torch.device,
) -> NDArray[np.int64]:
    """(queries, classes): how many teachers say which class of the rows `asked`. One teacher, one vote.

    `features` are of the labelled rows, then of any others; `y` labels the first of them.
    """
    how = Heads() if how is None else how
    labels = read_labels(y, classes)
    mine = torch.from_numpy(shards(len(labels), how.teachers, seed)).to(device)
    x = normalised(features, device) * how.scale
    known, target = x[mine], torch.from_numpy(labels).to(device)[mine]
    weight = torch.zeros(how.teachers, x.shape[1], classes, device=device, requires_grad=True)
    bias = torch.zeros(how.teachers, 1, classes, device=device, requires_grad=True)
    optimizer = torch.optim.Adam([weight, bias], how.rate)
    for _ in range(how.steps):
        logits = torch.baddbmm(bias, known, weight)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="sum")
        loss = loss / mine.shape[1] + how.decay * weight.square().sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        question = x[torch.as_tensor(np.asarray(asked), device=device)].expand(how.teachers, -1, -1)
        said = torch.baddbmm(bias, question, weight).argmax(2)
        counts = torch.nn.functional.one_hot(said, classes).sum(0)
    return counts.cpu().numpy()


class PateFmClassifier(Classifier):
    """Fit on uint8 images (rows, height, width, 3) and private labels; only the student predicts.

    `mechanism` says how many images are asked about (its `queries`) and what the answers cost; `release_` is what it
    released, `privacy_` its price, `asked_` the images that were asked about: the trunk's features decide which.
    `network` is a `resnet18()` unless given; `unlabelled` are further public images. Without `seed`, shards and noise
    come from the operating system's entropy.
    """

    def __init__(
        self,
        mechanism: ConfidentGnmax,
        network: Network | None = None,
        *,
        heads: Heads | None = None,
        trunk: Recipe = TRUNK,
        views: SimClr | None = None,
        student: Recipe = STUDENT,
        fixmatch: FixMatch | None = None,
        device: str = "auto",
        seed: int | None = None,
        checkpoints: str | Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.network = network
        self.heads = heads
        self.trunk = trunk
        self.views = views
        self.student = student
        self.fixmatch = fixmatch
        self.device = device
        self.seed = seed
        self.checkpoints = checkpoints
        self.progress = progress

    def fit(self, X: object, y: ArrayLike, unlabelled: object | None = None) -> PateFmClassifier:
        """Trunk, teachers, answers, student."""
        device, classes = pick(self.device), self.mechanism.classes
        heads, network = self._planned(len(np.asarray(X)))
        entropy = np.random.SeedSequence(None if self.seed is None else whole("seed", self.seed, 0))
        seed, coins = int(entropy.generate_state(1)[0]), np.random.default_rng(entropy)
        held = np.asarray(X) if unlabelled is None else np.concatenate((np.asarray(X), np.asarray(unlabelled)))
        images = batches.rows(held, device)
        if not isinstance(images, Images):
            raise InputError(f"X has shape {held.shape} of {held.dtype}: PATE-FM takes uint8 images (rows, h, w, 3)")
        net = initial(lambda: network.build(images.shape, classes), seed, device)
        given: dict[str, Any] = {"seed": seed, "device": device, "progress": self.progress}
        pretrain(net, images, self.trunk, self.views, checkpoint=self._at("trunk.pt"), **given)
        features = predict(net, images, device=device, precision=self.trunk.precision, features=True)
        assert self.mechanism.queries is not None
        asked = typical(features[: len(np.asarray(X))], self.mechanism.queries, seed=seed, device=device)
        asked = coins.permutation(asked)
        counted = votes(features, y, asked, heads, classes=classes, seed=int(coins.integers(2**31)), device=device)
        self.release_ = self.mechanism.randomize(counted, rng=coins)
        self.privacy_ = Privacy.of(self.release_, named(self.mechanism, self.release_))
        self.classes_ = np.arange(classes)
        self.asked_ = asked
        told = self.release_.output >= 0
        if not told.any():
            raise InputError(f"threshold is {self.mechanism.threshold:g}: no query was answered; give a smaller one")
        known = Images(images.bytes[torch.from_numpy(asked[told]).to(device)])
        answers = torch.tensor(self.release_.output[told])
        self.net_ = train_fixmatch(
            copy.deepcopy(net),
            known,
            answers,
            images,
            self.student,
            self.fixmatch,
            checkpoint=self._at("student.pt"),
            **given,
        )
        return self

    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """(rows, classes) probabilities."""
        if not hasattr(self, "net_"):
            raise InputError("the classifier is not fitted: call fit(X, y) first")
        device = pick(self.device)
        p = np.exp(predict(self.net_, batches.rows(X, device), device=device).astype(np.float64))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def _planned(self, rows: int) -> tuple[Heads, Network]:
        """Heads and network; what could only fail after hours of pretraining fails now."""
        heads = Heads() if self.heads is None else self.heads
        teachers = self.mechanism.teachers
        if teachers is not None and teachers != heads.teachers:
            raise InputError(f"teachers is {heads.teachers}: the mechanism has {teachers}; give Heads the same")
        whole("teachers", heads.teachers, 1, rows)
        whole("queries", self.mechanism.queries, 1, rows)
        return heads, resnet18() if self.network is None else self.network

    def _at(self, name: str) -> Checkpoint | None:
        if self.checkpoints is None:
            return None
        folder = Path(self.checkpoints)
        folder.mkdir(parents=True, exist_ok=True)
        return Checkpoint(folder / name)
