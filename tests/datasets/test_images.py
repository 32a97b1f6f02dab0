"""Images in files of the official formats, made here."""

import gzip
import hashlib
import tarfile

import numpy as np
import pytest

from bystander import InputError
from bystander.datasets import File, Source, cifar10, fashion_mnist

# ---- CIFAR-10 ---------------------------------------------------------------------------------------------------


@pytest.fixture
def batches(tmp_path, monkeypatch):
    """Six batches of three images, and their digests in the place of the official ones."""
    rng, digests = np.random.default_rng(0), {}
    for name in cifar10.BATCHES:
        rows = rng.integers(0, 256, (3, 3073)).astype(np.uint8)
        rows[:, 0] = [9, 0, 4]
        rows.tofile(tmp_path / name)
        digests[name] = f"md5:{hashlib.md5(rows.tobytes()).hexdigest()}"
    monkeypatch.setattr(cifar10, "BATCHES", digests)
    return tmp_path


def test_cifar10_pixels_and_labels_are_in_their_places(batches):
    images = cifar10.load(batches)
    assert (images.train.shape, images.test.shape) == ((15, 32, 32, 3), (3, 32, 32, 3))
    raw = (batches / "data_batch_2.bin").read_bytes()
    red, blue = raw[1 + 5 * 32 + 7], raw[1 + 2 * 1024 + 5 * 32 + 7]  # row 5, column 7 of the fourth image
    assert (images.train[3, 5, 7, 0], images.train[3, 5, 7, 2]) == (red, blue)
    assert images.train_labels.tolist() == [9, 0, 4] * 5
    assert images.test_labels.tolist() == [9, 0, 4]
    assert images.classes[9] == "truck"


def test_cifar10_a_changed_batch_is_refused(batches):
    path = batches / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(InputError, match=r"data_batch_3\.bin: its md5 is .*: delete it and fetch it again"):
        cifar10.load(batches)


def test_cifar10_a_missing_batch_is_named(batches):
    (batches / "test_batch.bin").unlink()
    with pytest.raises(InputError, match=r"has no test_batch\.bin \(CIFAR-10\): .*cifar10\.fetch\(folder\) gets it"):
        cifar10.load(batches)


def test_cifar10_is_fetched_from_the_official_layout(batches, tmp_path_factory, monkeypatch):
    served, folder = tmp_path_factory.mktemp("served") / "cifar-10-binary.tar.gz", tmp_path_factory.mktemp("to")
    with tarfile.open(served, "w:gz") as tar:
        for name in cifar10.BATCHES:
            tar.add(batches / name, f"cifar-10-batches-bin/{name}")
    digest = f"md5:{hashlib.md5(served.read_bytes()).hexdigest()}"
    source = Source("CIFAR-10", "", "", "", (File(served.name, served.as_uri(), digest),))
    monkeypatch.setattr(cifar10, "SOURCE", source)
    assert cifar10.fetch(folder) == folder
    assert np.array_equal(cifar10.load(folder).train, cifar10.load(batches).train)
    served.unlink()
    cifar10.fetch(folder)  # nothing is missing


# ---- Fashion-MNIST ----------------------------------------------------------------------------------------------


def idx(path, array):
    head = bytes((0, 0, 8, array.ndim)) + np.array(array.shape, ">u4").tobytes()
    path.write_bytes(gzip.compress(head + array.tobytes()) if path.suffix == ".gz" else head + array.tobytes())


@pytest.fixture
def clothes(tmp_path):
    rng = np.random.default_rng(1)
    for part, rows in (("train", 5), ("t10k", 2)):
        idx(tmp_path / f"{part}-images-idx3-ubyte.gz", rng.integers(0, 256, (rows, 28, 28)).astype(np.uint8))
        idx(tmp_path / f"{part}-labels-idx1-ubyte.gz", np.arange(rows, dtype=np.uint8))
    return tmp_path


def test_fashion_mnist_is_read_packed_or_not(clothes):
    images = fashion_mnist.load(clothes)
    assert (images.train.shape, images.test.shape) == ((5, 28, 28, 1), (2, 28, 28, 1))
    assert images.train_labels.tolist() == [0, 1, 2, 3, 4]
    path = clothes / "train-images-idx3-ubyte.gz"
    raw = gzip.decompress(path.read_bytes())
    assert images.train[1, 2, 3, 0] == raw[16 + 784 + 2 * 28 + 3]
    path.with_suffix("").write_bytes(raw)
    path.unlink()
    assert np.array_equal(fashion_mnist.load(clothes).train, images.train)


def test_fashion_mnist_wrong_files_are_one_line(clothes):
    labels = clothes / "t10k-labels-idx1-ubyte.gz"
    good = labels.read_bytes()
    idx(labels, np.arange(3, dtype=np.uint8))
    with pytest.raises(InputError, match=r"t10k has 2 images and 3 labels: fetch it again"):
        fashion_mnist.load(clothes)
    labels.write_bytes(gzip.compress(gzip.decompress(good)[:-1]))
    with pytest.raises(InputError, match=r"idx1-ubyte\.gz holds 1 values and says 2: fetch it again"):
        fashion_mnist.load(clothes)
    labels.write_bytes(gzip.compress(b"no idx"))
    with pytest.raises(InputError, match=r"starts with 6e6f2069: give an idx file of bytes with 1 axes"):
        fashion_mnist.load(clothes)
    labels.write_bytes(good[:-9])
    with pytest.raises(InputError, match=r"cannot be read"):
        fashion_mnist.load(clothes)
    labels.unlink()
    with pytest.raises(InputError, match=r"has no t10k-labels-idx1-ubyte\.gz or t10k-labels-idx1-ubyte .*Debian"):
        fashion_mnist.load(clothes)
