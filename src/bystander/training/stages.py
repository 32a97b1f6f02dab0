"""Multi-stage training (LP-2ST, LP-MST; Ghazi et al. 2021): each stage's model is the prior of the next."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bystander._validate import InputError, whole
from bystander.mechanisms import MultiStage
from bystander.mechanisms.base import Labels, Matrix
from bystander.mechanisms.multi_stage import Stage
from bystander.training.base import Classifier, Learner, aligned, fresh, number, rows, seeds, take
from bystander.training.corrections import Correction, base_rate, in_blocks, usual
from bystander.training.crossfit import fitted, mixture, trust, unlearned
from bystander.training.estimators import (
    fit_released,
    fit_some,
    kinds,
    known,
    of_rows,
    read_weights,
    same_classes,
    same_rows,
    some,
    tops,
)
from bystander.training.privacy import Privacy, named, warn


class MultiStageClassifier(Classifier):
    """Fit a fresh `base` in each stage on all that was released so far; the last one predicts.

    Each label is released once, in its own stage, so ε is paid once. A row that comes later may have been in any stage:
    what the model is shown of it went through the stages' channels, mixed by their shares. `correction` (unless given,
    `HeldOut()`) takes that mixture out. After `fit`: `release_`, `privacy_`, `models_` (one a stage), `base_rate_`.
    """

    def __init__(
        self,
        base: Learner,
        mechanism: MultiStage,
        *,
        classes: int,
        correction: Correction | None = None,
        seed: int | None = None,
    ) -> None:
        self.base = base
        self.mechanism = mechanism
        self.classes = classes
        self.correction = correction
        self.seed = seed

    def fit(self, X: Any, y: Any, **given: Any) -> MultiStageClassifier:
        """Release y stage by stage, training in between. What else is given goes to every `fit` of the base."""
        if not isinstance(self.mechanism, MultiStage):
            raise InputError(f"mechanism is {self.mechanism!r}: give a MultiStage, or use LabelDPClassifier")
        same_classes(self.mechanism, self.classes)
        every_stage(self.mechanism, rows(X))
        known(self.correction)
        how = usual(self.base) if self.correction is None else self.correction
        if how.through:
            raise InputError(
                "correction is Forward(): the stages' channels differ; give Inverse(), Posterior() or HeldOut()"
            )
        if given.get("eval_set") is not None:
            warn("eval_set goes to the learner with its labels as they are: use rows whose labels need no privacy")
        given = read_weights(given, X)
        entropy, *own = seeds(self.seed, 1 + len(self.mechanism.shares))
        self.classes_ = np.arange(whole("classes", self.classes, 2, 1_000_000))
        self.models_: list[Any] = []

        def learner(stage: int, part: str = "") -> Any:
            """Each stage's learner has a checkpoint of its own, where there are any."""
            told = f"stage-{stage}-{part}" if part else f"stage-{stage}"
            return fresh(self.base, number(own[stage]), self.classes, told)

        def predict(stage: Stage) -> Matrix:
            """Train on what was released so far; predict the rows whose turn it is."""
            model = learner(len(self.models_))
            fit_released(model, take(X, stage.seen), stage.noisy, self.mechanism.epsilon, **of_rows(given, stage.seen))
            self.models_.append(model)
            return aligned(model, take(X, stage.rows), self.classes)

        self.release_ = self.mechanism.randomize(y, predict, rng=np.random.default_rng(entropy))
        same_rows(self.release_.output, X)
        self.privacy_ = Privacy.of(self.release_, named(self.mechanism, self.release_))
        likelihood = self.release_.posterior(np.full(self.classes, 1 / self.classes))
        self.base_rate_ = base_rate(likelihood)
        self.trust_ = self._trust(likelihood)

        def train(model: Any, kept: Labels) -> Any:
            return fit_some(model, X, kept, self.release_, given)

        def noise(judged: Labels) -> tuple[Matrix, Labels, Matrix]:
            return self._noise(some(X, judged))

        last = len(self.models_)
        unseen = np.flatnonzero(self.release_.stages == last)  # by the models that make the prior
        model, self.correction_ = fitted(
            how, partial(learner, last), train, X, noise, likelihood, self.base_rate_, unseen
        )
        self.models_.append(model)
        unlearned(model, self.correction, self.correction_, self.trust_)
        return self

    def predict_proba(self, X: Any) -> Matrix:
        """(rows, classes) probabilities of labels."""
        if not hasattr(self, "correction_"):
            raise InputError("the classifier is not fitted: call fit(X, y) first")
        return in_blocks(self.correction_, aligned(self.models_[-1], X, self.classes), X, self._noise)

    def _trust(self, likelihood: Matrix) -> float:
        """How far the later stages' priors are believed, by what was released of their rows."""
        assert self.release_.prior is not None
        assert self.release_.stages is not None
        later = np.flatnonzero(self.release_.stages > 0)
        if len(later) == 0:
            return 0.0
        return trust(self.release_.prior.probabilities[later], self.base_rate_, likelihood[later])

    def _noise(self, X: Any) -> tuple[Matrix, NDArray[np.int64], Matrix]:
        """Mixed channels, which is whose, and the last stage's prior as the belief."""
        one, shares = self.mechanism.one_stage, self.mechanism.shares
        priors = [
            self.mechanism.sharpen(aligned(model, X, self.classes), rows(X), stage)
            for stage, model in enumerate(self.models_[: len(shares) - 1], start=1)
        ]
        flat = one.channel()
        if not priors:
            return flat[None], np.zeros(rows(X), dtype=np.int64), self.base_rate_
        first, which = kinds(np.concatenate([tops(one, prior) for prior in priors], axis=1))
        later = [share * one.channel(prior[first]) for share, prior in zip(shares[1:], priors, strict=True)]
        mixed = np.sum([shares[0] * np.broadcast_to(flat, later[0].shape), *later], axis=0)
        return mixed, which, mixture(priors[-1], self.base_rate_, self.trust_)


def every_stage(mechanism: MultiStage, many: int) -> None:
    """Each stage has rows."""
    sizes = np.diff(np.round(np.cumsum((0.0, *mechanism.shares)) * many))
    if (sizes < 1).any():
        empty = int(np.argmax(sizes < 1))
        raise InputError(f"shares is {mechanism.shares}: stage {empty} gets none of the {many} rows; give it more")
