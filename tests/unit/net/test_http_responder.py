"""A few pages over HTTP, and limits on who asks for them."""

import asyncio

import pytest

from headrace.net import http_responder
from headrace.net.http_responder import HEAD_BYTES_MAX, HttpResponder, Page


def broken():
    """A page that cannot be made to its end."""
    yield "half"
    raise RuntimeError("no more")


PAGES = {"/metrics": Page("text/plain; version=0.0.4", lambda: ("a 1\n", "b 2\n")), "/broken": Page("x", broken)}


def ask(*requests: bytes) -> list[bytes]:
    """What is answered to each, on a connection of its own."""

    async def one(port: int, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        try:
            return await asyncio.wait_for(reader.read(), 10)
        except ConnectionError:
            return b"reset"
        finally:
            writer.close()

    async def run() -> list[bytes]:
        responder = HttpResponder(PAGES)
        await responder.start("127.0.0.1", 0)
        try:
            return [await one(responder.port, request) for request in requests]
        finally:
            await responder.stop()

    return asyncio.run(run())


def test_page():
    """Is a page answered with its type and its text, and only its head to HEAD?"""
    got, headed = ask(
        b"GET /metrics?x=1 HTTP/1.1\r\nHost: here\r\n\r\n", b"HEAD /metrics HTTP/1.0\r\nHost: here\r\n\r\n"
    )

    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n")
    assert body == b"a 1\nb 2\n"
    assert headed == head + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /other HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405"),
        (b"hello\r\n\r\n", b"400"),
        (b"GET /metrics\r\n\r\n", b"400"),
    ],
)
def test_refusals(request_, status):
    """Is what cannot be served refused with the right status and a sentence?"""
    (answer,) = ask(request_)

    assert answer.split(b" ")[1] == status
    assert answer.endswith(b".\n")


def test_endless_head():
    """Does a request that does not end cost no more than its limit?"""
    (answer,) = ask(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * HEAD_BYTES_MAX * 2)

    assert answer in {b"", b"reset"}


def test_half_a_page():
    """Is a page that fails midway cut off, so that half of it is not taken for all?"""
    (answer,) = ask(b"GET /broken HTTP/1.1\r\n\r\n")

    assert b"half" in answer or answer in {b"", b"reset"}


def test_slow_and_many(monkeypatch):
    """Is one who says nothing hung up on, and one too many not let in?"""
    monkeypatch.setattr(http_responder, "HEAD_TIMEOUT_S", 0.05)
    monkeypatch.setattr(http_responder, "CONNECTIONS_MAX", 1)

    async def run() -> None:
        responder = HttpResponder(PAGES)
        await responder.start("127.0.0.1", 0)
        slow, slow_writer = await asyncio.open_connection("127.0.0.1", responder.port)
        many, many_writer = await asyncio.open_connection("127.0.0.1", responder.port)
        for reader in (many, slow):
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await asyncio.wait_for(reader.readexactly(1), 10)
        for writer in (slow_writer, many_writer):
            writer.close()
        await responder.stop()

    asyncio.run(run())
