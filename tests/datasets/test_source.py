import hashlib
import io
import tarfile
import zipfile

import pytest

from bystander import InputError
from bystander.datasets import File
from bystander.datasets.source import aside, download, unpack


@pytest.fixture
def served(tmp_path):
    """A file at an address."""
    path = tmp_path / "served.bin"
    path.write_bytes(b"rows" * 1000)
    return path


def digest(path):
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def test_a_download_is_the_file_and_leaves_nothing_else(served, tmp_path):
    folder = tmp_path / "made" / "here"
    path = download(File("rows.bin", served.as_uri(), digest(served)), folder)
    assert path.read_bytes() == served.read_bytes()
    assert [p.name for p in folder.iterdir()] == ["rows.bin"]


def test_what_is_there_is_not_fetched_again(served, tmp_path):
    held = tmp_path / "rows.bin"
    held.write_bytes(served.read_bytes())
    gone = (tmp_path / "gone").as_uri()
    assert download(File("rows.bin", gone, digest(served)), tmp_path) == held


def test_what_is_there_and_damaged_is_said(served, tmp_path):
    (tmp_path / "rows.bin").write_bytes(b"other")
    with pytest.raises(InputError, match=r"rows\.bin: its sha256 is d9298a10d.*delete it and fetch it again"):
        download(File("rows.bin", served.as_uri(), digest(served)), tmp_path)


def test_a_download_that_is_not_what_was_promised_never_takes_the_name(served, tmp_path):
    folder = tmp_path / "to"
    with pytest.raises(InputError, match=r"served\.bin: the md5 is .*, not 0+: it was cut off or changed"):
        download(File("rows.bin", served.as_uri(), f"md5:{'0' * 32}"), folder)
    assert list(folder.iterdir()) == []


def test_an_address_that_does_not_answer_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"gone cannot be fetched .*: see that this machine has a network") as caught:
        download(File("rows.bin", (tmp_path / "gone").as_uri()), tmp_path / "to")
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "to").iterdir()) == []


def test_a_failure_half_way_leaves_what_was_there(tmp_path):
    path = tmp_path / "kept"
    path.write_text("old")

    def interrupted():
        with aside(path) as scratch:
            scratch.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]
    assert path.read_text() == "old"


def packed(path, inside, content):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(inside, content)
    else:
        with tarfile.open(path, "w:gz") as archive:
            about = tarfile.TarInfo(inside)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return path


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
def test_archives_give_the_files_asked_for(name, tmp_path):
    archive = packed(tmp_path / name, "inside/rows.txt", b"1\n2\n")
    unpack(archive, {"inside/rows.txt": "rows.txt"}, tmp_path / "to")
    assert (tmp_path / "to" / "rows.txt").read_bytes() == b"1\n2\n"
    with pytest.raises(InputError, match=r"has no inside/gone\.txt: fetch it again"):
        unpack(archive, {"inside/gone.txt": "gone.txt"}, tmp_path / "to")


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
def test_an_archive_that_was_cut_off_is_one_line(name, tmp_path):
    archive = packed(tmp_path / name, "rows.txt", bytes(range(256)) * 4000)
    archive.write_bytes(archive.read_bytes()[:200])
    with pytest.raises(InputError, match=r"cannot be read .*: delete it and fetch it again"):
        unpack(archive, {"rows.txt": "rows.txt"}, tmp_path / "to")
    assert not list(tmp_path.glob("to/*"))
