"""What goes in with one client library comes out with every other one, byte for byte."""

import pytest

from clients.libraries import ACKS, CODECS, LIBRARIES, Confluent, Sent, create_topic, records_of

pytestmark = pytest.mark.clients

by_name = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)


@by_name
@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_to_every_library(shared, topic, library, codec):
    """Does each library read what each one sent with each codec and idempotence, record by record (R14, R21)?"""
    sent = records_of(50)
    expected = [record.at(offset) for offset, record in enumerate(sent)]

    assert library.send(shared.bootstrap, topic, sent, codec=codec, idempotent=True) == list(range(50))
    for reader in LIBRARIES:
        assert reader.read(shared.bootstrap, topic, count=50) == expected, reader.name


@by_name
@pytest.mark.parametrize("acks", ACKS)
def test_every_acks(shared, topic, library, acks):
    """Is what was sent with acks 0, 1 and all there, once and in order (R19)?"""
    create_topic(shared.bootstrap, topic)
    sent = records_of(30)

    library.send(shared.bootstrap, topic, sent, acks=acks)

    assert Confluent.read(shared.bootstrap, topic, count=30) == [r.at(offset) for offset, r in enumerate(sent)]


@by_name
def test_no_key_no_value_no_headers(shared, topic, library):
    """Do the emptiest records keep the difference between null and empty?"""
    sent = [
        Sent(value=b""),
        Sent(value=b"", key=b""),
        Sent(value=None, key=b""),
        Sent(value=b"v", headers=(("h", b""), ("h", b"again"), ("", b"no name"))),
    ]

    library.send(shared.bootstrap, topic, sent)

    for reader in LIBRARIES:
        seen = reader.read(shared.bootstrap, topic, count=len(sent))
        assert seen == [r.at(offset) for offset, r in enumerate(sent)], reader.name


def test_null_header_value(shared, topic):
    """Does a header without a value stay without one, where the library can say so?"""
    sent = [Sent(value=b"v", headers=(("null", None), ("empty", b"")))]

    Confluent.send(shared.bootstrap, topic, sent)

    for reader in LIBRARIES:
        assert reader.read(shared.bootstrap, topic, count=1) == [sent[0].at(0)], reader.name


@by_name
def test_many_batches(shared, topic, library):
    """Are many records in many small batches dense, ordered and whole, whichever library sends them (R14)?"""
    sent = records_of(1500)
    small = {
        "confluent-kafka": {"batch.num.messages": 17},
        "kafka-python": {"batch_size": 1000},
        "aiokafka": {"max_batch_size": 1000},
    }[library.name]

    assert library.send(shared.bootstrap, topic, sent, idempotent=True, **small) == list(range(1500))
    assert Confluent.read(shared.bootstrap, topic, count=1500) == [r.at(offset) for offset, r in enumerate(sent)]


@pytest.mark.parametrize("count", [1, 3, 100])
def test_partitions(shared, topic, count):
    """Has a topic as many partitions as it was created with, each with offsets of its own (R13, R14)?"""
    create_topic(shared.bootstrap, topic, partitions=count)
    sent = {index: records_of(5, partition=index) for index in range(count)}

    Confluent.send(shared.bootstrap, topic, [record for records in sent.values() for record in records])

    for index in {0, count // 2, count - 1}:
        for reader in LIBRARIES:
            seen = reader.read(shared.bootstrap, topic, index, count=5)
            assert seen == [r.at(offset) for offset, r in enumerate(sent[index])], reader.name


def test_keys_find_the_same_partition(shared, topic):
    """Do the libraries agree with murmur2 on where a key goes, given the partitions the broker tells (R18)?"""
    import aiokafka.partitioner
    import confluent_kafka

    create_topic(shared.bootstrap, topic, partitions=7)
    keys = [f"truck-{number}".encode() for number in range(40)]
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": shared.bootstrap, "partitioner": "murmur2_random", "log_level": 2}
    )
    found = {}
    for key in keys:
        producer.produce(topic, key=key, on_delivery=lambda _, m: found.setdefault(m.key(), m.partition()))
    producer.flush(30)

    assert found == {key: (aiokafka.partitioner.murmur2(key) & 0x7FFFFFFF) % 7 for key in keys}
    assert set(found.values()) == set(range(7))
