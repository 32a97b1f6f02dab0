"""A release is drawn once, its labels are read once, its arrays are frozen."""

import dataclasses

import numpy as np
import pytest

from bystander.mechanisms import Alibi, MultiStage, RandomizedResponse, RRWithPrior
from bystander.mechanisms.priors import from_clusters, from_domain


class Counted:
    """Labels that count how often they are read."""

    def __init__(self, y):
        self.y, self.reads = np.asarray(y), 0

    def __array__(self, dtype=None, copy=None):
        self.reads += 1
        return self.y.copy()


class Watched(np.ndarray):
    """An array that counts its own indexing and arithmetic; a plain view of it does not."""

    reads = 0

    def __getitem__(self, key):
        Watched.reads += 1
        return super().__getitem__(key)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        Watched.reads += 1
        plain = [np.asarray(x) if isinstance(x, Watched) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)


Y = np.random.default_rng(0).integers(0, 4, 300)
PRIOR = np.random.default_rng(1).dirichlet(np.ones(4), 300)
MECHANISMS = [
    RandomizedResponse(epsilon=1, classes=4),
    RRWithPrior(epsilon=1, classes=4),
    Alibi(epsilon=1, classes=4),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_labels_are_touched_once_per_release(mechanism):
    y, watched = Counted(Y), Y.view(Watched)
    Watched.reads = 0
    release = mechanism.randomize(y, PRIOR, rng=0)
    mechanism.randomize(watched, PRIOR, rng=0)
    for belief in (None, PRIOR):
        release.posterior(belief)
    assert y.reads == 1
    assert Watched.reads == 0  # only as a whole, by np.asarray


def test_multi_stage_touches_each_label_once_in_its_own_stage():
    y, seen = Counted(Y), []

    def predict(stage):
        assert y.reads == 1
        assert not set(stage.seen) & set(stage.rows)
        assert len(stage.noisy) == len(stage.seen)
        assert (stage.noisy >= 0).all()
        seen.append(stage.rows)
        return PRIOR[stage.rows]

    mechanism = MultiStage(epsilon=1, classes=4, shares=(0.5, 0.3, 0.2))
    release = mechanism.randomize(y, predict, rng=0)
    assert y.reads == 1
    assert [len(rows) for rows in seen] == [90, 60]
    assert np.bincount(release.stages).tolist() == [150, 90, 60]
    assert (release.sizes[release.stages == 0] == 4).all()
    assert np.allclose(release.posterior().sum(axis=1), 1)


def test_the_split_does_not_look_at_the_labels():
    mechanism = MultiStage(epsilon=1, classes=4)
    other = (Y + 1) % 4
    assert (mechanism.randomize(Y, rng=5).stages == mechanism.randomize(other, rng=5).stages).all()


def test_multi_stage_without_a_model_is_randomized_response():
    mechanism = MultiStage(epsilon=1, classes=4)
    release = mechanism.randomize(Y, rng=0)
    assert (release.sizes == 4).all()
    keep = np.e / (np.e + 3)
    many = mechanism.randomize(np.zeros(40_000, dtype=int), rng=1).output
    assert abs(np.mean(many == 0) - keep) < 4 * np.sqrt(keep * (1 - keep) / 40_000)


def test_denoising_lets_a_calibrated_binary_model_reach_k_of_one():
    """mechanisms.md: without T⁻¹, LP-2ST is RR; a perfect model of the noisy labels never passes e^ε/(1 + e^ε)."""
    epsilon, sure = 1.0, np.array([[0.98, 0.02]])
    yes = np.e / (1 + np.e)
    noisy = sure * yes + (1 - sure) * (1 - yes)
    raw = MultiStage(epsilon=epsilon, classes=2, temperature=1.0, denoise=False)
    fixed = MultiStage(epsilon=epsilon, classes=2, temperature=1.0)
    assert np.allclose(fixed.sharpen(noisy, 1), sure)
    assert raw.one_stage.sizes(raw.sharpen(noisy, 1)).tolist() == [2]
    assert fixed.one_stage.sizes(fixed.sharpen(noisy, 1)).tolist() == [1]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_a_release_is_frozen_and_seeded(mechanism):
    one, same, other = (mechanism.randomize(Y, PRIOR, rng=seed) for seed in (1, 1, 2))
    assert (one.output == same.output).all()
    assert not (one.output == other.output).all()
    free = [mechanism.randomize(Y, PRIOR).output for _ in range(2)]  # the operating system's entropy
    assert not (free[0] == free[1]).all()
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.output = other.output
    with pytest.raises(ValueError, match="read-only"):
        one.output[0] = 1
    assert one.rows == 300
    assert one.mechanism is mechanism


def test_the_global_generator_is_left_alone():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    for mechanism in MECHANISMS:
        mechanism.randomize(Y, PRIOR)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_noisy_clusters_cost_their_epsilon_and_the_release_adds_it():
    y, clusters = Counted(Y), np.arange(300) % 5
    prior = from_clusters(clusters, y, classes=4, epsilon=0.05, rng=0)
    assert y.reads == 1
    assert prior.probabilities.shape == (300, 4)
    assert (prior.probabilities[0] == prior.probabilities[5]).all()
    release = RRWithPrior(epsilon=2, classes=4, min_k=2).randomize(Y, prior, rng=1)
    assert release.guarantee("replace").epsilon == pytest.approx(2.05)
    assert release.mechanism.guarantee("replace").epsilon == 2
    plain = release.mechanism.guarantee("label").epsilon
    assert release.guarantee("label").epsilon == pytest.approx(plain + 0.025)


def test_noisy_clusters_find_the_shares_and_guard_empty_histograms():
    rng = np.random.default_rng(0)
    clusters = np.repeat([0, 1], 50_000)
    y = np.where(rng.random(100_000) < np.where(clusters == 0, 0.1, 0.7), 1, 0)
    found = from_clusters(clusters, y, classes=2, epsilon=0.05, rng=1).probabilities
    assert found[0, 1] == pytest.approx(0.1, abs=0.01)
    assert found[-1, 1] == pytest.approx(0.7, abs=0.01)
    few = from_clusters(np.arange(200), np.zeros(200, dtype=int), classes=3, epsilon=0.01, rng=0).probabilities
    assert np.allclose(few.sum(axis=1), 1)
    assert (few == 1 / 3).all(axis=1).any()  # all counts fell below 0


def test_the_clusters_noise_is_the_one_paid_for():
    """Discrete Laplace of scale 2/ε_p: variance 2a/(1 − a)², a = e^(−ε_p/2), and the ratio of neighbouring values."""
    from bystander.mechanisms.priors import discrete_laplace

    noise = discrete_laplace(2 / 0.8, (400_000,), np.random.default_rng(0))
    a = np.exp(-0.4)
    assert np.var(noise) == pytest.approx(2 * a / (1 - a) ** 2, rel=0.02)
    assert np.mean(noise == 1) / np.mean(noise == 0) == pytest.approx(a, rel=0.02)


def test_a_histograms_noise_has_scale_two_over_epsilon(monkeypatch):
    """Replacing a label moves two counts of a cluster by 1: L1 sensitivity 2."""
    from bystander.mechanisms import priors

    scales = []

    def record(scale, shape, random):
        scales.append((scale, shape))
        return np.zeros(shape, dtype=np.int64)

    monkeypatch.setattr(priors, "discrete_laplace", record)
    exact = from_clusters(np.arange(300) % 5, Y, classes=4, epsilon=0.1).probabilities
    assert scales == [(20.0, (5, 4))]
    for cluster in range(5):
        shares = np.bincount(Y[cluster::5], minlength=4) / 60
        assert np.allclose(exact[cluster], shares)
    moved = Y.copy()
    moved[0] = (Y[0] + 1) % 4
    other = from_clusters(np.arange(300) % 5, moved, classes=4, epsilon=0.1).probabilities
    assert np.abs(60 * (exact[:5] - other[:5])).sum() == pytest.approx(2)


def test_a_domain_prior_buckets_by_the_public_categorical():
    names = np.array(["a", "b", "c", "d"])[np.minimum(np.arange(1_000) // 300, 3)]
    prior = from_domain(names, np.arange(1_000) % 2, classes=2, most=3, rng=0)
    assert prior.epsilon == 0.05
    assert len(np.unique(prior.probabilities, axis=0)) <= 3
    assert "3 buckets" in prior.source
