"""The audit: records, game, attack, counts, selection, bound; one Result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bystander import pictures
from bystander._keys import mix64
from bystander._validate import InputError, fraction, whole
from bystander.attacks import Attack, LogRatio
from bystander.bound import as_shift, shift_assumption
from bystander.counts import Tally
from bystander.engines import local
from bystander.games.label import prepare
from bystander.records import Columns, Records, from_arrays, from_files, from_frame
from bystander.result import Bound, Result, Slice
from bystander.selection import EProcess, Grid, Quantile, Question, Selection
from bystander.tradeoff import ApproxDP, Family, Gaussian, Pure, Shift

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
    progress: Progress | None

    def play(self, what: str, records: Records, scores: NDArray[np.float64], cuts: tuple[int, ...]) -> Tally:
        """Play the games on these rows."""
        tell = self.progress
        todo = len(records) * self.games
        step = None if tell is None else lambda rows: tell(what, rows, todo)
        return local.play(prepare(records, scores), cuts, games=self.games, seed=self.seed, progress=step)


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
    progress: Progress | None = None,
) -> Result:
    """Measure from below how much a model's predictions give away of its training labels.

    Without `data`, labels, target and reference are arrays or series of one value a row: `target` and `reference`
    the probability of label 1, or one column a class. With `data` (files, a folder, a glob, a URL, or any data frame
    that narwhals knows) they name its columns. `control` holds the same of rows that the target did not train on:
    more data, or a mapping with `labels`, `target` and `reference` (and `id`, `slice`).

    >>> import numpy as np
    >>> from bystander import audit
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 20_000)
    >>> leaks = np.where(y == 1, 0.8, 0.2)  # the target returns each label with certainty 0.8
    >>> result = audit(labels=y, target=leaks, reference=np.full(len(y), 0.5))
    >>> result.canaries, result.valid, 0.8 < result.epsilon < 1.1  # the truth: log(0.75 / 0.25) = 1.0986
    (20000, True, True)
    """
    columns = _columns(data, labels, target, reference, id, group, slice)
    members = _records(data, columns, reference_data, labels, target, reference, id, group, slice)
    others = None if control is None else _control(control, columns, members)
    selection = Grid() if selection is None else selection
    family = (Pure() if isinstance(selection, EProcess) else ApproxDP()) if family is None else family
    confidence = fraction("confidence", confidence)
    question = Question(family, as_shift(tau), members.classes, 1 - confidence, combination or Quantile())
    plan = Plan(
        attack or LogRatio(), selection, question, whole("games", games, 1, 1_000_000), whole("seed", seed, 0), progress
    )

    rows, fitting = _split(members, plan.attack.share, canaries)
    if len(fitting):
        plan = replace(plan, attack=plan.attack.fit(fitting.labels, fitting.target, fitting.reference))
    result = _one("members", rows, plan)
    notes = (*_notes(rows), *((f"{len(fitting):,} rows fitted the attack and are not audited.",) * bool(len(fitting))))
    beside = None if others is None else _one("control", others, plan)
    return replace(
        result,
        control=beside,
        control_note=None if beside is None else _control_note(result, beside),
        slice_column=columns.slice if columns else ("slice" if rows.slices is not None else None),
        slices=_slices(rows, others, plan),
        notes=notes,
    )


def _one(what: str, records: Records, plan: Plan) -> Result:
    """The audit of one set of rows."""
    scores = plan.attack.scores(records.target, records.reference)
    m = len(records)
    mine = plan.selection.cuts(m)
    tally = plan.play(what, records, scores, tuple(sorted({*mine, *pictures.cuts(m)})))
    choice = plan.selection.choose(tally.at(mine), plan.question)
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
        tau_star=choice.tau_star,
        assumptions=(*_assumptions(plan), family.assumption, shift_assumption(shift)),
        valid=plan.selection.valid,
        selection=plan.selection.name,
        combination=plan.question.combination.name if plan.games > 1 else "one game",
        attack=plan.attack.name,
        classes=records.classes,
        level=choice.level,
        games=plan.games,
        seed=plan.seed,
        descriptive=pictures.descriptive(records, scores, tally, plan.question),
        pictures=pictures.pictures(records, scores, tally, plan.selection, plan.question, choice),
    )


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
            beside = _slice(f"control, {value}", there, plan) if len(there) else None
        parts.append(Slice(value, _slice(value, members.take(members.slices == code), plan), beside))
    return tuple(sorted(parts, key=lambda part: (-part.bound.epsilon, part.value)))


def _slice(what: str, records: Records, plan: Plan) -> Bound:
    scores = plan.attack.scores(records.target, records.reference)
    choice = plan.selection.choose(
        plan.play(what, records, scores, plan.selection.cuts(len(records))), plan.question
    )
    family, shift = plan.question.family, plan.question.shift
    return Bound(
        epsilon=choice.epsilon,
        confidence=1 - plan.question.level,
        family=family,
        mu=choice.parameter if isinstance(family, Gaussian) else None,
        canaries=len(records),
        guesses=choice.guesses,
        correct=choice.correct,
        tau=shift.tau,
        tau_star=choice.tau_star,
        assumptions=("The confidence is corrected over the slices (Bonferroni).",),
        valid=plan.selection.valid,
    )


def _split(records: Records, share: float, canaries: int | None) -> tuple[Records, Records]:
    """Rows to audit, and rows to fit the attack on: both by a hash of the key, which reads no label."""
    order = np.argsort(mix64(records.keys ^ np.uint64(0xA0761D6478BD642F)), kind="stable")
    cut = round(share * len(records))
    if share and min(cut, len(records) - cut) < 100:
        raise InputError(f"{len(records):,} rows are too few to fit the attack on {share:.0%} of them: use log-ratio")
    audited = order[cut:]
    if canaries is not None:
        audited = audited[: whole("canaries", canaries, 1, len(audited))]
    if len(audited) == len(records):
        return records, records.take(order[:0])
    return records.take(np.sort(audited)), records.take(order[:cut])


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
            f"{found.source}: control has {found.classes} classes, the audited rows {members.classes}: give the same columns"
        )
    return found


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


def _notes(records: Records) -> tuple[str, ...]:
    notes = []
    given = records.reference[np.arange(len(records)), records.labels]
    if zero := int((given <= 0).sum()):
        notes.append(
            f"The reference gives probability 0 to the label of {zero:,} rows: any attack wins there, whatever the target "
            "learned. Smooth the reference, or clip its probabilities."
        )
    if len(records) < 1000:
        notes.append(f"{len(records):,} rows are few: even a total leak would show only a small ε.")
    return tuple(notes)


def _control_note(members: Result, control: Result) -> str:
    if control.epsilon == 0:
        return "The control reads 0: on rows the target never saw, the reference explains the labels as well as the target does."
    told = (
        f"The control is not 0: rows that the target never trained on read ε ≥ {control.epsilon:.2f}. That much is the "
        "reference's error, not memorisation"
    )
    if control.epsilon >= members.epsilon:
        return told + "; the members read no more than that, so this audit shows no memorisation."
    if control.epsilon >= 0.5 * members.epsilon:
        return told + f"; it explains most of the members' {members.epsilon:.2f}. Use a better reference."
    return told + f"; of the members' {members.epsilon:.2f}, only the excess speaks of memorisation."
