"""A shell around the controller's commands: gives offsets, replays what is decided, keeps every record."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from headrace.cores.controller import (
    Defaults,
    FeatureUpdate,
    Heartbeat,
    HeartbeatReply,
    IsrChange,
    Liveness,
    NewTopic,
    Outcome,
    Policy,
    Registration,
    ThisController,
    alter_partitions,
    create_topics,
    fence_stale_broker,
    heartbeat,
    register_broker,
    unregister_broker,
    update_features,
)
from headrace.cores.metadata import Metadata, PartitionState
from headrace.model.metadata_records import FeatureLevelRecord, MetadataRecord

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
SESSION_MS = 9_000
SUPPORTED = {"metadata.version": (7, 25), "eligible.leader.replicas.version": (0, 1)}
CONTROLLER = ThisController(node_id=100, supported=SUPPORTED, quorum=(100,))


class ControllerShell:
    """An active controller that commits at once."""

    def __init__(self, *, brokers: int = 0, racks: int = 0, elr: bool = False, policy: Policy | None = None) -> None:
        self.metadata = Metadata()
        self.records: list[MetadataRecord] = []
        self.policy = policy or Policy()
        self.now_ms = 1_000_000
        self.incarnations = 0
        self.commit([FeatureLevelRecord(name="metadata.version", feature_level=25)])
        self.liveness = Liveness(self.metadata, session_timeout_ms=SESSION_MS, now_ms=self.now_ms)
        if elr:
            self.set_elr(1)
        for broker_id in range(1, brokers + 1):
            self.register(broker_id, rack=f"r{broker_id % racks}" if racks else None)
            self.beat(broker_id)

    @property
    def next_offset(self) -> int:
        """Where the next record goes."""
        return len(self.records)

    def commit(self, records: Any) -> None:
        """Make records true."""
        for record in records:
            self.metadata.replay(record)
        self.records.extend(records)

    def run(self, command: Callable[..., Outcome[Any]], *args: Any, **named: Any) -> Any:
        """Carry out a command on the state, and give its reply."""
        outcome = command(self.metadata, *args, **named)
        self.commit(outcome.records)
        return outcome.reply

    def register(self, broker_id: int, *, rack: str | None = None, dirs: int = 1, **fields: Any) -> int:
        """A new process of a broker registers; its epoch."""
        self.incarnations += 1
        wanted = {
            "cluster_id": CLUSTER_ID,
            "incarnation_id": UUID(int=10_000 + self.incarnations),
            "features": SUPPORTED,
            "log_dirs": directories(broker_id, dirs),
            **fields,
        }
        command = partial(register_broker, cluster_id=CLUSTER_ID, next_offset=self.next_offset, now_ms=self.now_ms)
        epoch: int = self.run(
            command, self.liveness, Registration(broker_id=broker_id, rack=rack, **wanted), policy=self.policy
        )
        return epoch

    def beat(self, broker_id: int, *, offset: int | None = None, **fields: Any) -> HeartbeatReply:
        """A registered broker's heartbeat, which knows everything unless told otherwise."""
        beat = Heartbeat(
            broker_id=broker_id,
            broker_epoch=self.metadata.brokers[broker_id].broker_epoch,
            metadata_offset=self.next_offset - 1 if offset is None else offset,
            **fields,
        )
        command = partial(heartbeat, next_offset=self.next_offset, now_ms=self.now_ms, policy=self.policy)
        reply: HeartbeatReply = self.run(command, self.liveness, beat)
        return reply

    def silence(self, *silent: int) -> None:
        """A session passes in which all brokers but these are heard of."""
        self.now_ms += SESSION_MS + 1
        for broker_id, broker in list(self.metadata.brokers.items()):
            if broker_id not in silent and not broker.fenced:
                self.beat(broker_id)
        while self.run(fence_stale_broker, self.liveness, now_ms=self.now_ms, policy=self.policy) is not None:
            pass

    def unregister(self, broker_id: int) -> None:
        """A broker leaves for good."""
        self.run(unregister_broker, self.liveness, broker_id=broker_id, policy=self.policy)

    def set_elr(self, level: int) -> None:
        """Turn eligible leader replicas on or off."""
        kind = 1 if level else 2
        update = FeatureUpdate(name="eligible.leader.replicas.version", level=level, upgrade_type=kind)
        assert self.run(update_features, [update], controller=CONTROLLER, policy=self.policy) is None

    def create(self, name: str, *replicas: tuple[int, ...], **configs: str) -> UUID:
        """A topic with its partitions on these brokers; a config's name has underscores for dots."""
        topic_id = UUID(int=20_000 + len(self.records))
        topic = NewTopic(
            name=name,
            topic_id=topic_id,
            assignments=list(enumerate(replicas)),
            configs={key.replace("_", "."): value for key, value in configs.items()},
        )
        defaults = Defaults(partitions=1, replication_factor=1)
        (result,) = self.run(create_topics, [topic], defaults=defaults).values()
        if isinstance(result, Exception):
            raise result
        return topic_id

    def partition(self, topic: str, index: int = 0) -> PartitionState:
        """A partition as it is."""
        return self.metadata.topics[topic].partitions[index]

    def isr_change(self, topic: str, *isr: int, index: int = 0, **fields: Any) -> IsrChange:
        """What the leader would ask for to have this ISR."""
        state = self.partition(topic, index)
        values = {
            "leader_epoch": state.leader_epoch,
            "partition_epoch": state.partition_epoch,
            "isr": [(broker, self.metadata.brokers[broker].broker_epoch) for broker in isr],
            **fields,
        }
        return IsrChange(topic_id=self.metadata.topics[topic].topic_id, partition=index, **values)

    def alter(self, change: IsrChange, *, leader: int | None = None) -> Any:
        """The leader, or whoever is named, asks for a change; the reply's only entry."""
        state = self.metadata.partition(change.topic_id, change.partition)
        broker_id = state.leader if leader is None and state is not None else leader
        (answer,) = self.run(
            alter_partitions,
            broker_id=broker_id,
            broker_epoch=self.metadata.brokers[broker_id].broker_epoch,
            wanted=[change],
            policy=self.policy,
        )
        return answer


def directories(broker_id: int, count: int = 1) -> tuple[UUID, ...]:
    """The ids of a broker's log dirs."""
    return tuple(UUID(int=1_000_000 + broker_id * 100 + number) for number in range(count))
