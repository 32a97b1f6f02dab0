"""PATE (Papernot et al. 2017): teachers on disjoint labels vote on public rows; a student learns the noisy answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bystander._validate import InputError, whole
from bystander.mechanisms import ConfidentGnmax, Pate
from bystander.mechanisms.base import Labels, Matrix, read_labels
from bystander.mechanisms.pate import cast, shards
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
)
from bystander.training.estimators import same_classes, same_rows
from bystander.training.privacy import Privacy, named


class PateClassifier(Classifier):
    """Teachers are `base`, each fitted on its own shard of the rows; the student is `student`, or `base` again.

    `mechanism`: Pate or ConfidentGnmax, which say how many teachers and answers there are. A teacher's vote is drawn
    from its prediction (`sampled`): where 3 % are positive, argmax votes none. The student learns noisy labels, or with
    `soft` the noisy shares of Pate's votes. The teachers see labels as they are and are thrown away: all that leaves
    `fit` comes from `release_`. After `fit`: `release_`, `privacy_`, `shards_`, `queries_` (answered), `model_`.
    `progress` is told of every teacher.
    """

    def __init__(
        self,
        base: Learner,
        mechanism: Pate | ConfidentGnmax,
        *,
        classes: int,
        student: Learner | None = None,
        sampled: bool = True,
        soft: bool = False,
        seed: int | None = None,
        progress: Callable[[int, int, float], None] | None = None,
    ) -> None:
        self.base = base
        self.mechanism = mechanism
        self.classes = classes
        self.student = student
        self.sampled = sampled
        self.soft = soft
        self.seed = seed
        self.progress = progress

    def fit(self, X: Any, y: Any, *, queries: Any = None) -> PateClassifier:
        """Train the teachers, have them answer the first `queries` (public rows; else some of X), train the student."""
        if not isinstance(self.mechanism, (Pate, ConfidentGnmax)):
            raise InputError(f"mechanism is {self.mechanism!r}: give a Pate or a ConfidentGnmax")
        same_classes(self.mechanism, self.classes)
        if self.mechanism.teachers is None:
            raise InputError("teachers is None: give the mechanism the number of teachers")
        split, asking, votes, noise, own, last = seeds(self.seed, 6)
        self.classes_ = np.arange(whole("classes", self.classes, 2, 1_000_000))
        labels = read_labels(y, self.classes)
        same_rows(labels, X)
        self.shards_ = shards(len(labels), self.mechanism.teachers, np.random.default_rng(split))
        most = self.mechanism.answers if isinstance(self.mechanism, Pate) else self.mechanism.queries
        assert most is not None
        if queries is None:
            some = np.random.default_rng(asking).permutation(rows(X))[:most]
            asked = take(X, np.sort(some))
        else:
            whole("queries", rows(queries), 1)
            asked = take(queries, np.arange(min(most, rows(queries))))
        p = []
        for teacher, seed in enumerate(own.spawn(len(self.shards_))):
            p.append(self._vote(X, labels, teacher, asked, seed))
            if self.progress:
                self.progress(teacher + 1, len(self.shards_), math.nan)
        counts = cast(np.stack(p), sampled=self.sampled, rng=np.random.default_rng(votes))
        self.release_ = self.mechanism.randomize(counts, rng=np.random.default_rng(noise))
        self.privacy_ = Privacy.of(self.release_, named(self.mechanism, self.release_))
        self._learn(asked, number(last))
        return self

    def predict_proba(self, X: Any) -> Matrix:
        """The student's."""
        if not hasattr(self, "model_"):
            raise InputError("the classifier is not fitted: call fit(X, y) first")
        return aligned(self.model_, X, self.classes)

    def _vote(self, X: Any, labels: Labels, teacher: int, asked: Any, seed: np.random.SeedSequence) -> Matrix:
        """One teacher's prediction; where its shard has one label alone, that label."""
        shard = self.shards_[teacher]
        own = labels[shard]
        constant = bool((own == own[0]).all())
        model = Constant() if constant else fresh(self.base, number(seed), self.classes, f"teacher-{teacher}")
        fit(model, take(X, shard), own)
        p = aligned(model, asked, self.classes)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def _learn(self, asked: Any, seed: int) -> None:
        self.model_ = fresh(self.base if self.student is None else self.student, seed, self.classes, "student")
        if isinstance(self.mechanism, Pate):
            answered, told = np.arange(self.release_.rows), self.mechanism.labels(self.release_)
        else:
            answered = np.flatnonzero(self.release_.output >= 0)
            told = self.release_.output[answered]
        if len(told) == 0 or (not self.soft and (told == told[0]).all()):
            found = f"all {len(told)} answers are {told[0]}" if len(told) else "no query was answered"
            raise InputError(f"mechanism: {found}, so the student has nothing to learn; ask more, or lower the noise")
        self.queries_ = take(asked, answered)
        if self.soft:
            fit_soft(self.model_, self.queries_, self.release_.posterior()[answered])
        else:
            fit(self.model_, self.queries_, told)
