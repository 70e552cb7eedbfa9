"""Reading a log without waiting for the disk: what is at hand, and what a thread must fetch first."""

import pytest

from headrace.model.errors import StorageFault
from headrace.model.log_config import LogConfig
from headrace.storage import batch_file, segment
from headrace.storage.memory_files import MemoryMapping
from headrace.storage.readable_log import NotAtHand
from headrace.storage.transaction_index import AbortedTransaction
from unit.storage.samples import append, fill, open_log, read_all


@pytest.fixture(autouse=True)
def _every_segment_is_large(monkeypatch):
    monkeypatch.setattr(segment, "_SMALL_BYTES", 0)


@pytest.fixture
def log(memory):
    """A log of several segments as a clean restart leaves it: nothing of the old ones is in memory."""
    path = "/data/t-0"
    log = open_log(memory, path)
    fill(log, 40)
    log.close(0)
    return open_log(memory, path, clean=True)


@pytest.fixture
def cold(monkeypatch):
    """A set of ranges that are not in memory, as far as mappings can tell; everything while it is empty."""
    ranges: list[range] = []
    monkeypatch.setattr(batch_file, "_MAP_MIN", 1)
    monkeypatch.setattr(segment, "WALK_BYTES", 50)

    def resident(_self: MemoryMapping, position: int, size: int) -> bool:
        return bool(ranges) and not any(position < gone.stop and gone.start < position + size for gone in ranges)

    monkeypatch.setattr(MemoryMapping, "resident", resident)
    return ranges


def read(log, offset, max_bytes=300):
    """A read that must not wait."""
    return log.read(offset, max_bytes=max_bytes, limit_offset=log.log_end_offset, wait=False)


def test_an_index_that_is_not_loaded(log):
    """Is a read of an old segment not at hand until its index is fetched, and then the same as a patient one?"""
    with pytest.raises(NotAtHand):
        read(log, 0)
    log.prefetch(0, max_bytes=300, limit_offset=40)
    span = read(log, 0)

    assert bytes(span.view()) == bytes(log.read(0, max_bytes=300, limit_offset=40).view())
    assert read_all(log) == list(range(40))


def test_a_small_segment_is_worth_no_thread(log, monkeypatch):
    """Is a segment that is looked through in no time read at once?"""
    monkeypatch.setattr(segment, "_SMALL_BYTES", 1 << 16)
    assert bytes(read(log, 0).view()) == bytes(log.read(0, max_bytes=300, limit_offset=40).view())


def test_the_active_segment_is_always_at_hand(log):
    """Is the end of the log served at once after a restart?"""
    start = log.segments()[-1].base_offset

    assert read(log, start).base_offset == start


def test_who_follows_is_never_told_to_wait(memory):
    """Is a reader at the end of the log served without a look at the index or the pages?"""
    log = open_log(memory, "/data/t-0", config=LogConfig())
    append(log, 1)
    offset = read(log, 0).end_offset
    for i in range(5):
        append(log, i)
        offset = read(log, offset).end_offset

    assert offset == 6


def test_pages_that_are_cold(log, cold):
    """Is a search, or a cut, that would touch a cold page not at hand?"""
    log.prefetch(0, max_bytes=300, limit_offset=40)
    with pytest.raises(NotAtHand):
        read(log, 0)
    cold.append(range(10**6, 10**6 + 1))
    span = read(log, 0)
    cold[:] = [range(span.size - 1, 10**6)]
    with pytest.raises(NotAtHand):
        read(log, 0)

    assert read(log, 0, max_bytes=10**6).size > 0, "without a cut only the beginning is looked for"


def test_a_limit_on_a_cold_page(log, cold):
    """Is a read that must end within a cold segment not at hand?"""
    log.prefetch(0, max_bytes=10**6, limit_offset=40)
    cold.append(range(10**6, 10**6 + 1))
    assert log.read(0, max_bytes=10**6, limit_offset=3, wait=False).end_offset == 3
    cold[:] = [range(100, 10**6)]

    with pytest.raises(NotAtHand):
        log.read(0, max_bytes=10**6, limit_offset=5, wait=False)


def test_a_harmed_index_is_made_anew_by_the_thread(memory, log):
    """Does fetching rebuild an index that cannot be right, so that the read need not?"""
    path = log.segments()[0].path(".index")
    memory.open(path, create=True).pwrite(b"\xff" * 8, 0)
    log.prefetch(0, max_bytes=300, limit_offset=40)

    assert read(log, 5).base_offset == 5


def test_a_disk_that_refuses(memory, log):
    """Is a disk's error while fetching a storage fault?"""
    memory.fail_next("open", path_contains=".log")

    with pytest.raises(StorageFault):
        log.prefetch(0, max_bytes=300, limit_offset=40)


def test_aborted_transactions_that_are_not_loaded(memory):
    """Must the list of aborted transactions be fetched, too, where it is only on the disk?"""
    log = open_log(memory, "/data/t-0")
    fill(log, 3)
    log.note_aborted(AbortedTransaction(7, 0, 2, 3))
    log.roll(0)
    log.close(0)
    log = open_log(memory, "/data/t-0", clean=True)

    with pytest.raises(NotAtHand):
        log.aborted_transactions(0, 3, wait=False)
    log.prefetch(0, max_bytes=300, limit_offset=3)
    assert log.aborted_transactions(0, 3, wait=False) == [AbortedTransaction(7, 0, 2, 3)]
