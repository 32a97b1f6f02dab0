"""Logs become checked arrays: labels, the two models' probabilities, and one key per row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bystander import _columns, _keys
from bystander._frames import array_source, frame_source
from bystander._tables import Data, Source, Where, find
from bystander._validate import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Columns", "Records", "from_arrays", "from_files", "from_frame"]

_MOST_SLICES = 200


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column holds what. One probability column is the probability of label 1, or a list of K."""

    label: str
    target: tuple[str, ...]
    reference: tuple[str, ...]
    id: str | None = None
    group: str | None = None
    slice: str | None = None

    def __post_init__(self) -> None:
        """Take one name for a tuple of one name."""
        for field in ("target", "reference"):
            names = getattr(self, field)
            names = (names,) if isinstance(names, str) else tuple(names)
            if not names:
                raise InputError(f"{field} names no column: give one column, or one per class")
            object.__setattr__(self, field, names)


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The rows of an audit: n labels, n × K probabilities of each model, n keys, and codes of the slices."""

    labels: NDArray[np.int64]
    target: NDArray[np.float64]
    reference: NDArray[np.float64]
    keys: NDArray[np.uint64]
    slices: NDArray[np.int32] | None
    slice_names: tuple[str, ...]
    source: str

    @property
    def classes(self) -> int:
        """The number of classes, K."""
        return int(self.target.shape[1])

    def __len__(self) -> int:
        """The number of rows."""
        return int(self.labels.size)

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Records:
        """The rows of these numbers, or where this mask is true."""
        slices = None if self.slices is None else self.slices[rows]
        probabilities = self.target[rows], self.reference[rows]
        return Records(self.labels[rows], *probabilities, self.keys[rows], slices, self.slice_names, self.source)


def from_arrays(
    labels: ArrayLike,
    target: ArrayLike,
    reference: ArrayLike,
    *,
    ids: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    slices: ArrayLike | None = None,
    source: str = "arrays",
) -> Records:
    """Check arrays, lists, or pandas, polars and PyArrow series.

    `target` and `reference` are the probability of label 1 (n,), or of each class (n, K).

    >>> records = from_arrays([0, 1], [0.2, 0.9], [0.3, 0.6], ids=["a", "b"])
    >>> len(records), records.classes
    (2, 2)
    """
    if groups is not None and ids is None:
        raise InputError("groups need ids: give ids too, so that a group's row is chosen without its label")
    given = {"labels": labels, "target": target, "reference": reference}
    extra = {"ids": ids, "groups": groups, "slices": slices}
    given |= {name: value for name, value in extra.items() if value is not None}
    table, names = array_source(given, source)
    one = {name: held[0] for name, held in names.items() if name not in ("target", "reference")}
    columns = Columns(
        one["labels"],
        names["target"],
        names["reference"],
        one.get("ids"),
        one.get("groups"),
        one.get("slices"),
    )
    return _finish(_read([table], columns, _FULL), columns, source)


def from_frame(frame: object, columns: Columns, source: str = "data frame") -> Records:
    """Check a data frame: pandas, polars (eager or lazy), PyArrow, or any other that narwhals knows."""
    _sensible(columns)
    return _finish(_read([frame_source(frame, source)], columns, _FULL), columns, source)


def from_files(data: Data, columns: Columns, reference_data: Data | None = None) -> Records:
    """Read and check files, folders, globs or URLs of Parquet, CSV or Arrow files.

    The reference model's columns may sit in other files, joined on the id: give those as
    `reference_data`, or among `data` where their column names differ from the target's.
    """
    sources, name = find(data)
    if reference_data is not None:
        if columns.id is None:
            raise InputError("reference_data needs an id column: give --id, which both sides are joined on")
        _sensible(columns)
        others, other_name = find(reference_data)
        return _finish(_join(sources, others, columns), columns, f"{name} and {other_name}")
    _sensible(columns)
    if columns.id is None:
        return _finish(_read(sources, columns, _FULL), columns, name)
    left: list[Source] = []
    right: list[Source] = []
    full: list[Source] = []
    for source in sources:
        has_target = {columns.id, columns.label, *columns.target} <= set(source.columns)
        has_reference = {columns.id, *columns.reference} <= set(source.columns)
        (full if has_target == has_reference else left if has_target else right).append(source)
    # A side without its other side is a missing column, which reading it as a full table says.
    if not (left and right):
        return _finish(_read(sources, columns, _FULL), columns, name)
    joined = _join(left, right, columns)
    if full:
        joined = _stack([joined, _read(full, columns, _FULL)], columns)
    return _finish(joined, columns, name)


def _sensible(columns: Columns) -> None:
    if columns.group is not None and columns.id is None:
        raise InputError("--group needs --id: name the id column, so that a group's row is chosen without its label")


# ---------------------------------------------------------------- tables to blocks

_FULL = frozenset({"target", "reference"})


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Rows of several tables; a side that is joined later is None."""

    names: list[str]
    sizes: list[int]
    labels: NDArray[np.int64] | None = None
    target: NDArray[np.float64] | None = None
    reference: NDArray[np.float64] | None = None
    ids: Any = None
    groups: Any = None
    slices: Any = None

    def where(self, row: int) -> tuple[Where, int]:
        ends = np.cumsum(self.sizes)
        part = int(np.searchsorted(ends, row, side="right"))
        return Where(self.names[part]), row - int(ends[part] - self.sizes[part])


def needed(columns: Columns, sides: frozenset[str] = _FULL) -> tuple[list[str], frozenset[str]]:
    """The columns to read, and those of them that are numbers."""
    names = [columns.label, *columns.target] if "target" in sides else []
    names += columns.reference if "reference" in sides else ()
    numbers = frozenset(names)
    texts = [columns.id, *([columns.group, columns.slice] if "target" in sides else [])]
    # A column of text that is also read as numbers would lose its text on the way.
    clash = numbers.intersection(name for name in texts[:2] if name is not None)
    if clash:
        advice = "give the id and the group columns of their own"
        raise InputError(f"column {min(clash)!r} is named as id or group and as numbers too: {advice}")
    return list(dict.fromkeys([*names, *(name for name in texts if name is not None)])), numbers


def _read(sources: list[Source], columns: Columns, sides: frozenset[str]) -> _Block:
    names, numbers = needed(columns, sides)
    for source in sources:
        source.need(names)
    blocks = []
    for source in sources:
        table = source.read(names, numbers)
        if table.num_rows:
            blocks.append(_check(Where(source.name), table, columns, sides))
    if not blocks:
        where = sources[0].name if len(sources) == 1 else f"{sources[0].name} and {len(sources) - 1} more"
        raise InputError(f"{where} has no rows: give at least one row")
    return _stack(blocks, columns)


def _check(where: Where, table: Any, columns: Columns, sides: frozenset[str]) -> _Block:
    held: dict[str, Any] = {}
    for side in ("target", "reference"):
        if side in sides:
            held[side] = _columns.probabilities(where, table, getattr(columns, side))
    if "target" in sides:
        classes = held["target"].shape[1]
        held["labels"] = _columns.labels(where, columns.label, table[columns.label], classes)
        if columns.group is not None:
            held["groups"] = _columns.identity(where, columns.group, table[columns.group])
        if columns.slice is not None:
            whole = columns.slice in (columns.label, *columns.target, *columns.reference)
            held["slices"] = _columns.names(where, columns.slice, table[columns.slice], whole)
    if columns.id is not None:
        held["ids"] = _columns.identity(where, columns.id, table[columns.id])
    return _Block([where.name], [table.num_rows], **held)


def _stack(blocks: list[_Block], columns: Columns) -> _Block:
    import pyarrow as pa

    first = blocks[0]
    for block in blocks:
        for side in ("target", "reference"):
            _same_classes(first, getattr(first, side), block, getattr(block, side), side, side)
        _same_classes(block, block.target, block, block.reference, "target", "reference")
    if len(blocks) == 1:
        return first
    held = {
        field: np.concatenate([getattr(b, field) for b in blocks])
        for field in ("labels", "target", "reference")
        if getattr(first, field) is not None
    }
    texts = {
        field: pa.concat_arrays(_keys.alike([getattr(b, field) for b in blocks]))
        for field in ("ids", "groups", "slices")
        if getattr(first, field) is not None
    }
    names, sizes = [n for b in blocks for n in b.names], [s for b in blocks for s in b.sizes]
    return _Block(names, sizes, **held, **texts)


def _same_classes(a: _Block, x: Any, b: _Block, y: Any, side: str, other: str) -> None:
    if x is not None and y is not None and x.shape[1] != y.shape[1]:
        raise InputError(
            f"{side} of {a.names[0]} has {x.shape[1]} classes and {other} of {b.names[0]} has {y.shape[1]}: "
            "give both models' probabilities of the same classes"
        )


def _join(left: list[Source], right: list[Source], columns: Columns) -> _Block:
    a = _read(left, columns, frozenset({"target"}))
    b = _read(right, columns, frozenset({"reference"}))
    _same_classes(a, a.target, b, b.reference, "target", "reference")
    keys, other_keys = _unique(a, columns), _unique(b, columns)
    partner, lonely, extra = _keys.match_rows(keys, a.ids, other_keys, b.ids)
    for rows, mine, other in ((lonely, a, b), (extra, b, a)):
        if rows:
            where, row = mine.where(rows[0])
            files = other.names[0] if len(other.names) == 1 else f"the {len(other.names)} files joined to it"
            more = f" (and {len(rows) - 1} more like it)" if len(rows) > 1 else ""
            advice = f"which {files} does not have{more}; give both sides the same ids"
            raise where.at(str(columns.id), row, str(mine.ids[rows[0]].as_py()), advice)
    assert b.reference is not None
    return _Block(a.names, a.sizes, a.labels, a.target, b.reference[partner], a.ids, a.groups, a.slices)


def _unique(block: _Block, columns: Columns) -> NDArray[np.uint64]:
    keys = _keys.id_keys(block.ids)
    twins = _keys.first_repeat(keys, block.ids)
    if twins is not None:
        (there, earlier), (here, row) = block.where(twins[0]), block.where(twins[1])
        twin = f"row {earlier}" if there == here else f"row {earlier} of {there.name}"
        advice = f"{twin} has the same id; give each row its own"
        raise here.at(str(columns.id), row, str(block.ids[twins[1]].as_py()), advice)
    return keys


def _finish(block: _Block, columns: Columns, source: str) -> Records:
    records = _records(block, columns, source, None if block.ids is None else _unique(block, columns))
    if block.groups is None:
        return records
    groups = block.groups.dictionary_encode().indices.to_numpy()
    return records.take(_keys.one_per_group(records.keys, groups))


def batch(where: Where, table: Any, columns: Columns, number: int) -> Records:
    """Check some of the rows of file `number`; without ids, the keys are the rows' places in their files."""
    block = _stack([_check(where, table, columns, _FULL)], columns)
    if block.ids is not None:
        keys = _keys.id_keys(block.ids)
    else:
        keys = _keys.place_keys(number, where.start, table.num_rows)
    return _records(block, columns, where.name, keys)


def _records(block: _Block, columns: Columns, source: str, keys: NDArray[np.uint64] | None) -> Records:
    labels, target, reference = block.labels, block.target, block.reference
    assert labels is not None
    assert target is not None
    assert reference is not None
    codes: NDArray[np.int32] | None = None
    names: list[str] = []
    if block.slices is not None:
        codes, names = _columns.codes(block.slices)
        if len(names) > _MOST_SLICES:
            raise InputError(
                f"{source}, column {columns.slice!r} has {len(names)} distinct values: "
                f"slice by a column of at most {_MOST_SLICES}"
            )
    if keys is None:
        keys = _keys.content_keys(labels, target, reference, codes)
    return Records(labels, target, reference, keys, codes, tuple(names), source)
