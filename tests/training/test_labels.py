"""No label reaches an estimator but through a Release: who reads it, what a learner is handed, what is left of it."""

from dataclasses import is_dataclass

import numpy as np
import pytest

from bystander.mechanisms import Alibi, ConfidentGnmax, MultiStage, Pate, RandomizedResponse, RRWithPrior
from bystander.training import (
    Boosted,
    ClusterPrior,
    DomainPrior,
    Forward,
    HeldOut,
    LabelDPClassifier,
    Logistic,
    MultiStageClassifier,
    PateClassifier,
)
from tests.training.problems import Recorded, Spy, clicks

pytestmark = pytest.mark.filterwarnings("ignore::bystander.training.NothingLearned")

N = 600
X, Y, _ = clicks(N, seed=3, rate=0.3)
NUMBERS = X[["a", "b", "c"]].to_numpy()
OTHER = np.random.default_rng(1).permutation(1 - Y)
READ = "mechanisms.base.read_labels"
RR = {"epsilon": 2, "classes": 2}


def label_dp(mechanism, base=None, **given):
    return LabelDPClassifier(base or Spy(), mechanism, classes=2, seed=0, **given)


def multi(mechanism, **given):
    return MultiStageClassifier(Spy(), mechanism, classes=2, seed=0, **given)


RELEASES = {
    "rr": (label_dp(RandomizedResponse(**RR)), ["randomized_response.RandomizedResponse.randomize"]),
    "rr, a part held out": (label_dp(RandomizedResponse(**RR), correction=HeldOut()),
                            ["randomized_response.RandomizedResponse.randomize"]),
    "rr, through the channel": (label_dp(RandomizedResponse(**RR), Boosted(iterations=2), correction=Forward()),
                                ["randomized_response.RandomizedResponse.randomize"]),
    "rr with prior": (label_dp(RRWithPrior(**RR)), ["rr_with_prior.RRWithPrior.randomize"]),
    "clusters": (label_dp(RRWithPrior(**RR, min_k=2), prior=ClusterPrior(np.arange(N) % 5), correction=Forward(),
                          base=Boosted(iterations=2)),
                 ["priors.from_clusters", "rr_with_prior.RRWithPrior.randomize"]),
    "domain": (label_dp(RRWithPrior(**RR, min_k=2), prior=DomainPrior("site")),
               ["priors.from_clusters", "rr_with_prior.RRWithPrior.randomize"]),
    "alibi": (label_dp(Alibi(**RR)), ["alibi.Alibi.randomize"]),
    "multi-stage": (multi(MultiStage(**RR, min_k=2)), ["multi_stage.MultiStage.randomize"]),
    "three stages": (multi(MultiStage(**RR, min_k=2, shares=(0.4, 0.3, 0.3))), ["multi_stage.MultiStage.randomize"]),
}  # fmt: skip


@pytest.mark.parametrize("name", RELEASES)
def test_only_a_mechanism_reads_the_labels_once_for_each_release(name):
    model, readers = RELEASES[name]
    y = Recorded(Y)
    model.fit(X, y)
    model.predict_proba(X)
    assert [chain[:2] for chain in y.readers] == [[READ, f"mechanisms.{reader}"] for reader in readers]


@pytest.mark.parametrize("name", RELEASES)
def test_what_a_learner_is_handed_comes_from_the_release_alone(name):
    model, _ = RELEASES[name]
    Spy.seen.clear()
    model.fit(X, Recorded(Y))
    release = model.release_
    for seen_x, seen_y, given in Spy.seen:
        assert given == {}
        rows = seen_x.index.to_numpy()
        if seen_y.ndim == 2:
            assert np.array_equal(seen_y, release.posterior(model.base_rate_)[rows])
        else:
            assert np.array_equal(seen_y, release.output[rows])
    assert release.output.ndim == 2 or (release.output != Y).any()


class DeafResponse(RandomizedResponse):
    """Releases noise of labels that it makes up: nothing of y."""

    def randomize(self, y, prior=None, rng=None):
        np.asarray(y)
        return super().randomize(np.arange(N) % 2, prior, rng)


class DeafAlibi(Alibi):
    def randomize(self, y, prior=None, rng=None):
        return super().randomize(np.arange(N) % 2, prior, rng)


class DeafStages(MultiStage):
    def randomize(self, y, prior=None, rng=None):
        return super().randomize(np.arange(N) % 2, prior, rng)


class DeafPate(Pate):
    def randomize(self, y, prior=None, rng=None):
        return super().randomize(np.tile([4, 6], (30, 1)), prior, rng)


def tables(mechanism, **given):
    return LabelDPClassifier(Boosted(iterations=5, depth=3), mechanism, classes=2, seed=0, **given)


@pytest.mark.parametrize(
    "model",
    [
        tables(DeafResponse(**RR)),
        tables(DeafResponse(**RR), correction=HeldOut()),
        tables(DeafResponse(**RR), correction=Forward()),
        tables(DeafAlibi(**RR)),
        MultiStageClassifier(Logistic(), DeafStages(**RR), classes=2, seed=0),
        PateClassifier(Logistic(), DeafPate(teachers=10, answers=30, delta=0), classes=2, seed=0),
    ],
    ids=lambda model: f"{type(model).__name__}-{type(model.mechanism).__name__}-{getattr(model, 'correction', None)}",
)
def test_where_a_release_tells_nothing_no_label_matters(model):
    """Other labels, the same release: the same model to the bit. So there is no second way in."""

    def found(y):
        fitted = model.fit(X, y)
        inner = fitted.models_ if hasattr(fitted, "models_") else [fitted.model_]
        return [each.predict_proba(X) for each in (fitted, *inner)]

    assert all(np.array_equal(one, other) for one, other in zip(found(Y), found(OTHER), strict=True))


def arrays(of, seen=None):
    """Every array that can be reached from a fitted estimator."""
    seen = set() if seen is None else seen
    if id(of) in seen:
        return
    seen.add(id(of))
    if isinstance(of, np.ndarray):
        yield of
        return
    inner = of.values() if isinstance(of, dict) else of if isinstance(of, (list, tuple)) else ()
    if hasattr(of, "__dict__") and not isinstance(of, type):
        inner = [*inner, *vars(of).values()]
    if is_dataclass(of) and not isinstance(of, type):
        inner = [*inner, *(getattr(of, name) for name in of.__dataclass_fields__)]
    for one in inner:
        yield from arrays(one, seen)


@pytest.mark.parametrize(
    "model",
    [
        *(model for model, _ in RELEASES.values()),
        PateClassifier(Logistic(), Pate(teachers=10, answers=60, delta=0), classes=2, seed=0),
        PateClassifier(Logistic(), ConfidentGnmax(classes=2, sigma2=1, answers=60, teachers=10), classes=2, seed=0),
    ],
    ids=[*RELEASES, "pate", "gnmax"],
)
def test_a_fitted_estimator_keeps_no_labels(model):
    held = [a for a in arrays(model.fit(X, Recorded(Y))) if a.ndim == 1 and len(a) == N and a.dtype.kind in "biuf"]
    assert not any(np.array_equal(a, Y) for a in held)
    if isinstance(model, PateClassifier):
        assert not any(type(one).__name__ == "Constant" for one in vars(model).values())  # nor a teacher


def test_pates_labels_are_read_once_and_each_by_one_teacher():
    y, read = Recorded(Y), []

    class Teacher(Spy):
        def fit(self, X, y, **given):
            read.append(X.index.to_numpy())
            assert np.array_equal(y, Y[X.index])
            return super().fit(X, y)

    pate = Pate(teachers=10, answers=60, delta=0)
    model = PateClassifier(Teacher(), pate, student=Logistic(), classes=2, seed=0)
    model.fit(X, y)
    assert [chain[:2] for chain in y.readers] == [[READ, "training.teachers.PateClassifier.fit"]]
    assert sorted(np.concatenate(read).tolist()) == list(range(N))
    assert [sorted(rows) for rows in read] == [rows.tolist() for rows in model.shards_]
