"""Replaying the metadata log into the cluster's state."""

from typing import get_args
from uuid import UUID

import pytest

from headrace.cores.metadata import RESOURCE_BROKER, RESOURCE_TOPIC, Metadata, PartitionState
from headrace.model.metadata_records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

ORDERS = UUID(int=1001)


def replayed(*records: MetadataRecord) -> Metadata:
    """The state after these records."""
    metadata = Metadata()
    for record in records:
        metadata.replay(record)
    return metadata


def partition(index: int, *replicas: int) -> PartitionRecord:
    """A partition of `orders`."""
    return PartitionRecord(partition_id=index, topic_id=ORDERS, replicas=replicas, isr=replicas, leader=replicas[0])


def config(name: str, value: str | None, *, kind: int = RESOURCE_TOPIC, resource: str = "orders") -> ConfigRecord:
    """A setting of `orders`."""
    return ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def test_topic_is_found_by_name_and_id():
    """Is a topic with its partitions found both by name and by id?"""
    metadata = replayed(TopicRecord(name="orders", topic_id=ORDERS), partition(0, 1, 2), partition(1, 2, 1))

    topic = metadata.topics["orders"]

    assert topic is metadata.topics_by_id[ORDERS]
    assert [(p.index, p.leader, p.replicas) for p in topic.partitions] == [(0, 1, (1, 2)), (1, 2, (2, 1))]


def test_removed_topic_leaves_nothing_behind():
    """Do a removed topic's settings and its claim on similar names go with it?"""
    metadata = replayed(
        TopicRecord(name="a.b", topic_id=ORDERS),
        config("retention.ms", "1", resource="a.b"),
        RemoveTopicRecord(topic_id=ORDERS),
    )

    assert {} == metadata.topics == metadata.topics_by_id
    assert metadata.configs(RESOURCE_TOPIC, "a.b") == {}
    assert metadata.colliding("a_b") is None


def test_topic_created_again_is_another_topic():
    """Is a topic that was deleted and created again empty of what the first one had?"""
    metadata = replayed(
        TopicRecord(name="orders", topic_id=ORDERS),
        partition(0, 1),
        config("retention.ms", "1"),
        RemoveTopicRecord(topic_id=ORDERS),
        TopicRecord(name="orders", topic_id=UUID(int=1002)),
    )

    assert metadata.topics["orders"].partitions == []
    assert metadata.configs(RESOURCE_TOPIC, "orders") == {}
    assert {UUID(int=1002)} == set(metadata.topics_by_id)


@pytest.mark.parametrize(("name", "other"), [("a.b_c", "a_b.c"), ("a.b", "a_b"), ("a_b", "a.b")])
def test_names_that_metrics_cannot_tell_apart_collide(name, other):
    """Do names that differ only in '.' and '_' find each other?"""
    assert name == replayed(TopicRecord(name=name, topic_id=ORDERS)).colliding(other)


def test_plain_names_do_not_collide():
    """Do names without '.' and '_' leave each other alone?"""
    assert replayed(TopicRecord(name="ab", topic_id=ORDERS)).colliding("a_b") is None


def test_partition_change_keeps_what_it_does_not_name():
    """Does a change of the ISR leave the leader and its epoch, and a new leader raise the epoch?"""
    before = (TopicRecord(name="orders", topic_id=ORDERS), partition(0, 1, 2))
    shrunk = PartitionChangeRecord(partition_id=0, topic_id=ORDERS, isr=(1,))
    led_by_2 = PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2)

    (after_shrink,) = replayed(*before, shrunk).topics["orders"].partitions
    (after_both,) = replayed(*before, shrunk, led_by_2).topics["orders"].partitions

    assert (
        PartitionState(index=0, replicas=(1, 2), isr=(1,), leader=1, leader_epoch=0, partition_epoch=1) == after_shrink
    )
    assert PartitionState(index=0, replicas=(1, 2), isr=(1,), leader=2, leader_epoch=1, partition_epoch=2) == after_both


def test_partition_record_again_describes_it_anew():
    """Does a whole description of a partition that exists take the old one's place?"""
    metadata = replayed(TopicRecord(name="orders", topic_id=ORDERS), partition(0, 1), partition(0, 2))

    assert [p.leader for p in metadata.topics["orders"].partitions] == [2]


def test_settings_are_set_changed_and_removed():
    """Does the last word on a setting count, and does a resource without settings vanish from the list?"""
    records = [config("retention.ms", "1"), config("retention.ms", "2"), config("cleanup.policy", "compact")]
    metadata = replayed(*records)

    assert metadata.configs(RESOURCE_TOPIC, "orders") == {"retention.ms": "2", "cleanup.policy": "compact"}
    assert metadata.config_resources(RESOURCE_TOPIC) == ["orders"]

    metadata.replay(config("retention.ms", None))
    metadata.replay(config("cleanup.policy", None))

    assert metadata.configs(RESOURCE_TOPIC, "orders") == {}
    assert metadata.config_resources(RESOURCE_TOPIC) == []


def test_settings_of_a_topic_and_a_broker_of_one_name_are_apart():
    """Are the settings of topic "1" and broker "1" kept apart?"""
    metadata = replayed(config("a", "topic", resource="1"), config("a", "broker", resource="1", kind=RESOURCE_BROKER))

    assert metadata.configs(RESOURCE_TOPIC, "1") == {"a": "topic"}
    assert metadata.configs(RESOURCE_BROKER, "1") == {"a": "broker"}


def test_brokers_features_and_producer_ids_are_kept():
    """Are the smaller facts taken over as they are?"""
    broker = RegisterBrokerRecord(broker_id=1, broker_epoch=7)
    metadata = replayed(
        broker,
        FeatureLevelRecord(name="metadata.version", feature_level=25),
        ProducerIdsRecord(broker_id=1, broker_epoch=7, next_producer_id=1000),
        NoOpRecord(),
    )

    assert {1: broker} == metadata.brokers
    assert metadata.features == {"metadata.version": 25}
    assert metadata.next_producer_id == 1000


def test_registration_change_keeps_what_it_does_not_name():
    """Is a broker fenced and unfenced without forgetting the rest of its registration?"""
    broker = RegisterBrokerRecord(broker_id=1, broker_epoch=7, rack="r1", log_dirs=(ORDERS,))
    metadata = replayed(broker, BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=1))

    assert metadata.brokers[1] == RegisterBrokerRecord(
        broker_id=1, broker_epoch=7, rack="r1", log_dirs=(ORDERS,), fenced=True
    )

    metadata.replay(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, in_controlled_shutdown=1))

    assert metadata.brokers[1].fenced
    assert metadata.brokers[1].in_controlled_shutdown

    metadata.replay(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, cordoned_log_dirs=(ORDERS,)))
    metadata.replay(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=-1))

    assert not metadata.brokers[1].fenced
    assert metadata.brokers[1].in_controlled_shutdown
    assert (ORDERS,) == metadata.brokers[1].cordoned_log_dirs


def test_brokers_leave_and_controllers_are_known():
    """Is a broker that unregistered gone, and a controller found by its id?"""
    controller = RegisterControllerRecord(controller_id=7)
    metadata = replayed(
        RegisterBrokerRecord(broker_id=1, broker_epoch=7),
        RegisterBrokerRecord(broker_id=2, broker_epoch=8),
        UnregisterBrokerRecord(broker_id=1, broker_epoch=7),
        controller,
    )

    assert [2] == list(metadata.brokers)
    assert {7: controller} == metadata.controllers


def test_active_is_who_serves_and_stays():
    """Is a broker active only while it is registered, not fenced and not about to stop?"""
    metadata = replayed(
        RegisterBrokerRecord(broker_id=1),
        RegisterBrokerRecord(broker_id=2, fenced=True),
        RegisterBrokerRecord(broker_id=3, in_controlled_shutdown=True),
    )

    assert [1] == [broker_id for broker_id in range(5) if metadata.is_active(broker_id)]


def test_partition_is_described_with_everything():
    """Are eligible replicas, moves, directories and the recovery state kept, and changed when they are named?"""
    whole = PartitionRecord(
        partition_id=0,
        topic_id=ORDERS,
        replicas=(1, 2, 3),
        isr=(1,),
        leader=1,
        adding_replicas=(3,),
        removing_replicas=(2,),
        leader_recovery_state=1,
        directories=(ORDERS, ORDERS, ORDERS),
        eligible_leader_replicas=(2,),
        last_known_elr=(1,),
    )
    change = PartitionChangeRecord(
        partition_id=0,
        topic_id=ORDERS,
        adding_replicas=(),
        removing_replicas=(),
        leader_recovery_state=0,
        eligible_leader_replicas=(),
        last_known_elr=(),
        directories=(UUID(int=5), ORDERS, ORDERS),
    )
    metadata = replayed(TopicRecord(name="orders", topic_id=ORDERS), whole)
    before = metadata.partition(ORDERS, 0)
    metadata.replay(change)
    after = metadata.partition(ORDERS, 0)

    assert before is not None
    assert ((3,), (2,), 1, (2,), (1,), True) == (
        before.adding_replicas,
        before.removing_replicas,
        before.leader_recovery_state,
        before.elr,
        before.last_known_elr,
        before.is_reassigning,
    )
    assert after == PartitionState(
        index=0,
        replicas=(1, 2, 3),
        isr=(1,),
        leader=1,
        leader_epoch=0,
        partition_epoch=1,
        directories=(UUID(int=5), ORDERS, ORDERS),
    )


def test_partition_that_is_not_there_is_none():
    """Is an unknown topic or number answered with None?"""
    metadata = replayed(TopicRecord(name="orders", topic_id=ORDERS), partition(0, 1))

    assert [None, None, None] == [metadata.partition(*key) for key in ((UUID(int=5), 0), (ORDERS, 1), (ORDERS, -1))]


@pytest.mark.parametrize(("topic", "cleared"), [("orders", [True, False]), ("", [True, True])])
def test_eligible_replicas_are_cleared_of_one_topic_or_of_all(topic, cleared):
    """Does the record make the ELR of a topic, or of all topics, void, as a change of each partition that has one?"""
    metadata = replayed(
        TopicRecord(name="orders", topic_id=ORDERS),
        TopicRecord(name="other", topic_id=UUID(int=1002)),
        *(
            PartitionRecord(
                partition_id=0, topic_id=topic_id, replicas=(1, 2), isr=(1,), leader=1, eligible_leader_replicas=(2,)
            )
            for topic_id in (ORDERS, UUID(int=1002))
        ),
        ClearElrRecord(topic_name=topic),
    )

    states = [metadata.topics[name].partitions[0] for name in ("orders", "other")]
    assert cleared == [not state.elr for state in states]
    assert cleared == [state.partition_epoch == 1 for state in states]


def test_feature_at_level_zero_is_off():
    """Is a feature that was set to 0 as if it had never been?"""
    metadata = replayed(
        FeatureLevelRecord(name="group.version", feature_level=1),
        FeatureLevelRecord(name="group.version", feature_level=0),
    )

    assert {} == metadata.features


def test_index_forgets_a_removed_topic():
    """Is nothing left in the index of a topic that is gone?"""
    metadata = replayed(
        TopicRecord(name="orders", topic_id=ORDERS), partition(0, 1, 2), RemoveTopicRecord(topic_id=ORDERS)
    )

    assert Metadata().index == metadata.index


def test_every_kind_of_record_can_be_replayed():
    """Is there a rule for each record type there is?"""
    assert set(get_args(MetadataRecord)) == set(Metadata._REPLAY)
