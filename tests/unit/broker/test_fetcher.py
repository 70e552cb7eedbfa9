"""Fetches of what is not in memory: the event loop never waits for a disk to find it."""

import threading

import pytest

from headrace.storage import batch_file, segment
from headrace.storage.memory_files import MemoryMapping
from unit.broker.test_partition_transactions import Teller


@pytest.fixture(autouse=True)
def _every_segment_is_large(monkeypatch):
    monkeypatch.setattr(segment, "_SMALL_BYTES", 0)


@pytest.fixture
def teller(desk):
    """A topic with an aborted and a committed transaction in old segments, after a clean restart."""
    teller = Teller(desk)
    for number in range(4):
        teller.write(2, sequence=2 * number)
        teller.end(commit=number % 2 == 1)
        teller.partition.log.roll(0)
    desk.restart()
    return teller


def readers(desk, monkeypatch):
    """Which threads read which index files, from now on."""
    seen = []

    def before(operation, path):
        if operation == "read" and path.endswith("index"):
            seen.append((path.rpartition(".")[2], threading.current_thread() is threading.main_thread()))

    monkeypatch.setattr(desk.files, "before", before)
    return seen


def test_indexes_are_read_by_a_thread(teller, monkeypatch):
    """Does a fetch from an old segment answer right, its indexes read by a thread and none by the event loop?"""
    seen = readers(teller.desk, monkeypatch)
    found = teller.fetch(0)

    assert len(found.records) > 0
    assert [(one.producer_id, one.first_offset) for one in found.aborted_transactions] == [(7, 0)]
    assert {kind for kind, _ in seen} == {"index", "timeindex", "txnindex"}
    assert not any(is_loop for _, is_loop in seen)


def test_everything_is_cold(teller, monkeypatch):
    """Are the same bytes answered where no page is ever found in memory?"""
    warm = [bytes(teller.fetch(offset).records) for offset in (0, 3, 6)]
    monkeypatch.setattr(batch_file, "_MAP_MIN", 1)
    monkeypatch.setattr(MemoryMapping, "resident", lambda *_: False)
    teller.desk.restart()

    assert [bytes(teller.fetch(offset).records) for offset in (0, 3, 6)] == warm


def test_a_disk_that_fails_the_thread(teller):
    """Is a disk's error told as such, and the next fetch served?"""
    teller.desk.files.fail_next("read", path_contains=".index")

    assert teller.fetch(0).error_code == 56
    assert teller.fetch(0).error_code == 0
