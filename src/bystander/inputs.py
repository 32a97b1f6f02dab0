"""What `audit` was given, as rows: arrays, frames and joined files in memory, large files as a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bystander._keys import mix64
from bystander._tables import named_files, shared_file
from bystander._validate import InputError, whole
from bystander.records import Columns, Records, from_arrays, from_files, from_frame
from bystander.stream import Stream, open_stream

Rows = Records | Stream
_PARTS = ("labels", "target", "reference", "id", "group", "slice")


def named(data: object, *names: Any) -> Columns | None:
    """Column names, where there is data; none where the arguments are arrays."""
    if data is None or isinstance(data, Records):
        return None
    label, target, reference, id, group, slice = names
    for what, name in (("labels", label), ("id", id), ("group", group), ("slice", slice)):
        if not isinstance(name, str) and (name is not None or what == "labels"):
            raise InputError(f"{what} is {type(name).__name__}: with data, give the name of a column")
    if slice is not None and slice == label:
        raise InputError(f"slice is {slice!r}, the label: a slice must not be chosen by what is audited; name another")

    def several(what: str, value: Any) -> tuple[str, ...]:
        value = (value,) if isinstance(value, str) else value
        if isinstance(value, list | tuple) and not value:
            raise InputError(f"{what} names no column: give one column, or one per class")
        if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
            raise InputError(f"{what} is {type(value).__name__}: with data, give the names of its columns")
        return tuple(value)

    return Columns(label, several("target", target), several("reference", reference), id, group, slice)


def rows(data: Any, columns: Columns | None, reference_data: Any, stream_above: int | None, *arrays: Any) -> Rows:
    """The rows behind `data` and its columns, or behind arrays. Files of more rows than that are streamed."""
    if isinstance(data, Records):
        return data
    if columns is None:
        labels, target, reference, id, group, slice = arrays
        return from_arrays(labels, target, reference, ids=id, groups=group, slices=slice)
    if not named_files(data):
        return from_frame(data, columns)
    if stream_above is not None and reference_data is None and columns.group is None:
        found = _large(data, columns, stream_above)
        if found is not None:
            return found
    return from_files(data, columns, reference_data=reference_data)


def _large(data: Any, columns: Columns, stream_above: int) -> Stream | None:
    """The stream, where there are more rows than that; files that need the rows in memory have none."""
    try:
        found = open_stream(data, columns)
    except InputError:
        if stream_above == 0:
            raise
        return None  # reading them whole joins them, or says better what is wrong
    return found if stream_above == 0 or (found.rows or 0) > stream_above else None


def control_rows(control: Any, data: Any, columns: Columns | None, stream_above: int | None) -> Rows:
    """The control's rows: the same columns of more data, or a mapping of arrays."""
    if isinstance(control, Mapping):
        if not {"labels", "target", "reference"} <= set(control) <= set(_PARTS):
            raise InputError(f"control has {', '.join(map(str, control))}: give labels, target and reference")
        return rows(None, None, None, None, *(control.get(name) for name in _PARTS))
    if columns is None and not isinstance(control, Records):
        raise InputError("control is no mapping: beside arrays, give a mapping of labels, target and reference")
    if (twice := shared_file(data, control)) is not None:
        raise InputError(f"{twice} is audited and given as control: give rows that the target did not train on")
    return rows(control, columns, None, stream_above)


def subset(records: Rows, canaries: int) -> Records:
    """So many rows, drawn by a hash of the key."""
    if isinstance(records, Stream):
        raise InputError(f"canaries is {canaries}: a subset needs the rows in memory; audit fewer files instead")
    count = whole("canaries", canaries, 1, len(records))
    order = np.argsort(mix64(records.keys ^ np.uint64(0xE7037ED1A0B428DB)), kind="stable")
    return records.take(np.sort(order[:count]))


def known(found: Rows) -> int:
    """How many rows; 0 where a stream does not tell."""
    return len(found) if isinstance(found, Records) else found.rows or 0


def classes(found: Rows) -> int:
    """The number of classes; of a stream, that of its first row."""
    return found.classes if isinstance(found, Records) else next(iter(found.fragments[0].batches(1))).classes
