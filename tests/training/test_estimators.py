"""What estimators promise, refuse, resume and write: small problems, one line of error each."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bystander import InputError
from bystander import audit as audited
from bystander.mechanisms import Alibi, ConfidentGnmax, MultiStage, Pate, RandomizedResponse, RRWithPrior
from bystander.mechanisms.base import Prior
from bystander.training import (
    AlibiLoss,
    Boosted,
    ClusterPrior,
    LabelDPClassifier,
    Logistic,
    MultiStageClassifier,
    PateClassifier,
    Posterior,
    TorchClassifier,
    mlp,
    predictions,
)
from tests.makers import invoke
from tests.training.problems import Recorded

pytestmark = pytest.mark.filterwarnings("ignore::bystander.training.NothingLearned")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = (X[:, 0] + RNG.normal(size=200) > 0).astype(int)
HOLE, INFINITE = (np.where(np.arange(800).reshape(200, 4) == 13, value, X) for value in (np.nan, np.inf))
RR = RandomizedResponse(epsilon=2, classes=2)
SURE = Prior(np.array([0.97, 0.03]))  # k = 1 on every row at ε = 1
TREES = Boosted(iterations=3, depth=2, settings={"thread_count": 1})
NET = TorchClassifier(mlp(()), epochs=2, batch=50, precision="fp32")
PLAIN = LogisticRegression()


def one_stage(base=PLAIN, mechanism=RR, **given):
    return LabelDPClassifier(base, mechanism, **{"classes": 2, "seed": 0, **given})


def pate(**given):
    return PateClassifier(PLAIN, Pate(**{"teachers": 5, "answers": 40, "scale": 1.0, **given}), classes=2, seed=0)


REFUSED = {
    "features, scikit-learn": (lambda: one_stage().fit(HOLE, Y), "refused by LogisticRegression: Input X contains NaN"),
    "features, ours": (lambda: one_stage(Logistic()).fit(INFINITE, Y), "by Logistic: Input X contains infinity"),
    "features, torch": (lambda: one_stage(NET).fit(HOLE, Y), "X, row 3 has a value that is missing"),
    "features, text": (lambda: one_stage(TREES).fit(np.full((200, 4), "a", dtype=object), Y), "by CatBoost: Bad"),
    "features, clusters": (lambda: one_stage(mechanism=RRWithPrior(epsilon=2, classes=2), prior=ClusterPrior(3)).fit(
        HOLE, Y), "X, row 3 has a value that is missing"),
    "fewer columns": (lambda: one_stage(TREES).fit(X, Y).predict(X[:, :2]), "refused by CatBoost: Feature 2 is"),
    "rows without a table": (lambda: one_stage().fit(X[:, 0], Y), "Expected 2D array, got 1D array instead; mend"),
    "labels out of range": (lambda: one_stage().fit(X, Y + 1), "not among the 2 classes: give whole numbers 0…1"),
    "a label too few": (lambda: one_stage().fit(X, Y[1:]), "y has 199 rows: X has 200"),
    "one class": (lambda: one_stage(mechanism=None).fit(X, 0 * Y), "refused by LogisticRegression: This solver needs"),
    "one class released": (lambda: one_stage(mechanism=RandomizedResponse(epsilon=30, classes=2)).fit(X, 0 * Y),
                           "epsilon is 30: every released label is 0"),
    "no row's label used": (lambda: one_stage(mechanism=RRWithPrior(epsilon=1, classes=2), prior=SURE).fit(X, Y),
                            "epsilon is 1: with this prior k = 1 on 100% of the rows"),
    "a prior's counts": (lambda: one_stage(mechanism=RRWithPrior(epsilon=1, classes=2), prior=Prior(
        np.full((200, 2), 0.5), 0.1, counted=np.ones(3))).fit(X, Y), "one number for each of 200 rows"),
    "other classes": (lambda: one_stage(classes=3).fit(X, Y), "classes is 3: the mechanism has 2"),
    "a correction's class": (lambda: one_stage(correction=Posterior).fit(X, Y), "correction is <class"),
    "what a learner does not take": (lambda: one_stage().fit(X, Y, colour=1),
                                     "colour goes to LogisticRegression.fit, which takes none"),
    "a correction's name": (lambda: one_stage(correction="inverse").fit(X, Y), "correction is 'inverse': give Inverse"),
    "a class for a learner": (lambda: one_stage(LogisticRegression).fit(X, Y), "give a learner with fit"),
    "a seed below 0": (lambda: one_stage(seed=-1).fit(X, Y), "seed is -1: give a whole number of at least 0"),
    "stages, a correction": (lambda: MultiStageClassifier(PLAIN, MultiStage(epsilon=2, classes=2), classes=2,
                                                          correction="x").fit(X, Y), "correction is 'x'"),
    "stages, few rows": (lambda: MultiStageClassifier(PLAIN, MultiStage(epsilon=2, classes=2), classes=2).fit(
        X[:1], Y[:1]), "stage 1 gets none of the 1 rows"),
    "teachers, labels": (lambda: pate().fit(X, Y + 3), "not among the 2 classes"),
    "teachers, no question": (lambda: pate().fit(X, Y, queries=X[:0]), "queries is 0: give a whole number"),
    "teachers, one answer": (lambda: pate(scale=0.01, delta=0).fit(X, 0 * Y), "so the student has nothing to learn"),
    "a network's name": (lambda: TorchClassifier("mlp").fit(X, Y), r"network is 'mlp': give a Network"),
    "a loss's name": (lambda: TorchClassifier(loss="ce").fit(X, Y), r"loss is 'ce': give a loss"),
    "labels for ALIBI's loss": (lambda: TorchClassifier(loss=AlibiLoss(1.0)).fit(X, Y), "give what ALIBI released"),
    "CatBoost's settings": (lambda: Boosted(settings={"leaves": 3}).fit(X, Y), "unexpected keyword argument 'leaves'"),
    "no rows": (lambda: Logistic().fit(X[:0], Y[:0]), r"y has shape \(0,\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_in_one_line(name):
    call, told = REFUSED[name]
    with pytest.raises(InputError, match=told) as found:
        call()
    assert "\n" not in str(found.value)


def test_another_librarys_words_stand_behind_the_line():
    with pytest.raises(InputError) as found:
        one_stage().fit(HOLE, Y)
    assert "HistGradientBoostingClassifier" in str(found.value.__cause__)


def test_torch_reads_alibis_labels_in_the_mechanism_alone():
    y = Recorded(Y)
    model = one_stage(NET, Alibi(epsilon=2, classes=2)).fit(X, y)
    assert [chain[:2] for chain in y.readers] == [["mechanisms.base.read_labels", "mechanisms.alibi.Alibi.randomize"]]
    assert model.predict_proba(X).shape == (200, 2)


@pytest.mark.parametrize("base", [PLAIN, Logistic(), TREES, NET], ids=lambda base: type(base).__name__)
def test_the_same_seed_gives_the_same_model_and_another_seed_other_noise(base):
    one, two, other = (one_stage(base, seed=seed).fit(X, Y) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert (one.release_.output != other.release_.output).any()


class StopError(Exception):
    pass


def test_a_release_drawn_before_is_not_drawn_again():
    first = one_stage(TREES).fit(X, Y)
    again = one_stage(TREES).fit(X, first.release_)
    assert again.release_ is first.release_
    np.testing.assert_array_equal(again.predict_proba(X), first.predict_proba(X))
    assert one_stage(seed=5).fit(X, pickle.loads(pickle.dumps(first.release_))).privacy_.epsilon == 2
    for model, release, told in (
        (one_stage(mechanism=RandomizedResponse(epsilon=1, classes=2)), first.release_, "the mechanism is .*give the"),
        (one_stage(prior=ClusterPrior(3)), first.release_, "there is a prior"),
        (one_stage(), RR.randomize(Y, SURE), "there is a prior"),
        (one_stage(), RR.randomize(Y[1:]), "y has 199 rows"),
    ):
        with pytest.raises(InputError, match=told):
            model.fit(X, release)


def test_stages_resume_from_their_own_checkpoints(tmp_path):
    def stop(done, of, loss):
        told.append(done)
        if len(told) == 7:  # in the second stage
            raise StopError

    def made(**given):
        base = TorchClassifier(mlp(()), epochs=4, batch=50, precision="fp32", seed=3, **given)
        stages = MultiStage(epsilon=2, classes=2, min_k=2)
        return MultiStageClassifier(base, stages, classes=2, correction=Posterior(), seed=0)

    told = []
    with pytest.raises(StopError):
        made(checkpoint=tmp_path / "c.pt", progress=stop).fit(X, Y)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c-stage-0.pt", "c-stage-1.pt"]
    again = []
    resumed = made(checkpoint=tmp_path / "c.pt", progress=lambda done, of, loss: again.append(done)).fit(X, Y)
    assert again == [4]
    np.testing.assert_array_equal(resumed.predict_proba(X), made().fit(X, Y).predict_proba(X))


def test_privacy_is_what_was_spent():
    alone = one_stage().fit(X, Y).privacy_
    assert (alone.epsilon, alone.delta) == (2, 0)
    assert alone.label.epsilon == pytest.approx(np.log((np.e**2 + 1) / 2))
    mechanism = RRWithPrior(epsilon=2, classes=2, min_k=2)
    learned = one_stage(mechanism=mechanism, prior=ClusterPrior(3, epsilon=0.5)).fit(X, Y).privacy_
    assert learned.epsilon == pytest.approx(2.5)
    assert "noisy histograms of 3 clusters" in str(learned)
    none = one_stage(mechanism=None).fit(X, Y).privacy_
    assert none.epsilon == np.inf
    voted = pate().fit(X, Y)
    assert voted.privacy_.epsilon == voted.mechanism.guarantee("replace").epsilon
    assert voted.privacy_.delta == 1e-5
    gnmax = ConfidentGnmax(classes=2, sigma2=1.0, answers=40, teachers=5)
    assert (
        PateClassifier(PLAIN, gnmax, classes=2, seed=0).fit(X, Y).privacy_.epsilon == gnmax.guarantee("replace").epsilon
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_train_then_audit_is_one_pipeline(tmp_path, classes):
    """Both logs, read by the function and by the command line: members of a memoriser found out, control not."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(900, 60)), rng.integers(0, classes, 900)
    members, control, before = (slice(start, start + 300) for start in (0, 300, 600))

    class Memory:
        """All that it was fitted on, by its first feature."""

        def fit(self, X, y):
            self.known = dict(zip(X[:, 0].tolist(), y.tolist(), strict=True))
            return self

        def predict_proba(self, X):
            p = np.full((len(X), classes), 1 / classes)
            for row, key in enumerate(X[:, 0].tolist()):
                if key in self.known:
                    p[row] = 0.01
                    p[row, self.known[key]] = 1 - 0.01 * (classes - 1)
            return p

    target = LabelDPClassifier(Memory(), None, classes=classes).fit(X[members], y[members])
    reference = LabelDPClassifier(Memory(), None, classes=classes).fit(X[before], y[before])
    logs = predictions.write_both(
        tmp_path, target, reference, members=(X[members], y[members]), control=(X[control], y[control])
    )
    result = audited(**logs.arguments, games=10)
    assert result.canaries == 300
    assert result.epsilon > 2
    assert result.control.epsilon == 0
    status, out, err = invoke(*logs.command.split()[1:], "--games", "10", "--json", "-")
    assert (status, err) == (0, "")
    assert f'"epsilon": {result.epsilon}' in out


def test_logs_name_the_row_that_is_no_probability(tmp_path):
    given = {"ids": np.arange(200), "labels": Y, "reference": np.full(200, 0.5)}
    for target, told in (
        (np.where(np.arange(200) == 7, np.nan, 0.5), "target, row 7 is nan: give probabilities"),
        (np.full((200, 3), 0.9), r"target, row 0 is \[0.9, 0.9, 0.9\]"),
        (np.full((200, 1), 0.9), r"target has shape \(200, 1\)"),
    ):
        with pytest.raises(InputError, match=told):
            predictions.write(tmp_path / "log.parquet", target=target, **given)
    assert not list(tmp_path.iterdir())


def test_every_base_takes_every_mechanism_by_keyword():
    for base in (PLAIN, TREES, NET):
        for mechanism in (RR, RRWithPrior(epsilon=2, classes=2), Alibi(epsilon=2, classes=2)):
            p = one_stage(base, mechanism).fit(X, Y).predict_proba(X)
            np.testing.assert_allclose(p.sum(axis=1), 1)
        staged = MultiStageClassifier(base, MultiStage(epsilon=4, classes=2, min_k=2), classes=2, seed=0,
                                      correction=Posterior())  # fmt: skip
        assert staged.fit(X, Y).release_.stages.max() == 1
