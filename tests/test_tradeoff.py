import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bystander import ApproxDP, Gaussian, InputError, Laplace, Pure, RandomizedResponse, Shift, Steinke, TwoSidedShift
from bystander._kernels import f_inverse
from bystander.mechanisms.families import TopK, TwoLaplace
from bystander.tradeoff import gaussian_delta, gaussian_epsilon
from tests import reference

FAMILIES = {
    "approx": (ApproxDP(1e-3), reference.approx),
    "pure": (Pure(), reference.pure),
    "gaussian": (Gaussian(), reference.gaussian),
    "laplace": (Laplace(), reference.laplace),
    "rr2": (RandomizedResponse(2), reference.response),
    "rr10": (RandomizedResponse(10), reference.response),
    "alibi": (TwoLaplace(), reference.two_laplace),
    "rr-with-prior": (TopK(2, 6), lambda alpha, epsilon, _: reference.top_k(alpha, epsilon, (2, 6))),
    "rr-with-prior, k of 3 and more": (TopK(3, 12), lambda alpha, epsilon, _: reference.top_k(alpha, epsilon, (3, 12))),
}
names = pytest.mark.parametrize("name", FAMILIES)


@names
@given(r=st.floats(1e-4, 0.999), theta=st.floats(0, 4))
def test_inverse_is_a_root_of_f(name, r, theta):
    family, f = FAMILIES[name]
    alpha = f_inverse(family.kind, theta, family.constant, r)
    assert alpha == pytest.approx(reference.inverse(f, r, theta, family.constant), abs=1e-11, rel=1e-6)


@names
@given(alpha=st.floats(0, 1), theta=st.floats(0, 4))
def test_the_twin_is_a_trade_off_function_and_symmetric(name, alpha, theta):
    family, f = FAMILIES[name]
    value = f(alpha, theta, family.constant)
    assert -1e-15 <= value <= 1 - alpha + 1e-15
    if 1e-9 < value < 1 - family.delta - 1e-9 and alpha < 1 - family.delta:
        assert f(value, theta, family.constant) == pytest.approx(alpha, abs=1e-9)


@pytest.mark.parametrize("r", [1e-15, 1e-12, 5e-8])
@pytest.mark.parametrize("theta", [0.5, 2.0, 5.0])
def test_inverse_keeps_its_digits_where_r_is_tiny(r, theta):
    from scipy.special import ndtr, ndtri

    shrunk = pytest.approx(math.exp(-theta) * r, rel=1e-14)
    for family in (Pure(), Laplace(), RandomizedResponse(10), TwoLaplace()):
        assert f_inverse(family.kind, theta, family.constant, r) == shrunk
    assert f_inverse(Gaussian.kind, theta, 0.0, r) == pytest.approx(ndtr(ndtri(r) - theta), rel=1e-12)
    assert f_inverse(ApproxDP.kind, theta, 1e-5, r) == 0.0


@names
@given(pair=st.tuples(st.floats(0, 1), st.floats(0, 1)), thetas=st.tuples(st.floats(0, 9), st.floats(0, 9)))
def test_inverse_rises_with_r_and_falls_with_the_parameter(name, pair, thetas):
    family, _ = FAMILIES[name]
    (low, high), (strong, weak) = sorted(pair), sorted(thetas)

    def at(theta, r):
        return f_inverse(family.kind, theta, family.constant, r)

    assert at(strong, low) <= at(strong, high) * (1 + 1e-12) + 1e-15
    assert at(weak, high) <= at(strong, high) * (1 + 1e-12) + 1e-15
    assert 0 <= at(strong, high) <= high * (1 + 1e-12)


@names
def test_inverse_at_the_ends(name):
    family, _ = FAMILIES[name]
    for r, alpha in ((-0.5, 0.0), (0.0, 0.0), (1.0, 1.0), (1.5, 1.0)):
        assert f_inverse(family.kind, 1.0, family.constant, r) == alpha


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 1.7, 4.0, 9.0])
def test_gaussian_epsilon_is_the_root_of_delta(mu, delta):
    assert gaussian_epsilon(mu, delta) == pytest.approx(reference.gaussian_epsilon(mu, delta), abs=1e-8)
    assert Gaussian(delta).epsilon(mu) == gaussian_epsilon(mu, delta)


def test_gaussian_epsilon_of_values_known_elsewhere():
    # Dong, Roth and Su (2019): 1-GDP has δ(1) = Φ(−1/2) − e·Φ(−3/2) = 0.126936737507
    assert gaussian_delta(1.0, 1.0) == pytest.approx(0.126936737507, abs=1e-12)
    assert gaussian_epsilon(1.0, 0.126936737507) == pytest.approx(1.0, abs=1e-9)
    assert gaussian_epsilon(0.0, 1e-5) == 0.0
    assert gaussian_epsilon(2e-5, 1e-5) == 0.0  # δ(0) = 2Φ(μ/2) − 1 < 1e-5


@pytest.mark.parametrize("mu", [0.1, 1.0, 5.0])
def test_laplace_epsilon_is_the_root_of_its_delta(mu):
    # δ(ε) = sup_α 1 − f(α) − e^ε α, by brute force over α
    delta = 1e-3
    epsilon = Laplace(delta).epsilon(mu)
    alphas = [math.exp(-t / 2000) for t in range(20_000)]
    brute = max(1 - reference.laplace(a, mu, 0) - math.exp(epsilon) * a for a in alphas)
    assert brute == pytest.approx(delta, rel=1e-3)
    assert Laplace(0.0).epsilon(mu) == mu


@pytest.mark.parametrize("family", [ApproxDP(), Pure(), RandomizedResponse(3), Steinke(), TwoLaplace()])
def test_the_parameter_is_epsilon_where_the_family_is_one_of_epsilons(family):
    assert family.epsilon(1.25) == 1.25


def test_shifts_spend_tau_as_their_forms_say():
    assert Shift(0.1).offsets(2) == (0.0, 0.1)
    assert Shift(0.1).offsets(10) == (0.0, 0.1)
    assert TwoSidedShift(0.1).offsets(2) == (0.05, 0.05)
    assert TwoSidedShift(0.1).offsets(3) == pytest.approx((0.095, 0.095))  # τ₂ = 2τ − τ²
    assert TwoSidedShift(0.1).at(0.2) == TwoSidedShift(0.2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ApproxDP(-1e-5), "delta is -1e-05: give a number at least 0 and below 1"),
        (lambda: ApproxDP(1.0), "delta is 1.0: give a number at least 0 and below 1"),
        (lambda: Gaussian(0.0), "delta is 0.0: give a number above 0 and below 1"),
        (lambda: Laplace(math.nan), "delta is nan: give a finite number"),
        (lambda: Steinke("x"), "delta is 'x': give a number"),
        (lambda: RandomizedResponse(1), "classes is 1: give a whole number from 2 to 1,000,000"),
        (lambda: RandomizedResponse(2.5), "classes is 2.5: give a whole number"),
        (lambda: TopK(1, 10), "least is 1: give a whole number from 2 to 10"),
        (lambda: TopK(2, 1), "classes is 1: give a whole number from 2 to 1,000,000"),
        (lambda: Shift(1.0), "tau is 1.0: give a number at least 0 and below 1"),
    ],
)
def test_wrong_parameters_are_refused_by_name_and_value(make, words):
    with pytest.raises(InputError) as error:
        make()
    assert str(error.value) == words
