"""confluent-kafka's admin client lists, describes and deletes groups, and their offsets."""

import confluent_kafka
import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka._model import ConsumerGroupType

from clients.confluent_members import PROTOCOLS, Member, until_share
from clients.libraries import DEADLINE_S, admin, create_topic

pytestmark = [pytest.mark.clients, pytest.mark.slow]

by_either = pytest.mark.parametrize("protocol", ["range", "consumer"])


@pytest.fixture
def client(broker):
    """An admin client."""
    return admin(broker.bootstrap)


def listed(client, **filters) -> dict[str, tuple]:
    """Type and state of the groups that fit."""
    result = client.list_consumer_groups(**filters).result(DEADLINE_S)
    assert result.errors == []
    return {group.group_id: (group.type, group.state) for group in result.valid}


def offsets(client, group: str) -> dict[tuple[str, int], int]:
    """All committed offsets of a group."""
    asked = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = asked[group].result(DEADLINE_S).topic_partitions
    return {(place.topic, place.partition): place.offset for place in found}


def refusal(future) -> int:
    """The code of the error that a question ends in."""
    with pytest.raises(KafkaException) as caught:
        future.result(DEADLINE_S)
    return caught.value.args[0].code()


@by_either
def test_list_and_describe(broker, topic, group, client, protocol):
    """Is a group listed by type and state, and described with its members and their partitions?"""
    create_topic(broker.bootstrap, topic, partitions=2)
    kind = ConsumerGroupType.CONSUMER if protocol == "consumer" else ConsumerGroupType.CLASSIC
    other = ConsumerGroupType.CLASSIC if protocol == "consumer" else ConsumerGroupType.CONSUMER
    with Member(broker.bootstrap, group, [topic], **PROTOCOLS[protocol], **{"client.id": "somebody"}) as member:
        until_share([member], topic, 2)

        assert listed(client)[group] == (kind, ConsumerGroupState.STABLE)
        assert group in listed(client, states={ConsumerGroupState.STABLE}, types={kind})
        assert group not in listed(client, states={ConsumerGroupState.EMPTY})
        assert group not in listed(client, types={other})
        described = client.describe_consumer_groups([group])[group].result(DEADLINE_S)

    (one,) = described.members
    assert (described.state, described.type) == (ConsumerGroupState.STABLE, kind)
    assert described.partition_assignor == ("uniform" if protocol == "consumer" else "range")
    assert described.coordinator.id == 1
    assert (one.client_id, one.host) == ("somebody", "/127.0.0.1")
    held = {(place.topic, place.partition) for place in one.assignment.topic_partitions}
    assert held == {(topic, 0), (topic, 1)}
    assert listed(client)[group] == (kind, ConsumerGroupState.EMPTY)


@by_either
def test_offsets(broker, topic, group, client, protocol):
    """Can a group's offsets be listed, altered and deleted, and the group be deleted, only while nobody is in it?"""
    create_topic(broker.bootstrap, topic, partitions=2)

    def alter(offset: int):
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])
        return client.alter_consumer_group_offsets([wanted])[group]

    with Member(broker.bootstrap, group, [topic], **PROTOCOLS[protocol]) as member:
        until_share([member], topic, 2)
        places = [TopicPartition(topic, 0, 3), TopicPartition(topic, 1, 4)]
        member.consumer.commit(offsets=places, asynchronous=False)
        assert offsets(client, group) == {(topic, 0): 3, (topic, 1): 4}
        assert refusal(client.delete_consumer_groups([group])[group]) == KafkaError.NON_EMPTY_GROUP
        assert alter(1).result(DEADLINE_S).topic_partitions[0].error.code() == KafkaError.UNKNOWN_MEMBER_ID

    alter(1).result(DEADLINE_S)
    assert offsets(client, group) == {(topic, 0): 1, (topic, 1): 4}
    client.delete_consumer_groups([group])[group].result(DEADLINE_S)
    assert group not in listed(client)
    assert offsets(client, group) == {}
    assert refusal(client.delete_consumer_groups([group])[group]) == KafkaError.GROUP_ID_NOT_FOUND


def test_describe_unknown(group, client):
    """Is a group that is not there a dead one, for a client that asks in an old version?"""
    described = client.describe_consumer_groups([group])[group].result(DEADLINE_S)

    assert (described.state, described.members) == (ConsumerGroupState.DEAD, [])


def test_offsets_before_the_first_commit(broker, topic, group, client):
    """Has a partition for which nothing was committed no offset, when it is asked for by name?"""
    create_topic(broker.bootstrap, topic)
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])

    (place,) = client.list_consumer_group_offsets([wanted])[group].result(DEADLINE_S).topic_partitions

    assert (place.offset, place.error) == (confluent_kafka.OFFSET_INVALID, None)
