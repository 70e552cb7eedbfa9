"""A reply that a thread sends from files arrives as it is, or what is left of it is handed back."""

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.broker import file_sending
from headrace.broker.file_sending import LostHalfway, send_from_files, sent_by_a_thread
from headrace.model.log_config import LogConfig
from headrace.storage.files import RealFiles
from headrace.storage.memory_files import MemoryFiles
from unit.storage.samples import append, open_log

HEAD, TAIL = b"what is said before the records", b"and after them"


class Reply:
    """Some batches of a log between words of our own, and a pair of sockets to send them over."""

    def __init__(self, files, root):
        self.log = open_log(files, f"{root}/t-0", config=LogConfig())
        for number in range(400):
            append(self.log, number, number, size=2_000)
        self.span = self.log.read(0, max_bytes=10_000_000, limit_offset=self.log.log_end_offset)
        self.pieces = [HEAD, self.span.piece(), TAIL]
        assert self.span.size > 1_000_000
        self.whole = HEAD + self.span.load() + TAIL
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)

    def send(self):
        return send_from_files(self.near, self.pieces)

    def received(self):
        """Everything that was sent, once the near end is closed."""
        return b"".join(iter(lambda: self.far.recv(100_000), b""))


@pytest.fixture(params=["real", "memory"])
def reply(request, tmp_path):
    """Over both kinds of files."""
    made = Reply(RealFiles(), tmp_path) if request.param == "real" else Reply(MemoryFiles(), "/data")
    with made.near, made.far:
        yield made


def test_the_whole_reply_arrives(reply):
    """Does a peer that reads get every byte in order, with nothing left to send?"""
    got = []
    reader = threading.Thread(target=lambda: got.append(reply.received()))
    reader.start()

    assert list(reply.send()) == []
    reader.join()
    assert got == [reply.whole]


def test_a_peer_that_does_not_read(reply, monkeypatch):
    """Is what a peer did not take handed back, so that nothing is missing and nothing is sent twice?"""
    monkeypatch.setattr(file_sending, "STALL_MS", 1)

    rest = b"".join(map(bytes, reply.send()))

    assert 0 < len(rest) < len(reply.whole)
    assert reply.received() + rest == reply.whole


def test_a_peer_that_reads_too_slowly(reply, monkeypatch):
    """Does the thread give up on a peer whose socket is ready now and then, once its time is over?"""
    monkeypatch.setattr(file_sending, "SECONDS_MAX", -1.0)

    assert len(reply.send()) > 0


def test_a_peer_that_is_gone(reply):
    """Is nothing left to send to a peer that closed?"""
    reply.far.close()

    assert list(reply.send()) == []


def test_a_disk_that_fails():
    """Is a read error in the middle of a reply told as one, as the reply cannot be finished?"""
    files = MemoryFiles()
    reply = Reply(files, "/data")
    files.fail_next("read", path_contains=".log")

    with reply.near, reply.far, pytest.raises(LostHalfway):
        reply.send()
    assert isinstance(reply.span.piece(), memoryview), "the next reader is told of it instead"


def test_a_disk_that_fails_after_a_stall(monkeypatch):
    """Is it told as well where the event loop would have had to send the rest, which never came from the disk?"""
    files = MemoryFiles()
    reply = Reply(files, "/data")
    monkeypatch.setattr("headrace.storage.file_range.warm", lambda _: False)
    monkeypatch.setattr(file_sending.select, "poll", Never)

    def stall(*_):
        """The peer takes nothing more, and the disk fails when the rest is read."""
        files.fail_next("read", path_contains=".log")
        raise BlockingIOError

    monkeypatch.setattr(type(reply.span._segment.file), "send", stall)

    with reply.near, reply.far, pytest.raises(LostHalfway):
        reply.send()


class Never:
    """A socket that is not ready."""

    def register(self, *_):
        """Whatever it is."""

    def poll(self, _):
        """Nothing."""
        return []


def test_a_file_that_ends_early(reply, monkeypatch):
    """Does a file that became shorter end the reply, and not keep the thread for ever?"""
    monkeypatch.setattr(reply.pieces[1], "_position", 100_000_000, raising=False)

    with pytest.raises(LostHalfway):
        reply.send()


def test_what_a_thread_could_not_send():
    """Does who waits for a thread get what it hands back, or why it could not?"""

    def fail():
        raise LostHalfway("the disk is bad")

    async def wait():
        with ThreadPoolExecutor(1) as threads:
            assert await sent_by_a_thread(threads, lambda: [b"rest"]) == [b"rest"]
            with pytest.raises(LostHalfway, match="the disk is bad"):
                await sent_by_a_thread(threads, fail)

    asyncio.run(wait())


def test_nobody_waits_any_more(caplog):
    """Does a thread finish what it began if who waited for it was cancelled, or the whole loop has ended?"""
    begun, go_on, done = threading.Event(), threading.Event(), []

    def send():
        begun.set()
        go_on.wait()
        done.append(True)
        return ()

    async def give_up(*, at_once):
        waiting = asyncio.ensure_future(sent_by_a_thread(threads, send))
        await asyncio.to_thread(begun.wait)
        waiting.cancel()
        await asyncio.wait([waiting])
        if at_once:
            go_on.set()
            await asyncio.wrap_future(threads.submit(bool))

    for at_once in (True, False):
        begun.clear()
        go_on.clear()
        with ThreadPoolExecutor(1) as threads:
            asyncio.run(give_up(at_once=at_once))
            go_on.set()

    assert done == [True, True]
    assert not caplog.records
