"""The audit: records, game, attack, counts, selection, bound; one Result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bystander import pictures
from bystander._keys import mix64
from bystander._validate import InputError, fraction, whole
from bystander.attacks import Attack, LogRatio
from bystander.bound import as_shift, shift_assumption
from bystander.counts import Tally
from bystander.engines import local
from bystander.games.label import game_keys, play_exactly
from bystander.records import Columns, Records, from_arrays, from_files, from_frame
from bystander.result import Bound, Result, Slice
from bystander.selection import EProcess, Grid, Quantile, Question, Selection
from bystander.summary import Job, Summary
from bystander.tradeoff import ApproxDP, Family, Gaussian, Pure, RandomizedResponse, Shift

Progress = Callable[[str, int, int], None]
"""Told what is being played, how many (row, game) pairs were done just now, and how many there are."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is chosen before the game."""

    attack: Attack
    selection: Selection
    question: Question
    games: int
    seed: int
    exact: bool
    progress: Progress | None

    def job(self, **more: Any) -> Job:
        """What is done with each row."""
        return Job(self.attack, game_keys(self.seed, self.games), share=self.attack.share, **more)

    def run(self, what: str, records: Records, job: Job) -> Summary:
        """Do a job on rows in memory."""
        tell, todo = self.progress, len(records) * max(1, len(job.games))
        step = None if tell is None else lambda done: tell(what, done, todo)
        return local.add_up(job, local.batches(records, len(job.games)), step)


def audit(
    data: object = None,
    *,
    labels: Any,
    target: Any,
    reference: Any,
    id: Any = None,
    group: Any = None,
    slice: Any = None,
    reference_data: str | Path | None = None,
    control: object = None,
    attack: Attack | None = None,
    selection: Selection | None = None,
    combination: Quantile | None = None,
    family: Family | None = None,
    confidence: float = 0.95,
    tau: float | Shift = 0.0,
    games: int = 100,
    seed: int = 0,
    canaries: int | None = None,
    exact: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Measure from below how much a model's predictions give away of its training labels.

    Without `data`, labels, target and reference are arrays or series of one value a row: `target` and `reference`
    the probability of label 1, or one column a class. With `data` (files, a folder, a glob, a URL, or any data frame
    that narwhals knows) they name its columns. `control` holds the same of rows that the target did not train on:
    more data, or a mapping with `labels`, `target` and `reference` (and `id`, `slice`). `exact` sorts scores exactly
    where the sketch orders those within 0.8 % of each other at random.

    >>> import numpy as np
    >>> from bystander import audit
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 20_000)
    >>> noisy = np.where(rng.random(len(y)) < 0.8, y, 1 - y)  # randomized response keeps 80 % of the labels
    >>> target = np.where(noisy == 1, 0.8, 0.2)
    >>> result = audit(labels=y, target=target, reference=np.full(len(y), 0.5))
    >>> 0.8 < result.epsilon < float(np.log(0.5 / 0.2))  # its true ε against an imputed label: 0.916
    True
    """
    if data is not None and isinstance(slice, str) and slice == labels:
        raise InputError(f"slice is {slice!r}, the label: a slice must not be chosen by what is audited; name another")
    columns = _columns(data, labels, target, reference, id, group, slice)
    members = _records(data, columns, reference_data, labels, target, reference, id, group, slice)
    others = None if control is None else _control(control, columns, members)
    selection = Grid() if selection is None else selection
    family = (Pure() if isinstance(selection, EProcess) else ApproxDP()) if family is None else family
    if isinstance(family, RandomizedResponse) and family.classes != members.classes:
        raise InputError(
            f"family rr is for {family.classes} classes and {members.source} has {members.classes}: "
            f"give --classes {members.classes}"
        )
    confidence = fraction("confidence", confidence)
    question = Question(
        family, as_shift(tau, members.classes), members.classes, 1 - confidence, combination or Quantile()
    )
    chosen: Attack = LogRatio() if attack is None else attack
    games, seed = whole("games", games, 1, 10_000), whole("seed", seed, 0)
    plan = Plan(chosen, selection, question, games, seed, exact, progress)
    if canaries is not None:
        members = _subset(members, canaries)
    plan, fitted = _fit(members, plan)
    result = _one("members", members, plan)
    beside = None if others is None else _one("control", others, plan, audits_all=True)
    return replace(
        result,
        control=beside,
        control_note=None if beside is None or not result.valid else _control_note(result, beside),
        slice_column=columns.slice if columns else None,
        slices=_slices(members, others, plan),
        notes=(*result.notes, *fitted),
    )


def _one(what: str, records: Records, plan: Plan, *, audits_all: bool = False) -> Result:
    """The audit of one set of rows."""
    job = plan.job()
    if audits_all:
        job = replace(job, share=0.0)
    summary = plan.run(what, records, job)
    sample, m = summary.sample, summary.sketch.canaries
    assert sample is not None
    mine = plan.selection.cuts(m)
    tally = _tally(summary, job, records, plan, tuple(sorted({*mine, *pictures.cuts(m)})))
    choice = plan.selection.choose(tally.at(mine), plan.question)
    scores = plan.attack.scores(sample.target, sample.reference)
    family, shift = plan.question.family, plan.question.shift
    return Result(
        epsilon=choice.epsilon,
        confidence=1 - plan.question.level,
        family=family,
        mu=choice.parameter if isinstance(family, Gaussian) else None,
        canaries=m,
        guesses=choice.guesses,
        correct=choice.correct,
        tau=shift.tau,
        tau_form=shift.name,
        tau_star=choice.tau_star,
        assumptions=(*_assumptions(plan), family.assumption, shift_assumption(shift, sample.classes)),
        valid=plan.selection.valid,
        selection=plan.selection.name,
        combination=_combination(plan),
        attack=plan.attack.name,
        classes=sample.classes,
        level=choice.level,
        games=plan.games,
        seed=plan.seed,
        descriptive=pictures.descriptive(sample, scores, tally, plan.question),
        pictures=pictures.pictures(sample, scores, tally, plan.selection, plan.question, choice),
        notes=_notes(m, summary.impossible),
    )


def _tally(summary: Summary, job: Job, records: Records, plan: Plan, cuts: tuple[int, ...]) -> Tally:
    """Cut the sketch; or play again, sorting exactly, where that is asked for."""
    if not plan.exact:
        return summary.sketch.tally(cuts, job.games)
    rows = job.audited(records)
    return play_exactly(rows, plan.attack.scores(rows.target, rows.reference), job.games, cuts)


def _fit(records: Records, plan: Plan) -> tuple[Plan, tuple[str, ...]]:
    """Fit the attack on its share of the rows, which are then not audited."""
    if not plan.attack.share:
        return plan, ()
    some = plan.run("rows to fit the attack on", records, plan.job(collect=True)).sample
    if some is None or min(len(some), len(records) - len(some)) < 100:
        raise InputError(
            f"{len(records):,} rows are too few to fit the attack on {plan.attack.share:.0%} of them: use log-ratio"
        )
    plan = replace(plan, attack=plan.attack.fit(some.labels, some.target, some.reference))
    return plan, (f"The attack was fitted on {len(some):,} rows; they are not among the audited ones.",)


def _slices(members: Records, others: Records | None, plan: Plan) -> tuple[Slice, ...]:
    """The same audit per group, each at level / groups, the largest ε first."""
    if members.slices is None:
        return ()
    groups = [code for code in range(len(members.slice_names)) if (members.slices == code).any()]
    asked = plan.question
    plan = replace(plan, question=replace(asked, level=asked.level / len(groups)))
    parts = []
    for code in groups:
        value = members.slice_names[code]
        beside = None
        if others is not None and others.slices is not None and value in others.slice_names:
            there = others.take(others.slices == others.slice_names.index(value))
            beside = _slice(f"control, {value}", there, plan, audits_all=True) if len(there) else None
        parts.append(Slice(value, _slice(value, members.take(members.slices == code), plan), beside))
    return tuple(sorted(parts, key=lambda part: (-part.bound.epsilon, part.value)))


def _slice(what: str, records: Records, plan: Plan, audits_all: bool = False) -> Bound:
    job = plan.job()
    if audits_all:
        job = replace(job, share=0.0)
    summary = plan.run(what, records, job)
    m = summary.sketch.canaries
    choice = plan.selection.choose(_tally(summary, job, records, plan, plan.selection.cuts(m)), plan.question)
    family, shift = plan.question.family, plan.question.shift
    return Bound(
        epsilon=choice.epsilon,
        confidence=1 - plan.question.level,
        family=family,
        mu=choice.parameter if isinstance(family, Gaussian) else None,
        canaries=m,
        guesses=choice.guesses,
        correct=choice.correct,
        tau=shift.tau,
        tau_form=shift.name,
        tau_star=choice.tau_star,
        assumptions=("The confidence is corrected over the slices (Bonferroni).",),
        valid=plan.selection.valid,
    )


def _subset(records: Records, canaries: int) -> Records:
    """So many rows, drawn by a hash of the key."""
    count = whole("canaries", canaries, 1, len(records))
    order = np.argsort(mix64(records.keys ^ np.uint64(0xE7037ED1A0B428DB)), kind="stable")
    return records.take(np.sort(order[:count]))


def _columns(data: object, *names: Any) -> Columns | None:
    """Column names, where there is data; none where the arguments are arrays."""
    if data is None:
        return None
    label, target, reference, id, group, slice = names
    for what, name in (("labels", label), ("id", id), ("group", group), ("slice", slice)):
        if not isinstance(name, str) and (name is not None or what == "labels"):
            raise InputError(f"{what} is {type(name).__name__}: with data, give the name of a column")

    def several(what: str, value: Any) -> tuple[str, ...]:
        value = (value,) if isinstance(value, str) else value
        if not isinstance(value, list | tuple) or not value or not all(isinstance(name, str) for name in value):
            raise InputError(f"{what} is {type(value).__name__}: with data, give the names of its columns")
        return tuple(value)

    return Columns(label, several("target", target), several("reference", reference), id, group, slice)


def _records(data: object, columns: Columns | None, reference_data: str | Path | None, *arrays: Any) -> Records:
    if columns is None:
        labels, target, reference, id, group, slice = arrays
        return from_arrays(labels, target, reference, ids=id, groups=group, slices=slice)
    if isinstance(data, Records):
        return data
    if isinstance(data, str | Path | list | tuple):
        return from_files(data, columns, reference_data=reference_data)
    return from_frame(data, columns)


def _control(control: object, columns: Columns | None, members: Records) -> Records:
    if isinstance(control, Mapping):
        names = {"labels", "target", "reference", "id", "group", "slice"}
        if not {"labels", "target", "reference"} <= set(control) <= names:
            raise InputError(f"control has {', '.join(map(str, control))}: give labels, target and reference")
        given = [control.get(name) for name in ("labels", "target", "reference", "id", "group", "slice")]
        found = _records(None, None, None, *given)
    elif isinstance(control, Records):
        found = control
    elif columns is None:
        raise InputError("control is not a mapping: beside arrays, give a mapping of labels, target and reference")
    else:
        found = _records(control, columns, None)
    if found.classes != members.classes:
        raise InputError(
            f"{found.source}: control has {found.classes} classes, the audited rows {members.classes}: "
            "give the same columns"
        )
    return found


def _combination(plan: Plan) -> str:
    if plan.games == 1:
        return "one game"
    return plan.question.combination.name if plan.selection.valid else "mean of the games"


def _assumptions(plan: Plan) -> tuple[str, ...]:
    chosen = {
        True: "The rule for the number of guesses was fixed before the game, and its choice is paid for.",
        False: "Not a bound: the number of guesses is the best of many in hindsight, and games are averaged.",
    }[plan.selection.valid]
    return (
        chosen,
        "Labels are drawn independently of each other, given the features that the reference sees.",
        "The reference was trained without the labels of the audited rows.",
    )


def _notes(rows: int, impossible: int) -> tuple[str, ...]:
    notes = []
    if impossible:
        notes.append(
            f"The reference gives probability 0 to the label of {impossible:,} rows: any attack wins there, whatever "
            "the target learned. Smooth the reference, or clip its probabilities."
        )
    if rows < 1000:
        notes.append(f"{rows:,} rows are few: even a total leak would show only a small ε.")
    return tuple(notes)


def _control_note(members: Result, control: Result) -> str:
    if control.epsilon == 0:
        return (
            f"The control reads 0 on {control.canaries:,} rows: no sign that the reference's error explains what the "
            "members read."
        )
    told = (
        f"The control is not 0: rows that the target never trained on read ε ≥ {control.epsilon:.2f}. They have "
        "nothing to be memorised: that much is the reference's error, and the members' figure holds such an error too"
    )
    if control.epsilon >= members.epsilon:
        return told + ". The members read no more than the control: this audit shows no memorisation."
    if control.epsilon >= 0.5 * members.epsilon:
        return told + f". It may explain most of the {members.epsilon:.2f}: use a better reference."
    return told + f". Part of the {members.epsilon:.2f} may be that error: a better reference would tell."
