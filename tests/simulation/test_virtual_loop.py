"""The stage on which whole brokers are simulated: a loop with virtual time, processes that end, and wires that fail."""

import asyncio
import random

import pytest

from headrace.sim.virtual_loop import Stuck, VirtualLoop
from headrace.sim.virtual_network import VirtualNetwork


@pytest.fixture
def loop():
    """A loop with a network of two hosts, which says nothing."""
    made = VirtualLoop(random.Random(1))
    made.network = VirtualNetwork(made, lambda line: None)
    yield made
    made.end()


def begin(loop, process, work):
    """Have a process do something."""
    return process.context.run(loop.create_task, work)


class Echo(asyncio.Protocol):
    """Says back what it hears, and keeps it."""

    def __init__(self, heard):
        self.heard = heard

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.heard.append(data)
        self.transport.write(data)

    def connection_lost(self, exc):
        self.heard.append(type(exc).__name__ if exc else "closed")


async def serve(loop, heard, port=1):
    """Listen on the host of whoever asks."""
    server = await loop.create_server(lambda: Echo(heard), "", port, start_serving=False)
    await server.start_serving()


class Mute(Echo):
    """Hears, and says nothing back."""

    def data_received(self, data):
        self.heard.append(data)


async def dial(loop, heard):
    """Connect to the server, and only listen."""
    transport, _ = await loop.create_connection(lambda: Mute(heard), "server", 1)
    return transport


def test_time_passes_when_nobody_is_busy(loop):
    """Does an hour of waiting take no time, and does everything happen in its order?"""
    order = []

    async def wait(seconds):
        await asyncio.sleep(seconds)
        order.append((seconds, loop.time()))

    async def main():
        await asyncio.gather(wait(3600), wait(1), wait(0))

    loop.run(main())

    assert [(0, 0.0), (1, 1.0), (3600, 3600.0)] == order


def test_waiting_for_ever_is_told():
    """Does a run end in which nothing can happen any more?"""
    loop = VirtualLoop(random.Random(1))
    with pytest.raises(Stuck, match="for ever"):
        loop.run(asyncio.Event().wait())
    loop.end()


def test_a_dead_process_does_nothing(loop):
    """Does a process that ended take not one more step, not even to clean up?"""
    steps = []

    async def live():
        try:
            while True:
                steps.append(loop.time())
                await asyncio.sleep(1)
        finally:
            steps.append("cleaned up")

    async def main():
        process = loop.spawn_process("host")
        begin(loop, process, live())
        await asyncio.sleep(2.5)
        process.end()
        await asyncio.sleep(10)
        return list(steps)

    assert [0.0, 1.0, 2.0] == loop.run(main())


def test_a_paused_process_catches_up(loop):
    """Does a process that was held up do afterwards what was due, at the time it is then?"""
    steps = []

    async def live():
        for _ in range(3):
            await asyncio.sleep(1)
            steps.append(loop.time())

    async def main():
        process = loop.spawn_process("host")
        task = begin(loop, process, live())
        await asyncio.sleep(1.5)
        process.is_paused = True
        await asyncio.sleep(8)
        process.is_paused = False
        await task

    loop.run(main())

    assert [1.0, 9.5, 10.5] == steps


def test_a_thread_has_no_loop(loop):
    """Is a thread's work done without a loop at hand, is its failure told, and does it die with its process?"""
    done = []

    def work():
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        done.append("work")
        raise ValueError("it failed")

    async def main():
        with pytest.raises(ValueError, match="it failed"):
            await loop.run_in_executor(None, work)
        process = loop.spawn_process("host")
        process.context.run(loop.run_in_executor, None, done.append, "never")
        process.end()
        await asyncio.sleep(10)

    loop.run(main())

    assert ["work"] == done


def test_bytes_arrive_in_order(loop):
    """Do bytes arrive whole and in order, both ways, whatever pieces they travel in?"""
    heard, back = [], []

    async def main():
        await begin(loop, loop.spawn_process("server"), serve(loop, heard))
        transport = await begin(loop, loop.spawn_process("client"), dial(loop, back))
        for number in range(100):
            transport.write(b"%d," % number)
        await asyncio.sleep(60)

    loop.run(main())
    said = b"".join(b"%d," % number for number in range(100))

    assert said == b"".join(heard) == b"".join(back)


def test_nobody_listens(loop):
    """Is a connection refused where no process listens?"""

    async def main():
        with pytest.raises(ConnectionRefusedError):
            await begin(loop, loop.spawn_process("client"), dial(loop, []))

    loop.run(main())


def test_a_cut_holds_one_direction(loop):
    """Does a cut keep what is sent over it, in its direction only, until it is healed?"""
    heard, back = [], []

    async def main():
        loop.chance = random.Random(3)  # One in which the connection outlives the cut.
        await begin(loop, loop.spawn_process("server"), serve(loop, heard))
        transport = await begin(loop, loop.spawn_process("client"), dial(loop, back))
        loop.network.cut("server", "client")
        transport.write(b"hello")
        await asyncio.sleep(10)
        held = (list(heard), list(back))
        loop.network.heal("server", "client")
        await asyncio.sleep(10)
        return held

    assert ([b"hello"], []) == loop.run(main())
    assert [b"hello"] == back


def test_a_host_without_power_is_silent(loop):
    """Does nobody hear of a lost host, until it is there again and knows nothing of the connection?"""
    back = []

    async def main():
        server = loop.spawn_process("server")
        await begin(loop, server, serve(loop, []))
        transport = await begin(loop, loop.spawn_process("client"), dial(loop, back))
        loop.network.lose_power("server")
        server.end()
        transport.write(b"hello?")
        await asyncio.sleep(60)
        before = list(back)
        loop.network.have_power("server")
        await asyncio.sleep(60)
        return before

    assert [] == loop.run(main())
    assert ["ConnectionResetError"] == back


def test_a_killed_process_resets_its_connections(loop):
    """Does the host of a killed process tell its peers?"""
    back = []

    async def main():
        server = loop.spawn_process("server")
        await begin(loop, server, serve(loop, []))
        await begin(loop, loop.spawn_process("client"), dial(loop, back))
        loop.network.end_process(server)
        server.end()
        await asyncio.sleep(1)

    loop.run(main())

    assert ["ConnectionResetError"] == back
