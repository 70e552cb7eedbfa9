"""Can we tell mapped pages in memory from those on the disk only?"""

import os
import sys

import pytest

from headrace.storage.files import RealFiles, write_all
from headrace.storage.residency import address_of, is_resident, warm


def test_a_buffer_has_an_address():
    """Is a read-only buffer's address found where mincore can use it?"""
    found = address_of(memoryview(b"abc"))

    assert (found > 0) == (sys.platform.startswith("linux") and sys.implementation.name == "cpython")


def test_yes_where_nothing_can_be_said():
    """Is everything resident if there is no address, or nothing is asked?"""
    assert is_resident(0, 4096, 0, 4096)
    assert is_resident(4096, 4096, 0, 0)


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="needs posix_fadvise to make a file cold")
def test_cold_pages_are_seen(tmp_path):
    """Is a range whose pages the kernel dropped called cold, and one just read not?"""
    path = tmp_path / "a"
    file = RealFiles().open(str(path), create=True)
    write_all(file, b"x" * 1_000_000, 0)
    file.fdatasync()
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    mapping = file.map(1_000_000)
    if mapping.resident(500_000, 100_000):
        os.close(fd)
        pytest.skip("this file system keeps its pages")
    os.pread(fd, 1_000_000, 0)
    os.close(fd)

    assert mapping.resident(500_000, 100_000)
    assert mapping.resident(999_999, 1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="madvise's meaning is Linux's")
def test_warm_brings_a_cold_range_in(tmp_path):
    """Is a range that was evicted from the page cache in memory after it was warmed?"""
    path = tmp_path / "cold"
    path.write_bytes(bytes(range(256)) * 4096)
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        mapping = RealFiles().open(str(path)).map(path.stat().st_size)
        view = mapping.view[5000:900_000]

        if not warm(view):
            pytest.skip("this kernel does not populate mappings on request")

        assert mapping.resident(5000, 895_000)
        assert bytes(view[:10]) == path.read_bytes()[5000:5010]


def test_warm_without_a_range():
    """Is an empty view no trouble?"""
    assert warm(memoryview(b"")) in {True, False}
