"""Counterfactual values of columns, drawn from a model of them given the rest of the row.

A sampler is fitted on rows outside the audit. It is told what is public alone, and draws by coins that are keyed by
row. `Finite` and `Drawn` wrap a user's own; `Chain` is built in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bystander import tabular
from bystander._keys import mix64
from bystander._validate import InputError, whole
from bystander.calibration import Calibration, VectorScaling
from bystander.conditional import Conditional, Fit
from bystander.tabular import Frame, Matrix

_DRAW = np.uint64(0x9E6C63D0876A9A47)


class Sampler(Protocol):
    """Draws some columns of a row, given the others."""

    @property
    def columns(self) -> tuple[str, ...]:
        """What it draws."""

    @property
    def name(self) -> str:
        """How reports call it."""

    def draw(self, rows: Any, coins: Matrix) -> Any:
        """A frame or a mapping of its columns; `coins` are numbers in [0, 1), one a row and column, keyed by row."""


@dataclass(frozen=True, slots=True)
class Finite:
    """One column with few values, whose law given the rest of the row is known: every value is scored exactly.

    `law` maps the rows without that column to (rows, values), each row adding up to 1.

    >>> import numpy as np
    >>> sampler = Finite("smoker", (0, 1), lambda rows: np.tile([0.7, 0.3], (len(rows), 1)))
    >>> sampler.columns
    ('smoker',)
    """

    column: str
    values: tuple[Any, ...]
    law: Callable[[Any], ArrayLike]
    name: str = "given law"

    def __post_init__(self) -> None:
        if len(set(self.values)) != len(self.values) or len(self.values) < 2:
            raise InputError(f"values are {self.values!r}: give at least two, all different")

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    def draw(self, rows: Any, coins: Matrix) -> dict[str, NDArray[Any]]:
        """Values by their law."""
        law = np.asarray(self.law(rows), dtype=np.float64)
        place = (coins[:, :1] >= np.cumsum(law, axis=1)[:, :-1]).sum(axis=1)
        return {self.column: np.asarray(self.values)[place]}


@dataclass(frozen=True, slots=True)
class Drawn:
    """Any columns, by a function of (the rest of the rows, coins) that returns a frame or a mapping of them."""

    columns: tuple[str, ...]
    function: Callable[[Any, Matrix], Any]
    name: str = "given sampler"

    def draw(self, rows: Any, coins: Matrix) -> Any:
        """What the function returns."""
        return self.function(rows, coins)


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """The built-in sampler: each column by a calibrated classifier, given the rest and the columns before it.

    A column of numbers with many values is cut into bins of about equal size; within a bin, values are those that
    were seen there. Needs scikit-learn (`pip install "bystander[train]"`).
    """

    parts: tuple[Conditional, ...]
    given: tuple[str, ...]
    fitted: NDArray[np.uint64] | None  # keys of the rows it was fitted on, where they have ids

    @classmethod
    def fit(
        cls,
        data: object,
        columns: str | Sequence[str],
        *,
        given: Sequence[str] | None = None,
        id: str | None = None,
        bins: int = 16,
        calibration: Calibration | None = None,
        iterations: int = 80,
        seed: int = 0,
    ) -> Chain:
        """Learn these columns from rows that will not be audited.

        `given` names what they may depend on: every other column, unless told otherwise. With `id`, an audit refuses
        rows that were seen here. 70 % of the rows fit, 15 % calibrate and 15 % measure the quality.
        """
        drawn = (columns,) if isinstance(columns, str) else tuple(columns)
        if not drawn or len(set(drawn)) != len(drawn):
            raise InputError(f"columns are {drawn!r}: name at least one, each once")
        frame = tabular.known(data, "data", [*drawn, *(given or ()), *([id] if id else [])])
        if len(frame) < 100:
            raise InputError(f"data has {len(frame)} rows: fit a sampler on at least 100")
        known = tuple(c for c in frame.columns if c not in drawn and c != id) if given is None else tuple(given)
        if clash := set(known) & set(drawn):
            raise InputError(f"given names {min(clash)!r}, which is drawn: name other columns")
        how = Fit(
            whole("bins", bins, 2, 200),
            calibration or VectorScaling(ridge=10.0),
            whole("iterations", iterations, 1, 10_000),
            seed,
        )
        parts = [Conditional.fit(frame, name, (*known, *drawn[:place]), how) for place, name in enumerate(drawn)]
        return cls(tuple(parts), known, None if id is None else tabular.row_keys(frame, id, "data"))

    @property
    def columns(self) -> tuple[str, ...]:
        """What it draws, in that order."""
        return tuple(part.column for part in self.parts)

    @property
    def name(self) -> str:
        """How reports call it."""
        return "chain of classifiers" if len(self.parts) > 1 else "classifier"

    @property
    def notes(self) -> tuple[str, ...]:
        """How well each column is predicted, in a sentence."""
        return tuple(part.quality.sentence(part.column) for part in self.parts)

    def finite(self) -> Finite | None:
        """The same with its law, where it draws one column of few values."""
        (first, *others) = self.parts
        if others or first.values is None:
            return None
        return Finite(first.column, first.values, lambda rows: first.law(tabular.known(rows, "rows")), self.name)

    def draw(self, rows: Any, coins: Matrix) -> dict[str, Any]:
        """Each column in turn, given those before it."""
        return self._drawn(tabular.known(rows, "rows", self.given), coins)

    def _drawn(self, frame: Frame, coins: Matrix) -> dict[str, Any]:
        made = {}
        for place, part in enumerate(self.parts):
            made[part.column] = part.draw(frame, coins[:, place])
            frame = tabular.replaced(frame, [made[part.column]])
        return made

    def generate(self, rows: int, *, seed: int = 0) -> Any:
        """So many new rows, where nothing was given: a frame of the kind that it was fitted on."""
        if self.given:
            raise InputError(f"the sampler was fitted given {', '.join(self.given)}: fit it with given=() to make rows")
        rows = whole("rows", rows, 1)
        keys = mix64(np.arange(rows, dtype=np.uint64) + _DRAW)
        coins = coins_of(keys, seed, 0, len(self.parts))
        first = self.parts[0]
        start = tabular.picked(first.donors, np.zeros(rows, np.int64)).to_frame()
        made = self._drawn(start, coins)
        return tabular.replaced(start, list(made.values())).select(list(self.columns)).to_native()


def coins_of(keys: NDArray[np.uint64], seed: int, draw: int, columns: int) -> Matrix:
    """(rows, columns) of numbers in [0, 1) by hashes of the row's key: apart from every game's coins."""
    row = mix64(mix64(keys ^ _word(seed)) + _word(draw))
    parts = [mix64(row + _word(place + 1)) >> np.uint64(11) for place in range(columns)]
    return np.stack(parts, axis=1) * 2.0**-53


def _word(number: int) -> NDArray[np.uint64]:
    """A scrambled constant."""
    return mix64(np.array([number & (1 << 64) - 1], np.uint64) ^ _DRAW)


def as_sampler(sampler: object, columns: Sequence[str]) -> Sampler:
    """A sampler of these columns: one of this module, one like them, or a function."""
    if callable(sampler) and not hasattr(sampler, "draw"):
        return Drawn(tuple(columns), sampler)
    if not hasattr(sampler, "draw") or not hasattr(sampler, "columns"):
        raise InputError(f"sampler is {type(sampler).__name__}: give a sampler, or a function of (rows, coins)")
    if set(sampler.columns) != set(columns):
        raise InputError(f"the sampler draws {', '.join(sampler.columns)}, and protected is {', '.join(columns)}")
    found: Any = sampler
    return found if isinstance(found, Finite | Chain | Drawn) else Drawn(tuple(found.columns), found.draw)


def columns_of(made: Any, sampler: Sampler, frame: Frame) -> list[tabular.Series]:
    """What a sampler drew as columns of the frame's types, checked."""
    import narwhals as nw

    if isinstance(made, Mapping):
        held = {str(name): value for name, value in made.items()}
    else:
        drawn = tabular.known(made, "what the sampler drew")
        held = {name: drawn[name] for name in drawn.columns}
    found = []
    for name in sampler.columns:
        if name not in held:
            raise InputError(f"the sampler drew {', '.join(held)}: it must draw {name!r} too")
        value = held[name]
        if not isinstance(value, nw.Series):
            value = nw.new_series(name, np.asarray(value).tolist(), backend=frame.implementation)
        if len(value) != len(frame):
            raise InputError(f"the sampler drew {len(value)} values of {name!r} for {len(frame)} rows: draw one a row")
        found.append(tabular.typed(value, frame[name]))
    return found
