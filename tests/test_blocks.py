"""Blocks of Algorithm 3: never a rejection that single steps would not make, and next to nothing lost."""

import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from bystander._kernels import largest_rejected, recursion, rejects
from bystander.bound import bound
from bystander.tradeoff import APPROX, GAUSSIAN, LAPLACE, RESPONSE, Gaussian

FAMILIES = [(APPROX, 1e-5), (APPROX, 1e-9), (GAUSSIAN, 0.0), (LAPLACE, 0.0), (RESPONSE, 2.0), (RESPONSE, 10.0)]
NAMES = ["approx", "approx-1e-9", "gaussian", "laplace", "rr2", "rr10"]
each_family = pytest.mark.parametrize(("kind", "constant"), FAMILIES, ids=NAMES)


def sd(guesses, correct):
    """The standard error of the log-odds of being right."""
    return 1 / math.sqrt(correct * (guesses - correct) / guesses)


def largest(kind, constant, before, after, m, guesses, correct, gamma, block):
    """The largest rejected parameter at this block, by halving."""
    low, high = 0.0, 20.0
    if not recursion(kind, low, constant, before, after, m, guesses, correct, gamma, block):
        return 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        if recursion(kind, middle, constant, before, after, m, guesses, correct, gamma, block):
            low = middle
        else:
            high = middle
    return low


@st.composite
def a_question(draw, most):
    """(before, after, m, guesses, correct, gamma), and a block."""
    guesses = int(draw(st.floats(0, 1)) ** 3 * (most - 1)) + 1
    correct = round(guesses * draw(st.floats(0.5, 1)))
    m = float(draw(st.sampled_from([guesses, guesses + 1, 3 * guesses, 100 * guesses + 7])))
    tau = draw(st.sampled_from([0.0, 0.0, 1e-6, 1e-4, 1e-2]))
    before, after = draw(st.sampled_from([(0.0, tau), (tau / 2, tau / 2), (tau, 0.0)]))
    gamma = draw(st.sampled_from([0.05, 0.00625, 0.3]))
    block = draw(st.sampled_from([2, 3, 7, 20, 150, 10**4]))
    return (before, after, m, guesses, correct, gamma), block


def near(question, spread):
    """A parameter about where the answer changes: the log-odds, some standard errors below."""
    _, _, _, guesses, correct, _ = question
    odds = math.log((correct + 1) / (guesses - correct + 1))
    return max(0.0, odds - spread * sd(guesses + 2, correct + 1))


@each_family
@settings(max_examples=150)
@given(asked=a_question(5000), theta=st.one_of(st.floats(0, 8), st.none()), spread=st.floats(-1, 6))
def test_blocks_reject_nothing_that_single_steps_accept(kind, constant, asked, theta, spread):
    question, block = asked
    theta = near(question, spread) * (0.5 if kind == GAUSSIAN else 1) if theta is None else theta
    if recursion(kind, theta, constant, *question, block):
        assert recursion(kind, theta, constant, *question, 1)


@each_family
@settings(max_examples=60)
@given(asked=a_question(5000))
def test_the_largest_parameter_of_blocks_is_not_above_that_of_single_steps(kind, constant, asked):
    """At the very edge of rejection, where rounding would show."""
    question, block = asked
    assert largest(kind, constant, *question, block) <= largest(kind, constant, *question, 1) + 2e-9


@each_family
@settings(max_examples=25)
@given(asked=a_question(2_000_000), spread=st.floats(0, 5))
def test_blocks_of_up_to_two_million_guesses(kind, constant, asked, spread):
    question, block = asked
    theta = near(question, spread)
    found = largest(kind, constant, *question, block)
    if found > 0:
        assert recursion(kind, max(0.0, found - 1e-9), constant, *question, 1)
    if recursion(kind, theta, constant, *question, block):
        assert recursion(kind, theta, constant, *question, 1)


@each_family
@pytest.mark.parametrize("correct", [1_010_000, 1_300_000, 1_900_000, 1_999_000])
@pytest.mark.parametrize(("m", "tau"), [(2e6, 0.0), (2e8, 0.0), (2e6, 1e-3)])
def test_blocks_lose_less_than_a_hundredth_of_the_standard_error(kind, constant, m, correct, tau):
    """What is reported above 50,000 guesses (blocks) against single steps."""
    asked = (kind, constant, 0.0, tau, m, 2_000_000, correct, 0.05)
    found, single = largest_rejected(*asked), largest(*asked, 1)
    assert single - found + 2e-9 >= 0
    assert single - found <= 0.01 * sd(2_000_000, correct)
    block = int(0.02 * math.sqrt(correct * (2_000_000 - correct) / 2_000_000))
    assert found == pytest.approx(largest(*asked, max(1, block)), abs=3e-9)


def test_fifty_thousand_guesses_go_in_single_steps_and_a_few_more_in_blocks():
    few, more = ((APPROX, 1e-5, 0.0, 0.0, 5e5, g, 40_000, 0.05) for g in (50_000, 50_001))
    assert largest_rejected(*few) == pytest.approx(largest(*few, 1), abs=2e-9)
    single = largest(*more, 1)
    assert single - 0.01 * sd(50_001, 40_000) < largest_rejected(*more) <= single + 2e-9
    args = (APPROX, single - 1e-8, 1e-5, 0.0, 0.0, 5e5, 50_001, 40_000, 0.05)
    assert recursion(*args, 1)
    assert rejects(APPROX, largest_rejected(*more), *args[2:])


@each_family
@pytest.mark.parametrize(
    ("guesses", "correct"),
    [
        (10**9, 6 * 10**8),
        (10**8, 9 * 10**7),
        (10**7, 10**7 - 5000),
        (10**9, 10**9 - 3),
        (10**9, 501 * 10**6),
        (10**6, 9 * 10**5),
        (10**9, 5 * 10**8),
        (10**7, 0),
        (10**7, 10**7),
    ],
)
def test_a_billion_rows_take_a_moment(kind, constant, guesses, correct):
    """Each below 50 ms of one core; asserted with a margin of four for a busy machine."""
    question = (kind, constant, 0.0, 0.0, 1e9, guesses, correct, 0.05)
    largest_rejected(kind, constant, 0.0, 0.0, 1e4, 100, 90, 0.05)  # compiled before the clock starts
    begin = time.process_time()
    found = largest_rejected(*question)
    assert time.process_time() - begin < 0.2
    assert found <= max(0.0, math.log((correct + 1) / (guesses - correct + 1)))
    assert (found > 0) == (correct > guesses / 2)


@pytest.mark.parametrize(("guesses", "share"), [(10**9, 0.6), (10**8, 0.9), (10**9, 0.501), (10**7, 0.75)])
@pytest.mark.parametrize(("kind", "constant"), [(LAPLACE, 0.0), (RESPONSE, 2.0), (APPROX, 1e-13)])
def test_bounds_of_a_billion_rows_agree_with_the_normal_law(kind, constant, guesses, share):
    """Every guess right with e^ε/(1 + e^ε) at most: ε = logit(p) − z·sd, up to terms of 1/c'."""
    m, correct = 1e9, round(guesses * share)
    error = sd(guesses, correct)
    normal = special.logit(share) - special.ndtri(0.95) * error
    found = largest_rejected(kind, constant, 0.0, 0.0, m, guesses, correct, 0.05)
    exact = special.logit(special.betaincinv(correct, guesses - correct + 1, 0.05))
    assert exact == pytest.approx(normal, abs=0.001 * error)  # the normal law is the sanity of the twin itself
    # Algorithm 3 gives away what the binomial need not (a little), and blocks .01 of a standard error.
    assert exact - 0.25 * error < found < exact + 1e-9


def test_the_gaussian_family_of_a_billion_rows():
    """All rows guessed, the mechanism Gaussian: accuracy Φ(μ/2), so μ is below 2Φ⁻¹(p): the recursion is loose."""
    for mu in (0.05, 0.5, 2.0):
        p = special.ndtr(mu / 2)
        said = bound(canaries=10**9, guesses=10**9, correct=round(10**9 * p), family=Gaussian(1e-5))
        assert 0.3 * mu < said.mu < mu
