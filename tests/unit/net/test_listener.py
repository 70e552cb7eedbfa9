"""The listener knows its connections to the last one."""

import asyncio
import gc
import socket

import pytest

from headrace.net.connection import Connection
from headrace.net.reply import Buffers
from unit.net.listening import listener_of


class Mute:
    """Answers nothing."""

    def handle(self, connection: Connection, frame: memoryview) -> Buffers:
        return ()


@pytest.mark.parametrize("turns", range(5))
def test_a_connection_that_comes_with_the_stop_is_closed(turns: int) -> None:
    """Is a connection that Python's own loop takes in any turn around the stop hung up on, and none forgotten?"""

    async def run() -> bytes:
        listener = listener_of(Mute())
        await listener.start("127.0.0.1", 0, backlog=10)
        with socket.create_connection(("127.0.0.1", listener.port)) as client:
            for _ in range(turns):
                await asyncio.sleep(0)
            await listener.stop()
            client.settimeout(5)
            try:
                return client.recv(1)
            except ConnectionResetError:
                return b""

    assert b"" == asyncio.run(run())
    # Whatever was forgotten is found now, and its warning is an error.
    gc.collect()


def test_a_connection_accepted_while_stopping_is_closed() -> None:
    """Is a connection that the loop hands over after the stop closed at once, rather than left open for ever?"""

    async def run() -> bytes:
        listener = listener_of(Mute())
        await listener.start("127.0.0.1", 0, backlog=10)
        await listener.stop()
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.setblocking(False)
            await asyncio.get_running_loop().connect_accepted_socket(listener._accept, ours)
            return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(theirs, 1), 5)

    assert asyncio.run(run()) == b""


def test_nobody_is_let_in_before_all_is_ready() -> None:
    """Does a bound listener know its port, and refuse clients until it is told to serve?"""

    async def run() -> tuple[bool, bool]:
        listener = listener_of(Mute())
        await listener.bind("127.0.0.1", 0, backlog=10)
        early = can_connect(listener.port)
        await listener.serve()
        late = can_connect(listener.port)
        await listener.stop()
        return early, late

    assert asyncio.run(run()) == (False, True)


def can_connect(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
