"""Logs become checked arrays: labels, the two models' probabilities, and one key per row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from bystander import _keys
from bystander._tables import Data, Source, array_source, at, find, frame_source, shown
from bystander._validate import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Columns", "Records", "from_arrays", "from_files", "from_frame"]

_MOST_SLICES = 200
_SUM_TOLERANCE = 1e-3


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
        _sensible(columns, joined=True)
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


def _sensible(columns: Columns, *, joined: bool = False) -> None:
    if columns.group is not None and columns.id is None:
        raise InputError("--group needs --id: name the id column, so that a group's row is chosen without its label")
    if columns.target == columns.reference and not joined:
        names = ", ".join(map(repr, columns.target))
        advice = "name the reference model's own columns, or give its files as reference_data"
        raise InputError(f"target and reference are the same column {names}: {advice}")


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

    def where(self, row: int) -> tuple[str, int]:
        ends = np.cumsum(self.sizes)
        part = int(np.searchsorted(ends, row, side="right"))
        return self.names[part], row - int(ends[part] - self.sizes[part])


def _read(sources: list[Source], columns: Columns, sides: frozenset[str]) -> _Block:
    names = [columns.label, *columns.target] if "target" in sides else []
    names += columns.reference if "reference" in sides else ()
    numbers = frozenset(names)
    texts = [columns.id, *([columns.group, columns.slice] if "target" in sides else [])]
    names = list(dict.fromkeys([*names, *(name for name in texts if name is not None)]))
    for source in sources:
        source.need(names)
    # A column of text that is also read as numbers would lose its text on the way.
    clash = numbers.intersection(name for name in texts[:2] if name is not None)
    if clash:
        advice = "give the id and the group columns of their own"
        raise InputError(f"column {min(clash)!r} is named as id or group and as numbers too: {advice}")
    text_slice = columns.slice in numbers
    blocks = []
    for source in sources:
        table = source.read(names, numbers)
        if table.num_rows:
            blocks.append(_check(source.name, table, columns, sides, text_slice))
    if not blocks:
        where = sources[0].name if len(sources) == 1 else f"{sources[0].name} and {len(sources) - 1} more"
        raise InputError(f"{where} has no rows: give at least one row")
    return _stack(blocks, columns)


def _check(name: str, table: Any, columns: Columns, sides: frozenset[str], whole_slices: bool) -> _Block:
    held: dict[str, Any] = {}
    for side in ("target", "reference"):
        if side in sides:
            held[side] = _probabilities(name, table, getattr(columns, side))
    if "target" in sides:
        held["labels"] = _labels(name, columns.label, table[columns.label], held["target"].shape[1])
        if columns.group is not None:
            held["groups"] = _identity(name, columns.group, table[columns.group])
        if columns.slice is not None:
            column = table[columns.slice]
            held["slices"] = _names(name, columns.slice, column, whole_slices)
    if columns.id is not None:
        held["ids"] = _identity(name, columns.id, table[columns.id])
    return _Block([name], [table.num_rows], **held)


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
        field: pa.concat_arrays([getattr(b, field) for b in blocks])
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
            name, row = mine.where(rows[0])
            files = other.names[0] if len(other.names) == 1 else f"the {len(other.names)} files joined to it"
            more = f" (and {len(rows) - 1} more like it)" if len(rows) > 1 else ""
            advice = f"which {files} does not have{more}; give both sides the same ids"
            raise at(name, str(columns.id), row, mine.ids[rows[0]].as_py(), advice)
    assert b.reference is not None
    return _Block(a.names, a.sizes, a.labels, a.target, b.reference[partner], a.ids, a.groups, a.slices)


def _unique(block: _Block, columns: Columns) -> NDArray[np.uint64]:
    keys = _keys.text_keys(block.ids)
    twins = _keys.first_repeat(keys, block.ids)
    if twins is not None:
        earlier, row = block.where(twins[0]), block.where(twins[1])
        there = f"row {earlier[1]}" if earlier[0] == row[0] else f"row {earlier[1]} of {earlier[0]}"
        advice = f"{there} has the same id; give each row its own"
        raise at(row[0], str(columns.id), row[1], block.ids[twins[1]].as_py(), advice)
    return keys


def _finish(block: _Block, columns: Columns, source: str) -> Records:
    labels, target, reference = block.labels, block.target, block.reference
    assert labels is not None
    assert target is not None
    assert reference is not None
    codes: NDArray[np.int32] | None = None
    names: list[str] = []
    if block.slices is not None:
        codes, names = _codes(block.slices)
        if len(names) > _MOST_SLICES:
            raise InputError(
                f"{source}, column {columns.slice!r} has {len(names)} distinct values: "
                f"slice by a column of at most {_MOST_SLICES}"
            )
    if block.ids is not None:
        keys = _unique(block, columns)
    else:
        keys = _keys.content_keys(labels, target, reference, codes)
    records = Records(labels, target, reference, keys, codes, tuple(names), source)
    if block.groups is None:
        return records
    return records.take(_keys.one_per_group(keys, _codes(block.groups)[0]))


def _codes(texts: Any) -> tuple[NDArray[np.int32], list[str]]:
    encoded = texts.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), np.int32)
    rank[order] = np.arange(len(names), dtype=np.int32)
    return rank[encoded.indices.to_numpy()], [names[i] for i in order]


# ---------------------------------------------------------------- columns to arrays


def _plain(column: Any) -> Any:
    """Dictionary, run-end and extension columns as the values they stand for, in one array."""
    import pyarrow as pa
    from pyarrow import compute as pc

    if isinstance(column, pa.ChunkedArray):
        chunks = [_plain(chunk) for chunk in column.chunks]
        return pa.concat_arrays(chunks) if len(chunks) != 1 else chunks[0]
    if isinstance(column, pa.ExtensionArray):
        return _plain(column.storage)
    if isinstance(column, pa.DictionaryArray):
        return _plain(column.dictionary_decode())
    if pa.types.is_run_end_encoded(column.type):
        return _plain(pc.run_end_decode(column))
    small = pa.types.is_string, pa.types.is_string_view, pa.types.is_binary, pa.types.is_binary_view
    if any(is_small(column.type) for is_small in (*small, pa.types.is_large_binary)):
        # The cast checks that bytes are UTF-8.
        return column.cast(pa.large_binary()).cast(pa.large_string())
    return column


def _flat(name: str, column: str, values: Any, advice: str) -> Any:
    import pyarrow as pa

    try:
        return _plain(values)
    except (pa.ArrowException, UnicodeDecodeError):
        raise InputError(f"{name}, column {column!r} is {values.type} that does not decode: {advice}") from None


def _wrong_type(name: str, column: str, values: Any, advice: str) -> NoReturn:
    value = values[0].as_py() if len(values) else None
    raise InputError(f"{name}, column {column!r} is {values.type}, row 0 is {shown(value)}: {advice}")


def _no_null(name: str, column: str, values: Any, advice: str, width: int = 1) -> None:
    if values.null_count:
        row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) // width
        raise InputError(f"{name}, column {column!r}, row {row} is null: {advice}")


def _numbers(name: str, column: str, values: Any, advice: str, width: int = 1) -> NDArray[Any]:
    import pyarrow as pa

    _no_null(name, column, values, advice, width)
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        _wrong_type(name, column, values, advice)
    numbers: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return numbers


def _labels(name: str, column: str, values: Any, classes: int) -> NDArray[np.int64]:
    import pyarrow as pa

    advice = f"labels are whole numbers 0…{classes - 1} for {classes} classes"
    values = _flat(name, column, values, advice)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    numbers = _numbers(name, column, values, advice)
    good = (numbers >= 0) & (numbers < classes)
    if numbers.dtype.kind == "f":
        good &= numbers == np.floor(numbers)
    if not good.all():
        row = int(np.argmin(good))
        value = numbers[row].item()
        if value == classes and numbers.min() >= 1:
            advice += "; subtract 1 from each label"
        elif value == -1:
            advice += "; write 0 for -1"
        elif value >= classes:
            advice += ", and the number of classes is that of the probabilities; give one per class"
        raise at(name, column, row, value, advice)
    return numbers.astype(np.int64)


def _probabilities(name: str, table: Any, columns: tuple[str, ...]) -> NDArray[np.float64]:
    """The probabilities of all classes, (n, K): each row sums to 1."""
    import pyarrow as pa

    advice = "give probabilities from 0 to 1, not scores or logits"
    first = _flat(name, columns[0], table[columns[0]], advice)
    kind = first.type
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if listed and len(columns) == 1:
        flat, width = _list_values(name, columns[0], first)
        flat = _flat(name, columns[0], flat, advice)
        p = _in_range(name, columns[0], flat, advice, width).reshape(-1, width)
    else:
        arrays = [first, *(_flat(name, c, table[c], advice) for c in columns[1:])]
        checked = [_in_range(name, c, a, advice) for c, a in zip(columns, arrays, strict=True)]
        p = np.column_stack(checked)
    if p.shape[1] == 1:
        return np.column_stack([1.0 - p[:, 0], p[:, 0]])
    # Class by class, so that the sum's rounding does not depend on how NumPy splits the table.
    total = p[:, 0].copy()
    for k in range(1, p.shape[1]):
        total += p[:, k]
    off = np.abs(total - 1.0) > _SUM_TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        raise InputError(
            f"{name}, column {', '.join(map(repr, columns))}, row {row} sums to {total[row]:.6g}: "
            "give each class's probability, which sum to 1"
        )
    return np.asarray(p / total[:, None], np.float64)


def _list_values(name: str, column: str, lists: Any) -> tuple[Any, int]:
    from pyarrow import compute as pc

    advice = "give each row a list of one probability per class"
    _no_null(name, column, lists, advice)
    sizes = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    width = int(sizes[0])
    if width == 0:
        raise at(name, column, 0, [], advice)
    if (sizes != width).any():
        row = int(np.argmax(sizes != width))
        raise InputError(
            f"{name}, column {column!r}, row {row} is a list of {sizes[row]} and row 0 of {width}: {advice}"
        )
    return lists.flatten(), width


def _in_range(name: str, column: str, values: Any, advice: str, width: int = 1) -> NDArray[np.float64]:
    numbers = _numbers(name, column, values, advice, width).astype(np.float64)
    good = (numbers >= 0) & (numbers <= 1)
    if not good.all():
        place = int(np.argmin(good))
        raise at(name, column, place // width, float(numbers[place]), advice)
    numbers += 0.0  # -0.0 becomes 0.0
    return numbers


def _identity(name: str, column: str, values: Any) -> Any:
    """Ids or groups as text: 17 and "17" are the same; nothing is missing."""
    import pyarrow as pa

    advice = "give whole numbers or text"
    values = _flat(name, column, values, advice)
    _no_null(name, column, values, f"{advice} in every row")
    kind = values.type
    exact = pa.types.is_decimal(kind) and kind.scale == 0
    if not (pa.types.is_integer(kind) or pa.types.is_large_string(kind) or exact):
        _wrong_type(name, column, values, advice)
    texts = values.cast(pa.large_string())
    from pyarrow import compute as pc

    empty = pc.equal(texts, "").to_numpy(zero_copy_only=False)
    if empty.any():
        raise at(name, column, int(np.argmax(empty)), "", f"{advice} in every row")
    return texts


def _names(name: str, column: str, values: Any, whole: bool) -> Any:
    """Slices as text; null, NaN and nothing are "null"."""
    import pyarrow as pa
    from pyarrow import compute as pc

    advice = "slice by text, whole numbers or booleans"
    values = _flat(name, column, values, advice)
    encoded = values.dictionary_encode() if not pa.types.is_nested(values.type) else None
    if encoded is None:
        _wrong_type(name, column, values, advice)
    kind = encoded.dictionary
    if whole and pa.types.is_floating(kind.type) and pc.all(pc.equal(kind, pc.floor(kind))).as_py():
        kind = kind.cast(pa.int64())  # the label itself, which CSV gives as a float
    floating = pa.types.is_floating(kind.type)
    try:
        texts = kind.cast(pa.large_string())
    except pa.ArrowException:
        _wrong_type(name, column, values, advice)
    texts = [t if t and not (floating and t == "nan") else "null" for t in texts.to_pylist()]
    spelled = pa.array([*texts, "null"], pa.large_string())
    return spelled.take(encoded.indices.fill_null(len(texts)))
