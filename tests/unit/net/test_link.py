"""Links between nodes, over real sockets."""

import asyncio
import contextlib

import pytest

from headrace.net import link as link_module
from headrace.net.link import Link, LinkBroken, NotSent, is_listening, is_refused
from headrace.wire.codec import decode_request, encode_response
from headrace.wire.header import parse_request_header, response_header
from headrace.wire.messages.vote import VoteRequest, VoteResponse

VOTE, VERSION = 52, 2
PATIENCE_S = 10.0


class Node:
    """Answers votes with the cluster id as the error code; some ids have it misbehave."""

    def __init__(self) -> None:
        self.connections = 0
        self.held: list[bytes] = []
        self.serving: list[asyncio.Task[None]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self.serving.append(task)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                await self.answer(await reader.readexactly(size), writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def answer(self, frame: bytes, writer: asyncio.StreamWriter) -> None:
        header = parse_request_header(frame)
        asked = decode_request(VOTE, VERSION, frame, header.body).cluster_id
        number = int(asked) if asked.isdigit() else 0
        if asked == "hang up":
            writer.close()
            return
        if asked == "silence":
            return
        body = response_header(VOTE, VERSION, header.correlation_id + (asked == "stranger"))
        body += b"\xff" if asked == "garbage" else encode_response(VOTE, VERSION, VoteResponse(error_code=number))
        reply = len(body).to_bytes(4, "big") + body
        if asked == "7":
            self.held.append(reply)
            return
        if asked == "8":
            writer.write(b"".join((*self.held, reply)))
            self.held.clear()
            return
        for part in (reply[:3], reply[3:9], reply[9:], *self.held):
            writer.write(part)
            await writer.drain()
        self.held.clear()


def talk(conversation) -> Node:
    """Run a conversation with a node over a link."""
    node = Node()

    async def run() -> None:
        server = await asyncio.start_server(node.serve, "127.0.0.1", 0)
        link = Link("127.0.0.1", server.sockets[0].getsockname()[1], client_id="node-1")
        try:
            await conversation(link)
        finally:
            link.close()
            server.close()
            await server.wait_closed()
            await asyncio.gather(*node.serving)

    asyncio.run(run())
    return node


async def ask(link: Link, what: str, timeout_s: float = PATIENCE_S) -> int:
    """One question, and the number in its answer."""
    answer = await link.ask(VOTE, VERSION, VoteRequest(cluster_id=what), timeout_s=timeout_s)
    return answer.error_code


def test_answers_find_their_questions():
    """Does each question get its own answer, over one connection, also out of turn and in pieces?"""

    async def conversation(link):
        assert await asyncio.gather(*(ask(link, str(number)) for number in (7, 5, 6))) == [7, 5, 6]

    assert talk(conversation).connections == 1


def test_answers_that_come_together():
    """Is each of several answers taken that come with one read?"""

    async def conversation(link):
        await ask(link, "1")
        assert await asyncio.gather(*(ask(link, str(number)) for number in (7, 7, 7, 8))) == [7, 7, 7, 8]

    assert talk(conversation).connections == 1


@pytest.mark.parametrize("misbehaviour", ["hang up", "stranger", "garbage", "silence"])
def test_broken_and_mended(misbehaviour):
    """Is a node that does not answer told from one that does, and can it be asked again?"""

    async def conversation(link):
        with pytest.raises(LinkBroken) as broken:
            await ask(link, misbehaviour, timeout_s=0.05 if misbehaviour == "silence" else PATIENCE_S)
        assert not isinstance(broken.value, NotSent), "it may have been heard"
        assert await ask(link, "3") == 3

    talk(conversation)


def test_nobody_there():
    """Is it one error, at once, if there is no node, which says that nobody heard the question?"""

    async def conversation(link):
        nobody = Link("127.0.0.1", 1, client_id="node-1")
        with pytest.raises(NotSent, match=r"127\.0\.0\.1:1"):
            await ask(nobody, "3")

    talk(conversation)


def test_who_listens():
    """Is a node that accepts connections told from one that does not?"""

    async def conversation(link):
        assert await is_listening(link.host, link.port, timeout_s=PATIENCE_S)
        assert not await is_refused(link.host, link.port, timeout_s=PATIENCE_S)
        assert not await is_listening("127.0.0.1", 1, timeout_s=PATIENCE_S)
        assert await is_refused("127.0.0.1", 1, timeout_s=PATIENCE_S)

    talk(conversation)


def test_long_answers(monkeypatch):
    """Does an answer arrive whole that is larger than its first buffer, and is one beyond the limit refused?"""
    monkeypatch.setattr(link_module, "_FIRST_BYTES_MAX", 4)

    async def conversation(link):
        assert await ask(link, "9") == 9
        monkeypatch.setattr(link_module, "ANSWER_BYTES_MAX", 5)
        with pytest.raises(LinkBroken, match="an answer of"):
            await ask(link, "9")

    talk(conversation)


def test_waiting_are_told_when_it_closes():
    """Does everyone who waits hear of it when the link is closed?"""

    async def conversation(link):
        waiting = [asyncio.ensure_future(ask(link, "silence")) for _ in range(3)]
        assert await ask(link, "1") == 1
        link.close("going down")
        for one in waiting:
            with pytest.raises(LinkBroken, match="going down"):
                await one

    talk(conversation)
