"""A model, and a correction of its predictions that is chosen on rows which it was not fitted on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from bystander.mechanisms.base import Labels, Matrix
from bystander.training.base import aligned, take
from bystander.training.corrections import Believed, Correction, HeldOut, Noise, blocks


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
    returns it, `noise` is asked for rows by their numbers; only rows `among` these are held out.
    """
    every = np.arange(len(likelihood))
    among = every if among is None else among
    parts = how.parts(len(among)) if isinstance(how, HeldOut) else []
    gains = []
    for number, part in enumerate(parts):
        assert isinstance(how, HeldOut)
        aside = among[part]
        model = train(learner("" if len(parts) == 1 else f"part-{number}"), np.setdiff1d(every, aside))
        p = aligned(model, take(X, aside), likelihood.shape[1])
        gains += [how.gains(p[i], *noise(of), likelihood[of], rate) for i, of in blocks(p, aside)]
    if len(parts) != 1:
        model = train(learner(""), every)
    if not isinstance(how, HeldOut):
        return model, how
    return model, how.choose(np.concatenate(gains, axis=1)) if parts else Believed()


def unlearned(model: Any, asked: Correction | None, chosen: Correction, trust: float) -> None:
    """Warn at the caller of `fit` that neither the model nor a prior is believed, unless that was asked for."""
    if isinstance(chosen, Believed) and not isinstance(asked, Believed) and trust == 0:
        warnings.warn(
            f"what was released does not show that {type(model).__name__} predicts better than the base rate, so that "
            "is what is predicted; give more rows, a larger epsilon, or a correction that asks for no evidence, such "
            "as Posterior()",
            NothingLearned,
            stacklevel=3,
        )
