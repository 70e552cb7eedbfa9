"""Does a log come back from any stop with everything that was flushed, and say so where it cannot?"""

from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.errors import HeadraceError, StorageFault
from headrace.storage.corruption import CorruptLog
from headrace.storage.memory_files import MemoryFiles
from headrace.storage.recovery import SEGMENT_BYTES_MAX
from unit.storage.samples import Journal, append, batch, fill, flush, open_log, producer, read_all

FIRST = "00000000000000000000.log"
SIZE = len(batch())


@pytest.fixture
def path(disk):
    """A log of 40 batches, flushed up to 20, that stopped uncleanly."""
    path = f"{disk.root}/t-0"
    log = open_log(disk.files, path)
    fill(log, 20)
    flush(log)
    fill(log, 20, start_ms=1020)
    return path


def spoil(files, path, position, data):
    files.open(path).pwrite(data, position)


def logs(files, path):
    return sorted(name for name in files.listdir(path) if name.endswith(".log"))


def test_nothing_lost(disk, path):
    """Is all there after the process died, and what was not flushed still to be flushed?"""
    log = open_log(disk.files, path, recovery_point=20)

    assert read_all(log) == list(range(40))
    assert log.recovery_point == 20
    assert log.findings == []

    flush(log)

    assert log.recovery_point == 40


@pytest.mark.parametrize("cut", [1, 30, 61, SIZE - 1])
def test_a_torn_tail_is_cut(disk, path, cut):
    """Is a batch that was written in part removed, and nothing else?"""
    last = f"{path}/{logs(disk.files, path)[-1]}"
    disk.files.open(last).truncate(disk.files.stat(last).size - cut)
    log = open_log(disk.files, path, recovery_point=20)

    assert read_all(log) == list(range(39))
    assert append(log, 1) == 39
    assert log.findings == []


@pytest.mark.parametrize("harm", [b"\x00" * 200 + b"\x01", b"\xff" * 200, b"\x00" * 70 + b"\xff", b"garbage"])
def test_garbage_at_the_end_is_cut(disk, path, harm):
    """Does whatever the disk put behind the last batch go?"""
    last = f"{path}/{logs(disk.files, path)[-1]}"
    spoil(disk.files, last, disk.files.stat(last).size, harm)

    size = disk.files.stat(last).size
    log = open_log(disk.files, path, recovery_point=20)

    assert read_all(log) == list(range(40))
    (cut,) = log.cuts
    assert (cut.path, cut.position, cut.offset) == (last, size - len(harm), 40)
    assert cut.reason.startswith(f"{len(harm)} bytes: ")


@pytest.mark.parametrize("zeros", [1, 70, 5000])
def test_zeros_at_the_end_go_without_a_word(disk, path, zeros):
    """Is room that was made for what did not come any more given back, and not told as something lost?"""
    last = f"{path}/{logs(disk.files, path)[-1]}"
    size = disk.files.stat(last).size
    spoil(disk.files, last, size, bytes(zeros))
    log = open_log(disk.files, path, recovery_point=20)

    assert read_all(log) == list(range(40))
    assert (log.cuts, log.findings) == ([], [])
    assert disk.files.stat(last).size == size
    assert append(log, 1) == 40


def test_zeros_between_segments(disk, path):
    """If a power cut undid that a segment was cut where it ends, does the log go on in the next one?"""
    names = logs(disk.files, path)
    amid = next(name for name in names if int(name[:20]) > 20)
    size = disk.files.stat(f"{path}/{amid}").size
    spoil(disk.files, f"{path}/{amid}", size, bytes(300))
    log = open_log(disk.files, path, recovery_point=20)

    assert read_all(log) == list(range(40))
    assert (log.cuts, log.findings) == ([], [])
    assert logs(disk.files, path) == names
    assert disk.files.stat(f"{path}/{amid}").size == size


def test_a_hole_of_zeros_ends_the_log(disk, path):
    """Is a batch that was never flushed and is not there the end, though one behind it is?"""
    last = f"{path}/{logs(disk.files, path)[-1]}"
    first = int(last.rpartition("/")[2][:20])
    spoil(disk.files, last, 0, bytes(SIZE))
    log = open_log(disk.files, path, recovery_point=20)

    assert read_all(log) == list(range(first))
    assert [(cut.position, cut.offset) for cut in log.cuts] == [(0, first)]
    assert disk.files.stat(last).size == 0


def test_zeros_in_the_place_of_flushed_data(disk, path):
    """Are zeros where flushed batches must be never taken for room?"""
    first = logs(disk.files, path)[0]
    disk.files.open(f"{path}/{first}").truncate(0)
    spoil(disk.files, f"{path}/{first}", 0, bytes(1000))
    with pytest.raises(CorruptLog):
        open_log(disk.files, path, recovery_point=5)


def test_the_log_ends_where_unflushed_data_is_harmed(disk, path):
    """Does a bad batch that was never flushed end the log, later segments included?"""
    names = logs(disk.files, path)
    harmed = next(name for name in names if int(name[:20]) > 20)
    base = int(harmed[:20])
    spoil(disk.files, f"{path}/{harmed}", 2 * SIZE + 65, b"\xff")
    log = open_log(disk.files, path, recovery_point=20)

    assert read_all(log) == list(range(base + 2))
    assert logs(disk.files, path) == names[: names.index(harmed) + 1]
    assert log.findings == []
    assert [cut.path.rpartition("/")[2] for cut in log.cuts] == names[names.index(harmed) :]
    assert "CRC" in log.cuts[0].reason


def test_a_flushed_batch_with_a_bad_crc_stays(disk, path):
    """Is harm to flushed data left as it is and reported, and nothing behind it lost?"""
    spoil(disk.files, f"{path}/{FIRST}", 3 * SIZE + 65, b"\xff")
    log = open_log(disk.files, path, recovery_point=5)

    assert read_all(log) == list(range(40))
    assert [(f.position, f.offset) for f in log.findings] == [(3 * SIZE, 3)]
    assert "CRC" in log.findings[0].reason


@pytest.mark.parametrize(("at", "harm"), [(8, b"\x7f"), (16, b"\x00"), (0, b"\xff"), (23, b"\xff")])
def test_a_log_whose_flushed_part_cannot_be_walked_does_not_open(disk, path, at, harm):
    """Is that an error that names the file, with the file untouched?"""
    spoil(disk.files, f"{path}/{FIRST}", 3 * SIZE + at, harm)
    before = disk.files.read(f"{path}/{FIRST}")
    with pytest.raises(CorruptLog, match=FIRST):
        open_log(disk.files, path, recovery_point=5)

    assert disk.files.read(f"{path}/{FIRST}") == before


def test_flushed_data_that_is_gone_is_reported(disk, path):
    """Is it said aloud when the log ends before the recovery point?"""
    disk.files.open(f"{path}/{FIRST}").truncate(2 * SIZE)
    for name in logs(disk.files, path)[1:]:
        disk.files.unlink(f"{path}/{name}")
    log = open_log(disk.files, path, recovery_point=5)

    assert log.log_end_offset == 2
    assert "below 5 was flushed" in log.findings[0].reason


def test_a_hole_between_segments_ends_the_log(disk, path):
    """If a rolled segment's tail was lost but the next segment was not, is what lies behind the hole dropped?"""
    names = logs(disk.files, path)
    harmed = next(name for name in names if int(name[:20]) > 20)
    file = disk.files.open(f"{path}/{harmed}")
    file.truncate(file.size() - SIZE)
    log = open_log(disk.files, path, recovery_point=20)
    end_offset = int(names[names.index(harmed) + 1][:20]) - 1

    assert read_all(log) == list(range(end_offset))
    assert logs(disk.files, path)[-1] == harmed


def test_a_stop_that_was_clean_but_a_file_that_is_not(disk, path):
    """Is a torn file after a clean stop refused: everything in it was flushed?"""
    log = open_log(disk.files, path)
    log.close(0)
    last = f"{path}/{logs(disk.files, path)[-1]}"
    disk.files.open(last).truncate(disk.files.stat(last).size - 5)
    with pytest.raises(CorruptLog, match="no batch at"):
        open_log(disk.files, path, clean=True)


def test_a_stop_that_was_clean_but_an_offset_that_is_not(disk, path):
    """Is a last batch that claims an offset from another world refused rather than followed?"""
    log = open_log(disk.files, path)
    log.close(0)
    last = log.segments()[-1]
    position = last.find(39)[0]
    for harm in (b"\x7f", b"\xff"):
        spoil(disk.files, last.path(), position, harm)
        with pytest.raises(CorruptLog, match=r"cannot be at|no batch at"):
            open_log(disk.files, path, clean=True)


def test_a_reader_always_gets_on(disk):
    """Is a batch in the wrong segment an error, rather than something to read for ever?"""
    path = f"{disk.root}/t-0"
    log = open_log(disk.files, path)
    fill(log, 5)
    log.close(0)
    for kind in (".log", ".index", ".timeindex"):
        disk.files.rename(f"{path}/{0:020d}{kind}", f"{path}/{3:020d}{kind}")
    with pytest.raises(CorruptLog):
        read_all(open_log(disk.files, path, clean=True))


def test_a_file_too_great_to_be_a_segment(memory):
    """Is a log file beyond four-byte positions refused?"""
    memory.mkdir("/data/t-0")
    memory.open(f"/data/t-0/{FIRST}", create=True)
    real = memory.stat
    memory.stat = lambda path: real(path)._replace(size=SEGMENT_BYTES_MAX + 1)
    with pytest.raises(CorruptLog, match="cannot be a segment"):
        open_log(memory, "/data/t-0")


def test_strangers_and_leftovers(disk, path):
    """Are other files left alone, interrupted ones and orphans removed?"""
    for name in (
        "README",
        "00000000000000000007.index",
        "00000000000000000000.log.deleted",
        "99999999999999999999.log",
        "x.tmp",
        "00000000000000000000.index.cleaned",
        "00000000000000000003.log.cleaned",
    ):
        disk.files.open(f"{path}/{name}", create=True).pwrite(b"junk", 0)

    assert read_all(open_log(disk.files, path)) == list(range(40))

    names = disk.files.listdir(path)

    assert {"README", "99999999999999999999.log"} < set(names)
    assert not [name for name in names if name.endswith((".deleted", ".cleaned", ".tmp"))]
    assert "00000000000000000007.index" not in names


def test_indexes_are_made_anew(disk, path):
    """Are the indexes of recovered segments rebuilt, whatever is in the files?"""
    for name in disk.files.listdir(path):
        if name.endswith("index"):
            disk.files.open(f"{path}/{name}", create=True).pwrite(b"\xff" * 24, 0)
    log = open_log(disk.files, path)

    assert read_all(log) == list(range(40))
    assert log.offset_for_timestamp(1017) == (1017, 17, 0)
    assert disk.files.read(f"{path}/{logs(disk.files, path)[0][:20]}.index") == log.segments()[0].offset_index.encode()


@pytest.mark.parametrize("data", [None, b"", b"junk", b"0\n1\n7 90\n"])
def test_epochs_are_known_all_the_same(disk, data):
    """Are leader epochs read off the batches where their file is missing, useless or ahead of the log?"""
    path = f"{disk.root}/t-0"
    log = open_log(disk.files, path)
    for i in range(30):
        append(log, i, epoch=i // 10)
    flush(log)
    disk.files.unlink(f"{path}/leader-epoch-checkpoint")
    if data is not None:
        disk.files.open(f"{path}/leader-epoch-checkpoint", create=True).pwrite(data, 0)
    log = open_log(disk.files, path, recovery_point=0 if data != b"junk" else 30)

    assert log.latest_epoch == 2
    assert [log.end_offset_for_epoch(epoch) for epoch in (0, 1, 2)] == [(0, 10), (1, 20), (2, 30)]

    flush(log)

    assert disk.files.read(f"{path}/leader-epoch-checkpoint") == b"0\n3\n0 0\n1 10\n2 20\n"


def test_producers_come_from_snapshot_and_log(disk):
    """Is the newest whole snapshot loaded and only what is behind it replayed?"""
    path = f"{disk.root}/t-0"
    journal = Journal()
    log = open_log(disk.files, path, producers=journal)
    for i in range(10):
        append(log, i, producer_id=1, producer_epoch=0, base_sequence=i)
        if i in {3, 6}:
            journal.known = [producer(1, i)]
            log.roll(0)
    again = Journal()
    open_log(disk.files, path, producers=again)

    assert (again.loaded, again.replayed) == ([producer(1, 6)], [7, 8, 9])

    disk.files.open(f"{path}/00000000000000000007.snapshot").pwrite(b"\xff", 8)
    open_log(disk.files, path, producers=again)

    assert (again.loaded, again.replayed) == ([producer(1, 3)], [7, 8, 9, 4, 5, 6, 7, 8, 9])

    for name in disk.files.listdir(path):
        if name.endswith(".snapshot"):
            disk.files.unlink(f"{path}/{name}")
    again = Journal()
    open_log(disk.files, path, producers=again)

    assert (again.loaded, again.replayed) == ([], list(range(10)))


def test_a_snapshot_of_what_is_gone_goes(disk):
    """Is a snapshot from behind the recovered end not believed, now or later?"""
    path = f"{disk.root}/t-0"
    journal = Journal()
    log = open_log(disk.files, path, producers=journal)
    fill(log, 5)
    journal.known = [producer(9, 4)]
    log.write_producer_snapshot()
    disk.files.open(f"{path}/{FIRST}").truncate(3 * SIZE)
    again = Journal()
    open_log(disk.files, path, producers=again)

    assert again.loaded == []
    assert not [name for name in disk.files.listdir(path) if name.endswith(".snapshot")]


def test_a_start_behind_the_end(disk, path):
    """If the log was to start behind what is left of it, does it begin again there, empty?"""
    log = open_log(disk.files, path, log_start_offset=77)

    assert (log.log_start_offset, log.log_end_offset, log.recovery_point, log.latest_epoch) == (77, 77, 77, -1)
    assert append(log, 1) == 77
    assert logs(disk.files, path) == [f"{77:020d}.log"]


def test_a_start_inside_the_log(disk, path):
    """Are records before the start not read, though their segment is still there?"""
    log = open_log(disk.files, path, log_start_offset=5, recovery_point=20)

    assert log.log_start_offset == 5
    assert read_all(log) == list(range(5, 40))
    assert log.end_offset_for_epoch(0) == (0, 40)


def test_an_empty_last_segment(disk, path):
    """Is a log that rolled and stopped before the next append whole?"""
    log = open_log(disk.files, path)
    log.roll(0)

    assert read_all(open_log(disk.files, path)) == list(range(40))
    assert read_all(open_log(disk.files, path, recovery_point=40)) == list(range(40))


def test_recovery_that_fails_is_a_storage_fault(memory):
    """Is a disk that cannot be read reported as such?"""
    fill(open_log(memory, "/data/t-0"), 3)
    memory.fail_next("read")
    with pytest.raises(StorageFault, match="/data/t-0"):
        open_log(memory, "/data/t-0")


def sound_files() -> dict[str, bytes]:
    """The files of a closed log of some segments, with producers and epochs."""
    files = MemoryFiles()
    journal = Journal()
    log = open_log(files, "/t-0", producers=journal)
    for i in range(30):
        append(log, 1000 + i, 1000 - i, epoch=i // 10, codec="gzip" if i % 2 else "none")
    journal.known = [producer(1, 5)]
    log.close(0)
    return {name: files.read(f"/t-0/{name}") for name in files.listdir("/t-0")}


SOUND = sound_files()

HARM = st.tuples(
    st.sampled_from(sorted(SOUND)),
    st.sampled_from(["flip", "cut", "zero", "replace", "grow", "rename"]),
    st.integers(0, 2000),
    st.binary(min_size=1, max_size=70),
)


def do_harm(content: dict[str, bytes], name: str, kind: str, position: int, data: bytes) -> None:
    """Spoil one file in one way."""
    whole = content.get(name, b"")
    position %= len(whole) + 1
    end = position + len(data)
    content[name] = {
        "flip": whole[:position]
        + bytes(b ^ 1 << data[0] % 8 for b in whole[position : position + 1])
        + whole[position + 1 :],
        "cut": whole[:position],
        "zero": whole[:position] + bytes(len(whole) - position),
        "replace": whole[:position] + data + whole[end:],
        "grow": whole + data,
        "rename": whole,
    }[kind]
    if kind == "rename":
        content[f"{position:020d}{name[20:]}"] = content.pop(name)


@settings(max_examples=settings().max_examples * 6)
@given(st.lists(HARM, min_size=1, max_size=4), st.booleans(), st.integers(0, 70))
def test_any_harm(harms, clean, recovery_point):
    """Whatever is in the files, does opening and using the log end well or with a named error?"""
    content = dict(SOUND)
    for harm in harms:
        do_harm(content, *harm)
    files = MemoryFiles()
    files.mkdir("/t-0")
    for name, data in content.items():
        files.open(f"/t-0/{name}", create=True).pwrite(data, 0)
    with suppress(HeadraceError):
        log = open_log(files, "/t-0", clean=clean, recovery_point=recovery_point)
        for use in (
            lambda: read_all(log),
            lambda: log.offset_for_timestamp(1005),
            log.offset_of_max_timestamp,
            lambda: append(log, 5),
            lambda: log.delete_old_segments(0),
            lambda: log.truncate_to(log.log_end_offset - 3),
            lambda: log.close(0),
        ):
            with suppress(HeadraceError):
                use()


@pytest.mark.parametrize("seed", range(30))
def test_a_roll_right_behind_the_recovery_point(memory, seed):
    """If everything was flushed and then a segment rolled, are its indexes not believed, which nobody flushed?"""
    log = open_log(memory, "/data/t-0")
    fill(log, 8)
    flush(log)
    log.roll(0)
    memory.power_cut(Random(seed))
    log = open_log(memory, "/data/t-0", recovery_point=8)

    assert [log.offset_for_timestamp(1000 + i) for i in range(8)] == [(1000 + i, i, 0) for i in range(8)]
    assert log.segments()[0].max_timestamp() == (1007, 7)


def test_a_new_directory_is_not_flushed(memory):
    """Is a log that is made, not found, left to its first flush to be safe, and one that is found after a crash not?"""
    counts = [memory.calls["fsync_dir"]]
    for _ in range(2):
        open_log(memory, "/data/t-0")
        counts.append(memory.calls["fsync_dir"])

    assert counts == [counts[0], counts[0], counts[0] + 1]
