"""Fashion-MNIST: 60,000 training and 10,000 test images of clothes in ten classes, from the official idx files."""

from __future__ import annotations

import gzip
import math
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bystander._validate import InputError
from bystander.datasets.images import Images
from bystander.datasets.source import Broken, File, Source, download, existing, unreadable

_AT = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_DIGESTS = {
    "train-images-idx3-ubyte.gz": "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "train-labels-idx1-ubyte.gz": "md5:25c81989df183df01b3e8a0aad5dffbe",
    "t10k-images-idx3-ubyte.gz": "md5:bef4ecab320f06d8554ea6380940ec79",
    "t10k-labels-idx1-ubyte.gz": "md5:bb300cfdad3c16e7a12a480ee83cd310",
}
SOURCE = Source(
    "Fashion-MNIST",
    "https://github.com/zalandoresearch/fashion-mnist",
    "MIT",
    "H. Xiao, K. Rasul and R. Vollgraf, Fashion-MNIST, arXiv:1708.07747, 2017",
    tuple(File(name, f"{_AT}/{name}", digest) for name, digest in _DIGESTS.items()),
)
CLASSES = (
    "t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"
)  # fmt: skip
_ADVICE = (
    "bystander.datasets.fashion_mnist.fetch(folder) gets it; "
    "Debian's package dataset-fashion-mnist has it in /usr/share/datasets/fashion-mnist"
)
_BYTES = 0x08  # idx's code of unsigned bytes


def fetch(folder: str | os.PathLike[str]) -> Path:
    """Download the four official files (31 MB) into the folder; what is there stays."""
    for file in SOURCE.files:
        download(file, folder)
    return Path(folder)


def load(folder: str | os.PathLike[str]) -> Images:
    """The four idx files of this folder, packed by gzip or not. Images are (rows, 28, 28, 1)."""
    read = {name: _read(existing(folder, (name, name.removesuffix(".gz")), SOURCE, _ADVICE)) for name in _DIGESTS}
    for part in ("train", "t10k"):
        images, labels = (len(read[f"{part}-{kind}-ubyte.gz"]) for kind in ("images-idx3", "labels-idx1"))
        if images != labels:
            raise InputError(f"{os.fspath(folder)}: {part} has {images:,} images and {labels:,} labels: fetch it again")
    train, train_labels, test, test_labels = read.values()
    return Images(
        train[..., None], train_labels.astype(np.int64), test[..., None], test_labels.astype(np.int64), CLASSES
    )


def _read(path: Path) -> NDArray[np.uint8]:
    """An idx file: two zeros, the type, the number of axes, each axis as four bytes, then the values."""
    try:
        held = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except Broken as error:
        raise unreadable(path, error) from None
    wanted = 3 if "idx3" in path.name else 1
    if held[:4] != bytes((0, 0, _BYTES, wanted)):
        raise InputError(f"{path} starts with {held[:4].hex()}: give an idx file of bytes with {wanted} axes")
    shape = tuple(int(n) for n in np.frombuffer(held, ">u4", wanted, 4))
    start = 4 + 4 * wanted
    if len(held) - start != math.prod(shape):
        raise InputError(f"{path} holds {len(held) - start:,} values and says {math.prod(shape):,}: fetch it again")
    return np.frombuffer(held, np.uint8, offset=start).reshape(shape)
