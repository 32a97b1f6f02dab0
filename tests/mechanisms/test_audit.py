"""The audit at the level of a release, with no training in between: below the true SIM ε, and near it.

M(x) is the mechanism's posterior, M'(x) the law the labels were drawn from. The true SIM ε is the mechanism's sup over
outputs of |log M_y(o)/Σ_z π_z M_z(o)|: the imputation that the game plays against.
"""

import numpy as np
import pytest

from bystander import audit
from bystander.mechanisms import Alibi, RandomizedResponse, RRWithPrior

ROWS, RUNS, GAMES = 20_000, 20, 4


def sim_epsilon(channel, prior):
    """Of a finite channel, one prior: over outputs and labels that happen."""
    mixed = prior @ channel
    some = (channel[prior > 0] > 0) & (mixed > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.abs(np.log(channel[prior > 0] / mixed))[some].max())


def alibi_sim_epsilon(epsilon, prior):
    """Each label's loss against ⊥ lies in [−ε/2, ε/2]: the sup is at one label's end and all others' other end."""
    both = [max(np.log(p + (1 - p) * np.exp(epsilon)), -np.log(p + (1 - p) * np.exp(-epsilon))) for p in prior]
    return float(max(both))


def runs(mechanism, priors, seed):
    """(runs,) audited ε."""
    found = []
    for run in range(RUNS):
        rng = np.random.default_rng([seed, run])
        p = priors[rng.integers(0, len(priors), ROWS)]
        y = np.minimum((rng.random(ROWS)[:, None] > np.cumsum(p, axis=1)).sum(axis=1), p.shape[1] - 1)
        target = mechanism.randomize(y, p, rng=rng).posterior()
        found.append(audit(labels=y, target=target, reference=p, games=GAMES, seed=run).epsilon)
    return np.array(found)


@pytest.mark.parametrize("epsilon", [2.0, 4.0])
@pytest.mark.parametrize("name", ["rr", "rr with prior", "alibi"])
def test_an_audit_of_releases_is_below_the_truth_and_near_it(name, epsilon):
    if name == "rr":
        priors = np.full((1, 10 if epsilon == 2 else 2), 1.0)
        priors /= priors.sum()
        mechanism = RandomizedResponse(epsilon=epsilon, classes=priors.shape[1])
        truth = sim_epsilon(mechanism.channel(), priors[0])
    elif name == "rr with prior":
        priors = np.array([[0.25, 0.25, 0.25, 0.25], [0.45, 0.45, 0.05, 0.05], [0.4, 0.3, 0.2, 0.1]])
        mechanism = RRWithPrior(epsilon=epsilon, classes=4)
        truth = max(sim_epsilon(c, p) for c, p in zip(mechanism.channel(priors), priors, strict=True))
    else:
        priors = np.full((1, 2), 0.5)
        mechanism = Alibi(epsilon=epsilon, classes=2)
        truth = alibi_sim_epsilon(epsilon, priors[0])
    assert truth <= mechanism.guarantee("replace").epsilon
    found = runs(mechanism, priors, int(epsilon))
    assert np.mean(found <= truth) >= 0.95
    assert np.median(found) >= 0.7 * truth, (name, epsilon, found.mean(), truth)
