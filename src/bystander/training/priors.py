"""Where RRWithPrior's prior comes from, at training and for rows that come later; each says what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bystander._validate import InputError, inside, whole
from bystander.mechanisms.base import Matrix, Prior, Rng, generator, read_prior
from bystander.mechanisms.priors import from_clusters, from_domain, from_model
from bystander.training.base import Learner, need, rows


class Drawn(Protocol):
    """A prior, learned once."""

    @property
    def prior(self) -> Prior:
        """Of the training rows, with its cost."""

    def at(self, X: Any) -> Matrix:
        """Of other rows: free, from what was learned."""


class Source(Protocol):
    """A way to a prior, as a frozen value."""

    def draw(self, X: Any, y: Any, classes: int, rng: Rng = None) -> Drawn:
        """Learn it; y is read at most once."""


@dataclass(frozen=True, slots=True)
class ModelPrior:
    """A model's prediction, sharpened by softmax(log p / temperature). Free: it must not have seen these labels."""

    model: Learner
    temperature: float = 1.0

    def draw(self, X: Any, y: Any, classes: int, rng: Rng = None) -> Drawn:
        """y is not looked at."""
        return _OfModel(self.at(X, classes), self, classes)

    def at(self, X: Any, classes: int) -> Prior:
        """Of any rows."""
        return from_model(self.model.predict_proba(X), classes=classes, temperature=self.temperature)


@dataclass(frozen=True, slots=True, eq=False)
class ClusterPrior:
    """Noisy label histograms of clusters of public features; ε_p = `epsilon` is paid on the same labels.

    `clusters` is how many k-means makes of X (a table of numbers), or a fitted model with `predict(X)`, or the training
    rows' own clusters as whole numbers from 0: then no other row has a prior.
    """

    clusters: int | Any = 100
    epsilon: float = 0.05

    def __post_init__(self) -> None:
        inside("epsilon", self.epsilon, 0, 700)

    def draw(self, X: Any, y: Any, classes: int, rng: Rng = None) -> Drawn:
        """Cluster X, then count y once."""
        random = generator(rng)
        model, found = self._clusters(X, random)
        prior = from_clusters(found, y, classes=classes, epsilon=self.epsilon, rng=random)
        given = None if model is None else partial(_assigned, model)
        return _OfGroups(prior, *_table(found, prior)[:2], np.full(classes, 1 / classes), given)

    def _clusters(self, X: Any, random: np.random.Generator) -> tuple[Any, NDArray[np.int64]]:
        if isinstance(self.clusters, int):
            many = whole("clusters", self.clusters, 1, rows(X))
            seed = int(random.integers(2**31))
            model = need("sklearn.cluster").KMeans(many, n_init=1, random_state=seed).fit(_numbers(X))
            return model, np.asarray(model.labels_, dtype=np.int64)
        if hasattr(self.clusters, "predict"):
            return self.clusters, _assigned(self.clusters, X)
        return None, np.asarray(self.clusters)


@dataclass(frozen=True, slots=True)
class DomainPrior:
    """Criteo's domain prior: noisy label histograms by a public categorical; ε_p = `epsilon` on the same labels.

    The column's `most` − 1 commonest values, and the rest in one. `column` is a name, or a number where X is an array.
    """

    column: str | int
    epsilon: float = 0.05
    most: int = 100

    def __post_init__(self) -> None:
        inside("epsilon", self.epsilon, 0, 700)
        whole("most", self.most, 1)

    def draw(self, X: Any, y: Any, classes: int, rng: Rng = None) -> Drawn:
        """Count y once."""
        values = self._values(X)
        prior = from_domain(values, y, classes=classes, epsilon=self.epsilon, most=self.most, rng=rng)
        names, laws, rarest = _table(values, prior)
        other = rarest if len(names) > self.most else np.full(classes, 1 / classes)
        return _OfGroups(prior, names, laws, other, self._values)

    def _values(self, X: Any) -> NDArray[Any]:
        try:
            column = X[self.column] if isinstance(self.column, str) else np.asarray(X)[:, self.column]
        except (KeyError, IndexError, TypeError, ValueError):
            raise InputError(f"column is {self.column!r}: X has no such column; name one of its columns") from None
        return np.asarray(column).astype(str)


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """A prior that is there already: one row for all, or one for each training row."""

    prior: Prior | ArrayLike

    def draw(self, X: Any, y: Any, classes: int, rng: Rng = None) -> Drawn:
        """As it is."""
        one = len(read_prior(self.prior, classes).probabilities) == 1
        return _Fixed(read_prior(self.prior, classes, rows(X)), one)


def source(prior: Source | Prior | ArrayLike | None) -> Source | None:
    """What was given, as a source."""
    if prior is None:
        return None
    if hasattr(prior, "draw"):
        return cast(Source, prior)
    return Given(prior)


# ---- priors that were drawn -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _OfModel:
    prior: Prior
    how: ModelPrior
    classes: int

    def at(self, X: Any) -> Matrix:
        """The same model's."""
        return self.how.at(X, self.classes).probabilities


@dataclass(frozen=True, slots=True, eq=False)
class _OfGroups:
    """One law for each group of rows; `other` for a group that no training row is in."""

    prior: Prior
    names: NDArray[Any]
    laws: Matrix
    other: Matrix
    groups: Callable[[Any], NDArray[Any]] | None

    def at(self, X: Any) -> Matrix:
        """Of the group that each row is in."""
        if self.groups is None:
            raise InputError(
                "clusters were given for the training rows alone: give ClusterPrior a model with predict(X)"
            )
        values = self.groups(X)
        place = np.minimum(np.searchsorted(self.names, values), len(self.names) - 1)
        known = self.names[place] == values
        return np.where(known[:, None], self.laws[place], self.other)


@dataclass(frozen=True, slots=True, eq=False)
class _Fixed:
    prior: Prior
    one: bool

    def at(self, X: Any) -> Matrix:
        """The one row, if it is for all."""
        if not self.one:
            raise InputError("prior was given for the training rows alone: give a ModelPrior, which knows other rows")
        return np.repeat(self.prior.probabilities[:1], rows(X), axis=0)


def _table(groups: NDArray[Any], prior: Prior) -> tuple[NDArray[Any], Matrix, Matrix]:
    """Each group's law, and that of the rarest group."""
    names, first, sizes = np.unique(groups, return_index=True, return_counts=True)
    laws = prior.probabilities[first]
    return names, laws, laws[np.argsort(-sizes, kind="stable")[-1]]


def _assigned(model: Any, X: Any) -> NDArray[np.int64]:
    return np.asarray(model.predict(_numbers(X)), dtype=np.int64)


def _numbers(X: Any) -> Matrix:
    try:
        found = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("X has columns that are no numbers: give ClusterPrior the rows' own clusters") from None
    if not np.isfinite(found).all():
        where = int(np.flatnonzero(~np.isfinite(found).reshape(len(found), -1).all(axis=1))[0])
        raise InputError(
            f"X, row {where} has a value that is missing or infinite: give ClusterPrior the rows' own clusters"
        )
    return found
