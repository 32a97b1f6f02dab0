"""ALIBI: its posterior, its exact f, and where it beats randomized response."""

import sys

import numpy as np
import pytest

from bystander import Laplace
from bystander.mechanisms import Alibi, RandomizedResponse, RRWithPrior
from bystander.mechanisms.polygon import polygon

ALPHAS = np.linspace(0, 1, 201)


def utility(mechanism, rows, seed, sharp=None):
    """Per row: was the likeliest label right, and the nats of log-loss that the release takes off the prior's."""
    rng, classes = np.random.default_rng(seed), mechanism.classes
    p = np.full((rows, classes), 1 / classes)
    if sharp is not None:  # a model that has narrowed the label down to a few
        p = 0.95 * rng.dirichlet(np.full(classes, sharp), rows) + 0.05 / classes
    y = np.minimum((rng.random(rows)[:, None] > np.cumsum(p, axis=1)).sum(axis=1), classes - 1)
    posterior = mechanism.randomize(y, p, rng=rng).posterior()
    at = np.arange(rows)
    return np.argmax(posterior, axis=1) == y, np.log(posterior[at, y] / p[at, y])


def gap(ours, theirs):
    """The difference of two means, in its own standard errors."""
    return (ours.mean() - theirs.mean()) / np.sqrt((ours.var() + theirs.var()) / len(ours))


@pytest.mark.parametrize(("classes", "sharp", "sign"), [(100, 0.05, 1), (2, 2.0, -1)])
def test_alibi_wins_with_many_classes_and_loses_with_two(classes, sharp, sign):
    """ε = 1: posterior accuracy with a model's prior, and nats with that and with a uniform one, by over 4 SE."""
    mechanisms = Alibi(epsilon=1, classes=classes), RandomizedResponse(epsilon=1, classes=classes)
    (ours, nats), (theirs, their_nats) = (utility(m, 30_000, 0, sharp) for m in mechanisms)
    assert sign * gap(ours, theirs) > 4
    assert sign * gap(nats, their_nats) > 4
    (_, nats), (_, their_nats) = (utility(m, 30_000, 1) for m in mechanisms)
    assert sign * gap(nats, their_nats) > 4


def test_with_ten_classes_alibi_wins_in_nats_up_to_epsilon_one():
    for epsilon, sign in ((0.5, 1), (1.0, 1), (2.0, -1)):
        ours, theirs = (utility(m(epsilon=epsilon, classes=10), 60_000, 2)[1] for m in (Alibi, RandomizedResponse))
        assert sign * gap(ours, theirs) > 4


@pytest.mark.parametrize("classes", [2, 10, 100])
def test_no_epsilon_mechanism_guesses_uniform_labels_better_than_randomized_response(classes):
    """Accuracy of the likeliest label is at most e^ε/(e^ε + K − 1) (docs/mechanisms/alibi.md), ALIBI's included."""
    right, _ = utility(Alibi(epsilon=1, classes=classes), 30_000, 3)
    assert right.mean() <= np.e / (np.e + classes - 1) + 3 * right.std() / np.sqrt(len(right))


def test_the_posterior_is_bayes_of_the_laplace_densities():
    rng = np.random.default_rng(0)
    mechanism, prior = Alibi(epsilon=1.5, classes=4), rng.dirichlet(np.ones(4), 50)
    release = mechanism.randomize(rng.integers(0, 4, 50), prior, rng=rng)
    for held in (None, rng.dirichlet(np.ones(4), 50)):
        distance = np.abs(release.output[:, None, :] - np.eye(4)).sum(axis=2)
        joint = np.exp(-distance / mechanism.scale) * (prior if held is None else held)
        assert np.allclose(release.posterior(held), joint / joint.sum(axis=1, keepdims=True))


def cells(theta, points=120):
    """Masses of Laplace noise of scale 1/θ around 0 and around 1, over cells of [0, 1] and the two tails."""
    ends = np.concatenate([[-np.inf], np.linspace(0, 1, points), [np.inf]])

    def law(centre):
        x = ends - centre
        cdf = np.where(x < 0, np.exp(-theta * np.abs(x)) / 2, 1 - np.exp(-theta * np.abs(x)) / 2)
        return np.diff(cdf)

    return law(0.0), law(1.0)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_the_trade_off_is_the_limit_of_finite_channels(epsilon):
    p, q = cells(epsilon / 2)
    mechanism = Alibi(epsilon=epsilon, classes=7)
    one, two = polygon(p, q), polygon(np.outer(p, q).ravel(), np.outer(q, p).ravel())
    for neighbours, finite in (("label", one), ("replace", two)):
        f = mechanism.tradeoff(neighbours)
        assert (f(ALPHAS) <= finite(ALPHAS) + 1e-9).all()  # a coarser view is more private
        assert np.allclose(f(ALPHAS), finite(ALPHAS), atol=1e-3)
        assert np.allclose(f(f(ALPHAS[1:-1])), ALPHAS[1:-1], atol=1e-7)  # symmetric
        assert (np.diff(f(ALPHAS), 2) >= -1e-9).all()


def test_no_density_ratio_exceeds_epsilon():
    rng = np.random.default_rng(0)
    mechanism = Alibi(epsilon=2, classes=5)
    o = rng.normal(0, 3, (20_000, 5))
    o[:100] = np.where(rng.random((100, 5)) < 0.5, -5, 5)
    logs = -np.abs(o[:, None, :] - np.eye(5)).sum(axis=2) / mechanism.scale
    between = (logs.max(axis=1) - logs.min(axis=1)).max()
    bottom = np.abs(logs + np.abs(o).sum(axis=1, keepdims=True) / mechanism.scale).max()
    assert between == pytest.approx(mechanism.guarantee("replace").epsilon)
    assert bottom == pytest.approx(mechanism.guarantee("label").epsilon)


def test_the_guarantees():
    label = Alibi(epsilon=2, classes=5).guarantee("label")
    assert (label.epsilon, label.parameter, label.exact, label.bottom) == (1.0, 1.0, True, "the zero vector")
    assert label.family == Laplace()
    assert Alibi(epsilon=2, classes=5).guarantee("replace").epsilon == 2
    assert label.epsilon_at(1e-3) == pytest.approx(1 + 2 * np.log1p(-1e-3))


def table():
    """The table of docs/mechanisms/alibi.md, at ε = 1: `python -m tests.mechanisms.test_alibi`."""
    for classes, sharp in ((2, 2.0), (10, 0.2), (100, 0.05)):
        three = [m(epsilon=1, classes=classes) for m in (Alibi, RandomizedResponse, RRWithPrior)]
        nats = [utility(m, 40_000, 0)[1].mean() for m in three[:2]]
        right = [utility(m, 40_000, 0, sharp)[0].mean() for m in three]
        shown = (" / ".join(f"{x:.3f}".lstrip("0") for x in found) for found in (nats, right))
        yield f"| {classes} | {' | '.join(shown)} |\n"


if __name__ == "__main__":
    sys.stdout.writelines(table())
