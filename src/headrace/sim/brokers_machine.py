"""A simulated machine: a disk, and the broker that runs on it as long as nothing ends it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING
from uuid import UUID

from headrace.broker.broker import Broker
from headrace.model.errors import HeadraceError, StorageFault
from headrace.settings.broker import BrokerConfig
from headrace.settings.cluster_size import replication_settings
from headrace.sim.process import PROCESS, Killed, Process
from headrace.storage.memory_files import MemoryFiles
from headrace.storage.meta_properties import MetaProperties, write_meta

if TYPE_CHECKING:
    from headrace.sim.brokers import BrokersWorld

CLUSTER_ID = "c2ltdWxhdGVkY2x1c3Rlcg"
DATA = "/data"
CLIENT_PORT, CONTROLLER_PORT = 9092, 9093
EPOCH_MS = 1_700_000_000_000
_RESTART_S = 1.0
"""How long whoever looks after the process takes to start it again."""

SETTINGS = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": DATA,
    "num.recovery.threads.per.data.dir": "1",
    "socket.send.buffer.bytes": "-1",
    "socket.receive.buffer.bytes": "-1",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "200",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.request.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "2000",
    "replica.lag.time.max.ms": "2000",
    "request.timeout.ms": "3000",
    "log.flush.offset.checkpoint.interval.ms": "3000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    **replication_settings(3),
}
"""A cluster that notices within two seconds what happened to one of its nodes."""


def host_of(node: int) -> str:
    """The address of a node's machine."""
    return f"10.0.0.{node}"


class Machine:
    """One node of the cluster."""

    def __init__(self, world: BrokersWorld, node: int, nodes: range) -> None:
        self.node = node
        self.host = host_of(node)
        self.process: Process | None = None
        self.broker: Broker | None = None
        self.is_up = False
        """Whether the broker's start is over."""
        self.is_stopping = False
        self._boots_again = False
        """Whether it was to boot while it was still stopping."""
        self.skew_ms = 0
        """How far its wall clock is off."""
        self._world = world
        self._loop = world.loop
        self._operations_left = -1
        """After so many operations on its disk it loses its power; never, if negative."""
        voters = ",".join(f"{one}@{host_of(one)}:{CONTROLLER_PORT}" for one in nodes)
        self._config = BrokerConfig.from_properties(
            SETTINGS
            | {
                "node.id": str(node),
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://{self.host}:{CLIENT_PORT},CONTROLLER://{self.host}:{CONTROLLER_PORT}",
            }
        )
        self.files = self._formatted()

    def _formatted(self) -> MemoryFiles:
        files = MemoryFiles()
        files.mkdir(DATA)
        files.fsync_dir("/")
        directory_id = UUID(bytes=self._loop.chance.randbytes(16), version=4)
        write_meta(files, DATA, MetaProperties(cluster_id=CLUSTER_ID, node_id=self.node, directory_id=directory_id))
        files.before = self._before
        return files

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self.process is not None

    # --- life

    def boot(self) -> None:
        """Start the broker's process, on a machine that has power."""
        self._boots_again = self.is_stopping
        if self.process is None:
            self._world.say(f"{self.host} boots")
            self._world.network.have_power(self.host)
            self.process = self._loop.spawn_process(self.host)
            self.process.context.run(self._loop.create_task, self._live())

    async def _live(self) -> None:
        process = PROCESS.get()
        broker = Broker(
            self._config,
            files=self.files,
            clock=self.wall_ms,
            chance=random.Random(self._loop.chance.getrandbits(64)),  # noqa: S311 - a run must be repeatable
        )
        self.broker = broker
        try:
            await broker.start()
            self.is_up = True
            self._world.say(f"{self.host} is up")
            await broker.broken.wait()
            self._world.say(f"{self.host} cannot go on: {broker.quorum.fault}")
        except HeadraceError as error:
            self._world.say(f"{self.host} does not start: {error}")
            if isinstance(error, StorageFault):
                self._world.checker.violated("a disk can be read again", f"{self.host}: {error}")
        self._loop.call_soon(self._give_up, process, context=self._loop.outside.context)

    def _give_up(self, process: Process) -> None:
        if self.process is process:
            self.kill()
            self._loop.call_later(_RESTART_S, self.boot)

    def wall_ms(self) -> int:
        """What this machine believes the time to be."""
        return EPOCH_MS + self.skew_ms + int(self._loop.time() * 1000)

    # --- death

    def kill(self) -> None:
        """End the process; the machine goes on, and what it wrote is in its page cache."""
        if self.process is not None:
            self._world.say(f"{self.host} is killed")
            self._world.network.end_process(self.process)
            self._end()
            self.files.end_process()

    def cut_power(self) -> None:
        """End the machine; any part of what was not flushed is gone."""
        if self.process is not None:
            self._world.say(f"{self.host} loses its power")
            self._world.network.lose_power(self.host)
            self._end()
            self.files.power_cut(self._loop.chance)

    def cut_power_after(self, operations: int) -> None:
        """Have it lose its power amid what it does on its disk."""
        self._operations_left = operations

    def _end(self) -> None:
        assert self.process is not None, "whoever asks has looked"
        self.process.end()
        self.process = self.broker = None
        self.is_up = self.is_stopping = False
        self._operations_left = -1

    def stop(self) -> None:
        """Ask the broker to stop cleanly."""
        if self.process is not None and self.is_up and not self.is_stopping:
            self._world.say(f"{self.host} is asked to stop")
            self.is_stopping = True
            self.process.context.run(self._loop.create_task, self._stop())

    async def _stop(self) -> None:
        process = PROCESS.get()
        assert self.broker is not None, "it is up"
        await self.broker.stop()
        self._world.say(f"{self.host} has stopped")
        self._loop.call_soon(self._stopped, process, context=self._loop.outside.context)

    def _stopped(self, process: Process) -> None:
        if self.process is process:
            boots_again = self._boots_again
            self.kill()
            if boots_again:
                self.boot()

    def pause(self, *, paused: bool) -> None:
        """Hold the process up, or let it go on."""
        if self.process is not None:
            self._world.say(f"{self.host} {'is held up' if paused else 'goes on'}")
            self.process.is_paused = paused

    # --- the disk

    def _before(self, operation: str, path: str) -> None:
        """Take an operation on the disk down; a process that is gone does none."""
        process = PROCESS.get(None)
        if process is not None and not process.is_alive:
            raise Killed
        self.files.now_ms = EPOCH_MS + int(self._loop.time() * 1000)
        if operation not in {"read", "stat"}:
            self._world.say(f"{self.host} {operation} {path}")
        if self._operations_left > 0 and process is self.process:
            self._operations_left -= 1
            if self._operations_left == 0:
                self.cut_power()
                raise Killed

    def log_bytes(self, name: str) -> bytes:
        """All bytes of a log's segments, one after the other."""
        directory = f"{DATA}/{name}"
        names = sorted(one for one in self.files.listdir(directory) if one.endswith(".log"))
        return b"".join(self.files.read(f"{directory}/{one}") for one in names)
