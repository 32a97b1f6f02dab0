"""`LabelDPClassifier`: any learner, on what a mechanism releases of the labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bystander._validate import InputError, whole
from bystander.mechanisms import Alibi, ConfidentGnmax, MultiStage, Pate, RandomizedResponse, Release, RRWithPrior
from bystander.mechanisms.base import Labels, Matrix, Prior, read_labels
from bystander.training.base import (
    Classifier,
    Constant,
    Learner,
    aligned,
    fit,
    fit_soft,
    fresh,
    number,
    rows,
    seeds,
    take,
    taken,
)
from bystander.training.corrections import Correction, NoCorrection, base_rate, in_blocks, usual
from bystander.training.crossfit import apart, fitted, mixture, trust, unlearned
from bystander.training.priors import Drawn, Given, Source, source
from bystander.training.privacy import Privacy, named, warn

Extra = dict[str, Any]
"""What else is given to a learner's `fit`."""


class LabelDPClassifier(Classifier):
    """Fit `base` on a release of the labels, drawn once, and take the noise out of its predictions.

    `mechanism`: RandomizedResponse, RRWithPrior, Alibi, or None for no privacy (ε = ∞). `prior` (a `ModelPrior`,
    `ClusterPrior`, `DomainPrior`, or probabilities) is RRWithPrior's; without one it is plain randomized response.
    `correction`, unless given, is `HeldOut()`: predictions leave the base rate only where what was released shows that
    they are better, for which `base` is fitted several times where rows are few (a `TorchClassifier` mostly once).
    ALIBI trains a `TorchClassifier` by its own loss, any other learner on the posterior as soft labels; by its own
    loss, or with a prior, there is no correction to make. `classes` is never counted from the labels.

    After `fit`: `release_` (all that training saw of the labels), `privacy_`, `model_`, and `base_rate_`, which comes
    from the release.
    Without `seed` the noise comes from the operating system's entropy. Whoever knows the seed can take the noise away.
    """

    def __init__(
        self,
        base: Learner,
        mechanism: RandomizedResponse | RRWithPrior | Alibi | None,
        *,
        classes: int,
        correction: Correction | None = None,
        prior: Source | Prior | ArrayLike | None = None,
        seed: int | None = None,
    ) -> None:
        self.base = base
        self.mechanism = mechanism
        self.classes = classes
        self.correction = correction
        self.prior = prior
        self.seed = seed

    def fit(self, X: Any, y: Any, **given: Any) -> LabelDPClassifier:
        """Release y once, then train; a `Release` that was drawn before may stand for y, and is not drawn again.

        What else is given goes to the base's `fit`, with a warning of an `eval_set`.
        """
        checked(self.mechanism, self.classes)
        if given.get("eval_set") is not None and self.mechanism is not None:
            warn("eval_set goes to the learner with its labels as they are: use rows whose labels need no privacy")
        self._plan()
        given = read_weights(given, X)
        noise, prior_seed, inner = seeds(self.seed, 3)
        self.classes_ = np.arange(whole("classes", self.classes, 2, 1_000_000))
        learner = partial(fresh, self.base, number(inner), self.classes)
        self.release_: Release | None = None
        self.correction_: Correction = NoCorrection()
        if self.mechanism is None:
            labels = read_labels(y, self.classes)
            same_rows(labels, X)
            self.privacy_ = Privacy()
            self.base_rate_ = (np.bincount(labels, minlength=self.classes) + 1) / (len(labels) + self.classes)
            self.model_ = learner()
            fit(self.model_, X, labels, **given)
            return self
        if isinstance(y, Release):
            self.drawn_: Drawn | None = None
            held = None
            self.release_ = reusable(y, self.mechanism, self.prior)
        else:
            self.drawn_ = self._prior(X, y, np.random.default_rng(prior_seed))
            held = None if self.drawn_ is None else self.drawn_.prior
            self.release_ = self.mechanism.randomize(y, held, rng=np.random.default_rng(noise))
        same_rows(self.release_.output, X)
        self.privacy_ = Privacy.of(self.release_, named(self.mechanism, self.release_))
        likelihood = self.release_.posterior(np.full(self.classes, 1 / self.classes))
        self.base_rate_ = base_rate(likelihood)
        own = None if held is None else apart(held, likelihood)
        self.trust_ = 0.0 if own is None else trust(own, self.base_rate_, likelihood)
        self._train(X, likelihood, own, learner, given)
        unlearned(self.model_, self.correction, self.correction_, self.trust_)
        return self

    def predict_proba(self, X: Any) -> Matrix:
        """(rows, classes) probabilities of labels."""
        if not hasattr(self, "privacy_"):
            raise InputError("the classifier is not fitted: call fit(X, y) first")
        p = aligned(self.model_, X, self.classes)
        if isinstance(self.correction_, NoCorrection) or self.correction_.through:
            return p
        return in_blocks(self.correction_, p, X, self._noise)

    def _plan(self) -> None:
        """Refuse what is no correction, and one that would be silently left out."""
        known(self.correction)
        own = isinstance(self.mechanism, Alibi) and (self.prior is not None or hasattr(self.base, "fit_alibi"))
        if own and self.correction is not None and self._corrects():
            why = "a prior" if self.prior is not None else f"{type(self.base).__name__}'s own loss for it"
            raise InputError(
                f"correction is {self.correction}: ALIBI with {why} has none to make; leave correction out"
            )

    def _corrects(self) -> bool:
        """Are predictions to be corrected, as far as `correction` says?"""
        return self.correction is None or not (self.correction.through or isinstance(self.correction, NoCorrection))

    def _noise(self, X: Any) -> tuple[Matrix, NDArray[np.int64], Matrix]:
        """The channels of these rows, which is whose, and what is believed of each row before it is predicted."""
        prior = None if self.drawn_ is None else self.drawn_.at(X)
        belief = self.base_rate_ if prior is None else mixture(prior, self.base_rate_, self.trust_)
        if self.soft_channel_ is not None:
            return self.soft_channel_[None], np.zeros(rows(X), dtype=np.int64), belief
        assert isinstance(self.mechanism, (RandomizedResponse, RRWithPrior))
        return *channels(self.mechanism, prior, rows(X)), belief

    def _prior(self, X: Any, y: Any, rng: np.random.Generator) -> Drawn | None:
        found = source(self.prior)
        if found is None:
            return None
        if isinstance(found, Given) and not isinstance(self.prior, Prior):
            warn(
                "prior is given as numbers: if they were counted on these labels, that is a release which nothing "
                "accounts for; count them by DomainPrior, or give a Prior, which says what it cost",
                depth=2,
            )
        drawn = found.draw(X, y, self.classes, rng)
        if self._corrects() and not isinstance(self.mechanism, Alibi):
            drawn.at(take(X, np.zeros(1, dtype=np.int64)))  # a prior that knows no other rows: told now
        return drawn

    def _train(
        self, X: Any, likelihood: Matrix, prior: Matrix | None, learner: Callable[..., Any], given: Extra
    ) -> None:
        release, how = self.release_, usual(self.base) if self.correction is None else self.correction
        assert release is not None
        self.soft_channel_: Matrix | None = None
        soft: Matrix | None = None
        if how.through:
            self.model_, self.correction_ = learner(), how
            through(self.model_, X, likelihood, given)
            return
        if isinstance(self.mechanism, Alibi):
            if hasattr(self.base, "fit_alibi"):
                self.model_ = learner()
                taken(self.model_.fit_alibi, given)(X, release, **given)
                return
            if self.drawn_ is not None:
                soft, how = release.posterior(), NoCorrection()
            else:
                soft = release.posterior(self.base_rate_)
                self.soft_channel_ = soft.T @ soft / soft.sum(axis=0)[:, None]

        def train(model: Any, kept: Labels) -> Any:
            if soft is None:
                return fit_some(model, X, kept, release, given)
            fit_soft(model, some(X, kept), soft[kept], **of_rows(given, kept))
            return model

        def noise(judged: Labels) -> tuple[Matrix, Labels, Matrix]:
            channels, which, belief = self._noise(some(X, judged))
            if prior is not None:
                belief = mixture(prior[judged], self.base_rate_, self.trust_)
            return channels, which, belief

        self.model_, self.correction_ = fitted(how, learner, train, X, noise, likelihood, self.base_rate_)


def through(model: Any, X: Any, likelihood: Matrix, given: Extra) -> None:
    """Fit through the channel, by a learner that can."""
    if not hasattr(model, "fit_likelihood"):
        raise InputError(
            f"correction is Forward(): {type(model).__name__} cannot train through a channel; give a "
            "TorchClassifier, a Boosted (two classes), or another correction"
        )
    taken(model.fit_likelihood, given)(X, likelihood, **given)


def reusable(release: Release, mechanism: object, prior: object) -> Release:
    """A release that was drawn before, by the same mechanism and without a prior."""
    if release.mechanism != mechanism:
        raise InputError(f"y is a Release by {release.mechanism}: the mechanism is {mechanism}; give the same")
    if release.prior is not None or prior is not None:
        raise InputError("y is a Release and there is a prior, which other rows would need: give the labels instead")
    return release


def known(correction: object) -> None:
    """It is a correction, or none is given."""
    one = hasattr(correction, "correct") and hasattr(correction, "through") and not isinstance(correction, type)
    if correction is not None and not one:
        told = "give Inverse(), Posterior(), HeldOut(), Forward(), WuClip() or NoCorrection()"
        raise InputError(f"correction is {correction!r}: {told}")


def some(X: Any, kept: Labels) -> Any:
    """These rows; all of them are not copied."""
    return X if len(kept) == rows(X) else take(X, kept)


def of_rows(given: Extra, kept: Labels) -> Extra:
    """What else goes to a learner's `fit`, its weights those of these rows."""
    weight = given.get("sample_weight")
    return given if weight is None else given | {"sample_weight": weight[kept]}


def read_weights(given: Extra, X: Any) -> Extra:
    """The same, its weights as an array of one a row."""
    if given.get("sample_weight") is None:
        return given
    weight = np.asarray(given["sample_weight"])
    if weight.shape != (rows(X),):
        raise InputError(f"sample_weight has shape {weight.shape}: X has {rows(X)} rows; give one weight a row")
    return given | {"sample_weight": weight}


def checked(mechanism: object, classes: int) -> None:
    """The mechanism is one for this estimator and has as many classes."""
    if isinstance(mechanism, (MultiStage, Pate, ConfidentGnmax)):
        name = "MultiStageClassifier" if isinstance(mechanism, MultiStage) else "PateClassifier"
        raise InputError(f"mechanism is {type(mechanism).__name__}: use {name}")
    if mechanism is not None and not hasattr(mechanism, "randomize"):
        raise InputError(f"mechanism is {mechanism!r}: give one of bystander.mechanisms, or None for no privacy")
    same_classes(mechanism, classes)


def same_classes(mechanism: Any, classes: int) -> None:
    """The mechanism's number of classes is the estimator's."""
    if mechanism is not None and mechanism.classes != classes:
        raise InputError(f"classes is {classes}: the mechanism has {mechanism.classes}; give the same")


def same_rows(released: NDArray[Any], X: Any) -> None:
    """One label a row."""
    if len(released) != rows(X):
        raise InputError(f"y has {len(released)} rows: X has {rows(X)}; give one label a row")


def fit_released(model: Any, X: Any, labels: Labels, epsilon: float, **given: Any) -> None:
    """Fit on released labels; an error that names ε where they are all the same."""
    if (labels == labels[0]).all():
        raise InputError(
            f"epsilon is {epsilon:g}: every released label is {labels[0]}, so there is nothing to learn; "
            "give min_k=2, a larger epsilon or a weaker prior"
        )
    fit(model, X, labels, **given)


def fit_some(model: Any, X: Any, kept: Labels, release: Release, given: Extra) -> Any:
    """Fit on what was released of these rows; of a part that has one label alone, that label is what is learned."""
    labels: Labels = release.output[kept]
    mechanism: Any = release.mechanism
    if len(kept) < release.rows and (labels == labels[0]).all():
        return Constant().fit(X, labels)
    fit_released(model, some(X, kept), labels, mechanism.epsilon, **of_rows(given, kept))
    return model


def channels(
    mechanism: RandomizedResponse | RRWithPrior, prior: Matrix | None, many: int
) -> tuple[Matrix, NDArray[np.int64]]:
    """The different channels among these rows, and which is each row's. RRWithPrior's depends on the top k alone."""
    if prior is None or not isinstance(mechanism, RRWithPrior):
        return mechanism.channel()[None], np.zeros(many, dtype=np.int64)
    first, which = kinds(tops(mechanism, prior))
    return mechanism.channel(prior[first]), which


def tops(mechanism: RRWithPrior, prior: Matrix) -> NDArray[np.bool_]:
    """(rows, K): the labels that each row may be released as."""
    order = np.argsort(-prior, axis=1, kind="stable")
    inside = np.zeros(prior.shape, dtype=bool)
    np.put_along_axis(inside, order, np.arange(prior.shape[1]) < mechanism.sizes(prior)[:, None], axis=1)
    return inside


def kinds(marks: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first row of each kind, and each row's kind."""
    _, first, which = np.unique(np.packbits(marks, axis=1), axis=0, return_index=True, return_inverse=True)
    return first, which.ravel()
