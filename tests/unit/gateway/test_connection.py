"""The gateway's connections over real sockets, with applications of a few lines behind them."""

import asyncio
import json
import socket

import pytest

from headrace.gateway.connection import put_of
from headrace.gateway.server import GatewayServer
from headrace.settings.gateway import GatewayConfig

HEAD = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]}


def body(data, *, more):
    """A piece of an answer."""
    return {"type": "http.response.body", "body": data, "more_body": more}


def serve(app, story):
    """Let an application answer while a story is told to its server's port."""

    async def answer(scope, receive, send):
        if scope["type"] == "http":
            await app(scope, receive, send)
            return
        for kind in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{kind}.complete"})

    async def run():
        server = GatewayServer(answer, GatewayConfig({"listeners": "http://127.0.0.1:0"}))
        await server.start()
        try:
            async with asyncio.timeout(20):
                return await story(server.addresses[0].port)
        finally:
            await server.stop()

    return asyncio.run(run())


async def ask(port, version):
    """All of an answer's bytes behind its head."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET / HTTP/{version}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.1", b"5\r\nfirst\r\n6\r\nsecond\r\n10\r\nsixteen letters!\r\n4\r\nlast\r\n0\r\n\r\n"),
        ("1.0", b"firstlast"),
    ],
)
def test_put(version, expected):
    """Are pieces that go the short way chunks like the others, and is there none where an answer has no chunks?"""

    async def app(scope, receive, send):
        await send(HEAD)
        await send(body(b"first", more=True))
        put = put_of(scope)
        assert put is None or (put(b"second") and put(b"sixteen letters!"))
        await send(body(b"last", more=False))

    assert expected == serve(app, lambda port: ask(port, version))


def test_put_ends_where_nobody_reads():
    """Is a piece refused once the client lets things lie, before the kernel has taken much, and once it is gone?"""
    refused = asyncio.Queue()

    async def app(scope, receive, send):
        await send(HEAD)
        put = put_of(scope)
        assert put is not None
        refused.put_nowait(sum(1 for _ in iter(lambda: put(b"x" * 10_000), False)))
        while (await receive())["type"] != "http.disconnect":
            pass
        refused.put_nowait(put(b"x"))

    async def story(port):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        pieces = await refused.get()
        writer.transport.abort()
        return pieces, await refused.get()

    pieces, put_to_nobody = serve(app, story)
    assert not put_to_nobody
    assert 0 < pieces < 100 or not hasattr(socket, "TCP_NOTSENT_LOWAT")


LIMIT = 32768


async def say_hello(scope, receive, send):
    """An application that reads all there is to read, and answers with its size."""
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    await send(HEAD)
    await send(body(b"%d" % size, more=False))


def request(head_bytes, *, content=b"", last=True):
    """A request whose head has just so many bytes."""
    head = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n"
    head += ("Connection: close\r\n" if last else "") + "X: "
    return f"{head}{'y' * (head_bytes - len(head) - 4)}\r\n\r\n".encode() + content


def statuses(answers):
    """The status of each answer in what was read."""
    return [int(answer.split()[0]) for answer in answers.split(b"HTTP/1.1 ")[1:]]


async def converse(port, pieces):
    """All that a server says to somebody who sends in pieces and then reads; each is taken before the next is sent."""
    loop = asyncio.get_running_loop()
    with socket.socket() as opened:
        opened.setblocking(False)
        await loop.sock_connect(opened, ("127.0.0.1", port))
        for piece in pieces:
            await loop.sock_sendall(opened, piece)
            # The server runs in this loop, too: it takes the piece in one of these turns.
            for _ in range(5):
                await asyncio.sleep(0)
        answer = b""
        while piece := await loop.sock_recv(opened, 65536):
            answer += piece
    return answer


def pieces_of(data, count):
    """Some data in so many pieces."""
    size = -(-len(data) // count)
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("count", [1, 2, 10, 20])
@pytest.mark.parametrize(
    ("head_bytes", "expected"),
    [(1000, 200), (LIMIT, 200), (LIMIT + 1, 431), (50_000, 431), (70_000, 431), (100_000, 431), (400_000, 431)],
)
def test_the_bound_of_a_head(head_bytes, expected, count):
    """Is a head over the bound refused with a sentence, and one within it taken, however its bytes arrive?"""
    answer = serve(say_hello, lambda port: converse(port, pieces_of(request(head_bytes), count)))

    assert [expected] == statuses(answer)
    if expected == 431:
        told = json.loads(answer.partition(b"\r\n\r\n")[2])
        sentence = "A request's line and all of its headers may have 32768 bytes (request.max.header.bytes)."
        assert {"error_code": 431, "message": sentence} == told


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([request(20_000, last=False), request(20_000)], [200, 200]),
        ([request(20_000, content=b"z" * 300_000, last=False), request(LIMIT, content=b"z" * 70_000)], [200, 200]),
        ([request(500, content=b"z" * 70_000, last=False), request(LIMIT + 1)], [200, 431]),
        ([request(LIMIT, last=False), request(LIMIT + 1, last=False), request(500)], [200, 431]),
    ],
)
@pytest.mark.parametrize("count", [1, 7])
def test_only_heads_count(requests, expected, count):
    """Is each head counted for itself, without bodies and without what is sent ahead?"""
    answer = serve(say_hello, lambda port: converse(port, pieces_of(b"".join(requests), count)))

    assert expected == statuses(answer)


def test_a_refused_client_does_not_hold_up_the_end():
    """Does a gateway stop at once although somebody who was refused stays on the line?"""

    async def story(port):
        loop = asyncio.get_running_loop()
        await loop.sock_connect(opened, ("127.0.0.1", port))
        await loop.sock_sendall(opened, request(LIMIT + 1))
        return await loop.sock_recv(opened, 65536)

    with socket.socket() as opened:
        opened.setblocking(False)
        assert [431] == statuses(serve(say_hello, story))


CHUNKED = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        [CHUNKED + b"\r\n", b"no number\r\n"],
        [CHUNKED + b"Expect: 100-continue\r\n\r\nno number\r\n"],
    ],
)
def test_no_answer_behind_a_refusal(pieces):
    """Is an application that waits for a body told that its client is gone, once the body makes no sense?"""
    told = asyncio.Queue()

    async def app(scope, receive, send):
        while (message := await receive())["type"] == "http.request":
            pass
        await send(HEAD)
        told.put_nowait(message["type"])

    async def story(port):
        answer = await converse(port, pieces)
        return answer, await told.get()

    answer, last = serve(app, story)
    assert ([400], "http.disconnect") == (statuses(answer), last)
