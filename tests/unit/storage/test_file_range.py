"""Does a socket get from a range of a file what a reader sees in memory, whatever becomes of the log?"""

import socket

import pytest

from headrace.model.log_config import LogConfig
from headrace.storage.file_range import FileRange
from headrace.storage.span import IN_PLACE_MIN
from unit.storage.samples import append, open_log


@pytest.fixture
def log(disk):
    """A log of 2 MB, more than is read without being mapped."""
    log = open_log(disk.files, f"{disk.root}/t-0", config=LogConfig())
    for number in range(100):
        append(log, number, size=20_000)
    return log


def piece_of(log, *, max_bytes=100_000):
    return log.read(0, max_bytes=max_bytes, limit_offset=log.log_end_offset).piece()


def sent(piece, begin=0):
    """What arrives of a piece from some byte on."""
    near, far = socket.socketpair()
    with near, far:
        taken = piece.send(near.fileno(), begin)
        assert 0 < taken <= len(piece) - begin
        return far.recv(taken, socket.MSG_WAITALL)


@pytest.mark.parametrize("begin", [0, 1, 80_000])
def test_what_is_sent_is_what_is_seen(log, begin):
    """Do bytes leave as they are, from any of them on?"""
    piece = piece_of(log)

    assert isinstance(piece, FileRange)
    assert bytes(piece.view[begin:]).startswith(sent(piece, begin))
    assert len(piece) == len(piece.view) > 80_000


def test_what_is_small_or_new_is_copied(log):
    """Is a range memory where it is small, or so new that it is not mapped?"""
    small = piece_of(log, max_bytes=IN_PLACE_MIN - 1)
    append(log, 1, size=2 * IN_PLACE_MIN)
    new = log.read(100, max_bytes=10_000_000, limit_offset=log.log_end_offset).piece()

    assert isinstance(small, memoryview)
    assert isinstance(new, memoryview)
    assert len(new) > IN_PLACE_MIN


def test_a_log_that_is_truncated(log):
    """Does a range that is held keep its bytes when the log is cut, and other batches take their place?"""
    piece = piece_of(log)
    before = bytes(piece.view)
    log.truncate_to(1)
    for _ in range(10):
        append(log, 5, size=20_000)

    assert before.startswith(sent(piece, 0))
    assert bytes(piece.view) == before
    assert before.index(sent(piece, 50_000)) == 50_000


def test_a_disk_that_fails(memory):
    """Is a read error an error, and the segment's next range one that is copied, so that its reader can be told?"""
    log = open_log(memory, "/data/t-0", config=LogConfig())
    for number in range(100):
        append(log, number, size=20_000)
    piece = piece_of(log)
    memory.fail_next("read", path_contains=".log")
    with pytest.raises(OSError, match="Input/output error"):
        sent(piece)

    assert isinstance(piece_of(log), memoryview)


def send_for_ever(piece, near):
    while True:
        piece.send(near.fileno(), 0)


def test_a_peer_that_takes_nothing(log):
    """Is that no fault of the disk?"""
    piece = piece_of(log)
    near, far = socket.socketpair()
    near.setblocking(False)
    with near, far:
        with pytest.raises(BlockingIOError):
            send_for_ever(piece, near)
        far.close()
        with pytest.raises(ConnectionError):
            piece.send(near.fileno(), 0)

    assert isinstance(piece_of(log), FileRange)


def test_a_file_that_ends_early(log):
    """Is a range that is not in the file any more an error, and not a wait for ever?"""
    piece = piece_of(log)
    piece._position += 100_000_000
    with pytest.raises(OSError, match="became shorter"):
        sent(piece)
