"""The paper's synthetic data (Appendix C): a mixture of Gaussians, and randomized response on its labels.

x | y ~ N(e_y, I_d) with balanced classes. The paper says d = 5 and k up to 10, but e_y needs d ≥ k: here d
= max(5, k).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]


def rng(*key: int) -> np.random.Generator:
    """A generator of its own for every use."""
    return np.random.default_rng(key)


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Labels, features, and the exact posterior P(y | x)."""

    labels: Labels
    features: Matrix
    posterior: Matrix

    @classmethod
    def draw(cls, n: int, k: int, *key: int) -> Mixture:
        """n rows of k balanced classes."""
        random = rng(*key)
        labels = random.integers(0, k, n)
        features = random.standard_normal((n, max(5, k)))
        features[np.arange(n), labels] += 1
        return cls(labels, features, softmax(features[:, :k]))  # log N(x; e_y, I) = x_y + const


def softmax(logits: Matrix) -> Matrix:
    """Rows that sum to one."""
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def logistic_regression(n: int, k: int, *key: int) -> Any:
    """scikit-learn's, with its defaults, trained on fresh rows."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise SystemExit("this experiment needs scikit-learn: pip install scikit-learn") from error
    fresh = Mixture.draw(n, k, *key)
    return LogisticRegression().fit(fresh.features, fresh.labels)


def randomized(labels: Labels, k: int, epsilon: float, *key: int) -> Labels:
    """k-ary randomized response, drawn once."""
    random = rng(*key)
    lie = random.random(len(labels)) >= np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    return np.where(lie, (labels + random.integers(1, k, len(labels))) % k, labels)


# --- what a "model" that publishes the noisy label z predicts -------------------------------------------


def indicator(z: Labels, reference: Matrix, epsilon: float) -> Matrix:
    """1 at the noisy label: its output, taken as a prediction."""
    out = np.zeros_like(reference)
    out[np.arange(len(z)), z] = 1
    return out


def channel(z: Labels, reference: Matrix, epsilon: float) -> Matrix:
    """P(z | y) for every y."""
    k = reference.shape[1]
    out = np.full_like(reference, 1 / (np.exp(epsilon) + k - 1))
    out[np.arange(len(z)), z] *= np.exp(epsilon)
    return out


def posterior(z: Labels, reference: Matrix, epsilon: float) -> Matrix:
    """P(y | x, z), with the reference as the prior: what an attacker believes after it has seen z."""
    out = channel(z, reference, epsilon) * reference
    return np.asarray(out / out.sum(axis=1, keepdims=True))


Predict = Callable[[Labels, Matrix, float], Matrix]


# --- the truth -----------------------------------------------------------------------------------------


def sim_uniform(epsilon: float, k: int) -> float:
    """SIM ε when the imputed label is uniform: the larger of the two directions."""
    total = np.exp(epsilon) + k - 1
    return float(max(np.log(k * np.exp(epsilon) / total), np.log(total / k)))


def sim_rows(epsilon: float, prior: Matrix) -> float:
    """SIM ε when the imputed label follows `prior`: the supremum over these rows, exactly.

    The law of z is P(z | y) for the true label, D_z = Σ_c prior_c P(z | c) for the imputed one.
    """
    total = np.exp(epsilon) + prior.shape[1] - 1
    law = (1 + np.expm1(epsilon) * np.array([prior.min(), prior.max()])) / total
    return float(max(np.log(np.exp(epsilon) / total / law[0]), np.log(law[1] * total)))


def limit(
    prior: Matrix, epsilon: float, predict: Predict, score: Callable[[Matrix, Matrix], Matrix], at: Sequence[float]
) -> list[float]:
    """The attack's accuracy on its strongest share q of the guesses, with infinitely many rows, for each q.

    Every (row, shown label y, noisy label z) counts with its exact probability ½ prior_y (P(z | y) + D_z), and the
    guess "true" is right with probability P(z | y) / (P(z | y) + D_z). Ties of the score are shared out evenly.
    """
    n, k = prior.shape
    size, weight, right = [], [], []
    for label in range(k):
        z = np.full(n, label)
        given = channel(z, prior, epsilon)
        law = (given * prior).sum(axis=1, keepdims=True)
        scores = score(predict(z, prior, epsilon), prior)
        mass = prior * (given + law) / (2 * n)
        size.append(np.abs(scores).ravel())
        weight.append(mass.ravel())
        right.append((prior * np.where(scores > 0, given, law) / (2 * n)).ravel())
    magnitude = np.round(np.concatenate(size), 12)
    order = np.argsort(-magnitude)
    mass, good = (np.concatenate(parts)[order].cumsum() for parts in (weight, right))
    last = np.append(np.flatnonzero(np.diff(magnitude[order])), len(order) - 1)
    x, y = np.append(0, mass[last]), np.append(0, good[last])
    return [float(np.interp(q * mass[-1], x, y) / (q * mass[-1])) for q in at]


def log_odds(accuracy: float) -> float:
    """The ε that this accuracy stands for at δ = 0."""
    return float(np.log(accuracy / (1 - accuracy)))
