"""Tweets: the paper's table on Twitter. TF-IDF and a fully connected network; labels and membership, audited.

A tenth of the tweets, at random, is for the test: it is the control of the label game and the other side of membership.
The rest is halved between reference M' and target M. A tenth of the reference's half is set aside: RMIA's population,
and what the reference is calibrated on. Words' weights come from the texts that M' trains on. Settings of the networks
were chosen on the reference's half alone.

Beyond the paper: targets under randomized response, a calibrated reference beside the paper's, and control rows.
Departures: 76,377 tweets (`small`) or Sentiment140's 1.6 million (`paper`) for the paper's 3 million, and as many
canaries as test rows for its 300,000.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bystander import datasets
from bystander.calibration import Temperature
from bystander.mechanisms import RandomizedResponse
from bystander.rivals import at_label, rmia_scores
from experiments import _audits as audits
from experiments import _data
from experiments._record import Record
from experiments._spec import Experiment

PAPER = {"lia": "2.34 ± 0.25", "mia": "0.72 ± 0.15", "rmia": "2.52 ± 0.32"}
_COMMON = {
    "seed": 10, "delta": audits.DELTA, "confidence": 1 - audits.LEVEL, "games": 100, "epsilons": [None, 4, 1],
    "hidden": [128, 32], "epochs": 2, "rate": 1e-3, "batch": 256,
}  # fmt: skip
PROFILES = {
    "small": {
        **_COMMON,
        "data": "76,377 real tweets of Sentiment140, a stand-in for all of it",
        "folder": "",
        "words": 20_000,
    },
    "paper": {**_COMMON, "data": "Sentiment140, all of it", "folder": "sentiment140", "words": 50_000},
}
_WORDS = r"(?u)\b\w[\w']*|[!?:;()]+"
Matrix = NDArray[np.float64]


@dataclass
class Problem:
    """The tweets, cut into parts, and what is trained once."""

    settings: Mapping[str, Any]

    @cached_property
    def parts(self) -> dict[str, NDArray[np.int64]]:
        """Disjoint rows: reference, aside, target (the members), test (the control)."""
        rng = np.random.default_rng(self.settings["seed"])
        test, half, target = np.split(rng.permutation(n := len(self.table)), [n // 10, n // 10 + math.ceil(0.45 * n)])
        reference, aside = np.split(half, [round(0.9 * len(half))])
        return {"reference": reference, "aside": aside, "target": target, "test": test}

    @cached_property
    def table(self) -> Any:
        """Label, day and text."""
        own = self.settings["folder"]
        return datasets.tweets.load(_data.folder(own) / own) if own else _data.tweets()

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """1: positive."""
        return self.table["label"].to_numpy(np.int64)

    @cached_property
    def features(self) -> Any:
        """TF-IDF of words and pairs of words, a sparse row a tweet."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        size = self.settings["words"]
        words = TfidfVectorizer(
            max_features=size, ngram_range=(1, 2), sublinear_tf=True, dtype=np.float32, token_pattern=_WORDS
        )
        texts = self.table["text"].to_numpy()
        words.fit(texts[self.parts["reference"]])
        return words.transform(texts).tocsr()

    def trained(self, part: str, epsilon: float | None, seed: int) -> dict[str, Matrix]:
        """A network fitted on a part, its labels randomized at ε; its probabilities on the other parts."""
        from bystander.training import LabelDPClassifier, NoCorrection, TorchClassifier, mlp

        s = self.settings
        base = TorchClassifier(
            mlp(tuple(s["hidden"])), epochs=s["epochs"], rate=s["rate"], batch=s["batch"], optimizer="adam", decay=0.0
        )
        mechanism = None if epsilon is None else RandomizedResponse(epsilon=epsilon, classes=2)
        model = LabelDPClassifier(base, mechanism, classes=2, correction=NoCorrection(), seed=seed)
        model.fit(self.features[self.parts[part]], self.labels[self.parts[part]])
        asked = {"aside", "target", "test"}
        return {name: model.predict_proba(self.features[self.parts[name]]) for name in asked}

    @cached_property
    def reference(self) -> dict[str, Matrix]:
        """The paper's M': the same network, trained on other tweets."""
        return self.trained("reference", None, self.settings["seed"] + 1)

    @cached_property
    def calibration(self) -> Temperature:
        """What makes M' as confident as it is right, fitted on the rows set aside."""
        return Temperature().fit(self.labels[self.parts["aside"]], self.reference["aside"])


def run(record: Record) -> None:
    """A cell for the reference, and one for each ε."""
    problem = Problem(record.settings)
    record.cell("reference", lambda: reference(problem))
    for epsilon in record.settings["epsilons"]:
        record.cell(name(epsilon), lambda epsilon=epsilon: cell(problem, epsilon))


def name(epsilon: float | None) -> str:
    """The key of a cell."""
    return f"eps={'inf' if epsilon is None else f'{epsilon:g}'}"


def reference(problem: Problem) -> dict[str, Any]:
    """How well M' predicts the test, as it is and calibrated."""
    held = problem.parts["test"]
    calibrated = problem.calibration.transform(problem.reference["test"])
    return {
        "rows": {part: len(rows) for part, rows in problem.parts.items()},
        "words": problem.features.shape[1],
        **_grades(problem.labels[held], problem.reference["test"]),
        "temperature": problem.calibration.temperature,
        "calibrated_log_loss": audits.log_loss(problem.labels[held], calibrated),
    }


def cell(problem: Problem, epsilon: float | None) -> dict[str, Any]:
    """One target: label inference, calibrated membership and RMIA, with M' as it is and calibrated."""
    s, rows = problem.settings, problem.parts
    target = problem.trained("target", epsilon, s["seed"] + 2)
    truth = {part: problem.labels[rows[part]] for part in target}
    out: dict[str, Any] = {
        "epsilon": epsilon,
        "test": _grades(truth["test"], target["test"]),
        "members": _grades(truth["target"], target["target"]),
    }
    guarantee = None if epsilon is None else RandomizedResponse(epsilon=epsilon, classes=2).guarantee("label")
    for kind in ("plain", "calibrated"):
        guess = problem.reference
        if kind == "calibrated":
            guess = {part: problem.calibration.transform(p) for part, p in guess.items()}
        members, control = (
            audits.records(truth[part], target[part], guess[part], seed=s["seed"] + salt)
            for salt, part in enumerate(("target", "test"))
        )
        found = audits.cell(
            members, control, canaries=len(control), games=s["games"], seed=s["seed"],
            epsilon_true=epsilon, epsilon_label=None if guarantee is None else guarantee.epsilon,
        )  # fmt: skip
        some = audits.some(members, len(control), s["seed"])
        population = [at_label(side["aside"], truth["aside"]) for side in (target, guess)]
        scores = [
            rmia_scores(at_label(each.target, each.labels), at_label(each.reference, each.labels), *population)
            for each in (some, control)
        ]
        found["rmia"] = audits.membership_game(scores[0], scores[1], games=s["games"], seed=s["seed"])
        out[kind] = found
    return out


def _grades(labels: NDArray[np.int64], p: Matrix) -> dict[str, float]:
    return {"accuracy": float((p.argmax(axis=1) == labels).mean()), "log_loss": audits.log_loss(labels, p)}


EXPERIMENT = Experiment("Table on Twitter: labels and membership of tweets (TF-IDF, a network)", PROFILES, run)
