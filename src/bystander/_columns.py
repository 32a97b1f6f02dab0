"""Arrow columns become checked arrays: labels, probabilities, ids, slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from bystander._tables import Where, shown
from bystander._validate import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SUM_TOLERANCE = 1e-3
_BLOCK = 4096  # rows that stay in the cache while several passes go over them


def labels(where: Where, column: str, values: Any, classes: int) -> NDArray[np.int64]:
    """Whole numbers from 0 to K − 1."""
    import pyarrow as pa

    advice = f"labels are whole numbers 0…{classes - 1} for {classes} classes"
    values = _flat(where, column, values, advice)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    numbers = _numbers(where, column, values, advice)
    whole = numbers.dtype.kind != "f" or bool((numbers == np.floor(numbers)).all())
    # NaN fails every comparison, so it fails this one too.
    if not (whole and numbers.min() >= 0 and numbers.max() < classes):
        good = (numbers >= 0) & (numbers < classes)
        if numbers.dtype.kind == "f":
            good &= numbers == np.floor(numbers)
        row = int(np.argmin(good))
        value = numbers[row].item()
        if value == classes and numbers.min() >= 1:
            advice += "; subtract 1 from each label"
        elif value == -1:
            advice += "; write 0 for -1"
        elif value >= classes:
            advice += ", and the number of classes is that of the probabilities; give one per class"
        raise where.at(column, row, value, advice)
    return numbers.astype(np.int64)


def bits(where: Where, column: str, values: Any) -> NDArray[np.bool_]:
    """Zeros and ones, or false and true."""
    import pyarrow as pa

    advice = "give 1 for a row of the training set and 0 for another"
    values = _flat(where, column, values, advice)
    numbers = _numbers(where, column, values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values, advice)
    good = (numbers == 0) | (numbers == 1)
    if not good.all():
        row = int(np.argmin(good))
        raise where.at(column, row, numbers[row].item(), advice)
    return numbers.astype(bool)


def scores(where: Where, column: str, values: Any) -> NDArray[np.float64]:
    """Finite numbers."""
    advice = "give a finite number, higher where the row looks trained on"
    numbers = _numbers(where, column, _flat(where, column, values, advice), advice).astype(np.float64)
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(np.argmin(finite))
        raise where.at(column, row, float(numbers[row]), advice)
    return numbers


def probabilities(where: Where, table: Any, columns: tuple[str, ...]) -> NDArray[np.float64]:
    """The probabilities of all classes, (n, K): each row sums to 1."""
    import pyarrow as pa

    advice = "give probabilities from 0 to 1, not scores or logits"
    first = _flat(where, columns[0], table[columns[0]], advice)
    kind = first.type
    if len(columns) > 1:
        rest = (_flat(where, column, table[column], advice) for column in columns[1:])
        pairs = zip(columns, (first, *rest), strict=True)
        return _normalised(where, columns, [_in_range(where, name, one, advice) for name, one in pairs])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        flat, width = _list_values(where, columns[0], first)
        flat = _in_range(where, columns[0], _flat(where, columns[0], flat, advice), advice, width)
        if width > 1:
            return _normalised(where, columns, [flat[k::width] for k in range(width)])
        first = flat
    else:
        first = _in_range(where, columns[0], first, advice)
    p = np.empty((first.size, 2))
    for start in range(0, first.size, _BLOCK):
        rows = slice(start, start + _BLOCK)
        np.subtract(1.0, first[rows], out=p[rows, 0], dtype=np.float64)
        np.add(first[rows], 0.0, out=p[rows, 1], dtype=np.float64)  # -0.0 becomes 0.0
    return p


def _normalised(where: Where, columns: tuple[str, ...], classes: list[NDArray[Any]]) -> NDArray[np.float64]:
    """Each row of the classes divided by its sum, which is 1 but for rounding."""
    p = np.empty((classes[0].size, len(classes)))
    for start in range(0, len(p), _BLOCK):
        rows = slice(start, start + _BLOCK)
        # Class by class, so that the sum's rounding does not depend on how NumPy splits the table.
        total = classes[0][rows].astype(np.float64)
        for one in classes[1:]:
            total += one[rows]
        off = np.abs(total - 1.0)
        if off.max() > _SUM_TOLERANCE:
            row = int(np.argmax(off > _SUM_TOLERANCE))
            there = f"{where.name}, column {', '.join(map(repr, columns))}, row {where.start + start + row}"
            raise InputError(f"{there} sums to {total[row]:.6g}: give each class's probability, which sum to 1")
        for k, one in enumerate(classes):
            np.divide(one[rows], total, out=p[rows, k])
        p[rows] += 0.0  # -0.0 becomes 0.0
    return p


def identity(where: Where, column: str, values: Any) -> Any:
    """Ids or groups, none missing: an int64 array, or text where some value is not an int64."""
    import pyarrow as pa

    advice = "give whole numbers or text"
    values = _flat(where, column, values, advice)
    _no_null(where, column, values, f"{advice} in every row")
    kind = values.type
    if pa.types.is_integer(kind):
        try:
            return values.cast(pa.int64())
        except pa.ArrowInvalid:  # beyond an int64
            return values.cast(pa.large_string())
    if not (pa.types.is_large_string(kind) or (pa.types.is_decimal(kind) and kind.scale == 0)):
        _wrong_type(where, column, values, advice)
    texts = values.cast(pa.large_string())
    ends = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    empty = ends[1:] == ends[:-1]
    if empty.any():
        raise where.at(column, int(np.argmax(empty)), "", f"{advice} in every row")
    return texts


def names(where: Where, column: str, values: Any, whole: bool) -> Any:
    """Slices as text; null, NaN and nothing are "null"."""
    import pyarrow as pa
    from pyarrow import compute as pc

    advice = "slice by text, whole numbers or booleans"
    values = _flat(where, column, values, advice)
    encoded = values.dictionary_encode() if not pa.types.is_nested(values.type) else None
    if encoded is None:
        _wrong_type(where, column, values, advice)
    kind = encoded.dictionary
    if whole and pa.types.is_floating(kind.type) and pc.all(pc.equal(kind, pc.floor(kind))).as_py():
        kind = kind.cast(pa.int64())  # the label itself, which CSV gives as a float
    floating = pa.types.is_floating(kind.type)
    try:
        texts = kind.cast(pa.large_string())
    except pa.ArrowException:
        _wrong_type(where, column, values, advice)
    texts = [t if t and not (floating and t == "nan") else "null" for t in texts.to_pylist()]
    spelled = pa.array([*texts, "null"], pa.large_string())
    return spelled.take(encoded.indices.fill_null(len(texts)))


def codes(texts: Any) -> tuple[NDArray[np.int32], list[str]]:
    """Each text's place among the distinct ones in order, and these."""
    encoded = texts.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    order = sorted(range(len(distinct)), key=distinct.__getitem__)
    rank = np.empty(len(distinct), np.int32)
    rank[order] = np.arange(len(distinct), dtype=np.int32)
    return rank[encoded.indices.to_numpy()], [distinct[i] for i in order]


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


def _flat(where: Where, column: str, values: Any, advice: str) -> Any:
    import pyarrow as pa

    try:
        return _plain(values)
    except (pa.ArrowException, UnicodeDecodeError):
        raise InputError(f"{where.column(column)} is {values.type} that does not decode: {advice}") from None


def _wrong_type(where: Where, column: str, values: Any, advice: str) -> NoReturn:
    value = values[0].as_py() if len(values) else None
    raise InputError(f"{where.column(column)} is {values.type}, row {where.start} is {shown(value)}: {advice}")


def _no_null(where: Where, column: str, values: Any, advice: str, width: int = 1) -> None:
    if values.null_count:
        row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) // width
        raise InputError(f"{where.row(column, row)} is null: {advice}")


def _numbers(where: Where, column: str, values: Any, advice: str, width: int = 1) -> NDArray[Any]:
    import pyarrow as pa

    _no_null(where, column, values, advice, width)
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        _wrong_type(where, column, values, advice)
    numbers: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return numbers


def _list_values(where: Where, column: str, lists: Any) -> tuple[Any, int]:
    from pyarrow import compute as pc

    advice = "give each row a list of one probability per class"
    _no_null(where, column, lists, advice)
    sizes = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    width = int(sizes[0])
    if width == 0:
        raise where.at(column, 0, [], advice)
    if (sizes != width).any():
        row = int(np.argmax(sizes != width))
        first = f"row {where.start} of {width}"
        raise InputError(f"{where.row(column, row)} is a list of {sizes[row]} and {first}: {advice}")
    return lists.flatten(), width


def _in_range(where: Where, column: str, values: Any, advice: str, width: int = 1) -> NDArray[Any]:
    """Numbers from 0 to 1, of whatever type they are: a view of the column where that is possible."""
    numbers = _numbers(where, column, values, advice, width)
    if numbers.dtype.kind != "f" or numbers.itemsize < 4:
        numbers = numbers.astype(np.float64)
    if not (numbers.min() >= 0 and numbers.max() <= 1):  # NaN fails both
        place = int(np.argmin((numbers >= 0) & (numbers <= 1)))
        raise where.at(column, place // width, float(numbers[place]), advice)
    return numbers
