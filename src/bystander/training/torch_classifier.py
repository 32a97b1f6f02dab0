"""A torch network as a scikit-learn-like learner: hard labels, probabilities or releases in, probabilities out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from bystander._validate import InputError, whole
from bystander.mechanisms import Alibi, Release
from bystander.training import batches
from bystander.training.augment import Weak
from bystander.training.base import Classifier
from bystander.training.epochs import Checkpoint
from bystander.training.loop import predict, train
from bystander.training.losses import AlibiLoss, CrossEntropy, Loss, MarginalLoss
from bystander.training.networks import Network, mlp
from bystander.training.recipe import Progress, Recipe, initial, pick


class TorchClassifier(Classifier):
    """Fit a `Network` on uint8 images (rows, height, width, 3), a table, or a sparse matrix.

    `fit(X, y)`: y is one label a row, or (rows, classes) targets: probabilities, or with `loss=AlibiLoss.of(…)` what
    ALIBI released. `classes` fixes the labels as 0…classes − 1; without it they are the values in y. `checkpoint` is a
    file that an interrupted `fit` resumes from, with the same `seed`. Without `seed` the weights come from the
    operating system's entropy. The other settings are `Recipe`'s.
    """

    soft = True
    costly = True

    def __init__(
        self,
        network: Network | None = None,
        *,
        classes: int | None = None,
        epochs: int = 24,
        batch: int = 250,
        rate: float = 0.2,
        momentum: float = 0.9,
        decay: float = 5e-4,
        schedule: Literal["triangle", "cosine", "drops"] = "triangle",
        warmup: float = 0.2,
        drops: tuple[float, ...] = (0.3, 0.6, 0.9),
        augment: Weak | None = None,
        mixup: float = 0.0,
        smoothing: float = 0.0,
        loss: Loss | None = None,
        optimizer: Literal["sgd", "adam"] = "sgd",
        precision: Literal["auto", "bf16", "fp32"] = "auto",
        deterministic: bool = False,
        mirror: bool = False,
        device: str = "auto",
        seed: int | None = None,
        checkpoint: str | Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.network = network
        self.classes = classes
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.momentum = momentum
        self.decay = decay
        self.schedule = schedule
        self.warmup = warmup
        self.drops = drops
        self.augment = augment
        self.mixup = mixup
        self.smoothing = smoothing
        self.loss = loss
        self.optimizer = optimizer
        self.precision = precision
        self.deterministic = deterministic
        self.mirror = mirror
        self.device = device
        self.seed = seed
        self.checkpoint = checkpoint
        self.progress = progress

    @property
    def recipe(self) -> Recipe:
        """How it trains."""
        names = Recipe.__dataclass_fields__
        return Recipe(**{name: value for name, value in self.get_params().items() if name in names})

    def fit(self, X: object, y: object) -> TorchClassifier:
        """Train from scratch, or from the checkpoint."""
        return self._fit(X, y, CrossEntropy(self.smoothing) if self.loss is None else self.loss)

    def fit_likelihood(self, X: object, likelihood: NDArray[np.float64]) -> TorchClassifier:
        """Train through a channel: likelihood is P(released | label), (rows, classes), each row on its own scale."""
        return self._fit(X, likelihood / likelihood.max(axis=1, keepdims=True), MarginalLoss())

    def fit_alibi(self, X: object, release: Release, warmup: int = 0) -> TorchClassifier:
        """Train on what ALIBI released; without a prior for the first `warmup` epochs."""
        if not isinstance(release.mechanism, Alibi):
            raise InputError(f"release is by {type(release.mechanism).__name__}: give one by Alibi")
        return self._fit(X, release.output, AlibiLoss.of(release.mechanism, warmup=warmup))

    def _fit(self, X: object, y: object, loss: Loss) -> TorchClassifier:
        device = pick(self.device)
        rows = batches.rows(X, device)
        targets, self.classes_ = read_targets(y, self.classes, probabilities=isinstance(loss, CrossEntropy))
        network = mlp() if self.network is None else self.network
        if not isinstance(network, Network):
            raise InputError(f"network is {network!r}: give a Network, such as mlp() or small_cnn()")
        if not callable(loss):
            raise InputError(f"loss is {loss!r}: give a loss, such as CrossEntropy() or AlibiLoss(scale)")
        if self.checkpoint is not None and self.seed is None:
            raise InputError("seed is None: a checkpoint resumes only a training of the same seed; give a seed")
        seed = int(np.random.SeedSequence().generate_state(1)[0]) if self.seed is None else whole("seed", self.seed, 0)
        net = initial(lambda: network.build(rows.shape, len(self.classes_)), seed, device)
        at = None if self.checkpoint is None else Checkpoint(Path(self.checkpoint))
        self.net_ = train(
            net,
            rows,
            torch.from_numpy(targets),
            self.recipe,
            loss=loss,
            seed=seed,
            device=device,
            checkpoint=at,
            progress=self.progress,
        )
        self.shape_ = rows.shape
        return self

    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """(rows, classes) probabilities, in the order of `classes_`."""
        if not hasattr(self, "net_"):
            raise InputError("the classifier is not fitted: call fit(X, y) first")
        device = pick(self.device)
        rows = batches.rows(X, device)
        if rows.shape != self.shape_:
            raise InputError(f"X has rows of shape {rows.shape}: it was fitted on rows of shape {self.shape_}")
        mirror = self.mirror and len(rows.shape) == 3
        logs = predict(self.net_, rows, device=device, precision=self.precision, mirror=mirror).astype(np.float64)
        p = np.exp(logs)
        return np.asarray(p / p.sum(axis=1, keepdims=True))


def read_targets(y: object, classes: int | None, *, probabilities: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """Targets as the loop takes them, and the classes: labels 0…K − 1 of int64, or (rows, K) of float32."""
    given = np.asarray(y)
    if given.size == 0 or given.ndim not in (1, 2):
        raise InputError(f"y has shape {given.shape}: give one label a row, or (rows, classes) targets")
    if given.ndim == 2:
        soft = given.astype(np.float32)
        if classes is not None and soft.shape[1] != classes:
            raise InputError(f"y has {soft.shape[1]} columns: classes is {classes}")
        bad = ~np.isfinite(soft).all(axis=1)
        if probabilities:
            bad |= (soft < 0).any(axis=1) | (np.abs(soft.sum(axis=1) - 1) > 1e-3)
        if bad.any():
            told = "probabilities that add up to 1" if probabilities else "finite numbers"
            raise InputError(f"y, row {int(np.flatnonzero(bad)[0])} is out of range: give {told}")
        return soft, np.arange(soft.shape[1])
    if classes is None:
        values, codes = np.unique(given, return_inverse=True)
        if len(values) < 2:
            raise InputError(f"y has only the label {values[0]}: give rows of two classes or more, or set classes")
        return codes.astype(np.int64), values
    if given.dtype.kind not in "biuf" or (given != np.floor(given)).any():
        raise InputError(f"y has labels that are no whole numbers: give 0…{classes - 1}, or leave classes out")
    labels = given.astype(np.int64)
    if labels.min() < 0 or labels.max() >= classes:
        raise InputError(f"y has the label {labels.min() if labels.min() < 0 else labels.max()}: give 0…{classes - 1}")
    return labels, np.arange(classes)
