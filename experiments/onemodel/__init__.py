"""Every game on one trained model: labels, protected attributes, membership three ways, planted labels; every attack.

CatBoost, overfitted on purpose, learns whether a flight arrives more than 15 minutes late. 40,000 flights are given to
it. Before training, coins (`RowCoins`) are tossed for half of them, and half of those are left out; of the other half a
quarter gets a planted label (`LabelCanaries`). Members of the observational games are the rows that were trained on
with their own label. Beside them stand two held-out sets, of which one is the control. Flights on which the model did
not train make what attackers need: a reference M' (more rows, milder settings, calibrated), references of the target's
own recipe, a population, the samplers of the protected columns, and a generator of whole records.

All sets are drawn at random from one year, so that no set differs from another but by chance. The day of the month,
the flight and the aircraft are no features. A second target saw labels through randomized response; its references too.

The control of the coins' games is a placebo: the same coins, tossed for rows of the control after training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bystander import (
    ApproxDP,
    Chain,
    Given,
    LabelCanaries,
    Learned,
    LogRatio,
    PaperScore,
    Result,
    RowCoins,
    at_label,
    audit,
    audit_attribute,
    audit_label_canaries,
    calibrated_scores,
    lira_scores,
    loss_scores,
    rmia_scores,
    scores,
)
from bystander.calibration import VectorScaling, constant_loss
from bystander.mechanisms import RandomizedResponse
from bystander.training import Boosted
from experiments import _audits as audits
from experiments import _data
from experiments._record import Record
from experiments._spec import Experiment

Rows = NDArray[np.int64]
Matrix = NDArray[np.float64]
FEATURES = ["month", "weekday", "carrier", "origin", "dest", "sched_dep_time", "sched_arr_time"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_COMMON = {
    "data": "flights (real): 327,346 of one year", "label": "arr_delay > 15", "seed": 0, "games": 100,
    "delta": audits.DELTA, "confidence": 1 - audits.LEVEL, "epsilons": [None, 1], "protected": ["weekday", "origin"],
    "coins": 0.5, "planted": 0.25, "references": 8,
    "parts": {
        "given": 40_000, "held": 25_000, "control": 25_000, "aside": 20_000, "population": 20_000, "pool": 150_000,
    },
    "target": {"iterations": 300, "learning_rate": 0.4, "depth": 8,
               "settings": {"l2_leaf_reg": 1, "one_hot_max_size": 120}},
    "reference": {"iterations": 300, "learning_rate": 0.15, "depth": 8, "settings": {"one_hot_max_size": 120}},
    "sampler": {"iterations": 200}, "generator": {"rows": 40_000, "iterations": 40},
}  # fmt: skip
PROFILES = {
    "small": _COMMON,
    "tiny": {
        **_COMMON, "games": 10, "references": 2, "epsilons": [None],
        "parts": {"given": 2_400, "held": 1_200, "control": 1_200, "aside": 600, "population": 600, "pool": 3_000},
        "target": {"iterations": 60, "learning_rate": 0.4, "depth": 6, "settings": {"l2_leaf_reg": 1}},
        "reference": {"iterations": 20, "learning_rate": 0.15, "depth": 4},
        "sampler": {"iterations": 10}, "generator": {"rows": 1_000, "iterations": 4},
    },
}  # fmt: skip


def run(record: Record) -> None:
    """A cell for what the attackers have, and one for every target and game."""
    problem = Problem(record.settings)
    record.cell("reference", lambda: about_reference(problem))
    for epsilon in record.settings["epsilons"]:
        target = Target(problem, epsilon)
        told = "inf" if epsilon is None else f"{epsilon:g}"
        record.cell(f"eps={told} target", partial(about_target, target))
        for name, game in GAMES.items():
            record.cell(f"eps={told} {name}", partial(game, target))


# ---- rows, and what the attackers have


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


# ---- the games


def label(target: Target) -> dict[str, Any]:
    """The paper's game, by three attacks."""
    p = target.problem

    def log(rows: Rows) -> dict[str, Any]:
        frame = p.features(rows)
        return {"labels": p.labels[rows], "target": target.predict(frame), "reference": p.reference(frame), "id": rows}

    members, control = log(p.roles["members"]), log(p.parts["control"])
    return {
        attack.name: kept(audit(**members, control=control, attack=attack, games=p.settings["games"], **_asked(p)))
        for attack in (LogRatio(), PaperScore(2.0), Learned())
    }


def attribute(target: Target) -> dict[str, Any]:
    """Each protected column, by the loss ratio alone and over what M' says of both versions."""
    p, found = target.problem, {}
    members, control = (p.table.iloc[rows] for rows in (p.roles["members"], p.parts["control"]))
    for name, sampler in p.samplers.items():
        for how, reference in (("loss ratio", None), ("over a reference", p.reference)):
            result = audit_attribute(
                members, protected=name, sampler=sampler, target=target.predict, reference=reference, label="late",
                id="id", control=control, games=p.settings["games"], **_asked(p),
            )  # fmt: skip
            found[f"{name}: {how}"] = kept(result) | {"sampler": list(sampler.notes)}
    return found


def membership(target: Target) -> dict[str, Any]:
    """Beside real held-out rows."""
    return _beside(target, target.of(target.problem.parts["held"]))


def generated(target: Target) -> dict[str, Any]:
    """Beside records that a generator made."""
    made = target.problem.generated
    return _beside(target, target.attacks(made, made["late"].to_numpy(np.int64)))


def _beside(target: Target, others: Mapping[str, Matrix]) -> dict[str, Any]:
    p, found = target.problem, {}
    members, control = target.of(p.roles["members"]), target.of(p.parts["control"])
    for name, against in others.items():
        result = scores(
            members=members[name], others=against, control=control[name], attack=name, games=p.settings["games"],
            **_asked(p),
        )  # fmt: skip
        found[name] = kept(result)
    return found


def one_run(target: Target) -> dict[str, Any]:
    """Membership by the coins that were tossed before training, and by a placebo's."""
    p = target.problem
    placebo = RowCoins(seed=p.settings["seed"] + 5)
    results = []
    for rows, coins in ((p.roles["tossed"], p.coins), (p.parts["control"], placebo)):
        asked = {"member": coins.trained(rows), "id": rows, "coins": Given(), **_asked(p)}
        results.append({name: scores(score=s, attack=name, **asked) for name, s in target.of(rows).items()})
    return {name: kept(result, results[1][name]) for name, result in results[0].items()}


def label_canaries(target: Target) -> dict[str, Any]:
    """Labels that were planted before training, and a placebo's."""
    p, found = target.problem, {}
    placebo = LabelCanaries(2, p.settings["planted"], seed=p.settings["seed"] + 6)
    for how in ("log-ratio", "over a reference"):
        results = []
        for rows, planted in ((p.roles["always"], p.planted), (p.parts["control"], placebo)):
            frame = p.features(rows)
            asked = {"target": target.predict(frame), **_asked(p)}
            if how == "over a reference":
                asked["reference"] = p.reference(frame)
            results.append(audit_label_canaries(planted, ids=rows, labels=p.labels[rows], **asked))
        found[how] = kept(*results)
    return found


GAMES = {
    "label": label, "attribute": attribute, "membership": membership, "generated": generated,
    "one run": one_run, "label canaries": label_canaries,
}  # fmt: skip


def _asked(problem: Problem) -> dict[str, Any]:
    s = problem.settings
    return {"seed": s["seed"], "confidence": s["confidence"], "family": ApproxDP(s["delta"])}


# ---- what is recorded


def kept(result: Result, control: Result | None = None) -> dict[str, Any]:
    """The numbers of a result, and of its control."""
    control = result.control if control is None else control
    quality = result.quality
    return _numbers(result) | {
        "control": None if control is None else _numbers(control),
        "quality": None if quality is None else quality.as_dict(),
    }


def _numbers(result: Result) -> dict[str, Any]:
    told = ("epsilon", "canaries", "guesses", "correct", "tau_star", "games", "game", "attack")
    seen = result.descriptive
    return {name: getattr(result, name) for name in told} | {
        "paper": {"mean": seen["epsilon_mean"], "sd": seen["epsilon_sd"]},
        "accuracy": seen["accuracy"],
        "auc": seen["auc"],
    }


def about_reference(problem: Problem) -> dict[str, Any]:
    """How many rows there are, and how good M' is on the control."""
    rows = problem.parts["control"]
    frame, y = problem.features(rows), problem.labels[rows]
    return {
        "rows": {name: len(part) for name, part in {**problem.parts, **problem.roles}.items()},
        "rate": y.mean(),
        "constant": constant_loss(y, 2),
        "log_loss": {
            "as trained": audits.log_loss(y, problem.milder.predict_proba(frame)),
            "calibrated": audits.log_loss(y, problem.reference(frame)),
        },
    }


def about_target(target: Target) -> dict[str, Any]:
    """How well a target fits its members, and other rows; the mechanism's ε, of replacing a label and against ⊥."""
    p = target.problem
    loss = {
        name: audits.log_loss(p.labels[rows], target.predict(p.features(rows)))
        for name, rows in (("members", p.roles["members"]), ("control", p.parts["control"]))
    }
    if target.epsilon is None:
        return {"epsilon_true": None, "epsilon_label": None, "log_loss": loss}
    guarantee = RandomizedResponse(epsilon=target.epsilon, classes=2).guarantee("label")
    return {"epsilon_true": target.epsilon, "epsilon_label": guarantee.epsilon, "log_loss": loss}


EXPERIMENT = Experiment("Every game and every attack on one trained model (CatBoost on flights)", PROFILES, run)
