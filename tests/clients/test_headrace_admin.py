"""Headrace's KafkaAdmin."""

import pytest

from clients.libraries import Confluent, Sent
from headrace import (
    Closed,
    ConfigResource,
    ConfigResourceType,
    ErrorCode,
    KafkaAdmin,
    KafkaConsumer,
    KafkaError,
    NewPartitions,
    NewTopic,
    NoBroker,
    OffsetAndMetadata,
    TopicPartition,
)

pytestmark = [pytest.mark.clients, pytest.mark.slow]


@pytest.fixture
def admin(broker):
    """An admin client."""
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as one:
        yield one


def test_reassignments(admin, topic):
    """Is nothing on its way where nothing moves, asked for one partition and for all?"""
    admin.create_topics([NewTopic(topic, 1, 1)])

    assert {} == admin.list_partition_reassignments([(topic, 0)])
    assert (topic, 0) not in admin.list_partition_reassignments()


def test_synonyms(admin, topic):
    """Does a setting say what it would be if it were not set here?"""
    admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"max.message.bytes": "1000"})])
    (found,) = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    own, *others = found["max.message.bytes"].synonyms

    assert ("max.message.bytes", "1000") == (own.name, own.value)
    assert "message.max.bytes" == others[-1].name


def test_topics(admin, topic):
    """Can topics be created, seen, grown and deleted?"""
    ids = admin.create_topics([NewTopic(topic, 2, 1, topic_configs={"retention.ms": "1000"}), f"{topic}-plain"])
    admin.create_partitions({topic: NewPartitions(4), f"{topic}-plain": 3})
    (described,) = admin.describe_topics([topic])

    assert {topic, f"{topic}-plain"} <= set(admin.list_topics())
    assert (topic, ids[topic], False) == (described.name, described.topic_id, described.is_internal)
    assert [0, 1, 2, 3] == [one.partition for one in described.partitions]
    assert {described.partitions[0].leader} == set(described.partitions[0].isr)
    admin.delete_topics([topic, f"{topic}-plain"])
    assert not {topic, f"{topic}-plain"} & set(admin.list_topics())


def test_validation_changes_nothing(admin, topic):
    """Does `validate_only` look without doing?"""
    admin.create_topics([topic], validate_only=True)

    assert topic not in admin.list_topics()


def test_refusals(admin, topic):
    """Is what the broker refuses raised with its code and the name of the thing, the rest being done?"""
    admin.create_topics([topic])
    with pytest.raises(KafkaError, match=topic) as caught:
        admin.create_topics([topic, f"{topic}-other"])
    assert ErrorCode.TOPIC_ALREADY_EXISTS == caught.value.code
    assert f"{topic}-other" in admin.list_topics()
    for refused in (
        lambda: admin.describe_topics(["nobody-made-this"]),
        lambda: admin.delete_topics(["nobody-made-this"]),
        lambda: admin.list_offsets({(topic, 99): "latest"}),
    ):
        with pytest.raises(KafkaError) as caught:
            refused()
        assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION == caught.value.code


def test_settings(admin, topic):
    """Are settings changed one by one, and taken back with None?"""
    admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"retention.ms": "1000"})])
    admin.alter_configs([ConfigResource("topic", topic, {"cleanup.policy": "compact", "retention.ms": None})])
    (found,) = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])

    assert ("compact", False) == (found["cleanup.policy"].value, found["cleanup.policy"].is_default)
    assert ("604800000", True) == (found["retention.ms"].value, found["retention.ms"].is_default)


def test_settings_of_a_broker(admin):
    """Are a broker's settings told, only those asked for?"""
    node_id = admin.describe_cluster().brokers[0].node_id
    (found,) = admin.describe_configs([ConfigResource("broker", str(node_id), {"log.segment.bytes": None})])

    assert ["log.segment.bytes"] == list(found)


def test_cluster(admin, broker):
    """Is the cluster described?"""
    found = admin.describe_cluster()

    assert [f"{one.host}:{one.port}" for one in found.brokers] == [broker.bootstrap.replace("localhost", "127.0.0.1")]
    assert found.cluster_id


def test_records(admin, broker, topic):
    """Are offsets listed, at marks and at times, and records deleted?"""
    admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"retention.ms": "-1"})])
    place = TopicPartition(topic, 0)
    Confluent.send(broker.bootstrap, topic, [Sent(value=b"x", timestamp_ms=1000 + n) for n in range(10)])

    assert 10 == admin.list_offsets({place: "latest"})[place].offset
    assert (4, 1004) == admin.list_offsets({place: 1004})[place][:2]
    assert (9, 1009) == admin.list_offsets({place: "max_timestamp"})[place][:2]
    assert {place: 6} == admin.delete_records({place: 6})
    assert 6 == admin.list_offsets({place: "earliest"}, isolation_level="read_committed")[place].offset


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups(admin, broker, topic, group, protocol):
    """Can groups of both protocols be seen with their members, and deleted when they are empty?"""
    admin.create_topics([topic])
    place = TopicPartition(topic, 0)
    Confluent.send(broker.bootstrap, topic, [Sent(value=b"x")])
    with KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        group_id=group,
        client_id="somebody",
        group_protocol=protocol,
        auto_offset_reset="earliest",
    ) as consumer:
        next(consumer)
        described = admin.describe_groups([group])[group]
        listed = {one.group_id: one for one in admin.list_groups()}[group]
        with pytest.raises(KafkaError) as caught:
            admin.delete_groups([group])

    (member,) = described.members
    assert (protocol, "Stable", "somebody", {place}) == (
        described.group_type,
        described.state,
        member.client_id,
        member.assignment,
    )
    assert (protocol, "consumer") == (listed.group_type, listed.protocol_type)
    assert ErrorCode.NON_EMPTY_GROUP == caught.value.code
    admin.delete_groups([group])
    assert group not in {one.group_id for one in admin.list_groups()}


def test_offsets_of_a_group(admin, topic, group):
    """Can a group's offsets be set, listed and forgotten?"""
    admin.create_topics([NewTopic(topic, 2)])
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    admin.alter_group_offsets(group, {first: 7, second: OffsetAndMetadata(8, "a note")})
    everything = admin.list_group_offsets(group)
    admin.delete_group_offsets(group, [first])

    assert {first: OffsetAndMetadata(7, "", -1), second: OffsetAndMetadata(8, "a note", -1)} == everything
    assert {second: OffsetAndMetadata(8, "a note", -1)} == admin.list_group_offsets(group, [first, second])
    assert "Empty" == admin.describe_consumer_groups([group])[group].state


def test_no_broker():
    """Is a broker that is not there named at once?"""
    with pytest.raises(NoBroker, match=r"127\.0\.0\.1:1"):
        KafkaAdmin(bootstrap_servers="127.0.0.1:1")


def test_closed(admin):
    """Is a closed admin client said to be closed?"""
    admin.close()

    with pytest.raises(Closed):
        admin.list_topics()
