"""Label-DP mechanisms, each with its privacy statement: randomize once, then everything is post-processing."""

from bystander.mechanisms.accounting import Ledger
from bystander.mechanisms.alibi import Alibi
from bystander.mechanisms.base import Guarantee, Release
from bystander.mechanisms.gnmax import ConfidentGnmax
from bystander.mechanisms.multi_stage import MultiStage
from bystander.mechanisms.pate import Pate
from bystander.mechanisms.randomized_response import RandomizedResponse
from bystander.mechanisms.rr_with_prior import RRWithPrior

__all__ = [
    "Alibi",
    "ConfidentGnmax",
    "Guarantee",
    "Ledger",
    "MultiStage",
    "Pate",
    "RRWithPrior",
    "RandomizedResponse",
    "Release",
]
