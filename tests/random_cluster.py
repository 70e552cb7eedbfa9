"""A cluster to which random things happen, and what must be true of it whatever happened."""

import random
from collections.abc import Callable
from uuid import UUID

from controller_shell import CONTROLLER, ControllerShell, directories
from headrace.cores.controller import (
    ConfigChange,
    Defaults,
    DirectoryAssignment,
    FeatureUpdate,
    MorePartitions,
    NewTopic,
    Policy,
    Reassignment,
    allocate_producer_ids,
    alter_reassignments,
    assign_replicas_to_dirs,
    balance_leaders,
    change_configs,
    create_partitions,
    create_topics,
    delete_topics,
    elect_leaders,
    elect_unclean_leaders,
    register_controller,
    snapshot_records,
    update_features,
)
from headrace.cores.metadata import RESOURCE_BROKER, RESOURCE_GROUP, RESOURCE_TOPIC, Metadata, PartitionState
from headrace.cores.partition_index import PartitionIndex, PartitionKey
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import ControllerFeature, RegisterControllerRecord

COMMANDS = 150
BROKERS = range(1, 7)
DIRS = 3


class RandomCluster(ControllerShell):
    """A cluster to which things happen."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.vouched: set[int] = set()
        """Whom a leader has just said to be in sync."""
        unclean = self.chance.random() < 0.2
        super().__init__(
            brokers=self.chance.randint(1, 5),
            racks=self.chance.randint(0, 3),
            elr=self.chance.random() < 0.6,
            policy=Policy(min_insync_replicas=self.chance.randint(1, 3), unclean_leader_election=unclean),
        )

    # --- brokers

    def register_some(self) -> None:
        """A broker starts: for the first time or again, after a clean stop or another."""
        broker_id = self.chance.choice(BROKERS)
        known = self.metadata.brokers.get(broker_id)
        previous = self.chance.choice([None, -1, -1, known.broker_epoch if known else 5])
        self.register(broker_id, dirs=self.chance.randint(1, DIRS), previous_broker_epoch=previous)

    def register_same(self) -> None:
        """A broker sends its registration again."""
        broker = self.chance.choice(list(self.metadata.brokers.values()))
        self.register(broker.broker_id, incarnation_id=broker.incarnation_id, log_dirs=broker.log_dirs, rack="moved")

    def beat_some(self) -> None:
        """A broker is heard of, mostly because it is well."""
        broker = self.chance.choice(list(self.metadata.brokers.values()))
        offline = directories(broker.broker_id, DIRS)[: self.chance.choice([0, 0, 0, 0, 0, 1])]
        self.beat(
            broker.broker_id,
            offset=self.next_offset - self.chance.choice([1, 1, 1, 20]),
            wants_fence=self.chance.random() < 0.05,
            wants_shutdown=self.chance.random() < 0.15,
            offline_log_dirs=offline,
        )

    def lose_some(self) -> None:
        """Brokers fall silent for a session."""
        self.silence(*self.chance.sample(BROKERS, self.chance.randint(0, 3)))

    def unregister_some(self) -> None:
        """A broker is taken out."""
        self.unregister(self.chance.choice(BROKERS))

    # --- topics

    def create_some(self) -> None:
        """A topic is asked for."""
        topic = NewTopic(
            name=f"t{self.chance.randint(0, 6)}",
            topic_id=UUID(int=self.chance.getrandbits(100) + 1_000_000_000),
            partitions=self.chance.randint(1, 4),
            replication_factor=self.chance.randint(1, 4),
        )
        self.run(create_topics, [topic], defaults=Defaults(partitions=1, replication_factor=1))

    def delete_some(self) -> None:
        """A topic is deleted."""
        self.run(delete_topics, names=[f"t{self.chance.randint(0, 6)}"])

    def grow_some(self) -> None:
        """A topic gets partitions."""
        wanted = MorePartitions(name=f"t{self.chance.randint(0, 6)}", count=self.chance.randint(1, 6))
        self.run(create_partitions, [wanted])

    # --- partitions

    def any_partition(self) -> tuple[str, int]:
        """Some partition's topic and number."""
        topic = self.chance.choice(list(self.metadata.topics.values()))
        return topic.name, self.chance.randrange(len(topic.partitions))

    def alter_some(self) -> None:
        """A leader changes its ISR, sometimes to what it may not be or from what it is not any more."""
        name, index = self.any_partition()
        state = self.partition(name, index)
        if state.leader < 0:
            return
        live = [replica for replica in state.replicas if replica in self.metadata.brokers and replica != state.leader]
        if self.chance.random() < 0.9:
            live = [replica for replica in live if self.metadata.is_active(replica)]
        isr = [state.leader, *self.chance.sample(live, self.chance.randint(0, len(live)))]
        change = self.isr_change(name, *isr, index=index)
        if self.chance.random() < 0.1:
            late = state.partition_epoch - 1
            change = self.isr_change(name, *isr, index=index, partition_epoch=late)
        self.vouched = set(isr)
        before = self.next_offset
        answer = self.alter(change)
        if answer.error not in {ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED}:
            assert before == self.next_offset, "a refused change changes nothing"

    def elect_some(self) -> None:
        """Somebody asks for elections."""
        partitions = self.chance.choice([None, [self.any_partition()]])
        self.run(
            elect_leaders, election_type=int(self.chance.random() < 0.2), partitions=partitions, policy=self.policy
        )

    def elect_by_itself(self) -> None:
        """The controller's own rounds."""
        self.run(balance_leaders, policy=self.policy, elections_max=3)
        self.run(elect_unclean_leaders, policy=self.policy, elections_max=3)

    def reassign_some(self) -> None:
        """Replicas are moved, or moved back."""
        name, index = self.any_partition()
        target = self.chance.sample(BROKERS, self.chance.randint(1, 4)) if self.chance.random() < 0.75 else None
        wanted = Reassignment(topic=name, partition=index, replicas=target)
        self.run(alter_reassignments, [wanted], policy=self.policy)

    def assign_some(self) -> None:
        """A broker says which log dirs its replicas are in."""
        broker = self.chance.choice(list(self.metadata.brokers.values()))
        wanted = []
        for _ in range(2):
            name, index = self.any_partition()
            directory = self.chance.choice(directories(broker.broker_id, DIRS))
            topic_id = self.metadata.topics[name].topic_id
            wanted.append(DirectoryAssignment(directory=directory, topic_id=topic_id, partition=index))
        self.run(
            assign_replicas_to_dirs,
            broker_id=broker.broker_id,
            broker_epoch=broker.broker_epoch,
            wanted=wanted,
            policy=self.policy,
        )

    # --- the rest

    def configure_some(self) -> None:
        """Settings change."""
        kind, name = self.chance.choice(
            [
                (RESOURCE_TOPIC, self.any_partition()[0]),
                (RESOURCE_BROKER, ""),
                (RESOURCE_BROKER, "1"),
                (RESOURCE_GROUP, "g"),
            ]
        )
        values = {}
        if self.chance.random() < 0.7:
            values["min.insync.replicas"] = str(self.chance.randint(1, 3))
        if self.chance.random() < 0.3:
            values["unclean.leader.election.enable"] = self.chance.choice(["true", "false"])
        change = ConfigChange(resource_type=kind, resource_name=name, change=lambda _: values)
        self.run(change_configs, [change])

    def update_some_feature(self) -> None:
        """Eligible leader replicas are turned on or off."""
        level = self.chance.randint(0, 1)
        update = FeatureUpdate(
            name="eligible.leader.replicas.version", level=level, upgrade_type=self.chance.randint(1, 3)
        )
        self.run(update_features, [update], controller=CONTROLLER, policy=self.policy)

    def give_producer_ids(self) -> None:
        """A broker needs producer ids."""
        broker = self.chance.choice(list(self.metadata.brokers.values()))
        self.run(allocate_producer_ids, broker_id=broker.broker_id, broker_epoch=broker.broker_epoch)

    def register_some_controller(self) -> None:
        """A controller registers."""
        features = tuple(
            ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in CONTROLLER.supported.items()
        )
        wanted = RegisterControllerRecord(controller_id=self.chance.randint(100, 102), features=features)
        self.run(register_controller, wanted)


STEPS: list[tuple[int, Callable[[RandomCluster], None]]] = [
    (4, RandomCluster.register_some),
    (1, RandomCluster.register_same),
    (14, RandomCluster.beat_some),
    (2, RandomCluster.lose_some),
    (1, RandomCluster.unregister_some),
    (4, RandomCluster.create_some),
    (1, RandomCluster.delete_some),
    (1, RandomCluster.grow_some),
    (14, RandomCluster.alter_some),
    (2, RandomCluster.elect_some),
    (1, RandomCluster.elect_by_itself),
    (4, RandomCluster.reassign_some),
    (2, RandomCluster.assign_some),
    (2, RandomCluster.configure_some),
    (1, RandomCluster.update_some_feature),
    (1, RandomCluster.give_producer_ids),
    (1, RandomCluster.register_some_controller),
]


def step(cluster: RandomCluster) -> str:
    """Let one thing happen, if it can; what it was."""
    (do,) = cluster.chance.choices([each for _, each in STEPS], [weight for weight, _ in STEPS])
    cluster.vouched = set()
    try:
        do(cluster)
    except KafkaError as error:
        return f"{do.__name__}: {error.code.name}"
    except IndexError:
        # There is nothing yet to choose from.
        return f"{do.__name__}: nothing there"
    return do.__name__


def all_partitions(metadata: Metadata) -> dict[PartitionKey, PartitionState]:
    """Every partition there is."""
    return {(topic.topic_id, state.index): state for topic in metadata.topics.values() for state in topic.partitions}


def check_partition(cluster: RandomCluster, state: PartitionState) -> None:
    """What must be true of every partition at every moment."""
    assert state.replicas
    for brokers in (state.replicas, state.isr, state.elr, state.adding_replicas, state.removing_replicas):
        assert len(set(brokers)) == len(brokers)
        assert set(brokers) <= set(state.replicas)
    assert not set(state.isr) & set(state.elr)
    assert len(state.directories) in {0, len(state.replicas)}
    if state.leader >= 0:
        assert state.leader in state.isr
        assert can_lead(cluster, state, state.leader)
        assert not state.last_known_elr
    else:
        assert not [replica for replica in state.isr or state.elr if can_lead(cluster, state, replica)]


def can_lead(cluster: RandomCluster, state: PartitionState, replica: int) -> bool:
    """Whether a replica's broker lives and has the log dir of it."""
    broker = cluster.metadata.brokers.get(replica)
    if broker is None or not cluster.metadata.is_active(replica):
        return False
    directory = state.directories[state.replicas.index(replica)]
    return directory.int < 100 or directory in broker.log_dirs


def check_step(
    before: dict[PartitionKey, PartitionState], after: dict[PartitionKey, PartitionState], vouched: set[int]
) -> None:
    """What must be true between two moments."""
    for key in before.keys() & after.keys():
        old, new = before[key], after[key]
        if old is new:
            continue
        assert old.partition_epoch < new.partition_epoch
        assert old.leader_epoch <= new.leader_epoch <= old.leader_epoch + (new.partition_epoch - old.partition_epoch)
        if old.leader != new.leader or not set(old.replicas) <= set(new.replicas):
            assert old.leader_epoch < new.leader_epoch
        is_clean = new.leader < 0 or new.leader in {*old.isr, *old.elr, *vouched}
        assert is_clean or new.leader_recovery_state == 1, "an election that may lose records says so"


def check_index(metadata: Metadata) -> None:
    """Is the index what looking at every partition gives?"""
    index = PartitionIndex()
    for key, state in all_partitions(metadata).items():
        index.replace(key, None, state)
    assert index == metadata.index


def replayed(records) -> Metadata:
    """The state after these records."""
    metadata = Metadata()
    for record in records:
        metadata.replay(record)
    return metadata


def check_cluster(seed: int) -> None:
    """Let many things happen to a cluster and look at it after each."""
    cluster = RandomCluster(seed)
    history = []
    snapshot_at = cluster.chance.randrange(COMMANDS)
    saved = []
    before = all_partitions(cluster.metadata)
    try:
        for number in range(COMMANDS):
            history.append(step(cluster))
            after = all_partitions(cluster.metadata)
            for state in after.values():
                check_partition(cluster, state)
            check_step(before, after, cluster.vouched)
            check_index(cluster.metadata)
            before = after
            if number == snapshot_at:
                saved, rest_from = list(snapshot_records(cluster.metadata)), cluster.next_offset
                copied, cluster.metadata = cluster.metadata, cluster.metadata.copy()
        assert replayed(cluster.records) == cluster.metadata
        assert replayed(cluster.records[:rest_from]) == copied
        assert replayed(saved + cluster.records[rest_from:]) == cluster.metadata
    except AssertionError as fault:
        raise AssertionError(f"seed {seed}, command {len(history)}, after {history[-3:]}: {fault}") from fault
