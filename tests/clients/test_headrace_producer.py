"""Headrace's KafkaProducer."""

import gc
import threading

import kafka
import pytest

from clients.libraries import DEADLINE_S, Confluent, create_topic
from headrace import (
    BadOption,
    Closed,
    ErrorCode,
    HeadraceError,
    KafkaConsumer,
    KafkaError,
    KafkaProducer,
    NoBroker,
    TimedOut,
    TopicPartition,
)
from headrace.client.partitioners import partition_of
from headrace.testing.cluster import Cluster

pytestmark = [pytest.mark.clients, pytest.mark.slow]


@pytest.fixture
def producer(broker):
    """Opens producers and closes them in the end."""
    live = []

    def opened(**options) -> KafkaProducer:
        live.append(KafkaProducer(bootstrap_servers=broker.bootstrap, **options))
        return live[-1]

    yield opened
    for one in live:
        one.close()


def read(broker, topic, count, partition=0, **settings):
    """The records of a partition, with another library."""
    return Confluent.read(broker.bootstrap, topic, partition, count=count, **settings)


def test_metadata_of_a_record(broker, topic, producer):
    """Does a future tell where its record was stored, and is everything about the record kept?"""
    create_topic(broker.bootstrap, topic, partitions=2)
    sending = producer().send(
        topic, b"value", key=b"key", headers=[("h", b"1"), ("h", None)], partition=1, timestamp_ms=1_700_000_000_000
    )
    stored = sending.get(DEADLINE_S)
    (seen,) = read(broker, topic, 1, partition=1)

    assert (topic, 1, 0, 1_700_000_000_000, 0) == stored
    assert TopicPartition(topic, 1) == stored.topic_partition
    assert (True, True, False) == (sending.is_done, sending.succeeded(), sending.failed())
    assert stored == sending.value
    assert (b"value", b"key", (("h", b"1"), ("h", None))) == (seen.value, seen.key, tuple(seen.headers))


def test_callbacks(broker, topic, producer):
    """Are functions hung on a future called, before and after it is known, and does one that fails harm nobody?"""
    create_topic(broker.bootstrap, topic)
    one = producer()
    heard, called = [], threading.Event()

    def fails(_):
        raise RuntimeError("not my day")

    sending = one.send(topic, b"x").add_callback(fails).add_callback(heard.append)
    sending.add_both(lambda word, stored: (heard.append((word, stored)), called.set()), "both").add_errback(
        heard.append
    )
    assert called.wait(DEADLINE_S)
    late = []
    sending.add_callback(late.append)

    assert [sending.value, ("both", sending.value)] == heard
    assert [sending.value] == late


def test_callbacks_come_without_waiting(broker, topic, producer):
    """Is a callback called when nobody waits, flushes or sends again?"""
    create_topic(broker.bootstrap, topic)
    one, called = producer(), threading.Event()
    one.send(topic, b"first").get(DEADLINE_S)
    one.send(topic, b"second").add_callback(lambda _: called.set())

    assert called.wait(DEADLINE_S)


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(broker, topic, producer, acks):
    """Do all three levels of acknowledgement work; does none give no offset?"""
    create_topic(broker.bootstrap, topic)
    stored = producer(acks=acks).send(topic, b"x").get(DEADLINE_S)

    assert (-1 if acks == 0 else 0) == stored.offset
    assert [b"x"] == [seen.value for seen in read(broker, topic, 1)]


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_compression(broker, topic, producer, codec):
    """Do all codecs arrive?"""
    create_topic(broker.bootstrap, topic)
    with producer(compression_type=codec, linger_ms=20) as one:
        for number in range(50):
            one.send(topic, b"%d" % number * 20)

    assert [b"%d" % number * 20 for number in range(50)] == [seen.value for seen in read(broker, topic, 50)]


def test_keys_go_where_java_puts_them(broker, topic, producer):
    """Is a key's partition the one of Java's default partitioner and of kafka-python's, the empty key's too?"""
    create_topic(broker.bootstrap, topic, partitions=7)
    keys = [b"", b"21", b"foobar", b"abc", *(b"key %d" % number for number in range(60))]
    one = producer()
    ours = [one.send(topic, b"x", key=key) for key in keys]
    other = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap)
    theirs = [other.send(topic, b"x", key=key) for key in keys]
    placed = [sending.get(DEADLINE_S).partition for sending in ours]
    their_places = [sending.get(DEADLINE_S).partition for sending in theirs]
    other.close()

    assert [partition_of(key, 7) for key in keys] == placed
    assert their_places == placed


def test_partitioners(broker, topic, producer):
    """Do records without a key take turns with round_robin, stay together with the default, and obey a function?"""
    create_topic(broker.bootstrap, topic, partitions=4)

    def places(**options):
        one = producer(**options)
        # Until it knows the topic, the engine cannot stay with a partition.
        one.send(topic, b"first", partition=0).get(DEADLINE_S)
        sending = [one.send(topic, b"x") for _ in range(8)]
        return [each.get(DEADLINE_S).partition for each in sending]

    assert [0, 1, 2, 3] * 2 == places(partitioner="round_robin")
    assert 1 == len(set(places(config={"sticky.partitioning.linger.ms": 60_000})))
    assert [2] * 8 == places(partitioner=lambda key, everything, available: everything[2])
    with pytest.raises(BadOption, match="partitioner=shuffle"):
        producer(partitioner="shuffle")


def test_serializers(broker, topic, producer):
    """Are keys and values serialized, and None kept as a tombstone?"""
    create_topic(broker.bootstrap, topic)
    one = producer(key_serializer="str", value_serializer="json")
    one.send(topic, {"lat": 48.1}, key="T-1")
    one.send(topic, None, key="T-1")
    one.flush(DEADLINE_S)

    assert [(b"T-1", b'{"lat":48.1}'), (b"T-1", None)] == [(seen.key, seen.value) for seen in read(broker, topic, 2)]


def test_the_first_records_stay_together(broker, topic, producer):
    """Do a few records without a key go to one partition, so that they come back in their order?"""
    create_topic(broker.bootstrap, topic, partitions=8)
    sender = producer()

    assert len({sent.get(DEADLINE_S).partition for sent in [sender.send(topic, b"%d" % n) for n in range(12)]}) == 1


def test_many_records_keep_their_order(broker, topic, producer):
    """Do many records from a tight loop arrive once each, in order, and tell their offsets?"""
    create_topic(broker.bootstrap, topic)
    one = producer(config={"queue.buffering.max.messages": 1000})
    sending = [one.send(topic, b"%d" % number) for number in range(20_000)]
    one.flush(DEADLINE_S)

    assert list(range(20_000)) == [each.get(0).offset for each in sending]
    assert {"records-sent": 20_000, "records-waiting": 0} == one.metrics()
    assert [b"%d" % number for number in range(20_000)] == [seen.value for seen in read(broker, topic, 20_000)]


def test_several_threads(broker, topic, producer):
    """Can threads share a producer, each waiting for its own records?"""
    create_topic(broker.bootstrap, topic)
    one, stored = producer(), []

    def work():
        stored.extend(one.send(topic, b"x").get(DEADLINE_S).offset for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)

    assert list(range(80)) == sorted(stored)


def test_partitions_for(broker, topic, producer):
    """Are a topic's partitions told?"""
    create_topic(broker.bootstrap, topic, partitions=3)

    assert {0, 1, 2} == producer().partitions_for(topic)
    assert producer().bootstrap_connected()


# --- transactions


def test_transactions(broker, topic, group, producer):
    """Is a block committed whole, and one that raises aborted whole?"""
    create_topic(broker.bootstrap, topic)
    one = producer(transactional_id=group)
    with one.transaction():
        one.send(topic, b"one")
        one.send(topic, b"two")
    with pytest.raises(ZeroDivisionError), one.transaction():
        one.send(topic, b"aborted").get(1 / 0)
    with one.transaction() as same:
        same.send(topic, b"three")

    values = [seen.value for seen in read(broker, topic, 3, **{"isolation.level": "read_committed"})]
    assert [b"one", b"two", b"three"] == values


@pytest.mark.parametrize("how", ["consumer", "metadata", "name"])
def test_offsets_in_a_transaction(broker, topic, group, producer, how):
    """Are a group's offsets committed with the transaction, and not with one that is aborted?"""
    source = create_topic(broker.bootstrap, f"{topic}-in")
    create_topic(broker.bootstrap, topic)
    place = TopicPartition(source, 0)
    one = producer(transactional_id=f"{group}-producer")
    with KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=group, enable_auto_commit=False) as reader:
        reader.assign([place])
        who = {"consumer": reader, "metadata": reader.group_metadata(), "name": group}[how]
        with one.transaction():
            one.send(topic, b"out")
            one.send_offsets_to_transaction({place: 5}, who)
        one.begin_transaction()
        one.send_offsets_to_transaction({place: 9}, who)
        one.abort_transaction()

        assert 5 == reader.committed(place)


def test_fenced_producer(broker, topic, group, producer):
    """Does the older of two producers with one transactional id hear that it is shut out?"""
    create_topic(broker.bootstrap, topic)
    old, new = producer(transactional_id=group), producer(transactional_id=group)
    old.begin_transaction()
    old.send(topic, b"old").get(DEADLINE_S)
    new.init_transactions()

    with pytest.raises(HeadraceError, match=r"(?i)fenced|epoch"):
        old.commit_transaction()


def test_no_transaction_is_open(broker, topic, group, producer):
    """Is a record sent outside of a transaction refused with what to do instead?"""
    create_topic(broker.bootstrap, topic)
    sender = producer(transactional_id=group)
    sender.init_transactions()

    with pytest.raises(HeadraceError, match=r"with producer\.transaction\(\)"):
        sender.send(topic, b"x").get(DEADLINE_S)


def test_transaction_without_an_id(broker, producer):
    """Is a transaction without a transactional id refused in a sentence?"""
    with pytest.raises(BadOption, match="transactional_id"), producer().transaction():
        pass


# --- what goes wrong


def test_record_too_large(broker, topic, producer):
    """Does a record nobody would take fail its own future and no other?"""
    create_topic(broker.bootstrap, topic)
    one = producer()
    large, small = one.send(topic, bytes(2_000_000)), one.send(topic, b"small")

    with pytest.raises(KafkaError) as caught:
        large.get(DEADLINE_S)
    assert ErrorCode.MESSAGE_TOO_LARGE == caught.value.code
    assert large.failed()
    assert large.value is None
    assert 0 == small.get(DEADLINE_S).offset


def test_unknown_partition(broker, topic, producer):
    """Does a partition that is not there fail the future?"""
    create_topic(broker.bootstrap, topic)
    heard = []
    sending = producer().send(topic, b"x", partition=7).add_errback(heard.append)

    with pytest.raises(HeadraceError, match=r"(?i)partition"):
        sending.get(DEADLINE_S)
    assert 1 == len(heard)


def test_closed_producer(broker, topic, producer):
    """Is a closed producer said to be closed, also when it is closed twice?"""
    one = producer()
    one.close()
    one.close()

    with pytest.raises(Closed):
        one.send(topic, b"x")


def test_no_broker():
    """Is a broker that is not there named, with the reason, within the bound?"""
    with pytest.raises(NoBroker, match=r"127\.0\.0\.1:1 within 0\.3 s: .*refused"):
        KafkaProducer(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=300)


def test_broker_goes_away(topic):
    """Do records sent to a broker that went away fail with a reason, in time, and does flush say what is left?"""
    with Cluster() as cluster:
        patient = KafkaProducer(bootstrap_servers=cluster.bootstrap)
        patient.send(topic, b"x").get(DEADLINE_S)
        # It knows the topic: a busy machine may need longer than that for the first record.
        hasty = KafkaProducer(bootstrap_servers=cluster.bootstrap, delivery_timeout_ms=1000)
        assert {0} == hasty.partitions_for(topic)
    sending = patient.send(topic, b"y")
    with pytest.raises(TimedOut, match="1 records"):
        patient.flush(0.05)
    with pytest.raises(TimedOut):
        sending.get(0.05)
    with pytest.raises(TimedOut, match="delivery_timeout_ms"):
        hasty.send(topic, b"z").get(DEADLINE_S)
    patient.close(timeout=0)
    hasty.close()


def test_close_gives_up_in_time(topic):
    """Does closing in a hurry fail what could not be sent rather than leave its future open?"""
    with Cluster() as cluster:
        one = KafkaProducer(bootstrap_servers=cluster.bootstrap)
        one.send(topic, b"x").get(DEADLINE_S)
    sending = one.send(topic, b"y")
    one.close(timeout=0)

    assert sending.failed()


def test_forgotten_producer_sends_what_it_has(broker, topic):
    """Is what a producer holds sent when the program just drops it?"""
    create_topic(broker.bootstrap, topic)
    sending = KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=200).send(topic, b"x")
    gc.collect()

    assert sending.succeeded()
