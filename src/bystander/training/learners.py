"""Learners for tables: CatBoost and logistic regression, with category columns, soft labels and a seed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bystander._validate import InputError, inside, whole
from bystander.mechanisms.base import Matrix
from bystander.training.base import Classifier, need, number, refusals, rows, seeds, weighted
from bystander.training.corrections import base_rate

_FIXED = {"max_ctr_complexity": 1, "thread_count": 2, "verbose": False, "allow_writing_files": False}


class Boosted(Classifier):
    """CatBoost; columns of category, text or object type of a pandas frame are categories.

    `fit(X, y)`: one label a row, or (rows, K) probabilities. `classes` fixes the labels as 0…classes − 1; without it
    they are the values in y. `settings` are CatBoost's own. Without `seed`: the operating system's entropy.
    """

    soft = True
    classes_: NDArray[Any]

    def __init__(
        self,
        *,
        iterations: int = 100,
        learning_rate: float = 0.1,
        depth: int = 6,
        classes: int | None = None,
        seed: int | None = None,
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.iterations = iterations
        self.learning_rate = learning_rate
        self.depth = depth
        self.classes = classes
        self.seed = seed
        self.settings = settings

    def fit(self, X: Any, y: Any, *, eval_set: tuple[Any, Any] | None = None, sample_weight: Any = None) -> Boosted:
        """Train. `eval_set` is CatBoost's: (X, y) to stop on, whose labels it sees as they are."""
        catboost = need("catboost")
        given, weight = np.asarray(y), sample_weight
        if given.ndim != 2:
            labels = self._labels(given)
            loss = "Logloss" if len(self.classes_) == 2 else "MultiClass"
        elif given.shape[1] == 2:  # Logloss would take two different numbers as two classes
            self.classes_, labels, loss = np.arange(2), np.asarray(given[:, 1], dtype=np.float64), "CrossEntropy"
        else:
            self.classes_, loss = np.arange(given.shape[1]), "MultiClass"
            X, labels, weight = weighted(X, given, sample_weight)
        if labels.min() == labels.max():
            raise InputError(f"y has only the label {labels[0]:g}: CatBoost needs two; give rows of more classes")
        told = {"loss_function": loss} | ({"classes_count": len(self.classes_)} if loss == "MultiClass" else {})
        shown = None if eval_set is None else (self._columns(eval_set[0]), self._codes(eval_set[1]))
        frame = self._columns(X)
        with catboost_refusals(catboost, self.settings):
            self.model_ = catboost.CatBoostClassifier(**self._settings() | told)
            self.model_.fit(frame, labels, cat_features=places(frame), eval_set=shown, sample_weight=weight)
        self.start_: float | None = None
        return self

    def fit_likelihood(self, X: Any, likelihood: Matrix) -> Boosted:
        """Make Σ_i log Σ_y p_y(x_i)·likelihood_iy large, for two classes: the label itself is not known.

        The gradient of that sum is EM's: the label's posterior less p. The curvature −p(1 − p) bounds its own.
        """
        catboost = need("catboost")
        if likelihood.shape[1] != 2:
            raise InputError(
                f"classes is {likelihood.shape[1]}: CatBoost trains through a channel of two; correct by Posterior(), "
                "or give a torch network"
            )
        self.classes_ = np.arange(2)
        ratio = likelihood[:, 1] / np.maximum(likelihood[:, 0], 1e-300)
        if ratio.min() == ratio.max():
            raise InputError(
                "y tells the same of every row: nothing can be learned; give a larger epsilon or more rows"
            )
        frame, rate = self._columns(X), _rate(ratio)
        self.start_ = float(np.log(rate / (1 - rate)))
        baseline = np.full(len(ratio), self.start_)
        told = {"loss_function": Through(), "eval_metric": "RMSE", "leaf_estimation_iterations": 1}
        with catboost_refusals(catboost, self.settings):
            pool = catboost.Pool(frame, ratio, cat_features=places(frame), baseline=baseline)
            self.model_ = catboost.CatBoost(self._settings() | told | {"leaf_estimation_method": "Newton"})
            self.model_.fit(pool)
        return self

    def predict_proba(self, X: Any) -> Matrix:
        """(rows, classes), in the order of `classes_`."""
        if not hasattr(self, "model_"):
            raise InputError("the classifier is not fitted: call fit(X, y) first")
        frame = self._columns(X)
        with catboost_refusals(need("catboost"), self.settings):
            if self.start_ is None:
                return np.asarray(self.model_.predict_proba(frame), dtype=np.float64)
            logit = self.start_ + np.asarray(self.model_.predict(frame, prediction_type="RawFormulaVal"))
        yes = 1 / (1 + np.exp(-np.clip(logit, -500, 500)))
        return np.stack([1 - yes, yes], axis=1)

    def _settings(self) -> dict[str, Any]:
        whole("iterations", self.iterations, 1)
        whole("depth", self.depth, 1, 16)
        inside("learning_rate", self.learning_rate, 0, 10)
        own = {"iterations": self.iterations, "learning_rate": self.learning_rate, "depth": self.depth}
        seed = number(seeds(None, 1)[0]) if self.seed is None else whole("seed", self.seed, 0)
        return _FIXED | own | {"random_seed": seed % 2**31} | (self.settings or {})

    def _labels(self, given: NDArray[Any]) -> NDArray[Any]:
        if given.ndim != 1 or given.size == 0:
            raise InputError(f"y has shape {given.shape}: give one label a row, or (rows, classes) probabilities")
        if self.classes is None:
            self.classes_, codes = np.unique(given, return_inverse=True)
            return np.asarray(codes)
        self.classes_ = np.arange(self.classes)
        if given.dtype.kind not in "biu" or given.min() < 0 or given.max() >= self.classes:
            raise InputError(f"y has labels that are not among the {self.classes} classes: give 0…{self.classes - 1}")
        return given.astype(np.int64)

    def _codes(self, given: Any) -> NDArray[Any]:
        """Labels to stop on, as CatBoost was shown the others."""
        found = np.searchsorted(self.classes_, given)
        if (self.classes_[np.minimum(found, len(self.classes_) - 1)] != np.asarray(given)).any():
            raise InputError(f"eval_set has labels that are not among {self.classes_.tolist()}: drop those rows")
        return np.asarray(found)

    def _columns(self, X: Any) -> Any:
        """Missing categories are a category; those that no row has are let go: CatBoost would read them all."""
        names = categories(X)
        if not names:
            return X
        frame = X.copy(deep=False)
        for name in names:
            column = X[name]
            if column.isna().any():
                frame[name] = column.astype("object").where(column.notna(), "missing").astype("category")
            elif hasattr(column, "cat"):
                frame[name] = column.cat.remove_unused_categories()
        return frame


@contextmanager
def catboost_refusals(catboost: Any, settings: dict[str, Any] | None) -> Iterator[None]:
    """What CatBoost refuses, told in one line; its own words stand behind it."""
    try:
        yield
    except (catboost.CatBoostError, TypeError) as error:
        said = re.sub(r"^\S+\.cpp:\d+: ", "", str(error).partition("\n")[0]).rstrip(". ")
        raise InputError(f"X, y or settings ({settings}) are refused by CatBoost: {said}; mend them") from error


class Through:
    """CatBoost's objective of labels seen through a channel: the target is P(seen | 1)/P(seen | 0). By numba."""

    def calc_ders_range(self, approxes: Any, targets: Any, weights: Any) -> Any:
        """Gradient and curvature of log(p₀ + p₁·ratio), as EM takes them."""
        out = np.empty((len(targets), 2))
        for i in range(len(targets)):
            p = 1 / (1 + np.exp(-approxes[i]))
            out[i, 0] = p * targets[i] / (1 + p * (targets[i] - 1)) - p
            out[i, 1] = -p * (1 - p)
        return out


class Logistic(Classifier):
    """Logistic regression by scikit-learn; a pandas frame's numbers are standardised, its categories one-hot.

    A category of fewer than `rare` rows counts with the other rare ones; missing numbers become the median.
    """

    soft = True

    def __init__(self, *, C: float = 1.0, rare: int = 20, max_iter: int = 1000, seed: int | None = None) -> None:
        self.C = C
        self.rare = rare
        self.max_iter = max_iter
        self.seed = seed

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Logistic:
        """Train on one label a row, or (rows, K) probabilities."""
        if np.ndim(y) == 2:
            X, y, sample_weight = weighted(X, np.asarray(y, dtype=np.float64))
        labels = np.asarray(y)
        if labels.ndim != 1 or labels.size == 0:
            raise InputError(f"y has shape {labels.shape}: give one label a row, or (rows, classes) probabilities")
        if len(np.unique(labels)) < 2:
            raise InputError(f"y has only the label {labels[0]}: logistic regression needs two; give more classes")
        model = need("sklearn.linear_model").LogisticRegression(
            C=inside("C", self.C, 0, 1e12), max_iter=self.max_iter, random_state=self.seed
        )
        self.model_ = (
            need("sklearn.pipeline").make_pipeline(encoder(X, self.rare), model) if hasattr(X, "iloc") else model
        )
        step = "logisticregression__sample_weight" if hasattr(X, "iloc") else "sample_weight"
        with refusals(self):
            self.model_.fit(X, labels, **({} if sample_weight is None else {step: sample_weight}))
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> Matrix:
        """(rows, classes), in the order of `classes_`."""
        if not hasattr(self, "model_"):
            raise InputError("the classifier is not fitted: call fit(X, y) first")
        with refusals(self):
            return np.asarray(self.model_.predict_proba(X), dtype=np.float64)


def boosted(**settings: Any) -> Boosted:
    """CatBoost as Wu et al. (2022) use it: 100 iterations, rate .4, depth 8; `settings` are `Boosted`'s or CatBoost's.

    >>> boosted(depth=6, l2_leaf_reg=10)
    Boosted(iterations=100, learning_rate=0.4, depth=6, settings={'l2_leaf_reg': 10})
    """
    known = Boosted().get_params()
    own = {"iterations": 100, "learning_rate": 0.4, "depth": 8} | {k: v for k, v in settings.items() if k in known}
    others = {name: value for name, value in settings.items() if name not in known}
    return Boosted(**own | ({"settings": others} if others else {}))


def logistic(**settings: Any) -> Logistic:
    """`Logistic` with these settings."""
    return Logistic(**settings)


def categories(X: Any) -> list[Any]:
    """The columns of a pandas frame that are no numbers."""
    if not hasattr(X, "select_dtypes"):
        return []
    return [name for name in X.columns if getattr(X[name].dtype, "kind", "O") not in "biuf"]


def places(X: Any) -> list[int]:
    """Where they are: CatBoost takes a whole number for a place, not for a name."""
    names = categories(X)
    return [place for place, name in enumerate(X.columns) if name in names] if names else []


def encoder(X: Any, rare: int) -> Any:
    """Numbers and categories of a frame as one matrix."""
    shaping = need("sklearn.preprocessing")
    names = categories(X)
    numbers = [name for name in X.columns if name not in names]
    least = min(whole("rare", rare, 0), rows(X)) or None
    one_hot = shaping.OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=least)
    median = need("sklearn.impute").SimpleImputer(strategy="median")
    scaled = need("sklearn.pipeline").make_pipeline(median, shaping.StandardScaler())
    return need("sklearn.compose").make_column_transformer((scaled, numbers), (one_hot, names))


def _rate(ratio: NDArray[np.float64]) -> float:
    """How many labels are 1, from what was released of them."""
    some = np.stack([np.ones_like(ratio), ratio], axis=1)
    return float(base_rate(some / some.sum(axis=1, keepdims=True))[1])
