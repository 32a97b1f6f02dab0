"""The paper's figure on τ: binary randomized response, counterfactuals from min(P(y = 1 | x) + τ, 1).

Attacks as in rr: the paper's score on the indicator of the noisy label, and the log-ratio with the
posterior whose prior is the shifted reference (all that the attacker knows). Bounds: the paper's (Gaussian,
Theorem 1's form, mean of the games); the valid one in Theorem 1's form, in the two-sided form, and,
wrongly, with τ = 0.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bystander import FixedFraction, Grid, Shift, TwoSidedShift
from experiments import _audits as audits
from experiments import _synthetic as synthetic
from experiments._record import Record
from experiments._spec import Experiment
from experiments.rr import ATTACKS

SHARES = (0.001, 0.01, 0.1, 0.5, 1.0)
_COMMON = {"seed": 1, "shares": SHARES, "delta": audits.DELTA, "confidence": 1 - audits.LEVEL}
_TAUS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
PROFILES = {
    "small": {**_COMMON, "rows": 100_000, "games": 30, "epsilons": [0.5, 2, 4], "taus": _TAUS[::2]},
    "paper": {**_COMMON, "rows": 1_000_000, "games": 100, "epsilons": [0.5, 2, 4], "taus": _TAUS},
}


def run(record: Record) -> None:
    """A cell for every (ε, τ)."""
    settings = record.settings
    data = synthetic.Mixture.draw(settings["rows"], 2, settings["seed"])
    for epsilon in settings["epsilons"]:
        z = synthetic.randomized(data.labels, 2, epsilon, settings["seed"], 2, round(1000 * epsilon))
        for tau in settings["taus"]:
            record.cell(f"eps={epsilon:g} tau={tau:g}", partial(cell, data, z, epsilon, tau, settings))


def cell(
    data: synthetic.Mixture, z: synthetic.Labels, epsilon: float, tau: float, settings: dict[str, Any]
) -> dict[str, Any]:
    """Every rule at one shift."""
    one = np.minimum(data.posterior[:, 1] + tau, 1)
    reference = np.column_stack((1 - one, one))
    out: dict[str, Any] = {"epsilon": epsilon, "tau": tau, "sim_uniform": synthetic.sim_uniform(epsilon, 2)}
    forms = {"theorem": Shift(tau), "two_sided": TwoSidedShift(tau), "ignored": Shift(0.0)}
    for reading in ("indicator", "posterior"):
        predict, attack = ATTACKS[reading]
        rows = audits.records(data.labels, predict(z, reference, epsilon), reference, seed=settings["seed"])
        tally = audits.play(rows, attack, shares=SHARES, games=settings["games"], seed=settings["seed"])
        asked = {form: audits.question(2, shift=shift) for form, shift in forms.items()}
        found: dict[str, Any] = {"grid": {form: audits.ask(tally, Grid(), asked[form]) for form in forms}}
        for share in SHARES:
            gaussian = audits.paper(tally, share, shift=Shift(tau))
            found[f"{share:g}"] = {"gaussian_mean": gaussian.mean(), "gaussian_sd": gaussian.std(ddof=1)} | {
                form: audits.ask(tally, FixedFraction(share), asked[form]) for form in forms
            }
        out[reading] = found
    return out


EXPERIMENT = Experiment("Figure on the shift τ of the counterfactual labels (appendix C)", PROFILES, run)
