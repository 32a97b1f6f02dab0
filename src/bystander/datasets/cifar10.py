"""CIFAR-10: 50,000 training and 10,000 test images of ten classes, from the official binary batches."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bystander._validate import InputError
from bystander.datasets.images import Images
from bystander.datasets.source import File, Source, check, download, existing, unpack

BATCHES = {
    "data_batch_1.bin": "md5:5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "md5:5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "md5:942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "md5:ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "md5:53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "md5:803d5f7f4d78ea53de84dbe85f74fb6d",
}
SOURCE = Source(
    "CIFAR-10",
    "https://www.cs.toronto.edu/~kriz/cifar.html",
    "none stated; free to use with the citation",
    "A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
    (
        File(
            "cifar-10-binary.tar.gz",
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "md5:c32a1d4ab5d03f1284b67883e8d87530",
        ),
    ),
)
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_INSIDE = "cifar-10-batches-bin"
_ROW = 1 + 3 * 32 * 32
_ADVICE = "bystander.datasets.cifar10.fetch(folder) gets it"


def fetch(folder: str | os.PathLike[str]) -> Path:
    """Download the official archive (162 MB) into the folder and unpack its six batches; what is there stays."""
    if not all(Path(folder, name).exists() for name in BATCHES):
        archive = download(SOURCE.files[0], folder)
        unpack(archive, {f"{_INSIDE}/{name}": name for name in BATCHES}, folder)
    for name, digest in BATCHES.items():
        check(Path(folder, name), digest)
    return Path(folder)


def load(folder: str | os.PathLike[str]) -> Images:
    """The six batches of this folder, or of its `cifar-10-batches-bin`; each is checked against its official md5.

    Images are (rows, 32, 32, 3).
    """
    inside = Path(folder, _INSIDE)
    held = inside if inside.is_dir() and not Path(folder, "test_batch.bin").exists() else Path(folder)
    parts = [_read(check(existing(held, (name,), SOURCE, _ADVICE), digest)) for name, digest in BATCHES.items()]
    rows, test = np.concatenate(parts[:-1]), parts[-1]
    return Images(*_split(rows), *_split(test), CLASSES)


def _read(path: Path) -> NDArray[np.uint8]:
    values = np.fromfile(path, np.uint8)
    if values.size == 0 or values.size % _ROW:
        raise InputError(
            f"{path} has {values.size:,} bytes, no multiple of {_ROW:,}: give the binary version's batches"
        )
    rows = values.reshape(-1, _ROW)
    if rows[:, 0].max() > 9:
        raise InputError(f"{path} has the label {rows[:, 0].max()}: give CIFAR-10's batches, whose labels are 0…9")
    return rows


def _split(rows: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    pixels = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(pixels), rows[:, 0].astype(np.int64)
