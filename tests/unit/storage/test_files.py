"""Do the real files and their twin in memory keep the port's promises alike?"""

import gc
from pathlib import Path

import pytest

from headrace.storage.files import ZEROS_MAX, RealFiles, write_all

DESCRIPTORS = Path("/proc/self/fd")


def test_what_is_written_is_read(disk):
    """Does a file give back what was written, at explicit positions?"""
    file = disk.files.open(f"{disk.root}/a", create=True)
    write_all(file, b"hello world", 0)
    write_all(file, memoryview(b"W"), 6)

    assert file.pread(5, 6) == b"World"
    assert file.pread(100, 6) == b"World"
    assert file.pread(5, 50) == b""
    assert file.size() == 11
    assert disk.files.read(f"{disk.root}/a") == b"hello World"


@pytest.mark.parametrize("zeros", [1, 5000, ZEROS_MAX])
def test_zeros_behind(disk, zeros):
    """Are zeros written behind what is written, and counted, and what comes next written over them?"""
    file = disk.files.open(f"{disk.root}/a", create=True)
    file.pwrite(b"old", 0)
    taken = file.pwrite_ahead(memoryview(b"new"), 1, zeros)
    if taken == 3:
        pytest.skip("zeros are of no use here")

    assert taken == 3 + zeros
    assert file.pread(10 + ZEROS_MAX, 0) == b"onew" + bytes(zeros)

    file.pwrite(b"!", 4)

    assert file.pread(10 + ZEROS_MAX, 0) == b"onew!" + bytes(zeros - 1)


def test_opening(disk):
    """Is a missing file an error, unless it is to be made, and a made one empty?"""
    path = f"{disk.root}/a"
    with pytest.raises(FileNotFoundError):
        disk.files.open(path)
    with pytest.raises(FileNotFoundError):
        disk.files.read(path)
    write_all(disk.files.open(path, create=True), b"old", 0)

    assert disk.files.open(path).size() == 3
    assert disk.files.open(path, create=True).size() == 0


def test_truncating(disk):
    """Does truncation cut and grow?"""
    file = disk.files.open(f"{disk.root}/a", create=True)
    write_all(file, b"abcdef", 0)
    file.truncate(2)
    file.truncate(4)

    assert file.pread(10, 0) == b"ab\0\0"


def test_names(disk):
    """Do mkdir, rename, listdir, stat, unlink and rmdir do what they say, and forgive what is gone?"""
    files, root = disk.files, disk.root
    files.mkdir(f"{root}/x/y")
    files.mkdir(f"{root}/x/y")
    write_all(files.open(f"{root}/x/y/a", create=True), b"12", 0)
    write_all(files.open(f"{root}/x/y/b", create=True), b"345", 0)
    files.rename(f"{root}/x/y/a", f"{root}/x/y/b")
    files.fsync_dir(f"{root}/x/y")

    assert files.listdir(f"{root}/x/y") == ["b"]
    assert files.stat(f"{root}/x/y/b").size == 2
    assert files.stat(f"{root}/x/y").is_dir
    assert files.stat(f"{root}/x/y/a") is None

    files.rename(f"{root}/x/y", f"{root}/x/z")

    assert files.read(f"{root}/x/z/b") == b"12"
    with pytest.raises(OSError, match="not empty"):
        files.rmdir(f"{root}/x/z")
    with pytest.raises(FileNotFoundError):
        files.listdir(f"{root}/x/y")
    with pytest.raises(FileNotFoundError):
        files.rename(f"{root}/nothing", f"{root}/x/b")

    files.unlink(f"{root}/x/z/b")
    files.unlink(f"{root}/x/z/b")
    files.rmdir(f"{root}/x/z")
    files.rmdir(f"{root}/x/z")

    assert files.listdir(f"{root}/x") == []


def test_mapping(disk):
    """Does a mapping show the file's beginning, outlive the name, and know when somebody looks at it?"""
    file = disk.files.open(f"{disk.root}/a", create=True)
    write_all(file, b"0123456789" * 1000, 0)
    mapping = file.map(10_000)
    piece = mapping.view[5:15]
    disk.files.unlink(f"{disk.root}/a")

    assert bytes(piece) == b"5678901234"
    assert mapping.resident(0, 10_000)
    assert mapping.release() is False
    assert bytes(piece) == b"5678901234"

    again = file.map(10_000)

    assert again.release() is True


def test_mapping_beyond_the_end(disk):
    """Is a mapping longer than the file refused?"""
    file = disk.files.open(f"{disk.root}/a", create=True)
    write_all(file, b"abc", 0)
    with pytest.raises(ValueError, match="greater than file size"):
        file.map(4)


def test_lock(disk):
    """Can only one hold the lock, until it is released?"""
    lock = disk.files.lock(f"{disk.root}/.lock")

    assert lock is not None
    assert disk.files.lock(f"{disk.root}/.lock") is None

    lock.release()

    assert disk.files.lock(f"{disk.root}/.lock") is not None


def test_space(disk):
    """Is there a total, and no more usable than that?"""
    space = disk.files.space(disk.root)

    assert 0 < space.usable <= space.total


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="needs /proc")
def test_a_descriptor_lives_as_long_as_its_users(tmp_path):
    """Does the real file close with its last reference, and not before?"""
    gc.collect()
    file = RealFiles().open(str(tmp_path / "a"), create=True)
    reader, descriptor = file, file._fd
    del file

    assert reader.pread(1, 0) == b""
    assert (DESCRIPTORS / str(descriptor)).exists()

    del reader

    assert not (DESCRIPTORS / str(descriptor)).exists()


def test_a_big_file_is_read_whole(tmp_path):
    """Does reading a whole file go on after the first piece?"""
    (tmp_path / "a").write_bytes(b"x" * 200_000)

    assert RealFiles().read(str(tmp_path / "a")) == b"x" * 200_000
