"""What is kept of any number of rows: sketches of the games, and a small sample for the pictures. It adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bystander._keys import mix64
from bystander._validate import InputError
from bystander.attacks import Attack
from bystander.counts import Sketch
from bystander.games import label
from bystander.records import Records
from bystander.stream import same_classes

SAMPLE = 50_000
_MOST_SLICES = 200


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """Rows seen; the sketch of all, and of each slice; and the rows of the smallest keys."""

    sketch: Sketch
    slices: Mapping[str, Sketch]
    sample: Records | None
    impossible: int = 0  # rows to whose label the reference gives probability 0
    seen: int = 0  # rows in all, audited or not

    def __add__(self, other: Summary) -> Summary:
        both = {name: self.slices[name] + other.slices[name] for name in self.slices.keys() & other.slices.keys()}
        return Summary(
            self.sketch + other.sketch,
            {**self.slices, **other.slices, **both},
            smallest([part for part in (self.sample, other.sample) if part is not None]),
            self.impossible + other.impossible,
            self.seen + other.seen,
        )

    def check_ids(self, source: str) -> None:
        """Refuse a stream whose ids repeat. Rows of one id have one key, so the sample holds all of them or none."""
        if self.sample is None:
            return
        repeats = int(np.count_nonzero(self.sample.keys[1:] == self.sample.keys[:-1]))
        if repeats:
            raise InputError(
                f"{source}: {repeats:,} of {len(self.sample):,} sampled rows repeat the id of another: "
                "an id must name one row; name another column, or leave --id out"
            )


def smallest(parts: Sequence[Records], most: int = SAMPLE) -> Records | None:
    """Of some sets of rows the ones with the smallest keys, in their order: the same whatever was added first."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return None
    for part in parts:
        same_classes(parts[0].classes, part)
    whole = Records(
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.target for part in parts]),
        np.concatenate([part.reference for part in parts]),
        np.concatenate([part.keys for part in parts]),
        slices=None,
        slice_names=(),
        source=parts[0].source,
    )
    return whole.take(np.argsort(whole.keys, kind="stable")[:most])


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What is done with rows, wherever they are: audit them, or collect some to fit the attack on."""

    attack: Attack
    games: NDArray[np.uint64]
    slices: bool = False
    share: float = 0.0  # of the rows that fit the attack, by a hash of the key
    collect: bool = False  # only collect those rows, as the sample

    @property
    def batch(self) -> int:
        """Rows at a time: a moment's work, whatever the number of games."""
        return min(131_072, max(4096, 13_000_000 // max(1, len(self.games))))

    def audited(self, records: Records) -> Records:
        """The rows that are audited: all, where the attack needs none for itself."""
        return records.take(~self._fitting(records)) if self.share else records

    def fitting(self, records: Records) -> Records:
        """The rows that the attack is fitted on."""
        return records.take(self._fitting(records))

    def _fitting(self, records: Records) -> NDArray[np.bool_]:
        hashed = mix64(records.keys ^ np.uint64(0xA0761D6478BD642F))
        return np.asarray(hashed < np.uint64(self.share * 2.0**64))

    def start(self) -> Accumulator:
        """An empty place to add rows up in."""
        return Accumulator(self, Sketch.empty(len(self.games)))


@dataclass(slots=True, eq=False)
class Accumulator:
    """Adds batches of rows up in place; `summary` is what may be added to others'."""

    job: Job
    sketch: Sketch
    slices: dict[str, Sketch] = field(default_factory=dict)
    sample: Records | None = None
    waiting: list[Records] = field(default_factory=list)
    impossible: int = 0
    seen: int = 0

    def add(self, records: Records) -> None:
        """Play every game on a batch, or only keep what the attack is fitted on."""
        self.seen += len(records)
        if self.job.collect:
            self._keep(self.job.fitting(records))
            return
        records = self.job.audited(records)
        if not len(records):
            return
        scores = self.job.attack.scores(records.target, records.reference)
        label.play(records, scores, self.job.games, self.sketch)
        self.impossible += int((records.reference[np.arange(len(records)), records.labels] <= 0).sum())
        if self.job.slices and records.slices is not None:
            self._slices(records, scores)
        self._keep(records)

    def _slices(self, records: Records, scores: NDArray[np.float64]) -> None:
        codes = records.slices
        assert codes is not None
        for code in np.unique(codes):
            name, rows = records.slice_names[code], np.flatnonzero(codes == code)
            if name not in self.slices:
                if len(self.slices) == _MOST_SLICES:
                    raise InputError(
                        f"{records.source}: the slice column has more than {_MOST_SLICES} values: slice by fewer"
                    )
                self.slices[name] = Sketch.empty(len(self.job.games))
            label.play(records.take(rows), scores[rows], self.job.games, self.slices[name])

    def _keep(self, records: Records) -> None:
        """Rows below the sample's largest key may enter it; they wait until there are enough to be worth a sort."""
        if self.sample is not None and len(self.sample) == SAMPLE:
            records = records.take(np.flatnonzero(records.keys < self.sample.keys[-1]))
        self.waiting.append(replace(records, slices=None, slice_names=()))
        if sum(map(len, self.waiting)) >= SAMPLE:
            self._settle()

    def _settle(self) -> None:
        self.sample = smallest([*([self.sample] if self.sample is not None else []), *self.waiting])
        self.waiting = []

    def summary(self) -> Summary:
        """What was added up."""
        self._settle()
        return Summary(self.sketch, self.slices, self.sample, self.impossible, self.seen)
