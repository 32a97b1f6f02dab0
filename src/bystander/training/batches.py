"""Rows as a training loop takes them: images as bytes, tables, sparse tables; whole on the device, or row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from bystander._validate import InputError
from bystander.training.augment import Weak, scaled


class Rows(Protocol):
    """All rows of a training set or of a question."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one row, as the network sees it."""

    @property
    def content(self) -> tuple[Any, ...]:
        """All that they are made of, for a checkpoint to know them by."""

    def __len__(self) -> int: ...

    def take(self, chosen: Tensor) -> Tensor:
        """These rows, as the network takes them."""

    def augmented(self, chosen: Tensor, how: Weak | None, coins: torch.Generator) -> Tensor:
        """These rows as training sees them."""


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """(rows, height, width, channels) bytes, whole on the device."""

    bytes: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Channels first."""
        _, height, width, channels = self.bytes.shape
        return channels, height, width

    @property
    def content(self) -> tuple[Any, ...]:
        """The bytes."""
        return (self.bytes,)

    def __len__(self) -> int:
        return len(self.bytes)

    def take(self, chosen: Tensor) -> Tensor:
        """As they are, scaled."""
        return scaled(self.bytes[chosen])

    def augmented(self, chosen: Tensor, how: Weak | None, coins: torch.Generator) -> Tensor:
        """Mirrored and shifted."""
        return self.take(chosen) if how is None else how(self.bytes, chosen, coins)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """(rows, columns) numbers, whole on the device."""

    values: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """One size: the columns."""
        return (self.values.shape[1],)

    @property
    def content(self) -> tuple[Any, ...]:
        """The numbers."""
        return (self.values,)

    def __len__(self) -> int:
        return len(self.values)

    def take(self, chosen: Tensor) -> Tensor:
        """As they are."""
        return self.values[chosen]

    def augmented(self, chosen: Tensor, how: Weak | None, coins: torch.Generator) -> Tensor:
        """Tables are not augmented."""
        return self.take(chosen)


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """A SciPy CSR matrix; each batch becomes dense on its way to the device."""

    matrix: Any
    device: torch.device

    @property
    def shape(self) -> tuple[int, ...]:
        """One size: the columns."""
        return (int(self.matrix.shape[1]),)

    @property
    def content(self) -> tuple[Any, ...]:
        """CSR's three arrays."""
        return self.matrix.data, self.matrix.indices, self.matrix.indptr

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def take(self, chosen: Tensor) -> Tensor:
        """Dense."""
        dense = self.matrix[chosen.cpu().numpy()].toarray()
        return torch.from_numpy(np.ascontiguousarray(dense, dtype=np.float32)).to(self.device)

    def augmented(self, chosen: Tensor, how: Weak | None, coins: torch.Generator) -> Tensor:
        """Tables are not augmented."""
        return self.take(chosen)


def rows(x: object, device: torch.device) -> Rows:
    """Rows of what is given: uint8 images, a table of numbers (arrays or frames), or a sparse matrix."""
    if hasattr(x, "tocsr"):
        return Sparse(x.tocsr(), device)
    array = np.asarray(x)
    if array.dtype == np.uint8 and array.ndim == 4:
        if array.shape[3] not in (1, 3):
            raise InputError(f"X has shape {array.shape}: give images as (rows, height, width, channels)")
        return Images(torch.from_numpy(np.ascontiguousarray(array)).to(device))
    if array.ndim != 2 or len(array) == 0:
        raise InputError(f"X has shape {array.shape} of {array.dtype}: give a table, or uint8 images (rows, h, w, 3)")
    try:
        values = np.ascontiguousarray(array, dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError("X has entries that are no numbers: encode categories as numbers first") from None
    if not np.isfinite(values).all():
        where = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
        raise InputError(f"X, row {where} has a value that is missing or infinite: fill it or drop the row")
    return Table(torch.from_numpy(values).to(device))
