"""The flights in parts, what the attackers have, and the targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bystander import (
    Chain,
    LabelCanaries,
    RowCoins,
    at_label,
    calibrated_scores,
    lira_scores,
    loss_scores,
    rmia_scores,
)
from bystander.calibration import VectorScaling
from bystander.mechanisms import RandomizedResponse
from bystander.training import Boosted
from experiments import _data

Rows = NDArray[np.int64]
Matrix = NDArray[np.float64]
FEATURES = ["month", "weekday", "carrier", "origin", "dest", "sched_dep_time", "sched_arr_time"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


@dataclass
class Problem:
    """The flights in parts, and the models that see no row of the target's."""

    settings: Mapping[str, Any]

    @cached_property
    def table(self) -> pd.DataFrame:
        """Features and label, a row a flight; its number is its id."""
        held = _data.flights()
        frame = held[FEATURES].assign(late=(held["arr_delay"] > 15).astype(int), id=np.arange(len(held)))
        frame["weekday"] = pd.Categorical.from_codes(held["weekday"].to_numpy(np.int64), DAYS)
        return frame

    @cached_property
    def labels(self) -> Rows:
        """1: late."""
        return self.table["late"].to_numpy(np.int64)

    @cached_property
    def parts(self) -> dict[str, Rows]:
        """Disjoint rows, drawn at random."""
        order = np.random.default_rng([self.settings["seed"], 51]).permutation(len(self.table))
        sizes = self.settings["parts"]
        ends = np.cumsum(list(sizes.values()))
        return dict(zip(sizes, np.split(order[: ends[-1]], ends[:-1]), strict=True))

    @cached_property
    def coins(self) -> RowCoins:
        """Who may be left out."""
        return RowCoins(self.settings["coins"], seed=self.settings["seed"] + 1)

    @cached_property
    def planted(self) -> LabelCanaries:
        """Whose label is planted, of those whose presence no coin decides."""
        return LabelCanaries(2, self.settings["planted"], seed=self.settings["seed"] + 2)

    @cached_property
    def roles(self) -> dict[str, Rows]:
        """Of the rows given: who was trained on, for whom a coin was tossed, for whom none was, who kept its label."""
        given = self.parts["given"]
        tossed, trained = self.coins.canaries(given), given[self.coins.trained(given)]
        always = given[~tossed]
        planted = always[self.planted.canaries(always)]
        members = trained[~np.isin(trained, planted)]
        return {"trained": trained, "tossed": given[tossed], "always": always, "members": members}

    def features(self, rows: Rows) -> pd.DataFrame:
        """What models see."""
        return self.table.iloc[rows][FEATURES]

    def fitted(self, rows: Rows, labels: Rows, settings: str, seed: int) -> Boosted:
        """A booster by the target's recipe or by the reference's."""
        model = Boosted(**self.settings[settings], classes=2, seed=self.settings["seed"] + seed)
        return model.fit(self.features(rows), labels)

    @cached_property
    def milder(self) -> Boosted:
        """M' as trained."""
        pool = self.parts["pool"]
        return self.fitted(pool, self.labels[pool], "reference", 3)

    @cached_property
    def scaling(self) -> VectorScaling:
        """What makes M' right on average, fitted on rows set aside."""
        aside = self.parts["aside"]
        return VectorScaling().fit(self.labels[aside], self.milder.predict_proba(self.features(aside)))

    def reference(self, frame: pd.DataFrame) -> Matrix:
        """M'(x), calibrated."""
        return np.asarray(self.scaling.transform(self.milder.predict_proba(frame)))

    @cached_property
    def samplers(self) -> dict[str, Chain]:
        """Each protected column, given the rest of the record and its label."""
        rows, how = self.table.iloc[self.parts["pool"]], {"id": "id", "seed": self.settings["seed"]}
        return {name: Chain.fit(rows, name, **self.settings["sampler"], **how) for name in self.settings["protected"]}

    @cached_property
    def generated(self) -> pd.DataFrame:
        """Whole records that never were, by the same means."""
        how = self.settings["generator"]
        rows = self.table.iloc[self.parts["pool"][: how["rows"]]].drop(columns="id")
        columns = ["late", *FEATURES]
        chain = Chain.fit(rows, columns, given=(), iterations=how["iterations"], seed=self.settings["seed"])
        return chain.generate(len(self.parts["held"]), seed=self.settings["seed"])


@dataclass
class Target:
    """One model, trained once: with the coins, the planted labels, and perhaps randomized response."""

    problem: Problem
    epsilon: float | None

    def shown(self, labels: Rows, seed: int) -> Rows:
        """The labels that a model trains on."""
        if self.epsilon is None:
            return labels
        rng = np.random.default_rng([self.problem.settings["seed"], seed, 77])
        return np.asarray(RandomizedResponse(epsilon=self.epsilon, classes=2).randomize(labels, rng=rng).output)

    @cached_property
    def model(self) -> Boosted:
        """The target."""
        p, rows = self.problem, self.problem.roles["trained"]
        labels = p.labels.copy()
        always = p.roles["always"]
        labels[always] = p.planted.plant(always, p.labels[always])
        return p.fitted(rows, self.shown(labels[rows], 4), "target", 4)

    @cached_property
    def references(self) -> list[Boosted]:
        """The target's recipe on as many rows of the pool, several times."""
        p, found = self.problem, []
        for k in range(p.settings["references"]):
            rng = np.random.default_rng([p.settings["seed"], 52, k])
            rows = rng.choice(p.parts["pool"], len(p.roles["trained"]), replace=False)
            found.append(p.fitted(rows, self.shown(p.labels[rows], 100 + k), "target", 100 + k))
        return found

    def predict(self, frame: pd.DataFrame) -> Matrix:
        """M(x)."""
        return np.asarray(self.model.predict_proba(frame[FEATURES]))

    @cached_property
    def population(self) -> tuple[Matrix, Matrix]:
        """M(z)[y] and the references' of rows that nobody trained on."""
        rows = self.problem.parts["population"]
        return self.at(self.problem.features(rows), self.problem.labels[rows])

    def at(self, frame: pd.DataFrame, labels: Rows) -> tuple[Matrix, Matrix]:
        """M(x)[y], and that of each reference."""
        others = [at_label(each.predict_proba(frame[FEATURES]), labels) for each in self.references]
        return at_label(self.predict(frame), labels), np.column_stack(others)

    def attacks(self, frame: pd.DataFrame, labels: Rows) -> dict[str, Matrix]:
        """Every membership attack's scores of these records. LiRA reads all references, the others the first."""
        target, references = self.at(frame, labels)
        population, beside = self.population
        return {
            "loss": loss_scores(target),
            "calibrated": calibrated_scores(target, references[:, 0]),
            "RMIA": rmia_scores(target, references[:, 0], population, beside[:, 0]),
            "LiRA": lira_scores(target, references),
        }

    def of(self, rows: Rows) -> dict[str, Matrix]:
        """The same of flights by number."""
        return self.attacks(self.problem.features(rows), self.problem.labels[rows])
