"""Bystander: how much has a model memorised of its training labels? Measured by observing alone."""

from bystander._validate import InputError
from bystander._version import __version__
from bystander.attacks import Learned, LogRatio, PaperScore
from bystander.attributes import audit_attribute
from bystander.audit import audit
from bystander.bound import bound
from bystander.games.guesses import Above, Centred, Tails
from bystander.interventions import LabelCanaries, RowCoins, audit_label_canaries
from bystander.records import Records
from bystander.referee import audit_game
from bystander.result import Bound, Result
from bystander.rivals import at_label, calibrated_scores, lira_scores, loss_scores, rmia_scores
from bystander.samplers import Chain, Finite
from bystander.scores import Given, Paired, scores
from bystander.selection import EProcess, FixedFraction, Grid, PaperSweep, Quantile
from bystander.tradeoff import (
    ApproxDP,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Shift,
    Steinke,
    TwoSidedShift,
)

__all__ = [
    "Above",
    "ApproxDP",
    "Bound",
    "Centred",
    "Chain",
    "EProcess",
    "Finite",
    "FixedFraction",
    "Gaussian",
    "Given",
    "Grid",
    "InputError",
    "LabelCanaries",
    "Laplace",
    "Learned",
    "LogRatio",
    "Paired",
    "PaperScore",
    "PaperSweep",
    "Pure",
    "Quantile",
    "RandomizedResponse",
    "Records",
    "Result",
    "RowCoins",
    "Shift",
    "Steinke",
    "Tails",
    "TwoSidedShift",
    "__version__",
    "at_label",
    "audit",
    "audit_attribute",
    "audit_game",
    "audit_label_canaries",
    "bound",
    "calibrated_scores",
    "lira_scores",
    "loss_scores",
    "rmia_scores",
    "scores",
]
