"""Small problems whose true law is known."""

import sys

import numpy as np
import pandas as pd

from bystander.mechanisms import RandomizedResponse
from bystander.training import LabelDPClassifier


def clicks(rows, seed=0, rate=0.05):
    """A frame of a category and three numbers, rare clicks, and each row's true probability of one."""
    rng = np.random.default_rng([seed, rows])
    group = np.minimum(rng.geometric(0.25, rows) - 1, 11)
    numbers = rng.normal(size=(rows, 3)).round(2)
    effects = np.random.default_rng(1).normal(0, 0.8, 12)
    logit = np.log(rate / (1 - rate)) - 0.6 + effects[group] + numbers @ [0.8, -0.5, 0.0]
    truth = 1 / (1 + np.exp(-logit))
    frame = pd.DataFrame(numbers, columns=["a", "b", "c"])
    frame["site"] = pd.Categorical.from_codes(group, [f"s{i}" for i in range(12)])
    return frame, (rng.random(rows) < truth).astype(int), truth


def log_loss(y, p):
    return float(-np.log(np.clip(np.asarray(p)[np.arange(len(y)), y], 1e-15, 1)).mean())


def constant(y):
    return log_loss(y, np.tile([1 - y.mean(), y.mean()], (len(y), 1)))


class Spy:
    """A learner that keeps what it is given, and predicts the frequencies of the labels in it."""

    seen = []  # noqa: RUF012
    soft = True

    def fit(self, X, y, **given):
        Spy.seen.append((X, np.asarray(y).copy(), given))
        y = np.asarray(y)
        self.p = y.mean(axis=0) if y.ndim == 2 else np.bincount(y, minlength=2) / len(y)
        return self

    def predict_proba(self, X):
        return np.tile(self.p, (len(X), 1))


FRESH = clicks(20_000, seed=99)


def ratio(base, epsilon, correction, seed, rows=8_000):
    """Log-loss on fresh rows over that of the best constant, and over that of the constant that the release knows."""
    mechanism = RandomizedResponse(epsilon=epsilon, classes=2)
    model = LabelDPClassifier(base, mechanism, classes=2, correction=correction, seed=seed)
    model.fit(*clicks(rows, seed=seed)[:2])
    lost = log_loss(FRESH[1], model.predict_proba(FRESH[0]))
    return lost / constant(FRESH[1]), lost / log_loss(FRESH[1], np.tile(model.base_rate_, (20_000, 1)))


class Recorded:
    """Labels that record who reads them, innermost first, and are read as a whole or not at all."""

    def __init__(self, y):
        self.y, self.readers = np.asarray(y), []

    def __array__(self, dtype=None, copy=None):
        frame, readers = sys._getframe(1), []
        while frame is not None and frame.f_globals["__name__"].startswith("bystander."):
            readers.append(f"{frame.f_globals['__name__'].removeprefix('bystander.')}.{frame.f_code.co_qualname}")
            frame = frame.f_back
        self.readers.append(readers)
        return self.y.copy()

    def _refuse(self, *args):
        raise AssertionError("labels were looked at one by one, counted or compared")

    __getitem__ = __len__ = __iter__ = __eq__ = __lt__ = __gt__ = __add__ = __array_ufunc__ = _refuse
    __hash__ = None
