"""Bystander: how much has a model memorised of its training labels? Measured by observing alone."""

from bystander._validate import InputError
from bystander._version import __version__
from bystander.attacks import Learned, LogRatio, PaperScore
from bystander.audit import audit
from bystander.bound import bound
from bystander.records import Records
from bystander.result import Bound, Result
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
    "ApproxDP",
    "Bound",
    "EProcess",
    "FixedFraction",
    "Gaussian",
    "Grid",
    "InputError",
    "Laplace",
    "Learned",
    "LogRatio",
    "PaperScore",
    "PaperSweep",
    "Pure",
    "Quantile",
    "RandomizedResponse",
    "Records",
    "Result",
    "Shift",
    "Steinke",
    "TwoSidedShift",
    "__version__",
    "audit",
    "bound",
]
