"""PATE and Confident-GNMax: votes, shards, budgets."""

import numpy as np
import pytest

from bystander import Gaussian, InputError
from bystander.mechanisms import ConfidentGnmax, Pate
from bystander.mechanisms.pate import cast, shards

VOTES = np.array([[90, 10], [40, 60], [50, 50]])


def test_shards_are_disjoint_and_cover_all_rows():
    parts = shards(1_003, 10, rng=0)
    assert sorted(np.concatenate(parts).tolist()) == list(range(1_003))
    assert {len(part) for part in parts} == {100, 101}
    with pytest.raises(InputError, match="teachers is 5"):
        shards(4, 5)


@pytest.mark.parametrize("sampled", [True, False])
def test_every_teacher_casts_one_vote_ties_included(sampled):
    p = np.full((30, 400, 4), 0.25)
    p[:, 200:] = [0.5, 0.5, 0.0, 0.0]
    votes = cast(p, sampled=sampled, rng=0)
    assert votes.shape == (400, 4)
    assert (votes.sum(axis=1) == 30).all()
    assert votes[200:, 2:].sum() == 0
    share = votes[200:, 0].sum() / 6_000
    assert abs(share - 0.5) < 4 * 0.5 / np.sqrt(6_000)  # a tie favours no class


def test_rare_positives_need_sampled_votes():
    p = np.full((100, 500), 0.03)
    assert cast(p, sampled=False, rng=0)[:, 1].sum() == 0
    assert cast(p, rng=0)[:, 1].mean() == pytest.approx(3, abs=0.4)


def test_one_teacher_moves_two_counts_by_one():
    """The sensitivity that is charged for: √2 in L2, 2 in L1, 1 in the maximum."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5), (20, 300))
    other = p.copy()
    other[7] = rng.dirichlet(np.ones(5), 300)
    for sampled in (True, False):
        a, b = (cast(x, sampled=sampled, rng=4) for x in (p, other))
        move = np.abs(a - b)
        assert move.sum(axis=1).max() == 2
        assert move.max() == 1
        assert np.abs(a.max(axis=1) - b.max(axis=1)).max() <= 1


def test_laplace_falls_on_both_counts_or_on_one():
    many = np.repeat(VOTES[:1], 50_000, axis=0)
    both = Pate(answers=50_000, delta=0).randomize(many, rng=0).output
    one = Pate(answers=50_000, delta=0, one_count=True).randomize(many, rng=0).output
    assert np.std(both - many, axis=0) == pytest.approx(20 * np.sqrt(2), rel=0.03)
    assert abs(np.corrcoef(both.T)[0, 1]) < 0.02
    assert np.allclose(one.sum(axis=1), 100)
    assert np.std(one[:, 1]) == pytest.approx(20 * np.sqrt(2), rel=0.03)


def test_a_pate_release_gives_labels_and_laws():
    pate = Pate(scale=1e-6, answers=3, delta=0)
    release = pate.randomize(VOTES, rng=0)
    assert pate.labels(release)[:2].tolist() == [0, 1]
    assert np.allclose(release.posterior(), VOTES / 100, atol=1e-4)


def test_pure_composition_without_a_delta():
    assert Pate(delta=0).guarantee("replace").epsilon == pytest.approx(200 * 2 / 20)
    assert Pate(delta=0).guarantee("label").epsilon == pytest.approx(200 / 20)
    assert Pate(delta=0, one_count=True).guarantee("replace").epsilon == pytest.approx(200 / 20)


def test_budgets_are_kept():
    with pytest.raises(InputError, match="give at most the 2 answers paid for"):
        Pate(answers=2, delta=0).randomize(VOTES)
    with pytest.raises(InputError, match="adds up to 99"):
        Pate().randomize([[90, 9]])
    for no_counts in ([["many", "few"]], [[np.nan, 100]], [[0.5, 99.5]], [[-1, 101]]):
        with pytest.raises(InputError, match="entries that are no counts"):
            Pate().randomize(no_counts)
    with pytest.raises(InputError, match="teachers is 0"):
        ConfidentGnmax(classes=3, sigma2=1, answers=20, teachers=0)
    votes = np.tile([100, 0, 0], (50, 1))
    gnmax = ConfidentGnmax(classes=3, sigma2=1, sigma1=1, threshold=50, queries=50, answers=20)
    output = gnmax.randomize(votes, rng=0).output
    assert (output[:20] == 0).all()
    assert (output[20:] == -1).all()
    with pytest.raises(InputError, match="at most the 50 queries"):
        gnmax.randomize(np.tile(votes, (2, 1)))
    with pytest.raises(InputError, match="queries is None"):
        ConfidentGnmax(classes=3, sigma2=1, sigma1=1, answers=20)


def test_one_gaussian_falls_on_the_maximum():
    """P(pass) = Φ((max − T)/σ₁). With noise on every count and then the maximum, far more would pass."""
    n = 40_000
    votes = np.tile(np.full(10, 80), (n, 1))  # 800 teachers, no agreement
    gnmax = ConfidentGnmax(classes=10, sigma2=500, sigma1=800, threshold=400, queries=n, answers=n)
    share = np.mean(gnmax.randomize(votes, rng=0).output >= 0)
    expected = 0.3445783  # Φ(−0.4)
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / n)


def test_the_answers_are_spread_by_their_noise():
    votes = np.tile([60, 40], (40_000, 1))
    output = ConfidentGnmax(classes=2, sigma2=20, answers=40_000).randomize(votes, rng=0).output
    assert np.mean(output == 0) == pytest.approx(0.7602499, abs=0.009)  # Φ(20/(20√2))


def test_unanswered_queries_keep_their_prior():
    gnmax = ConfidentGnmax(classes=3, sigma2=1e-3, sigma1=1e-3, threshold=50, queries=2, answers=1)
    release = gnmax.randomize([[99, 1, 0], [40, 30, 30]], rng=0)
    assert release.output.tolist() == [0, -1]
    assert release.posterior([0.5, 0.3, 0.2]).tolist() == [[1, 0, 0], [0.5, 0.3, 0.2]]


def test_gnmax_is_gaussian():
    gnmax = ConfidentGnmax(classes=10, sigma2=500, sigma1=800, threshold=400, queries=500, answers=250)
    replace, label = gnmax.guarantee("replace"), gnmax.guarantee("label")
    assert isinstance(replace.family, Gaussian)
    assert replace.parameter**2 == pytest.approx(500 / 800**2 + 2 * 250 / 500**2)
    assert label.parameter**2 == pytest.approx(500 / 800**2 + 250 / 500**2)
    assert gnmax.rdp("replace", 8) == pytest.approx(8 * (500 / (2 * 800**2) + 250 / 500**2))
    assert label.epsilon < replace.epsilon
    assert replace.family.epsilon(replace.parameter) == pytest.approx(replace.epsilon, abs=1e-6)
