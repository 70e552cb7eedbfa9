"""The connection cuts frames, keeps replies in order and refuses what costs too much: over real sockets."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from headrace.net.connection import BULK_RECEIVE_BYTES, BULK_SEND_BYTES, FILE_SEND_BYTES, Connection, Limits
from headrace.net.frame_buffers import FIRST_BYTES_MAX, SCRATCH_BYTES
from headrace.net.listener import Listener
from headrace.net.reply import Buffers, CloseConnection, PendingReply
from headrace.storage.file_range import FileRange
from headrace.storage.files import RealFiles


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


class Echo:
    """Answers every frame with itself; `wait…` frames wait until they are released, `close` ends the connection."""

    def __init__(self) -> None:
        self.waiting: list[tuple[PendingReply, bytes]] = []
        self.seen: list[bytes] = []
        self.file_reply: Buffers = ()

    def handle(self, connection: Connection, frame: memoryview) -> Buffers | PendingReply:
        body = bytes(frame)
        self.seen.append(body[:20])
        if body == b"close":
            raise CloseConnection("asked to")
        if body.startswith((b"wait", b"alone")):
            reply = PendingReply(exclusive=body.startswith(b"alone"))
            self.waiting.append((reply, body))
            return reply
        if body == b"file":
            return self.file_reply
        if body == b"silent":
            return ()
        return (len(body).to_bytes(4, "big"), body)

    def release(self) -> None:
        for reply, body in self.waiting:
            reply.send((framed(body),))
        self.waiting.clear()


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter, Echo, Listener], Awaitable[None]]


def talk(
    conversation: Talk, limits: Limits | None = None, *, connections_max: int = 100, per_address_max: int = 100
) -> list[str]:
    """Run a conversation with a listener; the reasons for which connections were closed come back."""
    reasons: list[str] = []

    async def run() -> None:
        echo = Echo()
        listener = Listener(
            echo,
            name="TEST",
            limits=limits or Limits(),
            connections_max=connections_max,
            connections_per_address_max=per_address_max,
            on_refuse=lambda _, reason: reasons.append(reason),
        )
        await listener.start("127.0.0.1", 0, backlog=10)
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        try:
            await asyncio.wait_for(conversation(reader, writer, echo, listener), 10)
        finally:
            writer.close()
            await listener.stop()

    asyncio.run(run())
    return reasons


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - there is no event for what the other side of a socket has seen
        await asyncio.sleep(0)


def test_many_requests_in_one_packet() -> None:
    """Are requests that arrive together all answered, in order?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _echo: Echo, _listener: Listener
    ) -> None:
        bodies = [f"request {number}".encode() for number in range(100)]
        writer.write(b"".join(map(framed, bodies)))

        assert bodies == [await read_frame(reader) for _ in bodies]

    talk(conversation)


@pytest.mark.parametrize("size", [1, 3, 70_000, 300_000, 3_000_000])
def test_a_request_in_pieces(size: int) -> None:
    """Is a request that arrives in small pieces, or is larger than any buffer, put together rightly?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _echo: Echo, _listener: Listener
    ) -> None:
        body = bytes(number % 251 for number in range(size))
        data = framed(body) + framed(b"next")
        step = max(1, len(data) // 7)
        for start in range(0, len(data), step):
            writer.write(data[start : start + step])
            await writer.drain()
            await asyncio.sleep(0.001)

        assert body == await read_frame(reader)
        assert b"next" == await read_frame(reader)

    talk(conversation)


def test_replies_keep_their_order() -> None:
    """Does a reply that is ready early wait for the one before it, while later requests are already started?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, echo: Echo, _listener: Listener
    ) -> None:
        writer.write(framed(b"wait 1") + framed(b"two") + framed(b"wait 3") + framed(b"four"))
        await until(lambda: len(echo.seen) == 4)
        echo.release()

        assert [b"wait 1", b"two", b"wait 3", b"four"] == [await read_frame(reader) for _ in range(4)]

    talk(conversation)


def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pieces each write had that connections make from now on."""
    sizes: list[int] = []
    made = Connection.connection_made

    def watched(connection: Connection, transport: asyncio.Transport) -> None:
        def writelines(pieces: list[bytes]) -> None:
            sizes.append(len(pieces))
            transport.write(b"".join(pieces))

        made(connection, transport)
        connection._transport = SimpleNamespace(
            writelines=writelines, close=transport.close, abort=transport.abort, get_extra_info=transport.get_extra_info
        )

    monkeypatch.setattr(Connection, "connection_made", watched)
    return sizes


def test_replies_that_become_ready_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Are they written with one call, while one that nobody waits behind is written at once?"""
    sizes = written(monkeypatch)

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, echo: Echo, _listener: Listener
    ) -> None:
        writer.write(b"".join(framed(f"wait {number}".encode()) for number in range(5)))
        await until(lambda: len(echo.seen) == 5)
        echo.release()
        assert [] == sizes
        assert [f"wait {number}".encode() for number in range(5)] == [await read_frame(reader) for _ in range(5)]
        assert [5] == sizes

        writer.write(framed(b"wait alone"))
        await until(lambda: len(echo.seen) == 6)
        echo.release()
        assert [5, 1] == sizes

    talk(conversation)


def test_ready_replies_leave_before_the_end() -> None:
    """Does a connection that is closed in the same turn still send what was ready?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, echo: Echo, listener: Listener
    ) -> None:
        writer.write(framed(b"wait 1") + framed(b"wait 2"))
        await until(lambda: len(echo.seen) == 2)
        echo.release()
        for connection in tuple(listener.connections):
            connection.close("enough")

        assert [b"wait 1", b"wait 2"] == [await read_frame(reader) for _ in range(2)]
        assert b"" == await reader.read()

    talk(conversation)


def test_an_exclusive_reply_mutes_the_connection() -> None:
    """Are requests behind a costly one left alone until it is answered?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, echo: Echo, _listener: Listener
    ) -> None:
        writer.write(framed(b"alone") + framed(b"two"))
        await until(lambda: bool(echo.seen))
        await asyncio.sleep(0.01)
        assert [b"alone"] == echo.seen
        echo.release()

        assert [b"alone", b"two"] == [await read_frame(reader) for _ in range(2)]

    talk(conversation)


def test_no_reply_at_all() -> None:
    """Does a request without a reply (acks=0) leave the order of the others intact?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _echo: Echo, _listener: Listener
    ) -> None:
        writer.write(framed(b"one") + framed(b"silent") + framed(b"three"))

        assert [b"one", b"three"] == [await read_frame(reader) for _ in range(2)]

    talk(conversation)


@pytest.mark.parametrize("size", [-1, 0, 1_000_001, 352_518_912])
def test_bad_sizes_end_the_connection(size: int) -> None:
    """Is a frame with a negative, empty or huge size refused, after the good ones before it were answered?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _echo: Echo, _listener: Listener
    ) -> None:
        writer.write(framed(b"good") + size.to_bytes(4, "big", signed=True) + b"x")

        assert b"good" == await read_frame(reader)
        assert b"" == await reader.read()

    reasons = talk(conversation, Limits(frame_bytes_max=1_000_000))
    assert len(reasons) == 1
    assert "limit is 1000000" in reasons[0]


def test_a_declared_size_costs_nothing() -> None:
    """Does a peer that announces 100 MiB and sends little get no more than a first small buffer?"""

    async def conversation(
        _reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _echo: Echo, listener: Listener
    ) -> None:
        writer.write((100 * 1024 * 1024).to_bytes(4, "big") + b"abc")
        await until(lambda: listener.partial_bytes > 0)

        assert listener.partial_bytes <= 1024 * 1024

    talk(conversation)


@pytest.mark.parametrize(("sent", "allowed"), [(3, 100_000), (3_000_000, 1_000_000)], ids=["first", "grown"])
def test_partial_frames_have_a_budget(sent: int, allowed: int) -> None:
    """Is a connection closed when incomplete requests hold more bytes than allowed?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _echo: Echo, _listener: Listener
    ) -> None:
        writer.write((100 * 1024 * 1024).to_bytes(4, "big") + b"x" * sent)
        with contextlib.suppress(ConnectionError):
            assert b"" == await reader.read()

    reasons = talk(conversation, Limits(partial_bytes_max=allowed))
    assert ["queued.max.request.bytes" in reason for reason in reasons] == [True]


async def begin(writer: asyncio.StreamWriter, listener: Listener, data: bytes) -> None:
    """Send the beginning of a frame, a little first, so that its buffer doubles from the smallest, and see it come."""
    writer.write(data[:1_000])
    await until(lambda: listener.partial_bytes == FIRST_BYTES_MAX)
    writer.write(data[1_000:])
    (connection,) = listener.connections
    await until(lambda: connection._filled == len(data) - 4)


def test_who_comes_last_waits_for_room() -> None:
    """Is a client that finds no room not read until another's request is complete, and then answered like any?"""
    body = bytes(range(250)) * 4_000

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _echo: Echo, listener: Listener
    ) -> None:
        await begin(writer, listener, framed(body)[:900_000])
        assert listener.partial_bytes == len(body)
        late_reader, late_writer = await asyncio.open_connection("127.0.0.1", listener.port)
        late_writer.write(framed(body))
        await until(lambda: any(connection._starved for connection in listener.connections))
        assert listener.partial_bytes <= 1_200_000 + SCRATCH_BYTES
        overdue = {each._starved: each.overdue(each.loop.time() + 100) for each in listener.connections}
        assert {True: None, False: "a request stopped arriving (request.frame.timeout.ms)"} == overdue

        writer.write(framed(body)[900_000:])
        assert body == await read_frame(reader)
        assert body == await read_frame(late_reader)
        assert listener.partial_bytes == 0
        late_writer.close()

    assert [] == [reason for reason in talk(conversation, Limits(partial_bytes_max=1_200_000)) if reason]


def test_the_oldest_request_ends_where_none_can_go_on() -> None:
    """Is the newest client answered when requests that will never fit together all wait?"""
    body = bytes(900_000)

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _echo: Echo, listener: Listener
    ) -> None:
        await begin(writer, listener, framed(body)[:500_000])
        (first,) = listener.connections
        await until(lambda: first.loop.time() > first.frame_since)
        late_reader, late_writer = await asyncio.open_connection("127.0.0.1", listener.port)
        late_writer.write(framed(body))
        await until(lambda: any(connection._starved for connection in listener.connections))
        writer.write(framed(body)[500_000:700_000])
        with contextlib.suppress(ConnectionError):
            assert b"" == await reader.read()
        assert body == await read_frame(late_reader)
        late_writer.close()

    reasons = talk(conversation, Limits(partial_bytes_max=1_000_000))
    assert ["queued.max.request.bytes" in reason for reason in reasons if reason] == [True]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [(b"", "request.first.bytes.timeout.ms"), (b"\0\0\0\x09abc", "request.frame.timeout.ms")],
)
def test_silence_is_ended(sent: bytes, reason: str) -> None:
    """Is a peer that sends nothing, or stops in the middle of a request, let go after its time?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _echo: Echo, _listener: Listener
    ) -> None:
        writer.write(sent)

        assert b"" == await reader.read()

    reasons = talk(conversation, Limits(first_bytes_timeout_s=0.01, frame_timeout_s=0.01))
    assert [reason in given for given in reasons] == [True]


def test_a_first_request_that_comes_at_once_counts() -> None:
    """Is a client that spoke in the very moment it was accepted not taken for one that never spoke?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _echo: Echo, listener: Listener
    ) -> None:
        writer.write(framed(b"hello"))
        await read_frame(reader)
        (connection,) = listener.connections
        connection.heard_at = connection.opened_at

        assert connection.overdue(connection.opened_at + 60) is None

    talk(conversation)


def test_too_many_connections() -> None:
    """Is a connection beyond the limit closed at once, and the one before it left alone?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _echo: Echo, listener: Listener
    ) -> None:
        writer.write(framed(b"mine"))
        assert b"mine" == await read_frame(reader)
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", listener.port)
        assert b"" == await other_reader.read()
        other_writer.close()
        writer.write(framed(b"still here"))
        assert b"still here" == await read_frame(reader)

    reasons = talk(conversation, connections_max=1)
    assert ["max.connections" in reason for reason in reasons] == [True]
    reasons = talk(conversation, per_address_max=1)
    assert ["max.connections.per.ip" in reason for reason in reasons] == [True]


def test_a_peer_that_does_not_read() -> None:
    """Is a peer that reads nothing served only as far as the buffers go, and in full once it reads?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, echo: Echo, _listener: Listener
    ) -> None:
        body = bytes(100_000)
        count = 500
        writer.transport.set_write_buffer_limits(high=2**30)
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        for _ in range(count):
            writer.write(framed(body))
        before = -1
        while before != len(echo.seen):
            before = len(echo.seen)
            await asyncio.sleep(0.05)
        assert len(echo.seen) < count
        reader._transport.resume_reading()  # type: ignore[attr-defined]
        for _ in range(count):
            assert len(await read_frame(reader)) == len(body)

    talk(conversation)


def test_a_service_can_end_it() -> None:
    """Does the service's decision to close reach the peer after the replies before it?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _echo: Echo, _listener: Listener
    ) -> None:
        writer.write(framed(b"one") + framed(b"close") + framed(b"never"))

        assert b"one" == await read_frame(reader)
        assert b"" == await reader.read()

    assert ["asked to"] == talk(conversation)


def test_a_lent_socket() -> None:
    """Is the socket lent for the next reply only, and do later replies wait until that one is there?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, echo: Echo, listener: Listener
    ) -> None:
        writer.write(framed(b"wait first") + framed(b"wait second") + framed(b"third"))
        await until(lambda: len(echo.seen) == 3)
        (connection,) = listener.connections
        (first, _), (second, _) = echo.waiting
        assert connection.lend(second) is None
        lent = connection.lend(first)
        assert lent is not None
        with lent:
            second.send((framed(b"second"),))
            lent.send(framed(b"first"))
        first.send(())

        assert [await read_frame(reader) for _ in range(3)] == [b"first", b"second", b"third"]
        assert connection.lend(first) is None

    talk(conversation)


def _in_a_file(path: Path, size: int) -> tuple[FileRange, bytes]:
    """So many bytes that lie in a file."""
    content = bytes(number % 251 for number in range(size))
    file = RealFiles().open(str(path), create=True)
    file.pwrite(b"before" + content, 0)
    return FileRange(SimpleNamespace(has_failed=False), file, 6, memoryview(content)), content


@pytest.mark.parametrize(("size", "turn_s"), [(1, 1), (100_000, 1), (20_000_000, 1), (3_000_000, -1)])
def test_what_lies_in_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, turn_s: float) -> None:
    """Does a reply that lies in a file arrive whole and in its turn, however much of it the socket takes at once?"""
    monkeypatch.setattr("headrace.net.connection._TURN_S", turn_s)

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, echo: Echo, _listener: Listener
    ) -> None:
        piece, content = _in_a_file(tmp_path / "a", size)
        echo.file_reply = ((size + 8).to_bytes(4, "big"), b"head", piece, b"tail")
        writer.write(b"".join(map(framed, [b"one", b"file", b"two", b"wait", b"file", b"three"])))
        # Read first: where the kernel does not take all of a reply, what was asked behind it waits until it is read.
        assert [await read_frame(reader) for _ in range(3)] == [b"one", b"head" + content + b"tail", b"two"]
        await until(lambda: len(echo.seen) == 6)
        echo.release()

        assert [await read_frame(reader) for _ in range(3)] == [b"wait", b"head" + content + b"tail", b"three"]

    talk(conversation)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """Does a reply that cannot be finished end its connection, with its reason?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, echo: Echo, listener: Listener
    ) -> None:
        piece, _ = _in_a_file(tmp_path / "a", 100)
        piece._file.truncate(50)
        echo.file_reply = (b"\0\0\0\x68", b"head", piece)
        writer.write(framed(b"file"))

        assert b"\0\0\0\x68head" in await reader.read()
        assert not listener.connections

    assert ["a reply could not be finished: [Errno 5] the file became shorter"] == talk(conversation)


def test_own_descriptors_end_with_their_connections(tmp_path: Path) -> None:
    """Does a client that is sent files see the end when its connection is closed?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, echo: Echo, listener: Listener
    ) -> None:
        piece, content = _in_a_file(tmp_path / "a", 100)
        echo.file_reply = (b"\0\0\0\x68", b"head", piece)
        writer.write(framed(b"file") + framed(b"close"))

        assert await read_frame(reader) == b"head" + content
        assert await reader.read() == b""
        assert not listener.connections

    assert ["asked to"] == talk(conversation)


@pytest.mark.parametrize(
    ("told", "found"),
    [(100_000, (BULK_SEND_BYTES, BULK_RECEIVE_BYTES)), (1_000_000, (1_000_000, 1_000_000)), (-1, None)],
)
def test_large_requests_get_large_buffers(told: int, found: tuple[int, int] | None) -> None:
    """Are buffers that were told to be small enlarged for who sends much, and others left as they are?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _echo: Echo, listener: Listener
    ) -> None:
        def sizes() -> tuple[int, int]:
            (connection,) = listener.connections
            sock = connection._transport.get_extra_info("socket")
            return tuple(sock.getsockopt(socket.SOL_SOCKET, one) for one in (socket.SO_SNDBUF, socket.SO_RCVBUF))

        writer.write(framed(b"small"))
        await read_frame(reader)
        before = sizes()
        writer.write(framed(b"x" * 2_000_000))
        assert 2_000_000 == len(await read_frame(reader))

        if found is None:
            assert before[0] <= sizes()[0]
        else:
            # Linux answers with twice what it was told, and grants no more than its limits.
            assert [min(2 * size, 2 * limit) for size, limit in zip(found, _granted(), strict=True)] == [*sizes()]

    talk(conversation, Limits(send_buffer_bytes=told, receive_buffer_bytes=told))


@pytest.mark.parametrize(
    ("told", "for_files", "for_copies"),
    [(100_000, FILE_SEND_BYTES, BULK_SEND_BYTES), (1_000_000, FILE_SEND_BYTES, 1_000_000), (-1, None, None)],
)
def test_who_sends_from_files_has_a_larger_buffer(told: int, for_files: int | None, for_copies: int | None) -> None:
    """Does the kernel take more at once while a thread sends from files, and less again when replies are copied?"""

    async def conversation(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, echo: Echo, listener: Listener
    ) -> None:
        writer.write(framed(b"wait for the thread"))
        await until(lambda: len(echo.waiting) == 1)
        (connection,) = listener.connections
        ((reply, _),) = echo.waiting
        sock = connection._transport.get_extra_info("socket")
        at_first = sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)

        def size(wanted: int | None) -> int:
            return at_first if wanted is None else 2 * min(wanted, _granted()[0])

        lent = connection.lend(reply)
        assert lent is not None
        with lent:
            assert size(for_files) == lent.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
            lent.send(framed(b"from a file"))
        reply.send(())
        assert await read_frame(reader) == b"from a file"
        connection.pause_writing()
        connection.resume_writing()
        assert size(for_copies) == sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)

    talk(conversation, Limits(send_buffer_bytes=told))


def _granted() -> tuple[int, int]:
    """The largest buffers that this machine gives."""
    with socket.socket() as asked:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            asked.setsockopt(socket.SOL_SOCKET, option, 1 << 30)
        return tuple(
            asked.getsockopt(socket.SOL_SOCKET, option) // 2 for option in (socket.SO_SNDBUF, socket.SO_RCVBUF)
        )
