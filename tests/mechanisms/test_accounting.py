"""Accounting: dp-accounting equals the closed forms and the published numbers; the ledger; searches end safely."""

import math

import numpy as np
import pytest

from bystander import InputError
from bystander.mechanisms import Alibi, ConfidentGnmax, Ledger, Pate, RandomizedResponse, RRWithPrior
from bystander.mechanisms.accounting import epsilon, largest_epsilon, least_noise, most_answers, rdp_epsilon
from bystander.mechanisms.losses import LaplaceLoss, compose
from bystander.mechanisms.priors import from_clusters

DELTA = 1e-5
ROWS = np.arange(100)


def rr(epsilon=1.0, classes=2):
    return RandomizedResponse(epsilon=epsilon, classes=classes)


# ------------------------------------------------------------------ closed forms


@pytest.mark.parametrize("neighbours", ["replace", "label"])
@pytest.mark.parametrize(
    "mechanism",
    [rr(0.7), rr(2, 10), RRWithPrior(epsilon=2, classes=5), Alibi(epsilon=2, classes=3)],
    ids=lambda m: f"{type(m).__name__}-{m.classes}",
)
def test_pld_equals_the_closed_form(mechanism, neighbours):
    pytest.importorskip("dp_accounting")
    promise = mechanism.guarantee(neighbours)
    for delta in (1e-6, 1e-3, 0.05):
        assert promise.pld().get_epsilon_for_delta(delta) == pytest.approx(promise.epsilon_at(delta), abs=2e-4)


@pytest.mark.parametrize("neighbours", ["replace", "label"])
def test_dp_accountings_own_event_agrees(neighbours):
    dp = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant

    relation = dp.NeighboringRelation
    for mechanism, of in (
        (rr(2, 10), relation.REPLACE_ONE if neighbours == "replace" else relation.REPLACE_SPECIAL),
        (Alibi(epsilon=2, classes=3), relation.ADD_OR_REMOVE_ONE),
        (ConfidentGnmax(classes=10, sigma2=11.2, answers=250), relation.ADD_OR_REMOVE_ONE),
        (Pate(answers=50), relation.ADD_OR_REMOVE_ONE),
    ):
        promise = mechanism.guarantee(neighbours)
        accountant = PLDAccountant(of)
        accountant.compose(promise.event())
        assert accountant.get_epsilon(DELTA) == pytest.approx(promise.epsilon_at(DELTA), abs=2e-3), mechanism


def test_pure_epsilon_is_the_mechanisms_own():
    assert epsilon(rr(1.5, 7)) == 1.5
    assert epsilon(Alibi(epsilon=3, classes=4)) == 3
    assert epsilon(rr(2), neighbours="label") == pytest.approx(math.log((math.exp(2) + 1) / 2))
    # binary RR: δ(ε) = (e^ε₀ − e^ε)/(1 + e^ε₀)
    e = epsilon(rr(1.0), delta=0.1)
    assert (math.e - math.exp(e)) / (1 + math.e) == pytest.approx(0.1)


def test_laplace_composition_is_between_its_bounds():
    pytest.importorskip("dp_accounting")
    one = LaplaceLoss(0.05)
    assert compose(((one, 1),), DELTA) == pytest.approx(0.05 + 2 * math.log1p(-DELTA))
    found = compose(((one, 400),), DELTA)
    assert 4.3 < found < 400 * 0.05
    # the normal limit of its losses, μ² = 400·Var: within 2 % of a Gaussian's ε
    from bystander.mechanisms.losses import gaussian_epsilon_above

    assert found == pytest.approx(gaussian_epsilon_above(1.0, DELTA), rel=0.02)


# ------------------------------------------------------------------ published settings


def test_wus_pate_spends_432_where_807_was_published():
    """200 labels, Laplace(20). Both counts: 400 compositions of a sensitivity-1 Laplace; one count: 200 of them."""
    pytest.importorskip("dp_accounting")
    assert round(Pate().guarantee("replace").epsilon, 2) == 4.32
    assert round(Pate(one_count=True).guarantee("replace").epsilon, 2) == 2.89
    assert round(Pate().guarantee("label").epsilon, 2) == 2.89
    # not what one Laplace of L1 sensitivity 2 a query would give
    assert compose(((LaplaceLoss(2 / 20), 200),), DELTA) == pytest.approx(6.38, abs=0.01)


@pytest.mark.parametrize(
    ("budget", "answers", "sigma"),
    [(10, 100, 7.1), (10, 250, 11.2), (10, 500, 15.8), (1, 50, 37), (1, 100, 53), (1, 250, 83)],
)
def test_gnmaxs_noise_for_a_budget(budget, answers, sigma):
    """mechanisms.md: σ₂ without a threshold, δ = 1e-5."""

    def make(sigma2):
        return ConfidentGnmax(classes=10, sigma2=sigma2, answers=answers)

    found = least_noise(make, epsilon=budget, delta=DELTA)
    assert found == pytest.approx(sigma, rel=0.012)
    assert epsilon(make(found), delta=DELTA) <= budget < epsilon(make(found * (1 - 1e-5)), delta=DELTA)


def test_pate_fms_published_run():
    """800 teachers, σ₁ = 800, σ₂ = 500, 250 labels: data-independent ε ≈ .16–.19 by Rényi DP, less by the exact one."""
    pytest.importorskip("dp_accounting")
    settings = {"classes": 10, "sigma2": 500, "answers": 250}
    without = ConfidentGnmax(**settings)
    with_threshold = ConfidentGnmax(**settings, sigma1=800, threshold=400, queries=500)
    assert rdp_epsilon(without, delta=DELTA) == pytest.approx(0.166, abs=0.001)
    assert rdp_epsilon(with_threshold, delta=DELTA) == pytest.approx(0.190, abs=0.001)
    for mechanism in (without, with_threshold):
        assert mechanism.guarantee("replace").epsilon < rdp_epsilon(mechanism, delta=DELTA)


def test_rdp_is_the_papers_formula():
    """ε(α) = queries·α/(2σ₁²) + answers·α/σ₂², converted as dp-accounting does."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.rdp import compute_epsilon

    gnmax = ConfidentGnmax(classes=10, sigma2=40, answers=100, sigma1=150, threshold=100, queries=300)
    orders = np.arange(2, 64)
    found = compute_epsilon(orders, [gnmax.rdp("replace", a) for a in orders], DELTA)[0]
    assert rdp_epsilon(gnmax, delta=DELTA) == pytest.approx(found, rel=0.01)
    with pytest.raises(InputError, match="not Gaussian"):
        rdp_epsilon(rr(), delta=DELTA)


# ------------------------------------------------------------------ trade-offs of compositions


def test_a_profile_is_below_the_exact_trade_off():
    pytest.importorskip("dp_accounting")
    from bystander.mechanisms.profile import Profile

    mechanism, alphas = Alibi(epsilon=2, classes=3), np.linspace(0, 1, 101)
    low, exact = Profile.of(mechanism.guarantee("replace"))(alphas), mechanism.tradeoff("replace")(alphas)
    assert (low <= exact + 1e-9).all()
    assert np.allclose(low, exact, atol=2e-3)


# ------------------------------------------------------------------ the ledger


def test_the_ledger_adds_on_the_same_rows_and_takes_the_most_over_disjoint_ones():
    ledger = Ledger().add(rr(1.0), rows=ROWS[:50]).add(rr(2.0), rows=ROWS[50:])
    assert ledger.epsilon() == 2.0
    assert ledger.add(rr(1.5), rows=ROWS[40:45]).epsilon() == 2.5
    assert ledger.add(rr(0.5)).epsilon() == 2.5  # every row
    assert ledger.add(rr(0.5), rows=[1_000]).epsilon() == 2.0
    assert Ledger().epsilon() == 0
    assert len(ledger.entries) == 2  # `add` changes nothing


def test_the_ledger_counts_drawing_anew():
    """Randomizing each epoch anew multiplies ε."""
    ledger = Ledger()
    for _ in range(30):
        ledger = ledger.add(rr(1.0))
    assert ledger.epsilon() == pytest.approx(30)


def test_the_ledger_composes_by_pld_under_delta():
    pytest.importorskip("dp_accounting")
    ledger = Ledger().add(rr(0.1)).add(Alibi(epsilon=0.2, classes=2)).add(Pate(answers=20))
    found = ledger.epsilon(delta=DELTA)
    assert found < 0.1 + 0.2 + 20 * 0.1
    assert found > max(epsilon(entry.spent, delta=DELTA) for entry in ledger.entries)
    assert ledger.epsilon(delta=DELTA, neighbours="label") < found
    gaussian = ConfidentGnmax(classes=10, sigma2=40, answers=100)
    assert ledger.add(gaussian).epsilon(delta=DELTA) > epsilon(gaussian, delta=DELTA)
    with pytest.raises(InputError, match="delta is 0"):
        ledger.add(gaussian).epsilon()


def test_pld_composition_of_randomized_response_is_the_binomial_one():
    """Twenty binary responses: the losses are ε₀(2B − 20), B binomial; δ(ε) by enumeration."""
    pytest.importorskip("dp_accounting")
    n, e0 = 20, 0.3
    keep = math.exp(e0) / (1 + math.exp(e0))
    ledger = Ledger()
    for _ in range(n):
        ledger = ledger.add(rr(e0))
    found = ledger.epsilon(delta=1e-3)

    def delta(eps):
        mass = [math.comb(n, b) * keep**b * (1 - keep) ** (n - b) for b in range(n + 1)]
        return sum(m * max(0.0, 1 - math.exp(eps - e0 * (2 * b - n))) for b, m in enumerate(mass))

    assert delta(found) <= 1e-3
    assert delta(found - 0.01) > 1e-3


def test_the_ledger_takes_a_releases_prior_into_account():
    y = np.arange(100) % 2
    prior = from_clusters(np.zeros(100, dtype=int), y, classes=2, epsilon=0.05, rng=0)
    release = RRWithPrior(epsilon=1, classes=2, min_k=2).randomize(y, prior, rng=0)
    ledger = Ledger().add(release)
    assert ledger.epsilon() == pytest.approx(1.05)
    assert ledger.add(release).epsilon() == pytest.approx(1.05)  # used twice, drawn once
    assert ledger.add(release.mechanism).epsilon() == pytest.approx(2.05)
    assert Ledger().add(release.mechanism).epsilon() == 1


def test_a_guarantee_is_for_its_own_neighbours():
    promise = rr().guarantee("label")
    assert Ledger().add(promise).epsilon(neighbours="label") == promise.epsilon
    with pytest.raises(InputError, match="give the mechanism"):
        Ledger().add(promise).epsilon()


# ------------------------------------------------------------------ inverse questions


def test_searches_end_on_the_safe_side():
    pytest.importorskip("dp_accounting")

    def pate(scale):
        return Pate(scale=scale, answers=50)

    scale = least_noise(pate, epsilon=2, delta=DELTA)
    assert epsilon(pate(scale), delta=DELTA) <= 2 < epsilon(pate(scale * 0.999), delta=DELTA)
    answers = most_answers(lambda n: Pate(answers=n), epsilon=2, delta=DELTA)
    assert epsilon(Pate(answers=answers), delta=DELTA) <= 2 < epsilon(Pate(answers=answers + 1), delta=DELTA)
    assert most_answers(lambda n: Pate(answers=n), epsilon=0.01, delta=0) == 0
    assert most_answers(lambda n: Pate(answers=n), epsilon=2, delta=0) == 20
    assert most_answers(lambda n: Pate(answers=n), epsilon=2, delta=0, most=7) == 7


def test_the_epsilon_of_randomized_response_that_a_budget_allows():
    assert largest_epsilon(rr, epsilon=1) == pytest.approx(1)
    assert largest_epsilon(rr, epsilon=1) <= 1
    for neighbours, delta in (("label", 0.0), ("replace", 1e-3)):
        found = largest_epsilon(rr, epsilon=1, delta=delta, neighbours=neighbours)
        assert epsilon(rr(found), delta=delta, neighbours=neighbours) <= 1
        assert epsilon(rr(found + 1e-6), delta=delta, neighbours=neighbours) > 1
        assert found > 1


def test_what_no_ledger_or_search_can_take_is_told():
    with pytest.raises(InputError, match="spent is 2: give a mechanism"):
        Ledger().add(2)
    with pytest.raises(InputError, match="whole numbers from 0"):
        Ledger().add(rr(), rows=[-1, 3])
    for search in (least_noise, most_answers, largest_epsilon):
        with pytest.raises(InputError, match="epsilon is 0"):
            search(lambda n: Pate(answers=n), epsilon=0)


def test_too_little_budget_is_told():
    with pytest.raises(InputError, match="no noise up to 100 is enough"):
        least_noise(lambda b: Pate(scale=b, delta=0), epsilon=1e-3, most=100)


def test_gaussian_epsilon_is_never_understated():
    from bystander.mechanisms.losses import gaussian_epsilon_above
    from bystander.tradeoff import gaussian_delta

    for mu in (0.05, 0.5, 2.0, 9.0):
        found = gaussian_epsilon_above(mu, DELTA)
        assert float(gaussian_delta(np.array(mu), np.array(found))) <= DELTA
        assert float(gaussian_delta(np.array(mu), np.array(found - 1e-6))) > DELTA
