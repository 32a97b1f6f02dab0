"""Models of the trained targets: each is fitted on rows by number, and predicts rows by number."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Rows = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]
Probabilities = npt.NDArray[np.float64]  # (rows, K)
Predict = Callable[[Rows], Probabilities]
Fit = Callable[[Rows, Labels, int], Predict]  # rows, their labels (shown to the model), seed

PAPER = {"iterations": 100, "learning_rate": 0.4, "depth": 8}  # Wu et al. 2022, as the paper


def say(line: str) -> None:
    """Progress goes to stderr."""
    print(line, file=sys.stderr, flush=True)


def boosted(frame: pd.DataFrame, **settings: Any) -> Fit:
    """CatBoost with the paper's settings unless told otherwise; columns of category dtype are categories."""
    import catboost

    categories = list(frame.select_dtypes("category").columns)
    fixed = {"max_ctr_complexity": 1, "thread_count": 2, "verbose": False, "allow_writing_files": False}

    def fit(rows: Rows, labels: Labels, seed: int) -> Predict:
        model = catboost.CatBoostClassifier(**PAPER | fixed | settings, random_seed=seed)
        model.fit(frame.iloc[rows], labels, cat_features=categories)
        return lambda asked: model.predict_proba(frame.iloc[asked])

    return fit


def linear(features: Any, **settings: Any) -> Fit:
    """Logistic regression."""
    from sklearn.linear_model import LogisticRegression

    def fit(rows: Rows, labels: Labels, seed: int) -> Predict:
        model = LogisticRegression(random_state=seed, **settings).fit(features[rows], labels)
        return lambda asked: model.predict_proba(features[asked])

    return fit


def perceptron(features: Any, **settings: Any) -> Fit:
    """A fully connected network, stopped after `max_iter` epochs."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    def fit(rows: Rows, labels: Labels, seed: int) -> Predict:
        model = MLPClassifier(random_state=seed, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is to stop early
            model.fit(features[rows], labels)
        return lambda asked: model.predict_proba(features[asked])

    return fit


def convnet(images: npt.NDArray[np.uint8], classes: int, epochs: int) -> Fit:
    """An airbench-like network (32/128/128) in bfloat16; mirrored images are its only augmentation."""
    import torch
    from torch import nn

    pixels = torch.from_numpy(images)
    scale, shift = 1 / 64.0, -120.7 / 64.0

    def batch(rows: Any) -> torch.Tensor:
        return (pixels[rows].float() * scale + shift).to(memory_format=torch.channels_last)

    def block(inputs: int, outputs: int) -> list[nn.Module]:
        first, second = (nn.Conv2d(n, outputs, 3, padding=1, bias=False) for n in (inputs, outputs))
        rest = [nn.BatchNorm2d(outputs), nn.GELU(), second, nn.BatchNorm2d(outputs), nn.GELU()]
        return [first, nn.MaxPool2d(2), *rest]

    def fit(rows: Rows, labels: Labels, seed: int) -> Predict:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            blocks = [*block(24, 32), *block(32, 128), *block(128, 128)]
            head = [nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(128, classes)]
            net = nn.Sequential(nn.Conv2d(3, 24, 2), nn.GELU(), *blocks, *head)
        net = net.to(memory_format=torch.channels_last)
        rng, size = np.random.default_rng(seed), 250
        steps = epochs * (len(rows) // size)
        sgd = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9, nesterov=True, weight_decay=5e-4)
        rate = torch.optim.lr_scheduler.OneCycleLR(sgd, 0.2, total_steps=steps, anneal_strategy="linear")
        answers = torch.from_numpy(labels.astype(np.int64))
        for epoch in range(epochs):
            for chosen in rng.permutation(len(rows))[: steps // epochs * size].reshape(-1, size):
                x = batch(rows[chosen])
                x = torch.where(torch.from_numpy(rng.random((size, 1, 1, 1)) < 0.5), x.flip(3), x)
                with torch.autocast("cpu", torch.bfloat16):
                    logits = net(x)
                loss = nn.functional.cross_entropy(logits.float(), answers[chosen])
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                rate.step()
            say(f"    epoch {epoch + 1}/{epochs}, loss of the last batch {loss.item():.3f}")
        net.eval()

        @torch.inference_mode()
        def predict(asked: Rows) -> Probabilities:
            logits = [net(batch(part)) for part in np.array_split(asked, len(asked) // 1000 + 1)]
            return torch.cat(logits).double().softmax(1).numpy()

        return predict

    return fit
