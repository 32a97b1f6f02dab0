import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bystander import (
    ApproxDP,
    Gaussian,
    InputError,
    Laplace,
    Pure,
    RandomizedResponse,
    Shift,
    Steinke,
    TwoSidedShift,
    bound,
)
from bystander.bound import rejected
from tests import reference

FAMILIES = [ApproxDP(), ApproxDP(0.0), Pure(), Gaussian(), Laplace(), RandomizedResponse(2), RandomizedResponse(10)]
families = pytest.mark.parametrize("family", [*FAMILIES, Steinke()], ids=lambda f: f"{f.name}-{f.constant:g}")
shifted = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.name}-{f.constant:g}")
counts = st.integers(1, 200).flatmap(
    lambda g: st.tuples(st.sampled_from([g, 2 * g, 10_000]), st.just(g), st.integers(0, g))
)


def epsilon(m, guesses, correct, family, **kw):
    return bound(canaries=m, guesses=guesses, correct=correct, family=family, **kw).epsilon


@families
@settings(max_examples=40)
@given(count=counts)
def test_more_right_answers_never_lower_the_bound(family, count):
    m, guesses, correct = count
    if correct < guesses:
        assert epsilon(m, guesses, correct, family) <= epsilon(m, guesses, correct + 1, family) + 1e-9


@families
@settings(max_examples=40)
@given(count=counts, confidence=st.tuples(st.floats(0.5, 0.999), st.floats(0.5, 0.999)))
def test_more_confidence_never_raises_the_bound(family, count, confidence):
    low, high = sorted(confidence)
    assert epsilon(*count, family, confidence=high) <= epsilon(*count, family, confidence=low) + 1e-9


@shifted
@settings(max_examples=40)
@given(count=counts, taus=st.tuples(st.floats(0, 0.3), st.floats(0, 0.3)), form=st.sampled_from([Shift, TwoSidedShift]))
def test_more_shift_never_raises_the_bound(family, count, taus, form):
    low, high = sorted(taus)
    assert epsilon(*count, family, tau=form(high)) <= epsilon(*count, family, tau=form(low)) + 1e-9


@pytest.mark.parametrize("form", [Shift, TwoSidedShift])
@pytest.mark.parametrize("family", [ApproxDP(), Pure(), Gaussian()], ids=lambda f: f.name)
def test_the_bound_dies_at_tau_star(family, form):
    found = bound(canaries=10_000, guesses=800, correct=600, family=family, tau=form(0.0))
    star = found.tau_star
    # At f = 1 − α the first step stands still where r − τ ≤ h: τ = γ·(2c − c')/m (and δ eases f_{0,δ} alone).
    assert star == pytest.approx(0.05 * 400 / 10_000, rel=2e-4 if family.delta == 0 else 0.01)
    assert epsilon(10_000, 800, 600, family, tau=form(0.999 * star)) > 0
    assert epsilon(10_000, 800, 600, family, tau=form(1.001 * star)) == 0


def test_tau_star_where_nothing_stands_or_nothing_shifts():
    assert bound(canaries=100, guesses=50, correct=25).tau_star == 0.0
    assert bound(canaries=100, guesses=50, correct=0).tau_star == 0.0
    assert bound(canaries=100, guesses=50, correct=50, family=Steinke()).tau_star is None


def test_the_two_sided_form_is_the_naive_algorithm_with_both_halves():
    for classes, tau2 in ((2, 0.02), (5, 0.02 * 1.98)):
        slow = reference.largest(
            lambda e, t=tau2: reference.algorithm3(reference.approx, e, 1e-3, 400, 80, 70, 0.05, t / 2, t / 2)
        )
        fast = epsilon(400, 80, 70, ApproxDP(1e-3), tau=TwoSidedShift(0.02), classes=classes)
        assert fast == pytest.approx(slow, abs=1e-6)


@pytest.mark.parametrize("family", [Pure(), ApproxDP(0.0)], ids=lambda f: f.name)
@given(guesses=st.integers(1, 10**6), share=st.floats(0, 1), confidence=st.floats(0.5, 0.999))
def test_without_delta_the_bound_is_the_exact_binomial_at_any_size(family, guesses, share, confidence):
    correct = round(share * guesses)
    fast = epsilon(10**6, guesses, correct, family, confidence=confidence)
    assert fast == pytest.approx(reference.exact_binomial(guesses, correct, 1 - confidence), abs=1e-7)


@pytest.mark.parametrize(("m", "guesses", "correct"), [(10_000, 100, 95), (1_000_000, 1000, 950)])
def test_gaussian_is_the_naive_algorithm_at_the_golden_sizes(m, guesses, correct):
    from scipy.special import ndtr, ndtri

    def rejects(mu):
        return reference.algorithm3(
            None, mu, 0, m, guesses, correct, 0.05, inv=lambda _, r, mu, __: ndtr(ndtri(r) - mu)
        )

    found = bound(canaries=m, guesses=guesses, correct=correct, family=Gaussian())
    assert found.mu == pytest.approx(reference.largest(rejects), abs=1e-8)
    assert found.epsilon == pytest.approx(reference.gaussian_epsilon(found.mu, 1e-5), abs=1e-7)


@pytest.mark.parametrize("canaries", [100, 10_000])
def test_steinke_is_the_naive_one(canaries):
    slow = reference.largest(lambda e: reference.steinke_p_value(e, 1e-4, canaries, 100, 93) < 0.05)
    assert epsilon(canaries, 100, 93, Steinke(1e-4)) == pytest.approx(slow, abs=1e-8)


def test_a_bound_says_what_it_rests_on():
    found = bound(canaries=1000, guesses=100, correct=90, family=Gaussian(1e-6), confidence=0.9, tau=1e-4)
    assert (found.canaries, found.guesses, found.correct, found.tau) == (1000, 100, 90, 1e-4)
    assert (found.delta, found.confidence, found.valid) == (1e-6, 0.9, True)
    assert found.as_dict()["family"] == "gaussian"
    assert "assumes a Gaussian trade-off" in found.assumptions[1]
    assert "τ = 0.0001" in found.assumptions[2]
    assert float(found) == found.epsilon
    assert bound(canaries=1000, guesses=100, correct=90).mu is None


def test_confidence_enters_as_its_complement():
    assert rejected(ApproxDP(), Shift(), 2, 1000, 100, 90, 1 - 0.9) == epsilon(1000, 100, 90, None, confidence=0.9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"canaries": 0}, "canaries is 0: give a whole number from 1 to 1,000,000,000,000"),
        ({"canaries": 1.5}, "canaries is 1.5: give a whole number"),
        ({"guesses": 11}, "guesses is 11: give a whole number from 1 to 10"),
        ({"guesses": 0}, "guesses is 0: give a whole number from 1 to 10"),
        ({"correct": 6}, "correct is 6: give a whole number from 0 to 5"),
        ({"correct": -1}, "correct is -1: give a whole number from 0 to 5"),
        ({"confidence": 1.0}, "confidence is 1.0: give a number above 0 and below 1"),
        ({"confidence": math.nan}, "confidence is nan: give a finite number"),
        ({"tau": -0.1}, "tau is -0.1: give a number at least 0 and below 1"),
        ({"classes": 1}, "classes is 1: give a whole number from 2 to 1,000,000"),
        ({"family": "pure"}, "family is 'pure': give a value such as ApproxDP(delta=1e-5)"),
        (
            {"family": Steinke(), "tau": 0.1},
            "tau is 0.1: Steinke's bound has no shifted form; use another family or tau = 0",
        ),
    ],
)
def test_wrong_counts_are_refused_by_name_and_value(change, words):
    with pytest.raises(InputError) as error:
        bound(**{"canaries": 10, "guesses": 5, "correct": 5} | change)
    assert str(error.value) == words
