"""CIFAR-10 under label privacy: the paper's tables of ε (sweep; fixed 1 %) and accuracy, and membership beside them.

Half of the 50,000 training images go to the reference M', half to the targets; 10,000 of the latter are the canaries
and the 10,000 test images the control. The targets, for ε of ∞, 10 and 1 between two labels:

- lp1st: randomized response on all ten classes, which is LP-1ST with a uniform prior;
- lp1st-prior: RRWithPrior. The prior is the noisy label histogram of clusters (k-means of a trunk's features), for ε_p;
  RRWithPrior has the rest, ε − ε_p. The trunk is trained by SimCLR on all 50,000 training images and no label;
- alibi: Laplace noise on the one-hot label, and Bayes;
- pate-fm: linear heads on that trunk as teachers, Confident-GNMax at (ε, 1e-5) with data-independent accounting, and a
  FixMatch student that starts from the trunk. ε = ∞: no noise, and every question answered.

At ε = ∞ the first three are the same training with three seeds. Two further cells, fixmatch-250 and supervised-250,
show what FixMatch adds to 250 true labels. Departures from the paper, which names no network, schedule or augmentation:
networks and recipes are the profile's; images are mirrored and shifted, and nothing else, so that the targets memorise;
at ε = 1 the LP-1ST targets train with mixup, as Ghazi et al. 2021 do.

The `cpu` profile is three cells of the small one, with fewer epochs, to say what they cost without a GPU.

Training needs torch and SciPy alone and may run elsewhere (`python -m experiments.cifar10.train`); what it writes to
cache/cifar10-runs/PROFILE/ is audited here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments._record import Record
from experiments._spec import Experiment

CACHE = Path(__file__).resolve().parent.parent.parent / "cache"
_COMMON: dict[str, Any] = {
    "seed": 0,
    "games": 100,
    "canaries": 10_000,
    "delta": 1e-5,
    "epsilons": ["inf", 10, 1],
    "mixup": {"1": 4.0},
    "clusters": 50,
    "epsilon_prior": 0.1,
    "teachers": {"teachers": 400},
    "questions": {"inf": 1000, "10": 500, "1": 200},
    "answers": {"inf": 1000, "10": 400, "1": 100},
    "sigma1": {"10": 40.0, "1": 100.0},
    "agreement": 0.4,
    "simclr": {"temperature": 0.2},
    "supervised": {"epochs": 300, "batch": 50, "rate": 0.05, "decay": 5e-4, "shift": 4},
}
_SMALL: dict[str, Any] = {
    **_COMMON,
    "network": {"kind": "small_cnn", "widths": [32, 128, 128]},
    "target": {"epochs": 40, "batch": 250, "rate": 0.2, "decay": 5e-4, "shift": 2},
    "alibi_warmup": 6,
    "trunk": {"epochs": 20, "batch": 500, "rate": 0.5, "decay": 1e-4},
    "student": {"epochs": 8, "batch": 64, "rate": 0.03, "decay": 5e-4},
    "fixmatch": {"ratio": 3},
}
PROFILES: dict[str, dict[str, Any]] = {
    "small": _SMALL,
    "cpu": {
        **_SMALL,
        "target": {**_SMALL["target"], "epochs": 24},
        "cells": ["reference", "supervised-250", "fixmatch-250"],
    },
    "paper": {
        **_COMMON,
        "network": {"kind": "resnet18", "width": 64},
        "target": {"epochs": 30, "batch": 250, "rate": 0.2, "decay": 5e-4, "shift": 4},
        "alibi_warmup": 5,
        "trunk": {"epochs": 60, "batch": 512, "rate": 0.5, "decay": 1e-4},
        "student": {"epochs": 32, "batch": 64, "rate": 0.03, "decay": 5e-4},
        "fixmatch": {"ratio": 4},
    },
}


def folder(profile: str) -> Path:
    """Where the predictions of a profile's cells lie."""
    return CACHE / "cifar10-runs" / profile


def run(record: Record) -> None:
    """Train what is missing, then audit every target."""
    from experiments.cifar10 import audit, train

    profile = record.body["profile"]
    train.missing(profile, record.settings, CACHE / "cifar10", folder(profile), device="auto", jobs=1)
    audit.every(record, CACHE / "cifar10", folder(profile))


EXPERIMENT = Experiment(
    "Tables 1, 3 and 5 and Figures 2a and 6 of the paper: CIFAR-10, ε by the label game and by membership",
    PROFILES,
    run,
)
