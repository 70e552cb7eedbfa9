"""confluent-kafka's transactional producer: all or nothing, one producer per id, offsets with the records."""

import confluent_kafka
import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from clients.confluent_members import PROTOCOLS, Member, until, until_share
from clients.libraries import DEADLINE_S, Confluent, Deadline, Sent, admin, confluent_consumer, create_topic

pytestmark = [pytest.mark.clients, pytest.mark.slow]


@pytest.fixture
def transactional(broker):
    """Opens producers with a transactional id, announced to the coordinator."""

    def start(transactional_id: str, **settings) -> confluent_kafka.Producer:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "transactional.id": transactional_id,
                "linger.ms": 1,
                "log_level": 2,
                **settings,
            }
        )
        producer.init_transactions(DEADLINE_S)
        return producer

    return start


def send(producer: confluent_kafka.Producer, topic: str, *values: str, partition: int = 0) -> None:
    """Send and wait until all are at the broker."""
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(DEADLINE_S) == 0


def seen(bootstrap: str, topic: str, *, committed: bool, partition: int = 0) -> list[str]:
    """The values in a partition up to its end as such a reader sees it."""
    level = "read_committed" if committed else "read_uncommitted"
    consumer = confluent_consumer(bootstrap, **{"isolation.level": level, "enable.partition.eof": True})
    values = []
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        while True:
            message = consumer.poll(DEADLINE_S)
            assert message is not None, "the end did not come"
            if message.error():
                assert message.error().code() == KafkaError._PARTITION_EOF
                return values
            values.append(message.value().decode())
    finally:
        consumer.close()


def committed_values(bootstrap: str, topic: str, *, partition: int = 0) -> list[str]:
    """What readers of committed records see once every transaction is over, a little after its producer was told."""
    client, place, deadline = admin(bootstrap), TopicPartition(topic, partition), Deadline()

    def end(isolation: IsolationLevel) -> int:
        asked = client.list_offsets({place: OffsetSpec.latest()}, isolation_level=isolation)
        return asked[place].result(DEADLINE_S).offset

    while end(IsolationLevel.READ_COMMITTED) < end(IsolationLevel.READ_UNCOMMITTED):
        deadline.check(f"a transaction is still open in {topic}-{partition}")
    return seen(bootstrap, topic, committed=True, partition=partition)


def test_commit_and_abort(broker, topic, group, transactional):
    """Are committed records there for everyone, and aborted ones only for those who do not care?"""
    create_topic(broker.bootstrap, topic, partitions=2)
    producer = transactional(group)
    for values, ends in (("ab", "commit"), ("cd", "abort"), ("ef", "commit")):
        producer.begin_transaction()
        for partition, value in enumerate(values):
            send(producer, topic, value, partition=partition)
        getattr(producer, f"{ends}_transaction")(DEADLINE_S)

    for partition, every in enumerate(("ace", "bdf")):
        assert list(every) == seen(broker.bootstrap, topic, committed=False, partition=partition)
        assert [every[0], every[2]] == committed_values(broker.bootstrap, topic, partition=partition)


def test_open_transaction_holds_readers_back(broker, topic, group, transactional):
    """Does a reader of committed records wait before an open transaction, also for ordinary records behind it?"""
    create_topic(broker.bootstrap, topic)
    producer = transactional(group)
    producer.begin_transaction()
    send(producer, topic, "inside")
    Confluent.send(broker.bootstrap, topic, [Sent(value=b"outside")])
    before = seen(broker.bootstrap, topic, committed=True)
    producer.commit_transaction(DEADLINE_S)

    assert before == []
    reader = confluent_consumer(broker.bootstrap, **{"isolation.level": "read_committed"})
    reader.assign([TopicPartition(topic, 0, 0)])
    values = [reader.poll(DEADLINE_S).value() for _ in range(2)]
    reader.close()
    assert values == [b"inside", b"outside"]


def test_fencing(broker, topic, group, transactional):
    """Is the older of two producers with one id shut out, and what it left open aborted?"""
    create_topic(broker.bootstrap, topic)
    old = transactional(group)
    old.begin_transaction()
    send(old, topic, "old")
    new = transactional(group)
    new.begin_transaction()
    send(new, topic, "new")
    new.commit_transaction(DEADLINE_S)

    with pytest.raises(KafkaException) as caught:
        old.commit_transaction(DEADLINE_S)

    assert caught.value.args[0].fatal()
    assert caught.value.args[0].code() in {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
    assert ["new"] == committed_values(broker.bootstrap, topic)


def until_offset(member: Member, offset: int) -> None:
    """Poll until a member has received the record at an offset."""
    until([member], lambda: offset in {record.offset for record in member.records}, f"offset {offset}")


@pytest.mark.parametrize("protocol", ["range", "consumer"])
def test_consume_transform_produce(broker, topic, group, transactional, protocol):
    """Is every input in the output once, though every third transaction is aborted and its input read again?"""
    source = create_topic(broker.bootstrap, f"{topic}-in")
    sink = create_topic(broker.bootstrap, f"{topic}-out")
    Confluent.send(broker.bootstrap, source, [Sent(value=b"%d" % number) for number in range(30)])
    producer = transactional(f"{group}-producer")
    aborts = 0
    with Member(broker.bootstrap, group, [source], **PROTOCOLS[protocol]) as member:
        until_share([member], source, 1)
        done = 0
        while done < 30:
            until_offset(member, done)
            producer.begin_transaction()
            producer.produce(sink, f"{done}!")
            place = [TopicPartition(source, 0, done + 1)]
            producer.send_offsets_to_transaction(place, member.consumer.consumer_group_metadata(), DEADLINE_S)
            if done % 3 == 2 and aborts <= done // 3:
                aborts += 1
                producer.abort_transaction(DEADLINE_S)
                member.records.clear()
                member.consumer.seek(TopicPartition(source, 0, done))
            else:
                producer.commit_transaction(DEADLINE_S)
                done += 1
        committed = member.committed(source, 0)

    assert aborts == 10
    assert committed[0][0] == 30
    assert [f"{number}!" for number in range(30)] == committed_values(broker.bootstrap, sink)


def test_offsets_of_an_aborted_transaction(broker, topic, group, transactional):
    """Do offsets of an aborted transaction stay what they were before it?"""
    create_topic(broker.bootstrap, topic)
    producer = transactional(f"{group}-producer")
    with Member(broker.bootstrap, group, [topic], **PROTOCOLS["range"]) as member:
        until_share([member], topic, 1)
        metadata = member.consumer.consumer_group_metadata()
        offsets = []
        for offset, ends in ((5, "commit"), (8, "abort")):
            producer.begin_transaction()
            producer.send_offsets_to_transaction([TopicPartition(topic, 0, offset)], metadata, DEADLINE_S)
            getattr(producer, f"{ends}_transaction")(DEADLINE_S)
            offsets.append(member.committed(topic, 0)[0][0])

    assert [5, 5] == offsets


def test_zombie_member(broker, topic, group, transactional):
    """Are offsets refused that come with a generation that is over?"""
    create_topic(broker.bootstrap, topic, partitions=2)
    producer = transactional(f"{group}-producer")
    with Member(broker.bootstrap, group, [topic], **PROTOCOLS["range"]) as member:
        until_share([member], topic, 2)
        stale = member.consumer.consumer_group_metadata()
        with Member(broker.bootstrap, group, [topic], **PROTOCOLS["range"]) as other:
            until_share([member, other], topic, 2)
            producer.begin_transaction()

            with pytest.raises(KafkaException) as caught:
                producer.send_offsets_to_transaction([TopicPartition(topic, 0, 5)], stale, DEADLINE_S)

    assert caught.value.args[0].code() == KafkaError.ILLEGAL_GENERATION
    assert caught.value.args[0].txn_requires_abort()
    producer.abort_transaction(DEADLINE_S)
