"""Tight: on randomized response with its own posterior the default bound is nearly what the best attack could show."""

import math

import numpy as np
import pytest

from bystander import audit
from tests import makers, reference


def shown(m, epsilon):
    """The default audit's ε over the log-odds of the attack's accuracy at the same c', infinitely many rows."""
    labels, target, flat = makers.response(np.random.default_rng(0), m, 2, epsilon)
    result = audit(labels=labels, target=target, reference=flat)
    best = reference.response_accuracy(epsilon, result.guesses / m)
    return result.epsilon / math.log(best / (1 - best))


def test_what_the_best_attack_could_show_is_sim_epsilon_where_guesses_are_few():
    for epsilon in (1, 2, 4):
        best = reference.response_accuracy(epsilon, 0.1)
        assert math.log(best / (1 - best)) == pytest.approx(reference.response_sim(epsilon, 2), abs=1e-12)


@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_the_default_bound_reaches_85_percent(epsilon):
    """One seeded run of 10⁵ rows and 100 games; over seeds its share moves by about .01."""
    assert 0.85 <= shown(100_000, epsilon) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_the_default_bound_reaches_85_percent_of_a_million(epsilon):
    assert 0.85 <= shown(1_000_000, epsilon) <= 1.0
