"""Scores and bits, wherever they are: arrays, a frame or files become checked scores of members and of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bystander import _columns, _keys
from bystander._frames import array_source, frame_source
from bystander._tables import Source, Where, find, named_files, shared_file
from bystander._validate import InputError
from bystander.games.membership import Scored


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Scores of rows of the training set, and of others."""

    members: Scored
    others: Scored
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Rows of one table; bits are None where the table holds one kind."""

    where: Where
    scores: NDArray[np.float64]
    bits: NDArray[np.bool_] | None
    ids: Any


def from_arrays(score: Any, member: Any, id: Any, members: Any, others: Any) -> Sides:
    """Two arrays of scores; or one, with bits."""
    if members is not None or others is not None:
        if score is not None or member is not None or id is not None:
            raise InputError("members and others are given with score, member or id: give the one pair or the other")
        if members is None or others is None:
            raise InputError(f"{'others' if members is None else 'members'} are given alone: give members and others")
        return Sides(from_array("members", members), from_array("others", others), "arrays")
    if score is None or member is None:
        raise InputError("no scores are given: give members and others, or score and member, or data and their columns")
    table, columns = _arrays(score=score, member=member, ids=id)
    return _split([_read(table, columns["score"], columns["member"], columns.get("ids"))], "arrays")


def from_array(name: str, values: Any) -> Scored:
    """One array of scores."""
    table, columns = _arrays(**{name: values})
    return _joined([_read(table, columns[name], None, None)])


def from_data(data: Any, score: Any, member: Any, id: Any, others: Any) -> Sides:
    """Columns of files or of a frame; where `others` is more data, `data` holds the members."""
    for what, name in (("score", score), ("member", member), ("id", id)):
        if not isinstance(name, str) and (name is not None or what == "score"):
            raise InputError(f"{what} is {type(name).__name__}: with data, give the name of a column")
    if (others is None) == (member is None):
        told = "are not given" if others is None else "are both given"
        raise InputError(f"member and others {told}: give the column of bits, or the others' scores as more data")
    tables, source = _tables(data, "data frame")
    if member is not None:
        return _split([_read(table, score, member, id) for table in tables], source)
    _apart(("members", data), ("others", others))
    more, other_source = _tables(others, "the others' data frame")
    mine, theirs = (_joined([_read(table, score, None, id) for table in some]) for some in (tables, more))
    return Sides(mine, theirs, f"{source} and {other_source}")


def control_from_data(control: Any, data: Any, others: Any, score: str, member: str | None, id: str | None) -> Scored:
    """Scores of rows that were not trained on; bits, where the data has them, must say so."""
    for rows in (("played", data), ("others", others)):
        _apart(rows, ("control", control))
    tables, _ = _tables(control, "the control's data frame")
    parts = [_read(table, score, member if member in table.columns else None, id) for table in tables]
    for part in parts:
        if part.bits is not None and member is not None and part.bits.any():
            advice = "a control holds rows that the target did not train on"
            raise part.where.at(member, int(np.argmax(part.bits)), 1, advice)
    return _joined(parts)


def _tables(data: Any, name: str) -> tuple[list[Source], str]:
    return find(data) if named_files(data) else ([frame_source(data, name)], name)


def _apart(one: tuple[str, Any], other: tuple[str, Any]) -> None:
    """Refuse a file that is named in two places."""
    if (twice := shared_file(one[1], other[1])) is not None:
        raise InputError(f"{twice} is given as {one[0]} and as {other[0]}: give rows that are not the same")


def _arrays(**arrays: Any) -> tuple[Source, dict[str, str]]:
    """Arrays as one table, and the column that each has become."""
    table, columns = array_source({name: held for name, held in arrays.items() if held is not None}, "arrays")
    if wide := [name for name, held in columns.items() if len(held) != 1]:
        raise InputError(f"arrays, {wide[0]} has {len(columns[wide[0]])} columns: give one number a row")
    return table, {name: held[0] for name, held in columns.items()}


def _read(table: Source, score: str, member: str | None, id: str | None) -> _Part:
    names = [name for name in (score, member, id) if name is not None]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{table.name}: column {twice[0]!r} is named twice: name a column for each")
    table.need(names)
    held, where = table.read(names, [name for name in (score, member) if name is not None]), Where(table.name)
    if not held.num_rows:
        raise InputError(f"{table.name} has no rows: give at least one row")
    return _Part(
        where,
        _columns.scores(where, score, held[score]),
        None if member is None else _columns.bits(where, member, held[member]),
        None if id is None else _columns.identity(where, id, held[id]),
    )


def _split(parts: list[_Part], source: str) -> Sides:
    whole, bits = _joined(parts), np.concatenate([part.bits for part in parts if part.bits is not None])
    mine, theirs = (Scored(whole.scores[kind], whole.keys[kind]) for kind in (bits, ~bits))
    if parts[0].ids is None:  # numbered within its kind, a row's key does not hang on where it stands
        mine, theirs = (Scored(kind.scores, _content(kind.scores)) for kind in (mine, theirs))
    return Sides(mine, theirs, source)


def _joined(parts: list[_Part]) -> Scored:
    scores = np.concatenate([part.scores for part in parts])
    if parts[0].ids is None:
        return Scored(scores, _content(scores))
    import pyarrow as pa

    ids = pa.concat_arrays(_keys.alike([part.ids for part in parts]))
    keys = _keys.id_keys(ids)
    if (twins := _keys.first_repeat(keys, ids)) is not None:
        raise InputError(f"{parts[0].where.name}: id {ids[twins[1]].as_py()!r} names two rows: give each row its own")
    return Scored(scores, keys)


def _content(scores: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Keys by the score, and by the occurrence among equal ones."""
    return _keys.content_keys(np.zeros(len(scores), np.int64), scores[:, None], np.empty((len(scores), 0)))
