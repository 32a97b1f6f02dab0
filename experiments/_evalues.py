"""Averaging e-values over games at fixed c': the rival of the median. Pure ε, no shift.

Given the model and the shown labels, guess i is right with probability at most q = e^ε/(1 + e^ε) whatever
the earlier ones were, so E_g(ε) = mean_d e^{d·C_g − c'·L_d(ε)}, L_d(ε) = log(1 + e^{ε+d}) − log(1 + e^ε),
has mean at most 1 in every game g. So has their average over the games, however dependent. Several c' are
paid for by Bonferroni.
"""

from __future__ import annotations

import numpy as np

from bystander.counts import Tally

_BETS = 0.02 * 120.0 ** (np.arange(12) / 11)  # 0.02 … 2.4


def averaged(tally: Tally, level: float) -> float:
    """The largest ε that some c' of the tally rejects, at level / number of c', from the rejected side."""
    goal = -np.log(level / len(tally.guesses))
    won = np.multiply.outer(_BETS, tally.correct)  # (bets, games, cuts)

    def best(epsilon: float) -> float:
        price = np.logaddexp(0, epsilon + _BETS) - np.logaddexp(0, epsilon)
        wealth = won - np.multiply.outer(price, tally.guesses)[:, None, :]
        total = np.logaddexp.reduce(np.logaddexp.reduce(wealth, axis=0), axis=0)
        return float(total.max() - np.log(len(_BETS) * tally.games))

    if best(0.0) < goal:
        return 0.0
    low, high = 0.0, 1.0
    while best(high) >= goal:
        low, high = high, 2 * high
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if best(middle) >= goal else (low, middle)
    return low
