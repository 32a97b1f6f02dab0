"""A model and the correction of its predictions, chosen on rows that it was not fitted on."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bystander.mechanisms.base import Labels, Matrix
from bystander.training.base import aligned, take
from bystander.training.corrections import Believed, Correction, HeldOut, corrected

Noise = Callable[[Any], tuple[Matrix, Labels, Matrix]]
"""Of some rows: their channels, which is whose, and what is believed of each row before it is predicted."""


class NothingLearned(UserWarning):
    """What was released does not show that the model predicts better than the base rate."""


def fitted(
    how: Correction,
    learner: Callable[[str], Any],
    train: Callable[[Any, Labels], Any],
    X: Any,
    noise: Noise,
    likelihood: Matrix,
    rate: Matrix,
    among: Labels | None = None,
) -> tuple[Any, Correction]:
    """The model, and its correction: `how`, or where that is held out, what it chooses beside this base rate.

    `learner` makes one (its argument tells its checkpoint from others'), `train` fits it on some of the rows and
    returns it; only rows `among` these are held out.
    """
    every = np.arange(len(likelihood))
    if not isinstance(how, HeldOut):
        return train(learner(""), every), how
    among = every if among is None else among
    parts = how.parts(len(among))
    gains = []
    for number, part in enumerate(parts):
        aside = among[part]
        model = train(learner("" if len(parts) == 1 else f"part-{number}"), np.setdiff1d(every, aside))
        shown = take(X, aside)
        p = aligned(model, shown, likelihood.shape[1])
        gains += [how.gains(p[i], *noise(of), likelihood[aside][i], rate) for i, of in blocks(p, shown)]
    if len(parts) > 1:
        model = train(learner(""), every)
    return model, how.choose(np.concatenate(gains, axis=1))


def unlearned(model: Any, chosen: Correction, trust: float) -> None:
    """Warn at the caller of `fit` where neither the model nor a prior is believed."""
    if isinstance(chosen, Believed) and trust == 0:
        warnings.warn(
            f"what was released does not show that {type(model).__name__} predicts better than the base rate, so that "
            "is what is predicted; give more rows, a larger epsilon, or a correction of your choice, such as Forward()",
            NothingLearned,
            stacklevel=3,
        )


def in_blocks(how: Correction, p: Matrix, X: Any, noise: Noise, held: int = 2**23) -> Matrix:
    """The predictions of X, corrected."""
    return np.concatenate([corrected(how, p[i], *noise(of)) for i, of in blocks(p, X, held)])


def blocks(p: Matrix, X: Any, held: int = 2**23) -> Iterator[tuple[slice, Any]]:
    """So many rows at a time that their channels, K × K numbers each at worst, stay within `held`."""
    many = max(1, held // p.shape[1] ** 2)
    for start in range(0, max(1, len(p)), many):
        stop = min(start + many, len(p))
        yield slice(start, stop), X if stop - start == len(p) else take(X, np.arange(start, stop))
