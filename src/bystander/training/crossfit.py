"""How far a model, and a prior, are believed: judged on what was released of rows that neither was made of."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from bystander.mechanisms.base import Labels, Matrix, Prior
from bystander.mechanisms.priors import normalised
from bystander.training.base import aligned, take
from bystander.training.corrections import Believed, Correction, HeldOut, Noise, blocks, surest


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


def apart(prior: Prior, likelihood: Matrix) -> Matrix | None:
    """Each row's prior without the row's own label; None where that may be in it, nobody knows how.

    Of a noisy histogram one label is taken away: the row's own, as far as its release tells it.
    """
    if prior.epsilon == 0:
        return prior.probabilities
    if prior.counted is None:
        return None
    own = normalised(prior.probabilities * likelihood)
    return normalised(prior.probabilities * prior.counted[:, None] - own)


def trust(prior: Matrix, rate: Matrix, likelihood: Matrix) -> float:
    """The share of the prior, at most .95, in the mixture with the base rate under which the release is likeliest.

    It is 0 where no share is surely better than none: noisy histograms of few rows say little. A prior may say 0, which
    a correction must not.
    """
    shares = np.linspace(0.05, 0.95, 19)
    one, other = (prior * likelihood).sum(axis=1), likelihood @ rate
    best = surest(np.stack([np.log1p(share * (one / other - 1)) for share in shares]))
    return 0.0 if best is None else float(shares[best])


def mixture(prior: Matrix, rate: Matrix, share: float) -> Matrix:
    """What is believed of a row before it is predicted."""
    return share * prior + (1 - share) * rate
