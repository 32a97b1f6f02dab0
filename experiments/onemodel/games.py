"""The games on one target, and what is recorded of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bystander import (
    ApproxDP,
    Given,
    LabelCanaries,
    Learned,
    LogRatio,
    PaperScore,
    Result,
    RowCoins,
    audit,
    audit_attribute,
    audit_label_canaries,
    scores,
)
from bystander.calibration import constant_loss
from bystander.mechanisms import RandomizedResponse
from experiments import _audits as audits
from experiments.onemodel.problem import Matrix, Problem, Rows, Target


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
