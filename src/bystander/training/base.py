"""What all classifiers here share: settings as scikit-learn asks for them, fresh copies, rows, soft labels."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bystander._validate import InputError, whole
from bystander.mechanisms.base import Labels, Matrix

SEEDS = ("seed", "random_state", "random_seed")


class Learner(Protocol):
    """Anything with scikit-learn's `fit` and `predict_proba`."""

    def fit(self, X: Any, y: Any) -> Any:
        """Train."""

    def predict_proba(self, X: Any) -> Any:
        """(rows, classes)."""


class Classifier(ABC):
    """Settings, and a prediction from probabilities."""

    @abstractmethod
    def predict_proba(self, X: Any) -> Matrix:
        """(rows, classes)."""

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        p = self.predict_proba(X)
        return np.asarray(getattr(self, "classes_", np.arange(p.shape[1]))[p.argmax(axis=1)])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Its settings."""
        return settings(self)

    def set_params(self, **params: Any) -> Self:
        """Change settings."""
        change(self, params)
        return self

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items() if value is not None)
        return f"{type(self).__name__}({told})"


class Constant:
    """A learner that has seen one label alone."""

    classes_: Labels

    def fit(self, X: Any, y: Labels) -> Self:
        """Remember it."""
        self.classes_ = y[:1]
        return self

    def predict_proba(self, X: Any) -> Matrix:
        """That label, surely."""
        return np.ones((rows(X), 1))


def settings(of: object) -> dict[str, Any]:
    """What it was built with."""
    names = list(inspect.signature(type(of).__init__).parameters)[1:]
    return {name: getattr(of, name) for name in names}


def change(of: Any, params: dict[str, Any]) -> None:
    """Set those of its settings that are named."""
    known = of.get_params(deep=False)
    for name, value in params.items():
        if name not in known:
            raise InputError(f"{name} is no setting of {type(of).__name__}: give one of {', '.join(known)}")
        setattr(of, name, value)


def fresh(base: Any, seed: int, classes: int, part: str = "") -> Any:
    """An unfitted copy of a learner. Where its own seed or number of classes is None, it gets these.

    `part` tells its checkpoint from those of the other copies.
    """
    if isinstance(base, type) or not (hasattr(base, "fit") and hasattr(base, "predict_proba")):
        raise InputError(f"base is {base!r}: give a learner with fit and predict_proba, such as Boosted()")
    own = type(base).__module__.startswith("bystander.")
    new = type(base)(**base.get_params(deep=False)) if own else copy.deepcopy(base)
    known = new.get_params(deep=False) if hasattr(new, "get_params") else {}
    free = [name for name in SEEDS if name in known and known[name] is None]
    told: dict[str, Any] = dict.fromkeys(free[:1], seed)
    if own and known.get("classes", 0) is None:
        told["classes"] = classes
    if own and part and known.get("checkpoint") is not None:
        whole = Path(known["checkpoint"])
        told["checkpoint"] = whole.with_name(f"{whole.stem}-{part}{whole.suffix}")
    if told:
        new.set_params(**told)
    return new


def need(module: str) -> Any:
    """A learner's library, loaded when it is first used."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        name = {"sklearn": "scikit-learn"}.get(error.name, error.name)
        raise InputError(f'{name} is not installed: pip install "bystander[train]"') from None


def seeds(seed: int | None, parts: int) -> list[np.random.SeedSequence]:
    """Independent seeds; from the operating system's entropy where there is none."""
    return np.random.SeedSequence(None if seed is None else whole("seed", seed, 0)).spawn(parts)


def number(seed: np.random.SeedSequence) -> int:
    """As learners take seeds."""
    return int(seed.generate_state(1)[0] >> 1)


def rows(X: Any) -> int:
    """How many there are."""
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X)


def take(X: Any, chosen: Labels) -> Any:
    """These rows of an array, a sparse matrix, a frame or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[chosen]
    if hasattr(X, "tocsr"):
        return X.tocsr()[chosen]
    return X[chosen] if hasattr(X, "shape") else np.asarray(X)[chosen]


@contextmanager
def refusals(learner: object) -> Iterator[None]:
    """What a learner of another library refuses, told in one line; its own words stand behind it."""
    try:
        yield
    except InputError:
        raise
    except ValueError as error:
        said = str(error).partition("\n")[0].rstrip(":. ")
        raise InputError(
            f"X or y is refused by {type(learner).__name__}: {said}; mend it, or give another base"
        ) from error


def taken(fit: Any, given: dict[str, Any]) -> Any:
    """A learner's way to fit, which takes all that is given to it; refused if it does not."""
    known = inspect.signature(fit).parameters
    if not any(each.kind is each.VAR_KEYWORD for each in known.values()):
        for name in given:
            if name not in known:
                raise InputError(
                    f"{name} goes to {type(fit.__self__).__name__}.{fit.__name__}, which takes none; leave it out"
                )
    return fit


def fit(learner: Any, X: Any, y: Any, **given: Any) -> None:
    """Fit on one label a row."""
    with refusals(learner):
        taken(learner.fit, given)(X, y, **given)


def fit_soft(learner: Any, X: Any, soft: Matrix, **given: Any) -> None:
    """Fit on (rows, K) probabilities: by the learner itself, or with each row once a class, weighted."""
    if getattr(learner, "soft", False):
        fit(learner, X, soft, **given)
        return
    if "sample_weight" not in inspect.signature(learner.fit).parameters:
        raise InputError(f"base is {type(learner).__name__}, which takes no sample_weight: it cannot learn soft labels")
    several, labels, weight = weighted(X, soft, given.pop("sample_weight", None))
    fit(learner, several, labels, sample_weight=weight, **given)


def weighted(X: Any, soft: Matrix, weight: NDArray[Any] | None = None) -> tuple[Any, Labels, Matrix]:
    """Each row once for each class that it may have, weighted by the probability of it and its own weight."""
    where, labels = np.nonzero(soft > 1e-6)
    own = soft[where, labels]
    return take(X, where), labels, own if weight is None else own * weight[where]


def aligned(learner: Any, X: Any, classes: int) -> Matrix:
    """(rows, classes) predictions; a class that the learner has not seen gets 0."""
    with refusals(learner):
        p = np.asarray(learner.predict_proba(X), dtype=np.float64)
    if p.ndim != 2:
        raise InputError(f"base, {type(learner).__name__}, predicts shape {p.shape}: give one with (rows, classes)")
    known = getattr(learner, "classes_", None)
    if p.shape[1] == classes or known is None or len(known) != p.shape[1]:
        return p
    out = np.zeros((len(p), classes))
    out[:, np.asarray(known, dtype=np.int64)] = p
    return out
