"""Every finite channel, enumerated: no pair of labels exceeds e^ε, and what is drawn follows it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bystander import InputError
from bystander.mechanisms import Alibi, MultiStage, RandomizedResponse, RRWithPrior
from bystander.mechanisms.polygon import pairs, polygon

EPSILONS = st.floats(0.01, 12)
ALPHAS = np.linspace(0, 1, 101)


@st.composite
def priors(draw):
    classes, rows = draw(st.integers(2, 12)), draw(st.integers(1, 4))
    sharp = draw(st.floats(0.05, 5))
    p = np.random.default_rng(draw(st.integers(0, 10**6))).dirichlet(np.full(classes, sharp), rows)
    if draw(st.booleans()):
        p = np.where(p < p.max(axis=1, keepdims=True) / 4, 0, p)  # zeros and, below, ties
    if draw(st.booleans()):
        p = np.round(p, 1) + (p == p.max(axis=1, keepdims=True)) * 0.05
    return p / p.sum(axis=1, keepdims=True)


def sup(channel):
    """The largest log ratio of two rows, over all outputs; outputs that no label gives are left out."""
    some = channel.max(axis=0) > 0
    with np.errstate(divide="ignore"):
        logs = np.log(channel[:, some])
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


@given(priors(), EPSILONS, st.data())
@settings(max_examples=150, deadline=None)
def test_no_pair_of_labels_exceeds_epsilon(prior, epsilon, data):
    classes = prior.shape[1]
    min_k = data.draw(st.integers(1, classes))
    for mechanism in (
        RandomizedResponse(epsilon=epsilon, classes=classes),
        RRWithPrior(epsilon=epsilon, classes=classes, min_k=min_k),
        MultiStage(epsilon=epsilon, classes=classes, min_k=min_k),
    ):
        for given_prior in (prior, None):
            channels = np.atleast_3d(mechanism.channel(given_prior)).reshape(-1, classes, classes)
            assert np.allclose(channels.sum(axis=2), 1)
            for channel in channels:
                assert sup(channel) <= mechanism.guarantee("replace").epsilon + 1e-9


@given(priors(), EPSILONS, st.data())
@settings(max_examples=60, deadline=None)
def test_the_trade_off_of_a_prior_is_its_channels(prior, epsilon, data):
    classes = prior.shape[1]
    mechanism = RRWithPrior(epsilon=epsilon, classes=classes, min_k=data.draw(st.integers(1, classes)))
    for row, channel, k in zip(prior, mechanism.channel(prior), mechanism.sizes(prior), strict=True):
        top = channel.max(axis=0) > 0
        assert top.sum() == k
        exact = {"replace": pairs(channel), "label": pairs(channel, top / k)}
        for neighbours, f in exact.items():
            assert np.allclose(mechanism.tradeoff(neighbours, row)(ALPHAS), f(ALPHAS), atol=1e-9)
            assert (mechanism.tradeoff(neighbours)(ALPHAS) <= f(ALPHAS) + 1e-9).all()
            assert f.epsilon() <= mechanism.guarantee(neighbours).epsilon + 1e-6


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 6.0])
def test_randomized_responses_trade_off_is_its_channels(classes, epsilon):
    mechanism = RandomizedResponse(epsilon=epsilon, classes=classes)
    flat = np.full(classes, 1 / classes)
    for neighbours, bottom in (("replace", None), ("label", flat)):
        f = pairs(mechanism.channel(), bottom)
        assert np.allclose(mechanism.tradeoff(neighbours)(ALPHAS), f(ALPHAS), atol=1e-12)
        assert mechanism.guarantee(neighbours).epsilon == pytest.approx(f.epsilon(), abs=1e-9)


def test_the_family_of_a_guarantee_is_its_trade_off_where_it_says_so():
    from bystander._kernels import f_inverse

    some = [RandomizedResponse(epsilon=e, classes=k) for e in (0.5, 1, 2, 4) for k in (2, 5, 10)]
    some += [RRWithPrior(epsilon=e, classes=k, min_k=m) for e in (0.5, 2, 6) for k, m in ((2, 1), (5, 1), (5, 3))]
    some += [Alibi(epsilon=e, classes=k) for e in (0.1, 1, 2, 8) for k in (2, 10)]
    some += [MultiStage(epsilon=2, classes=100), RRWithPrior(epsilon=1, classes=40, min_k=40)]
    r = np.linspace(0.001, 0.999, 197)
    for mechanism in some:
        for neighbours in ("replace", "label"):
            promise = mechanism.guarantee(neighbours)
            family = promise.family
            kernel = [f_inverse(family.kind, promise.parameter, family.constant, x) for x in r]
            np.testing.assert_allclose(kernel, mechanism.tradeoff(neighbours)(1 - r), atol=1e-12)  # symmetric: f⁻¹ = f
            assert promise.exact
            assert family.epsilon(promise.parameter) == pytest.approx(promise.epsilon, abs=1e-12)


def test_randomized_response_without_its_label():
    """mechanisms.md's table: ε under ⊥, to three decimals."""
    table = {2: (0.620, 1.434, 3.325, 7.307, 9.307), 10: (0.841, 1.506, 2.150, 5.700, 7.698)}
    for classes, row in table.items():
        for epsilon, expected in zip((1, 2, 4, 8, 10), row, strict=True):
            mechanism = RandomizedResponse(epsilon=epsilon, classes=classes)
            assert round(mechanism.guarantee("label").epsilon, 3) == expected
            assert mechanism.guarantee("replace").epsilon == epsilon


@given(priors(), EPSILONS)
@settings(max_examples=100, deadline=None)
def test_k_is_the_brute_force_one(prior, epsilon):
    """k* maximises the accuracy of the channel itself, enumerated."""
    classes = prior.shape[1]
    mechanism = RRWithPrior(epsilon=epsilon, classes=classes)
    e = np.exp(epsilon)
    for row, k, channel in zip(prior, mechanism.sizes(prior), mechanism.channel(prior), strict=True):
        order = np.argsort(-row, kind="stable")
        accuracy = []
        for size in range(1, classes + 1):
            law = np.zeros((classes, classes))
            for label in range(classes):
                for output in order[:size]:
                    inside = label in order[:size]
                    law[label, output] = (e if label == output else 1) / (e + size - 1) if inside else 1 / size
            accuracy.append(float(row @ np.diag(law)))
        assert accuracy[k - 1] == pytest.approx(max(accuracy), abs=1e-12)
        assert float(row @ np.diag(channel)) == pytest.approx(max(accuracy), abs=1e-12)


def test_googles_off_by_one_is_not_ours():
    """Their denominator is a k too small: accuracy .100 where .155 is there to be had (K = 10, uniform, ε = .5)."""
    mechanism, flat = RRWithPrior(epsilon=0.5, classes=10), np.full(10, 0.1)
    assert mechanism.sizes(flat).tolist() == [10]
    assert round(float(flat @ np.diag(mechanism.channel(flat))), 3) == 0.155


def test_binary_k_is_one_where_the_prior_is_above_the_channel():
    mechanism = RRWithPrior(epsilon=2, classes=2)
    edge = np.exp(2) / (1 + np.exp(2))
    prior = np.array([[edge - 1e-6, 1 - edge + 1e-6], [edge + 1e-6, 1 - edge - 1e-6]])
    assert mechanism.sizes(prior).tolist() == [2, 1]
    assert mechanism.share_of_one(prior) == 0.5
    assert RRWithPrior(epsilon=2, classes=2, min_k=2).share_of_one(prior) == 0


def test_no_label_used_at_all_is_a_clear_error():
    y, prior = np.array([0, 1, 0]), np.full((3, 2), [0.97, 0.03])
    with pytest.raises(InputError, match=r"epsilon is 2: with this prior k = 1 on 100% of the rows.*min_k=2"):
        RRWithPrior(epsilon=2, classes=2).randomize(y, prior)
    assert RRWithPrior(epsilon=2, classes=2, min_k=2).randomize(y, prior, rng=0).rows == 3


def test_what_is_drawn_follows_the_channel():
    rng, n = np.random.default_rng(3), 60_000
    row = np.array([0.45, 0.3, 0.15, 0.06, 0.04])
    for mechanism in (
        RandomizedResponse(epsilon=1.0, classes=5),
        RRWithPrior(epsilon=1.0, classes=5),
        RRWithPrior(epsilon=1.0, classes=5, min_k=4),
    ):
        for label in range(5):
            release = mechanism.randomize(np.full(n, label), row, rng=rng)
            seen = np.bincount(release.output, minlength=5) / n
            law = mechanism.channel(row)[label]
            assert (np.abs(seen - law) <= 4.5 * np.sqrt(law * (1 - law) / n)).all()


def test_posteriors_are_bayes():
    rng = np.random.default_rng(4)
    prior, belief = rng.dirichlet(np.ones(6), 200), rng.dirichlet(np.ones(6), 200)
    y = rng.integers(0, 6, 200)
    for mechanism in (RandomizedResponse(epsilon=1.5, classes=6), RRWithPrior(epsilon=1.5, classes=6)):
        release = mechanism.randomize(y, prior, rng=rng)
        for held in (None, belief):
            used = prior if held is None else held
            joint = used * mechanism.channel(prior)[np.arange(200), :, release.output]
            assert np.allclose(release.posterior(held), joint / joint.sum(axis=1, keepdims=True))


@given(st.integers(1, 8), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_a_polygon_is_neyman_and_pearsons(outcomes, seed):
    """Against every deterministic test of the pair: none is below f, and f's knots are all reached."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(outcomes)), rng.dirichlet(np.ones(outcomes))
    f = polygon(p, q)
    sets = (np.arange(2**outcomes)[:, None] >> np.arange(outcomes)) & 1
    errors = np.stack([sets @ p, 1 - sets @ q], axis=1)
    assert (errors[:, 1] >= f(errors[:, 0]) - 1e-12).all()
    for alpha, beta in zip(f.alpha, f.beta, strict=True):
        assert np.abs(errors - [alpha, beta]).sum(axis=1).min() < 1e-9
    for epsilon in (0.0, 0.4, 1.0):
        assert f.delta(epsilon) == pytest.approx(np.maximum(0, q - np.exp(epsilon) * p).sum(), abs=1e-12)


def test_outputs_of_one_side_alone_cost_delta():
    f = polygon([0.5, 0.5, 0.0], [0.5, 0.4, 0.1])
    assert float(f(0.0)) == pytest.approx(0.9)
    assert f.epsilon() == np.inf
    assert f.epsilon(0.1) < np.inf


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: RandomizedResponse(epsilon=0, classes=2), "epsilon is 0"),
        (lambda: RandomizedResponse(epsilon=1, classes=1), "classes is 1"),
        (lambda: RRWithPrior(epsilon=1, classes=3, min_k=4), "min_k is 4"),
        (lambda: MultiStage(epsilon=1, classes=3, shares=(0.5, 0.4)), "shares is"),
        (lambda: RandomizedResponse(epsilon=-1, classes=2), "epsilon is -1: give a number above 0"),
        (lambda: MultiStage(epsilon=1, classes=3, shares=0.5), "shares is 0.5: give a tuple"),
        (lambda: MultiStage(epsilon=1, classes=2).randomize([0, 1], [0.5, 0.5]), "prior is a list: give a function"),
        (lambda: RandomizedResponse(epsilon=1, classes=3).channel([0.5, 0.5]), "prior has shape"),
        (lambda: RandomizedResponse(epsilon=1, classes=2).randomize([0, 1], "flat"), "prior is a str of no numbers"),
        (lambda: RandomizedResponse(epsilon=1, classes=2).randomize([0, 1], rng=-1), "rng is -1: give a NumPy"),
        (lambda: RandomizedResponse(epsilon=1, classes=2).guarantee("replace_one"), 'give "replace"'),
        (lambda: RandomizedResponse(epsilon=1, classes=2).randomize([0, 1, 2]), "not among the 2 classes"),
        (lambda: RandomizedResponse(epsilon=1, classes=2).randomize([0.0, np.nan]), "not among the 2 classes"),
        (lambda: RandomizedResponse(epsilon=1, classes=2).randomize(["0", "1"]), "not among the 2 classes"),
        (lambda: RRWithPrior(epsilon=1, classes=2).randomize([0, 1], [[0.5, 0.6], [0.5, 0.5]]), "row 0 adds up to 1.1"),
        (lambda: RRWithPrior(epsilon=1, classes=2).randomize([0, 1, 1], [[0.5, 0.5], [0.5, 0.5]]), "prior has shape"),
    ],
)
def test_errors_name_the_value(build, told):
    with pytest.raises(InputError, match=told):
        build()
