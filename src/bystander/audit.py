"""The audit: records, game, attack, counts, selection, bound; one Result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from bystander import inputs
from bystander._validate import InputError, a_choice, whole
from bystander.asked import Asked
from bystander.attacks import Attack, LogRatio
from bystander.bound import shift_assumption
from bystander.counts import Sketch, Tally
from bystander.engines import Engine, Local
from bystander.games.label import game_keys, play_exactly
from bystander.outcome import Outcome, conclude, fit
from bystander.records import Records
from bystander.result import Bound, Result, Slice
from bystander.selection import Quantile, Question, Selection
from bystander.summary import SAMPLE, Job, Summary
from bystander.tradeoff import Family, Shift
from bystander.verdict import Played, beside, bound_fields, verdict

T = TypeVar("T")
Progress = Callable[[str, int, int], None]
"""Told what is being played, how many rows were done just now, and how many there are (0: not known)."""
_ASSUMPTIONS = (
    "Labels are drawn independently of each other, given the features that the reference sees.",
    "The reference was trained without the labels of the audited rows.",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is chosen before the game."""

    attack: Attack
    selection: Selection
    question: Question
    games: int
    seed: int
    exact: bool
    engine: Engine
    share: float  # of the members, to fit the attack on
    progress: Progress | None

    def run(
        self, what: str, rows: inputs.Rows, then: Callable[[Summary], T], whole: inputs.Rows | None = None, **job: Any
    ) -> T:
        """Do a job on rows, wherever they are, and `then` with what came of it; `whole` is what they are a part of."""
        tell = self.progress
        in_memory = isinstance(rows, Records)
        todo = inputs.known(rows if whole is None else whole)
        settings = {"share": self.share, "slices": not in_memory} | job
        work = Job(self.attack, game_keys(self.seed, self.games), **settings)
        return self.engine.run(work, rows, then, None if tell is None else lambda done: tell(what, done, todo))


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
    engine: Engine | None = None,
    stream_above: int | None = 5_000_000,
    progress: Progress | None = None,
) -> Result:
    """Measure from below how much a model's predictions give away of its training labels.

    Without `data`, labels, target and reference are arrays or series of one value a row: `target` and `reference`
    the probability of label 1, or one column a class. With `data` (files, a folder, a glob, a URL, or any data frame
    that narwhals knows) they name its columns. `control` holds the same of rows that the target did not train on:
    more data, or a mapping with `labels`, `target` and `reference` (and `id`, `slice`). `exact` sorts scores exactly
    where the sketch orders those within 0.8 % of each other at random. Files of more than `stream_above` rows are
    read batch by batch; with an `id` the counts are the same.

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
    arrays = (labels, target, reference, id, group, slice)
    columns = inputs.named(data, *arrays)
    engine = Local() if engine is None else a_choice("engine", engine, "streams", "engines.Local()")
    if stream_above is not None:
        stream_above = whole("stream_above", stream_above, 0)
    above = 0 if engine.streams else None if exact or canaries is not None else stream_above
    if exact and engine.streams:
        raise InputError("exact needs the rows in memory: use engine local, or leave it out")
    members = inputs.rows(data, columns, reference_data, above, *arrays)
    classes = inputs.classes(members)
    others = None if control is None else inputs.control_rows(control, data, columns, above)
    if others is not None and (there := inputs.classes(others)) != classes:
        raise InputError(
            f"{others.source}: control has {there} classes, the audited rows {classes}: give the same columns"
        )
    asked = Asked.of(
        classes, members.source, selection=selection, combination=combination, family=family, confidence=confidence,
        tau=tau, games=games, seed=seed,
    )  # fmt: skip
    chosen: Attack = LogRatio() if attack is None else a_choice("attack", attack, "scores", "PaperScore()")
    plan = Plan(chosen, asked.selection, asked.question, asked.games, asked.seed, exact, engine, chosen.share, progress)
    if canaries is not None:
        members = inputs.subset(members, canaries)
    notes: tuple[str, ...] = ()
    if plan.share:
        # Where the number of rows is known, no more of them are set aside than the attack can use.
        known = inputs.known(members)
        plan = replace(plan, share=min(plan.share, SAMPLE / known) if known else plan.share)
        fitted, count = plan.run(
            "rows that fit the attack", members, partial(fit, plan.attack, members.source), collect=True
        )
        plan = replace(plan, attack=fitted)
        notes = (f"The attack was fitted on {count:,} rows; they are not among the audited ones.",)
    outcome = plan.run("members", members, partial(conclude, plan.attack, members.source))
    result = _result(outcome, members, plan, plan.share)
    held = None
    if others is not None:
        test = partial(conclude, plan.attack, others.source, test=float(confidence))
        held = plan.run("control", others, test, share=0.0)
        result = beside(result, _result(held, others, plan, share=0.0), held.quality)
    return replace(
        result,
        slice_column=columns.slice if columns else None,
        slices=_slices(
            _sketches("slices", members, outcome, plan),
            _sketches("slices of the control", others, held, plan, share=0.0),
            plan,
        ),
        notes=(*result.notes, *notes),
    )


def _result(outcome: Outcome, rows: inputs.Rows, plan: Plan, share: float) -> Result:
    """The audit of one set of rows, from its counts."""
    played = Played(
        game="label",
        attack=plan.attack.name,
        canaries=outcome.sketch.canaries,
        classes=outcome.classes,
        games=plan.games,
        seed=plan.seed,
        tally=partial(_tally, outcome.sketch, rows, plan, share),
        seen=outcome.seen,
        assumptions=_ASSUMPTIONS,
        stand_in="reference",
        believed=shift_assumption(plan.question.shift, outcome.classes, "reference", "labels"),
        notes=_notes(outcome.impossible),
    )
    return verdict(played, plan.selection, plan.question)


def _tally(sketch: Sketch, rows: inputs.Rows, plan: Plan, share: float, cuts: tuple[int, ...]) -> Tally:
    """Cut the sketch; or play again, sorting exactly, where that is asked for."""
    keys = game_keys(plan.seed, plan.games)
    if not plan.exact or not isinstance(rows, Records):
        return sketch.tally(cuts, keys)
    audited = Job(plan.attack, keys, share=share).audited(rows)
    return play_exactly(audited, plan.attack.scores(audited.target, audited.reference), keys, cuts)


def _sketches(
    what: str, rows: inputs.Rows | None, outcome: Outcome | None, plan: Plan, **job: Any
) -> dict[str, Sketch]:
    """One sketch a slice: a stream's were made on the way, rows in memory are played slice by slice."""
    if rows is None or outcome is None:
        return {}
    if not isinstance(rows, Records):
        return dict(outcome.slices)
    if rows.slices is None:
        return {}
    found = {}
    for code, name in enumerate(rows.slice_names):
        part = rows.take(rows.slices == code)
        if len(part):
            found[name] = plan.run(what, part, _only_sketch, rows, **job)
    return {name: sketch for name, sketch in found.items() if sketch.canaries}


def _only_sketch(summary: Summary) -> Sketch:
    return summary.sketch


def _slices(members: dict[str, Sketch], control: dict[str, Sketch], plan: Plan) -> tuple[Slice, ...]:
    """The same audit per group, each at level / groups, the largest ε first."""
    if not members:
        return ()
    asked = plan.question
    plan = replace(plan, question=replace(asked, level=asked.level / len(members)))
    keys = game_keys(plan.seed, plan.games)

    def one(sketch: Sketch) -> Bound:
        m = sketch.canaries
        choice = plan.selection.choose(sketch.tally(plan.selection.cuts(m), keys), plan.question)
        told = ("The confidence is corrected over the slices (Bonferroni).",)
        return Bound(**bound_fields(choice, m, plan.selection, plan.question), assumptions=told)

    parts = [
        Slice(name, one(sketch), one(control[name]) if name in control else None) for name, sketch in members.items()
    ]
    return tuple(sorted(parts, key=lambda part: (-part.bound.epsilon, part.value)))


def _notes(impossible: int) -> tuple[str, ...]:
    if not impossible:
        return ()
    return (
        f"The reference gives probability 0 to the label of {impossible:,} rows: any attack wins there, whatever "
        "the target learned. Smooth the reference, or clip its probabilities.",
    )
