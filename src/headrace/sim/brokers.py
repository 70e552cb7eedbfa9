"""Whole brokers in virtual time: three real ones in one process, on simulated disks, wires and clocks.

A run is a function of its seed: the brokers are started, records are written and read, things go wrong; then all is
made good again, and what must hold (brokers_checker.py) is looked for. Same seed, same trace, byte for byte.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from headrace.sim.broker_seams import virtual_names
from headrace.sim.brokers_checker import Checker
from headrace.sim.brokers_clients import Reader, Writer
from headrace.sim.brokers_faults import Faults
from headrace.sim.brokers_machine import Machine
from headrace.sim.quorum_invariants import Violation
from headrace.sim.trace import Trace
from headrace.sim.virtual_loop import Stuck, VirtualLoop
from headrace.sim.virtual_network import VirtualNetwork

if TYPE_CHECKING:
    from collections.abc import Coroutine

NODES = range(1, 4)
CLIENT_HOST = "10.0.0.100"
_TOPICS = {"few": 1, "some": 2}
_PATIENCE_S = 120.0
"""Within so much virtual time all must be well again."""


class BrokersWorld:
    """One run of a cluster."""

    def __init__(self, seed: int, *, lasting_s: float = 15.0) -> None:
        self.seed = seed
        self.trace = Trace()
        self.loop = VirtualLoop(random.Random(seed))  # noqa: S311 - a run must be repeatable
        self.network = self.loop.network = VirtualNetwork(self.loop, self.say)
        self.checker = Checker(self)
        self.pace_s = self.loop.chance.choice((0.02, 0.2, 1.0))
        """How long a writer waits between batches, at most."""
        self.partitions = [(topic, index) for topic, count in _TOPICS.items() for index in range(count)]
        self.machines = {node: Machine(self, node, NODES) for node in NODES}
        self.hosts = [*(machine.host for machine in self.machines.values()), CLIENT_HOST]
        self.faults = Faults(self)
        self._lasting_s = lasting_s
        self._client = self.loop.spawn_process(CLIENT_HOST)

    def say(self, line: str) -> None:
        """Take something down."""
        self.trace.add(int(self.loop.time() * 1000), line)

    def run(self) -> str:
        """Let it all happen; the fingerprint of what did. Violation if something does not hold."""
        with virtual_names(self.loop):
            try:
                self.loop.run(self._main())
                if self.loop.mistakes:
                    self.checker.violated("no mistake", self.loop.mistakes[0])
            except (Violation, Stuck) as fault:
                fault.add_note(f"{self.trace}\nseed {self.seed}: BrokersWorld({self.seed}).run()")
                raise
            finally:
                self.loop.end()
        return self.trace.fingerprint

    # --- the play

    async def _main(self) -> None:
        for machine in self.machines.values():
            machine.boot()
        writer, along, final = Writer(self), Reader(self), Reader(self, "checker")
        await self._as_client(writer.create_topics(_TOPICS))
        writing = [self._as_client(writer.write(*partition)) for partition in self.partitions]
        reading = [self._as_client(along.read(*partition)) for partition in self.partitions]
        self.faults.plan(self._lasting_s)
        await self._watch(asyncio.sleep(self._lasting_s), *writing, *reading)
        self.say("all is made good")
        self.faults.heal()
        await self._watch(asyncio.sleep(2.0), *writing, *reading)
        writer.is_enough = True
        await self._in_time("writers finish", asyncio.gather(*writing))
        await self._in_time("everybody is in sync", self._until_in_sync())
        ends = {partition: len(writer.acked[partition]) for partition in self.partitions}
        checking = [self._as_client(final.read(*partition, until=ends[partition])) for partition in self.partitions]
        await self._in_time("all can be read", asyncio.gather(*checking))
        await self._in_time("everybody is still in sync", self._until_in_sync())
        self.checker.check(writer, along, final)

    def _as_client(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self._client.context.run(self.loop.create_task, work)

    async def _watch(self, work: Coroutine[Any, Any, Any], *others: asyncio.Task[Any]) -> None:
        """Do something, and hear of it at once if one of those beside it fails."""
        done, _ = await asyncio.wait([asyncio.ensure_future(work), *others], return_when=asyncio.FIRST_COMPLETED)
        for one in done:
            one.result()

    async def _in_time(self, what: str, work: Any) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await work
        except TimeoutError:
            self.checker.violated("all becomes well", f"{what}, but not within {_PATIENCE_S} s")

    async def _until_in_sync(self) -> None:
        while not self.checker.in_sync():  # noqa: ASYNC110 - seen from outside, where nobody tells
            await asyncio.sleep(0.1)
