"""Does the disk in memory fail in the ways it is told to?"""

import errno
from random import Random

import pytest

from headrace.storage.files import write_all
from headrace.storage.memory_files import MemoryFiles


def test_a_power_cut_takes_what_was_not_synced(memory):
    """Are synced bytes under a synced name kept, and all else lost?"""
    kept = memory.open("/data/kept", create=True)
    write_all(kept, b"safe", 0)
    kept.fdatasync()
    memory.fsync_dir("/data")
    write_all(kept, b" unsafe", 4)
    nameless = memory.open("/data/nameless", create=True)
    write_all(nameless, b"synced, but under no name", 0)
    nameless.fdatasync()
    memory.power_cut()

    assert memory.listdir("/data") == ["kept"]
    assert memory.read("/data/kept") == b"safe"
    with pytest.raises(OSError, match="lost its power"):
        kept.pread(1, 0)


def test_the_end_of_a_process_takes_only_what_it_held(memory):
    """Do handles, locks and mappings of a killed process end, and all that it wrote stay?"""
    file = memory.open("/data/a", create=True)
    write_all(file, b"0123456789", 0)
    mapped = file.map(10)
    memory.lock("/data/.lock")
    memory.end_process()

    assert memory.read("/data/a") == b"0123456789"
    assert memory.lock("/data/.lock") is not None
    with pytest.raises(OSError, match="lost its power"):
        file.pread(1, 0)
    memory.open("/data/a").truncate(3)  # Nobody maps it any more.
    assert mapped.length == 10


def test_truncation_and_rename_are_lost_too(memory):
    """Does an un-synced truncation or rename come back?"""
    file = memory.open("/data/a", create=True)
    write_all(file, b"0123456789", 0)
    file.fdatasync()
    memory.fsync_dir("/data")
    file.truncate(3)
    memory.rename("/data/a", "/data/b")
    memory.power_cut()

    assert memory.listdir("/data") == ["a"]
    assert memory.read("/data/a") == b"0123456789"


def test_names_survive_in_order(memory):
    """After any cut, is what survived of the names a prefix of what was done to them?"""
    seen = set()
    for seed in range(50):
        files = MemoryFiles()
        files.mkdir("/d")
        files.fsync_dir("/")
        for name in "abc":
            files.open(f"/d/{name}", create=True)
        files.power_cut(Random(seed))
        seen.add("".join(sorted(files.listdir("/d"))))

    assert seen == {"", "a", "ab", "abc"}


def test_bytes_survive_in_part(memory):
    """After a cut, is a file what was synced and then any part of the rest, or garbage?"""
    outcomes = set()
    for seed in range(200):
        files = MemoryFiles()
        file = files.open("/a", create=True)
        write_all(file, b"synced", 0)
        file.fdatasync()
        files.fsync_dir("/")
        write_all(file, b"XYZ", 6)
        files.power_cut(Random(seed))
        left = files.read("/a")

        assert left.startswith(b"synced")
        assert len(left) <= 9

        outcomes.add(left)

    assert {b"synced", b"syncedX", b"syncedXYZ"} < outcomes
    assert any(left[6:] not in b"XYZ" for left in outcomes)


def after_cuts(synced, change):
    """What 300 power cuts leave of a file that was synced and then changed."""
    outcomes = set()
    for seed in range(300):
        files = MemoryFiles()
        file = files.open("/a", create=True)
        write_all(file, synced, 0)
        file.fdatasync()
        files.fsync_dir("/")
        change(file)
        files.power_cut(Random(seed))
        outcomes.add(files.read("/a"))
    return outcomes


def test_what_was_written_over_may_be_what_it_was():
    """After a cut, has each byte that was written over its old value or its new one, and the file its length?"""
    outcomes = after_cuts(b"synced----", lambda file: write_all(file, b"XYZ", 6))

    assert {b"synced----", b"syncedX---", b"syncedXYZ-", b"synced-YZ-"} < outcomes
    assert {len(left) for left in outcomes} == {10}


def test_what_was_cut_off_comes_back_whole_or_not_at_all():
    """Is a synced tail that was cut off never found behind what was written in its place?"""

    def change(file):
        file.truncate(6)
        write_all(file, b"X", 6)

    outcomes = after_cuts(b"synced----", change)

    assert {b"synced----", b"synced", b"syncedX"} <= outcomes
    assert b"syncedX---" not in outcomes


def test_one_seed_one_outcome():
    """Does the same seed leave the same disk?"""

    def run() -> bytes:
        files = MemoryFiles()
        file = files.open("/a", create=True)
        files.fsync_dir("/")
        write_all(file, bytes(range(100)), 0)
        files.power_cut(Random(7))
        return files.read("/a")

    assert run() == run()


def test_a_full_disk(memory):
    """Does a write take what there is room for, and the next one fail, until there is room?"""
    memory.capacity = 4
    file = memory.open("/data/a", create=True)

    assert file.pwrite(b"abcdef", 0) == 4
    with pytest.raises(OSError, match="No space") as full:
        file.pwrite(b"ef", 4)
    assert full.value.errno == errno.ENOSPC

    file.truncate(1)

    assert file.pwrite(b"xyz", 1) == 3
    assert memory.space("/data").usable == 0

    memory.unlink("/data/a")

    assert memory.space("/data").usable == 4


def test_told_to_fail(memory):
    """Does the next operation of a kind fail once, on the path that was named?"""
    file = memory.open("/data/a", create=True)
    memory.fail_next("fsync", errno.EIO, path_contains="/a")
    memory.open("/data/b", create=True).fdatasync()
    with pytest.raises(OSError, match="Input/output error"):
        file.fdatasync()
    file.fdatasync()


def test_a_torn_write(memory):
    """Can a write be made to stop short?"""
    memory.tear = [2]
    file = memory.open("/data/a", create=True)

    assert file.pwrite(b"abcd", 0) == 2
    assert file.size() == 2


def test_bit_rot(memory):
    """Does a flipped bit stay flipped, through a power cut too?"""
    file = memory.open("/data/a", create=True)
    write_all(file, b"\x00\x00", 0)
    file.fdatasync()
    memory.fsync_dir("/data")
    memory.flip_bit("/data/a", 1, 3)
    memory.power_cut()

    assert memory.read("/data/a") == b"\x00\x08"


def test_no_shrinking_under_a_mapping(memory):
    """Is what would be SIGBUS on a real machine caught here?"""
    file = memory.open("/data/a", create=True)
    write_all(file, b"0123456789", 0)
    mapping = file.map(10)
    piece = mapping.view[8:]
    mapping.release()
    with pytest.raises(AssertionError, match="shrinks under a mapped view"):
        file.truncate(5)
    del piece, mapping
    file.truncate(5)


def test_what_was_cut_off_may_come_back(memory):
    """Can a tail that was written and cut off again, never synced, be there after a power cut?"""
    lengths = set()
    for seed in range(100):
        files = MemoryFiles()
        file = files.open("/a", create=True)
        files.fsync_dir("/")
        write_all(file, b"0123456789", 0)
        file.truncate(0)
        files.power_cut(Random(seed))
        lengths.add(len(files.read("/a")))

    assert {0, 10} < lengths
