"""Three nodes, each a process of its own, that are one cluster: killed, paused, stopped and started one by one."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID, uuid4

from crash.log_reader import Place
from crash.victim import Victim
from headrace.model.errors import ErrorCode
from headrace.model.ids import encode_uuid, usable_uuid
from headrace.storage.files import RealFiles
from headrace.storage.meta_properties import MetaProperties, write_meta
from headrace.testing.ports import free_ports
from headrace.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from headrace.wire.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from network_hosts import BROKERS, CONTROLLERS, Host, Hosts
from wire_client import WireClient

NODES = (1, 2, 3)
PATIENCE_S = 60.0
LOOK_EVERY_S = 0.02
SESSION_S = 2.0
HOST_PORTS = 9092, 9093
_TRY_AGAIN = {ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.REQUEST_TIMED_OUT}
QUICK = {
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "200",
    "controller.quorum.request.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": f"{SESSION_S * 1000:.0f}",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "100",
    "group.initial.rebalance.delay.ms": "100",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "3",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "log.flush.offset.checkpoint.interval.ms": "200",
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    "internal.metadata.log.segment.bytes": "20000",
    "metadata.max.retention.bytes": "40000",
}
"""A cluster that notices soon what happens to it, and whose metadata log is short: who was away gets a snapshot."""


class Node(Victim):
    """One node of the cluster, broker and controller."""

    def __init__(self, directory: Path, node_id: int, *, ports: tuple[int, int], place: Host | None = None) -> None:
        super().__init__(directory)
        self.node_id = node_id
        self.port, self.controller_port = ports
        self.controller_host = self.host
        self._place = place
        if place is not None:
            self.host, self.controller_host = place.address_in(BROKERS), place.address_in(CONTROLLERS)

    def command(self) -> list[str]:
        """On the host it has its place on."""
        return super().command() if self._place is None else self._place.command(*super().command())

    def client(self, client_id: str = "wire-client") -> WireClient:
        """A connection to it."""
        return WireClient(self.port, host=self.host, client_id=client_id)

    def format_for(self, cluster_id: str, voters: str, settings: dict[str, str]) -> None:
        """Write down its settings, and in its log dir whose it is."""
        properties = {
            "process.roles": "broker,controller",
            "node.id": str(self.node_id),
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.host}:{self.port},CONTROLLER://{self.controller_host}:{self.controller_port}",
            "log.dirs": str(self.log_dir),
            **QUICK,
            **settings,
        }
        self.properties.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        self.log_dir.mkdir(exist_ok=True)
        meta = MetaProperties(cluster_id=cluster_id, node_id=self.node_id, directory_id=_fresh_id())
        write_meta(RealFiles(), str(self.log_dir), meta)

    @property
    def is_up(self) -> bool:
        """Whether there is a process; a process that ended unasked is a bug, and said so."""
        if self._process is None:
            return False
        code = self._process.poll()
        assert code is None, f"node {self.node_id} ended by itself with {code}:\n{self.output_tail()}"
        return True

    def go_on(self) -> None:
        """Let it go on after `freeze`, as if no time had passed."""
        os.kill(self.pid, signal.SIGCONT)


class Nodes:
    """The nodes of one cluster by id, and what one can ask them from outside."""

    def __init__(
        self,
        directory: Path,
        hosts: Hosts | None = None,
        prepare: Callable[[Node], object] | None = None,
        **settings: str,
    ) -> None:
        """`prepare` is called for each node before its log dir is written to, to mount something there."""
        self.directory = directory
        if hosts is None:
            ports = free_ports(2 * len(NODES))
            made = [Node(directory / str(node), node, ports=(ports.pop(), ports.pop())) for node in NODES]
        else:
            made = [Node(directory / str(node), node, ports=HOST_PORTS, place=hosts[node]) for node in NODES]
        self._nodes = {node.node_id: node for node in made}
        voters = ",".join(f"{node.node_id}@{node.controller_host}:{node.controller_port}" for node in self)
        cluster_id = encode_uuid(_fresh_id())
        for node in self:
            if prepare is not None:
                prepare(node)
            node.format_for(cluster_id, voters, settings)

    def __iter__(self):
        return iter(self._nodes.values())

    def __getitem__(self, node_id: int) -> Node:
        return self._nodes[node_id]

    @property
    def bootstrap(self) -> str:
        """What clients are given: every node, whether it runs or not."""
        return ",".join(node.bootstrap for node in self)

    @property
    def up(self) -> list[Node]:
        """Those that run."""
        return [node for node in self if node.is_up]

    # --- life

    def start(self, nodes: Iterable[Node] | None = None) -> None:
        """Start those that do not run, all at once, and wait until they serve."""
        down = [node for node in (self if nodes is None else nodes) if not node.is_up]
        with ThreadPoolExecutor(len(NODES)) as threads:
            list(threads.map(Node.start, down))

    def remove(self) -> None:
        """End all processes, and delete what they left."""
        for node in self:
            node.remove()

    # --- what a test asks

    def create_topic(self, name: str, *, partitions: int, **configs: str) -> None:
        """Make a topic with a replica on every node, and wait until all are in its ISRs."""
        self.until(lambda: self._is_made(creation(name, partitions, **configs)), f"there is no room for {name}")
        self.until_in_sync([(name, index) for index in range(partitions)])

    def _is_made(self, request: CreateTopicsRequest) -> bool:
        """Whether a topic is there; on a busy machine a node may be missed for a moment, and then there are too few."""
        with self.up[0].client() as client:
            (result,) = client.ask("CreateTopics", 7, request).topics
        assert result.error_code in {0, *_TRY_AGAIN, ErrorCode.TOPIC_ALREADY_EXISTS}, result
        return result.error_code not in _TRY_AGAIN

    def topics(self, node: Node, names: Iterable[str] | None = None):
        """What one node's metadata says of topics, of all of them unless some are named."""
        asked = None if names is None else tuple(MetadataRequestTopic(name=name) for name in names)
        with node.client() as client:
            request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
            return client.ask("Metadata", 12, request).topics

    def states(self, places: Iterable[Place], node: Node | None = None) -> dict[Place, object]:
        """Leader, epoch and ISR of some partitions, as a node that runs has them."""
        wanted = set(places)
        found = self.topics(node or self.up[-1], sorted({topic for topic, _ in wanted}))
        every = {(topic.name, state.partition_index): state for topic in found for state in topic.partitions}
        return {place: state for place, state in every.items() if place in wanted}

    def leader_of(self, place: Place) -> Node:
        """The node that leads a partition."""
        return self[self.until(lambda: self._leader_of(place), f"{place} has no leader")]

    def _leader_of(self, place: Place) -> int:
        state = self.states([place]).get(place)
        return max(0, state.leader_id) if state is not None else 0

    def active_controller(self) -> Node:
        """The node whose controller is the active one."""
        return self[self.until(self._active_controller, "there is no active controller")]

    def _active_controller(self) -> int:
        asked = RequestTopicData(topic_name="__cluster_metadata", partitions=(RequestPartitionData(partition_index=0),))
        with self.up[0].client() as client:
            answer = client.ask("DescribeQuorum", 2, DescribeQuorumRequest(topics=(asked,)))
        leader = -1 if answer.error_code else answer.topics[0].partitions[0].leader_id
        return leader if leader > 0 and self[leader].is_up else 0

    def until_in_sync(self, places: Iterable[Place]) -> None:
        """Wait until every node says that every replica of these partitions is in sync."""
        places = list(places)

        def all_in_sync() -> bool:
            for node in self.up:
                states = self.states(places, node)
                if len(states) < len(places) or any(len(state.isr_nodes) < len(NODES) for state in states.values()):
                    return False
            return True

        self.until(all_in_sync, "not every replica came back into its ISR")

    def until(self, found: Callable[[], object], complaint: str):
        """Ask again and again until there is an answer; a node that hangs up in the middle is asked again too."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                if answer := found():
                    return answer
            except OSError as reason:
                complaint = f"{complaint.partition(' (')[0]} ({reason})"
            assert time.monotonic() < end, f"{complaint}, for {PATIENCE_S} s\n{self.tails()}"
            time.sleep(LOOK_EVERY_S)

    # --- what they said

    def bugs(self) -> list[str]:
        """The tracebacks of all nodes."""
        return [f"node {node.node_id}: {line}" for node in self for line in node.bugs()]

    def tails(self) -> str:
        """The last lines of each node's output."""
        return "\n".join(f"--- node {node.node_id}\n{node.output_tail()}" for node in self if node.output.exists())


def creation(name: str, partitions: int, **configs: str) -> CreateTopicsRequest:
    """The request for a topic with a replica on every node; in `configs` underscores stand for dots."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=len(NODES),
        configs=tuple(CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()),
    )
    return CreateTopicsRequest(topics=(topic,), timeout_ms=15_000)


def _fresh_id() -> UUID:
    while True:
        value = uuid4()
        if usable_uuid(value):
            return value
