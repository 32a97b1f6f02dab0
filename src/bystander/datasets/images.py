"""Labelled images, as the image data sets give them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """A training and a test part: images (rows, height, width, channels) of uint8, labels 0…K − 1; names of classes."""

    train: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    classes: tuple[str, ...]
