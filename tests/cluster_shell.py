"""`BrokerGroup`: a cluster of several nodes in the test's own process, on real sockets and real files, in one loop.

    with BrokerGroup(3) as group:
        producer = Producer({"bootstrap.servers": group.bootstrap})
        group.kill(group.leader_of("events", 0))

All nodes run on one thread, as `headrace.testing.Cluster` runs its one; timeouts are short, so that a node which is
gone is noticed soon.
"""

import asyncio
import shutil
import tempfile
import threading
from pathlib import Path
from uuid import UUID, uuid4

import uvloop

from caught_up import caught_up
from headrace.broker.broker import Broker
from headrace.cli.initial_voters import parse_voters, write_voters
from headrace.model.ids import encode_uuid, usable_uuid
from headrace.settings.broker import BrokerConfig
from headrace.storage.files import RealFiles
from headrace.storage.meta_properties import MetaProperties, write_meta
from headrace.testing.ports import free_ports

PATIENCE_S = 60.0
"""Nothing here takes long; who waits longer waits for ever."""

QUICK = {
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "200",
    "controller.quorum.request.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "2000",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}
"""A cluster that notices soon what happens to it."""


def _fresh_id() -> UUID:
    while True:
        value = uuid4()
        if usable_uuid(value):
            return value


class BrokerGroup:
    """Some nodes that are one cluster.

    `BrokerGroup(3)` has three nodes that are brokers and controllers; `BrokerGroup(3, controllers=3)` three brokers
    and three nodes more, 101 and on, that are only controllers.
    """

    def __init__(self, brokers=3, *, controllers=0, settings=None, node_settings=None, log_dirs=1, dynamic=False):
        """`dynamic` has the voters in the log (KIP-853), not in the nodes' settings."""
        self.cluster_id = encode_uuid(_fresh_id())
        self.directory = Path(tempfile.mkdtemp(prefix="headrace-group-"))
        self.brokers = {}
        """The running nodes by id, those that are only controllers too."""
        self._settings = {**QUICK, **(settings or {})}
        self._node_settings = node_settings or {}
        broker_ids = list(range(1, brokers + 1))
        controller_ids = [100 + number for number in range(1, controllers + 1)]
        self._roles = dict.fromkeys(broker_ids, "broker" if controllers else "broker,controller")
        self._roles |= dict.fromkeys(controller_ids, "controller")
        ports = iter(free_ports(2 * len(self._roles)))
        self._ports = {node: (next(ports), next(ports)) for node in self._roles}
        self._directory_ids = {node: [_fresh_id() for _ in range(log_dirs)] for node in self._roles}
        self._is_dynamic = dynamic
        self._loop = None
        self._thread = None

    # --- life

    def __enter__(self):
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="headrace-group", daemon=True)
        self._thread.start()
        try:
            self._call(self._start(*self._roles))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_):
        try:
            # A clean stop of all would be slow: the last ones would wait in vain for somebody to take over.
            self._call(self._abandon_all())
        finally:
            self._end()

    def _end(self):
        self._call(self._settle())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    async def _settle(self):
        """End what the nodes left behind, and let sockets close."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(3):
            await asyncio.sleep(0)

    def kill(self, node):
        """End a node as `kill -9` would: no flush, no word to anybody, sockets closed."""
        self._call(self.brokers.pop(node).abandon())

    def stop(self, node):
        """Have a node stop cleanly."""
        self._call(self._stop(node))

    def start(self, *nodes):
        """Start nodes that are down, on what is on their disks."""
        self._call(self._start(*nodes))

    def restart(self, node):
        """Have a node come back; if it runs it stops cleanly first."""
        if node in self.brokers:
            self.stop(node)
        self.start(node)

    def start_twin(self, node, settings):
        """Start another node with the id of one that runs, on a disk and addresses of its own."""
        self._call(self._start_twin(node, settings))

    async def _start_twin(self, node, settings):
        path = self.directory / f"{node}-twin"
        path.mkdir()
        meta = MetaProperties(cluster_id=self.cluster_id, node_id=node, directory_id=_fresh_id())
        write_meta(RealFiles(), str(path), meta)
        properties = {
            **self._properties(node),
            "log.dirs": str(path),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            **settings,
        }
        twin = Broker(BrokerConfig.from_properties(properties), files=RealFiles())
        try:
            await twin.start()
        finally:
            await twin.abandon()

    async def _start(self, *nodes):
        await asyncio.gather(*(self._start_one(node) for node in nodes))

    async def _start_one(self, node):
        broker = Broker(BrokerConfig.from_properties(self._properties(node)), files=RealFiles())
        try:
            await broker.start()
        except BaseException:
            await broker.abandon()
            raise
        self.brokers[node] = broker

    async def _abandon_all(self):
        await asyncio.gather(*(self.brokers.pop(node).abandon() for node in tuple(self.brokers)))

    async def _stop(self, *nodes):
        await asyncio.gather(*(self.brokers.pop(node).stop() for node in nodes))

    def _properties(self, node):
        roles = self._roles[node]
        port, controller_port = self._ports[node]
        listeners = [
            *([f"PLAINTEXT://127.0.0.1:{port}"] if "broker" in roles else []),
            *([f"CONTROLLER://127.0.0.1:{controller_port}"] if "controller" in roles else []),
        ]
        return {
            "process.roles": roles,
            "node.id": str(node),
            **self._quorum(),
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(listeners),
            "log.dirs": ",".join(self._format(node)),
            **self._settings,
            **self._node_settings.get(node, {}),
        }

    def _quorum(self):
        if self._is_dynamic:
            return {"controller.quorum.bootstrap.servers": self.bootstrap_controllers}
        return {"controller.quorum.voters": self.voters}

    def _format(self, node):
        paths = [self.directory / str(node) / f"d{number}" for number in range(len(self._directory_ids[node]))]
        for path, directory_id in zip(paths, self._directory_ids[node], strict=True):
            if not path.exists():
                path.mkdir(parents=True)
                meta = MetaProperties(cluster_id=self.cluster_id, node_id=node, directory_id=directory_id)
                write_meta(RealFiles(), str(path), meta)
                if self._is_dynamic and path == paths[0] and "controller" in self._roles[node]:
                    write_voters(RealFiles(), path, parse_voters(self._initial_controllers(), "CONTROLLER"), now_ms=0)
        return map(str, paths)

    def _initial_controllers(self):
        return ",".join(
            f"{node}@127.0.0.1:{self._ports[node][1]}:{encode_uuid(self._directory_ids[node][0])}"
            for node, roles in self._roles.items()
            if "controller" in roles
        )

    # --- addresses

    @property
    def voters(self):
        """What the nodes have for controller.quorum.voters."""
        return ",".join(
            f"{node}@127.0.0.1:{self._ports[node][1]}" for node, roles in self._roles.items() if "controller" in roles
        )

    @property
    def bootstrap(self):
        """What to give a client as bootstrap.servers: all brokers, whether they run or not."""
        return ",".join(self.address(node) for node, roles in self._roles.items() if "broker" in roles)

    @property
    def bootstrap_controllers(self):
        """What to give a tool as --bootstrap-controller."""
        return ",".join(
            f"127.0.0.1:{self._ports[node][1]}" for node, roles in self._roles.items() if "controller" in roles
        )

    def address(self, node):
        """Where clients reach a broker."""
        return f"127.0.0.1:{self._ports[node][0]}"

    # --- what a test asks

    def call(self, node, work):
        """Run `work(broker)`, a coroutine function, on the nodes' loop and wait for it."""
        return self._call(work(self.brokers[node]))

    def ask(self, node, question):
        """Look at a node from its own loop."""

        async def answer():
            return question(self.brokers[node])

        return self._call(answer())

    def until(self, node, holds, timeout_s=PATIENCE_S):
        """Wait until a node's metadata says something."""
        self._call(self.brokers[node].until(holds, timeout_s))

    def caught_up(self):
        """Wait until all running nodes know what was decided so far."""
        self._call(caught_up(self.brokers.values()))

    @property
    def controller(self):
        """The active controller, as soon as there is one."""
        return self._call(self._controller())

    async def _controller(self):
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for node, broker in self.brokers.items():
                    if broker.quorum.is_active:
                        return node
                await asyncio.sleep(0.02)

    def leader_of(self, topic, partition):
        """The running broker that leads a partition by the word of the active controller, as soon as it knows it."""
        return self._call(self._leader_of(topic, partition))

    async def _leader_of(self, topic, partition):
        async with asyncio.timeout(PATIENCE_S):
            while True:
                known = self.brokers[await self._controller()].metadata.topics.get(topic)
                # One that was killed leads until it is missed; one that was chosen refuses writes until it has heard.
                if known is not None and (chosen := self.brokers.get(known.partitions[partition].leader)) is not None:
                    held = chosen.partitions.find((known.topic_id, partition))
                    if held is not None and held.is_led:
                        return chosen.node_id
                await asyncio.sleep(0.02)

    def _call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)
