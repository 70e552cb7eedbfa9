"""One input at a time, outputs in order."""

import asyncio

import pytest

from headrace.coordination.quorum.driver import Driver
from headrace.cores.raft.inputs import Flushed, Tick
from headrace.cores.raft.messages import KRaftVersionsRequest
from headrace.cores.raft.outputs import Halt, HighWatermarkMoved, LeaderKnown, Persist, Send, TruncateLog, Wake
from headrace.cores.raft.quorum_state import QuorumState
from headrace.model.errors import StorageFault

SEND = Send(2, (), 1, KRaftVersionsRequest())


class Scripted:
    """A core that has its outputs by heart, and takes down its inputs."""

    def __init__(self, *script):
        self.script = list(script)
        self.given = []

    def start(self, now_ms):
        """The first step."""
        return self.step("start", now_ms)

    def step(self, given, now_ms):
        """The next one."""
        self.given.append(given)
        return self.script.pop(0) if self.script else []


class Scene:
    """A driver, and what it did."""

    def __init__(self, *script):
        self.core = Scripted(*script)
        self.done = []
        self.faults = []
        self.gate = asyncio.Event()
        acts = dict.fromkeys((HighWatermarkMoved, LeaderKnown, Send), self.did)
        acts |= {Persist: self.slow, TruncateLog: self.slow, Halt: self.fail}
        self.driver = Driver(self.core, acts, on_fault=self.faults.append)

    def did(self, output):
        """Take it down."""
        self.done.append(output)

    async def slow(self, output):
        """Take it down when the gate is open."""
        await self.gate.wait()
        self.done.append(output)

    def fail(self, output):
        """The disk is broken."""
        raise StorageFault(output.reason)


def test_outputs_wait_for_the_disk(play):
    """Is what follows a slow output done after it, and are inputs kept back until then, in their order?"""

    async def story():
        scene = Scene([Persist(QuorumState(1)), SEND], [HighWatermarkMoved(1)], [HighWatermarkMoved(2)])
        scene.driver.start()
        scene.driver.feed(Flushed(1, 0))
        scene.driver.feed(Flushed(2, 0))
        assert not scene.driver.is_idle
        assert [] == scene.done
        assert ["start"] == scene.core.given
        scene.gate.set()
        await scene.driver.idle()

        assert [Persist(QuorumState(1)), SEND, HighWatermarkMoved(1), HighWatermarkMoved(2)] == scene.done
        assert ["start", Flushed(1, 0), Flushed(2, 0)] == scene.core.given

    play(story())


def test_the_first_goes_before_those_that_wait(play):
    """Is an input that must be the very next one given before others that came earlier?"""

    async def story():
        scene = Scene([TruncateLog(1)])
        scene.driver.start()
        scene.driver.feed(Tick())
        scene.driver.feed(Flushed(1, 0), first=True)
        scene.gate.set()
        await scene.driver.idle()

        assert ["start", Flushed(1, 0), Tick()] == scene.core.given

    play(story())


def test_a_state_nobody_hears_of_is_not_written(play):
    """Is only the last of several states written, unless something that others hear of lies between?"""

    async def story():
        one, two, three = (Persist(QuorumState(epoch)) for epoch in (1, 2, 3))
        known = LeaderKnown(-1, 1, ())
        scene = Scene([one, known, two, SEND, three, HighWatermarkMoved(1)])
        scene.gate.set()
        scene.driver.start()
        await scene.driver.idle()

        assert [known, two, SEND, three, HighWatermarkMoved(1)] == scene.done

    play(story())


@pytest.mark.parametrize("output", [Halt("no"), Persist(QuorumState(9))])
def test_a_fault_ends_everything(play, output):
    """Is nothing done behind an output that fails, now or later, and its owner told once?"""

    async def story():
        scene = Scene([output, SEND], [SEND])

        async def broken(output):
            raise StorageFault("no")

        scene.driver._acts[Persist] = broken
        scene.driver.start()
        await scene.driver.idle()
        scene.driver.feed(Tick())

        assert [] == scene.done
        assert ["no"] == [str(fault) for fault in scene.faults]
        assert ["start"] == scene.core.given

    play(story())


def test_a_mistake_of_the_core_ends_everything(play):
    """Does a replica that is in doubt about itself stop, and is the mistake seen?"""

    async def story():
        scene = Scene([])
        scene.driver.start()
        scene.core.step = lambda given, now_ms: 1 / 0
        with pytest.raises(ZeroDivisionError):
            scene.driver.feed(Tick())

        assert 1 == len(scene.faults)
        assert not scene.driver.is_idle

    play(story())


def test_wakes_replace_each_other(play):
    """Is a tick given at the time of the last wake, and for that one only?"""

    async def story():
        scene = Scene([Wake(2**50), Wake(0)], [], [])
        scene.driver.start()
        ticked = asyncio.get_running_loop().create_future()
        scene.core.step = lambda given, now_ms: ticked.set_result(given) or []

        assert Tick() == await asyncio.wait_for(ticked, 10)

    play(story())


def test_nothing_after_a_stop(play):
    """Is an input thrown away after a stop, and are those who wait for their turn let go?"""

    async def story():
        scene = Scene([Persist(QuorumState(1)), SEND])
        scene.driver.start()
        waiting = asyncio.create_task(scene.driver.idle())
        await asyncio.sleep(0)
        scene.driver.stop()
        await waiting
        scene.gate.set()
        await scene.driver.ended()
        scene.driver.feed(Tick())

        assert [Persist(QuorumState(1))] == scene.done
        assert ["start"] == scene.core.given

    play(story())
