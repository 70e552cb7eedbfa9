"""The two disks every storage test may ask for: one in memory, one real."""

from typing import NamedTuple

import pytest

from headrace.storage.files import Files, RealFiles
from headrace.storage.memory_files import MemoryFiles


class Disk(NamedTuple):
    """A file system and a directory on it to work in."""

    files: Files
    root: str


@pytest.fixture
def memory():
    """A disk in memory, with a durable directory /data."""
    files = MemoryFiles()
    files.mkdir("/data")
    files.fsync_dir("/")
    return files


@pytest.fixture(params=["memory", "real"])
def disk(request, tmp_path):
    """Either disk, in turn."""
    if request.param == "real":
        return Disk(RealFiles(), str(tmp_path))
    return Disk(request.getfixturevalue("memory"), "/data")
