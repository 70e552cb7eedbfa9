"""Is the leader epoch file Kafka's, and a bad one recognised?"""

import pytest

from headrace.storage.epoch_checkpoint import read_epochs, write_epochs


def test_written_and_read(disk):
    """Do epochs come back, in Kafka's form?"""
    write_epochs(disk.files, disk.root, [(0, 0), (3, 17)])

    assert disk.files.read(f"{disk.root}/leader-epoch-checkpoint") == b"0\n2\n0 0\n3 17\n"
    assert read_epochs(disk.files, disk.root) == [(0, 0), (3, 17)]


def test_no_file(disk):
    """Does a missing file mean no epochs?"""
    assert read_epochs(disk.files, disk.root) == []


@pytest.mark.parametrize("data", [b"\x00", b"0\n1\n5\n", b"0\n2\n1 5\n0 6\n", b"0\n2\n1 5\n2 4\n", b"0\n1\n-1 0\n"])
def test_bad_files(memory, data):
    """Is a file whose epochs do not rise, or that is none, reported as such?"""
    memory.open("/data/leader-epoch-checkpoint", create=True).pwrite(data, 0)

    assert read_epochs(memory, "/data") is None
