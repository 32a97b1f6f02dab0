"""Training with label privacy, and predictions out (extra `train`). Importing this loads no learner at all.

Every name is loaded when it is first used: `LabelDPClassifier` needs no torch, `TorchClassifier` no CatBoost.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HELD = {
    "augment": ("Strong", "Views", "Weak"),
    "corrections": ("Believed", "Correction", "Forward", "HeldOut", "Inverse", "NoCorrection", "Posterior", "WuClip"),
    "crossfit": ("NothingLearned",),
    "estimators": ("LabelDPClassifier",),
    "fixmatch": ("FixMatch", "train_fixmatch"),
    "learners": ("Boosted", "Logistic", "boosted", "logistic"),
    "epochs": ("Checkpoint",),
    "loop": ("predict", "train"),
    "losses": ("AlibiLoss", "CrossEntropy", "ForwardLoss", "MarginalLoss"),
    "networks": ("Network", "mlp", "resnet18", "small_cnn", "wide_resnet"),
    "priors": ("ClusterPrior", "DomainPrior", "ModelPrior"),
    "pate_fm": ("Heads", "PateFmClassifier"),
    "progress": ("Shown",),
    "recipe": ("Recipe",),
    "privacy": ("Privacy", "PrivacyWarning"),
    "simclr": ("SimClr", "pretrain"),
    "stages": ("MultiStageClassifier",),
    "teachers": ("PateClassifier",),
    "torch_classifier": ("TorchClassifier",),
}
_WHERE = {name: module for module, names in _HELD.items() for name in names}
_NEEDS = {"torch": "torch", "catboost": "catboost", "sklearn": "scikit-learn", "dp_accounting": "dp-accounting"}

__all__ = [
    "AlibiLoss",
    "Believed",
    "Boosted",
    "Checkpoint",
    "ClusterPrior",
    "Correction",
    "CrossEntropy",
    "DomainPrior",
    "FixMatch",
    "Forward",
    "ForwardLoss",
    "Heads",
    "HeldOut",
    "Inverse",
    "LabelDPClassifier",
    "Logistic",
    "MarginalLoss",
    "ModelPrior",
    "MultiStageClassifier",
    "Network",
    "NoCorrection",
    "NothingLearned",
    "PateClassifier",
    "PateFmClassifier",
    "Posterior",
    "Privacy",
    "PrivacyWarning",
    "Recipe",
    "Shown",
    "SimClr",
    "Strong",
    "TorchClassifier",
    "Views",
    "Weak",
    "WuClip",
    "boosted",
    "logistic",
    "mlp",
    "predict",
    "predictions",
    "pretrain",
    "resnet18",
    "small_cnn",
    "train",
    "train_fixmatch",
    "wide_resnet",
]


def __getattr__(name: str) -> Any:
    """Load the module that holds this name."""
    if name == "predictions":
        return import_module("bystander.training.predictions")
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"bystander.training.{_WHERE[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name not in _NEEDS:
            raise
        told = f'{name} needs {_NEEDS[error.name]}, which is not installed: pip install "bystander[train]"'
        raise ImportError(told, name=error.name) from None


def __dir__() -> list[str]:
    return sorted(__all__)
