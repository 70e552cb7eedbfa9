"""The gateway's connections over real sockets, with applications of a few lines behind them."""

import asyncio
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
