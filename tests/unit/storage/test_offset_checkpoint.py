"""Are offset checkpoints Kafka's, and bad ones named?"""

import pytest

from headrace.storage.corruption import CorruptLog
from headrace.storage.offset_checkpoint import forget_offset, note_offset, read_offsets, write_offsets


def test_written_and_read(disk):
    """Do offsets come back, for topics with dashes too, in Kafka's form?"""
    path = f"{disk.root}/recovery-point-offset-checkpoint"
    write_offsets(disk.files, path, {"a-b-0": 5, "t-12": 2**40})

    assert disk.files.read(path) == b"0\n2\na-b 0 5\nt 12 1099511627776\n"
    assert read_offsets(disk.files, path) == {"a-b-0": 5, "t-12": 2**40}


def test_one_at_a_time(disk):
    """Can one log be noted and forgotten without a word about the others, the latter only above an offset?"""
    path = f"{disk.root}/cleaner-offset-checkpoint"
    note_offset(disk.files, path, "a-0", 5)
    note_offset(disk.files, path, "b-0", 6)
    note_offset(disk.files, path, "a-0", 7)
    forget_offset(disk.files, path, "a-0", above=7)
    forget_offset(disk.files, path, "c-0")

    assert read_offsets(disk.files, path) == {"a-0": 7, "b-0": 6}
    forget_offset(disk.files, path, "a-0", above=6)
    assert read_offsets(disk.files, path) == {"b-0": 6}


def test_changing_a_bad_file(memory):
    """Is a file that cannot be read replaced by what is noted, and left alone by what is forgotten?"""
    memory.open("/data/c", create=True).pwrite(b"junk", 0)
    forget_offset(memory, "/data/c", "a-0")
    assert memory.read("/data/c") == b"junk"
    note_offset(memory, "/data/c", "a-0", 5)

    assert read_offsets(memory, "/data/c") == {"a-0": 5}


def test_no_file(disk):
    """Does a missing file mean no offsets?"""
    assert read_offsets(disk.files, f"{disk.root}/none") == {}


@pytest.mark.parametrize("data", [b"junk", b"0\n1\nt 0\n", b"0\n1\nt 0 x\n", b"0\n1\nt -1 5\n", b"0\n1\nt 0 5 6\n"])
def test_bad_files(memory, data):
    """Is a bad file an error that names it?"""
    memory.open("/data/c", create=True).pwrite(data, 0)
    with pytest.raises(CorruptLog, match="/data/c"):
        read_offsets(memory, "/data/c")
