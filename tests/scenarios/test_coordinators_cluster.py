"""Coordinators that move: groups and transactions go on when the broker that coordinates them dies."""

import pytest
from confluent_kafka import KafkaException, TopicPartition

from clients.libraries import Deadline
from cluster_shell import BrokerGroup
from scenarios.cluster_clients import (
    WAIT_S,
    Copier,
    committed,
    coordinator_of,
    create,
    member,
    taken,
    transactional,
    written,
)

pytestmark = [pytest.mark.clients, pytest.mark.slow]

PROTOCOLS = ["classic", "consumer"]


@pytest.fixture
def group():
    """Three nodes that are brokers and controllers."""
    settings = {
        "group.consumer.heartbeat.interval.ms": "500",
        # Once librdkafka sent no request for ten minutes after a coordinator had moved, until its connection was closed
        # for being idle; the time it had been given for the call did not count.
        "connections.max.idle.ms": "20000",
    }
    with BrokerGroup(3, settings=settings) as group:
        yield group


@pytest.mark.parametrize(("protocol", "end"), [("classic", "kill"), ("consumer", "kill"), ("consumer", "stop")])
def test_a_group_outlives_its_coordinator(group, protocol, end):
    """Does a member go on where it was and keep committing when its coordinator stops or dies (R2, R21, R23)?"""
    create(group, "a")
    written(group, "a", range(30))
    consumer = member(group, "g", **{"group.protocol": protocol})
    consumer.subscribe(["a"])
    deadline = Deadline(WAIT_S)
    before = taken(consumer, 30, deadline)
    consumer.commit(asynchronous=False)

    getattr(group, end)(coordinator_of(group, "groups", "g"))
    written(group, "a", range(30, 60))
    after = taken(consumer, 30, deadline)
    consumer.commit(asynchronous=False)
    consumer.close()

    assert sorted(int(each.value()) for each in before) == list(range(30))
    assert sorted(int(each.value()) for each in after) == list(range(30, 60))
    reader = member(group, "g")
    places = reader.committed([TopicPartition("a", index) for index in range(3)], WAIT_S)
    assert [place.offset for place in places] == [20, 20, 20]
    reader.close()


def ended(producer):
    """Whether a transaction could be committed; if it has to be aborted, it is."""
    try:
        producer.commit_transaction(WAIT_S)
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        producer.abort_transaction(WAIT_S)
        return False
    return True


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_an_open_transaction_outlives_its_coordinator(group, end):
    """Is a transaction committed as a whole whose coordinator's broker died or stopped while it was open?"""
    create(group, "a")
    producer = transactional(group, "t")
    told = []
    for number in range(4):
        producer.begin_transaction()
        for index in range(3):
            producer.produce("a", f"{number}", partition=index)
        assert producer.flush(WAIT_S) == 0
        if number == 1:
            getattr(group, end)(coordinator_of(group, "transactions", "t"))
        if ended(producer):
            told.append(f"{number}")

    assert committed(group, "a") == dict.fromkeys(range(3), told)
    assert told[-1] == "3"


def test_the_next_producer_finishes_what_a_dead_coordinator_began(group):
    """Does a new producer with the same id wait for the markers of a decided transaction, and abort an open one?"""
    create(group, "a")
    lost = transactional(group, "t")
    lost.begin_transaction()
    for index in range(3):
        lost.produce("a", "lost", partition=index)
    assert lost.flush(WAIT_S) == 0
    group.kill(coordinator_of(group, "transactions", "t"))
    producer = transactional(group, "t")
    producer.begin_transaction()
    for index in range(3):
        producer.produce("a", "kept", partition=index)
    producer.commit_transaction(WAIT_S)

    assert committed(group, "a") == {index: ["kept"] for index in range(3)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_exactly_once_while_every_broker_dies_once(group, protocol):
    """Is every input copied exactly once while one broker after the other is killed and comes back (R2)?"""
    create(group, "in")
    create(group, "out")
    count = 180
    written(group, "in", range(count))
    faults = {count // 6: 1, count // 2: 2, 5 * count // 6: 3}

    def after_each(done):
        for at in [at for at in faults if done >= at]:
            node = faults.pop(at)
            group.kill(node)
            group.start(node)

    with Copier(group, "in", "out", **{"group.protocol": protocol}) as copier:
        copier.copy(count, after_each)

    expected = {index: [str(number) for number in range(index, count, 3)] for index in range(3)}
    assert committed(group, "out") == expected
    assert not faults


def test_groups_learn_of_new_topics_wherever_they_are_coordinated(group):
    """Is a topic that fits an expression assigned soon after it comes, whichever broker coordinates the group?"""
    create(group, "news-1", partitions=1)
    written(group, "news-1", ["old"], partitions=1)
    members = {}
    for name in (f"g{number}" for number in range(10)):
        members.setdefault(coordinator_of_any(group, name), name)
    consumers = [member(group, name, **{"group.protocol": "consumer"}) for name in members.values()]
    deadline = Deadline(WAIT_S)
    for consumer in consumers:
        consumer.subscribe(["^news-.*"])
        assert [each.value() for each in taken(consumer, 1, deadline)] == [b"old"]
    create(group, "news-2", partitions=1)
    written(group, "news-2", ["new"], partitions=1)

    assert len(consumers) == 3
    for consumer in consumers:
        # A member that was not heard of for too long, on a slow machine, reads the old topic once more.
        while taken(consumer, 1, deadline)[0].value() != b"new":
            pass
        consumer.close()


def coordinator_of_any(group, name):
    """The broker that coordinates a group nobody has asked for yet."""
    group.call(1, lambda broker: broker.groups.ensure_topic())
    return coordinator_of(group, "groups", name)
