"""Places where brokers have gone wrong before, each with its test, asked in raw bytes."""

import struct
from uuid import uuid4

import pytest

from headrace.model.errors import ErrorCode
from headrace.records.batch import split_batches
from headrace.records.build import NewRecord, build_batch
from headrace.settings.topic import TOPIC_SETTINGS
from headrace.wire.codec import decode_response
from headrace.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.wire.primitives import write_uvarint

API_VERSIONS, METADATA = 18, 3


@pytest.fixture
def client(shared, wire):
    return wire(shared)


def batch_of(count: int, *, producer=(-1, -1), sequence: int = -1, key: bytes | None = b"k", value: bytes = b"v"):
    return build_batch(
        [NewRecord(timestamp=1_700_000_000_000, key=key, value=value)] * count,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
    )


# --- 1: ApiVersions in a version of the future


@pytest.mark.parametrize("version", [5, 6, 99, 32767])
def test_newer_api_versions_is_answered_in_form_0(client, version):
    """Is a newer client told error 35 and our range in version 0, header too, and may it go on (KIP-511)?"""
    client.send_frame(struct.pack(">hhih", API_VERSIONS, version, 42, -1) + b"\0bytes nobody can know")
    frame = client.receive_frame()

    assert frame[:4] == struct.pack(">i", 42)
    answer = decode_response(API_VERSIONS, 0, frame, 4)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(k.api_key, k.min_version, k.max_version) for k in answer.api_keys] == [(API_VERSIONS, 0, 4)]
    assert client.describe_topic("nothing").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_api_versions_header_is_never_flexible(client):
    """Has the answer to a flexible ApiVersions request a header without tags?"""
    client.send_frame(struct.pack(">hhih", API_VERSIONS, 3, 7, -1) + b"\0" + b"\x02a" + b"\x021" + b"\0")
    frame = client.receive_frame()

    assert decode_response(API_VERSIONS, 3, frame, 4).error_code == 0


def test_produce_is_advertised_from_0(client):
    """Is Produce advertised from version 0, without which older librdkafkas do not compress?"""
    client.send_frame(struct.pack(">hhih", API_VERSIONS, 0, 1, -1))
    answer = decode_response(API_VERSIONS, 0, client.receive_frame(), 4)

    assert next(k.min_version for k in answer.api_keys if k.api_key == 0) == 0


# --- 2: an offset inside a batch


def test_fetch_inside_a_batch_gives_the_whole_batch(client, topic):
    """Does a fetch in the middle of a batch begin with the whole batch, however few bytes are asked for?"""
    client.create_topic(topic)
    for count in (4, 6, 2):
        client.produce(topic, batch_of(count))
    for offset in range(12):
        base = 0 if offset < 4 else 4 if offset < 10 else 10
        for max_bytes in (1, 200, 1 << 20):
            found = client.fetch(topic, offset, max_bytes=max_bytes)
            headers = [header for _, header in split_batches(memoryview(found.records))]

            assert headers[0].base_offset == base
            assert sum(header.size for header in headers) == len(found.records)


# --- 3: creation by asking


@pytest.mark.parametrize("version", [0, 1, 3])
def test_old_metadata_requests_create(client, topic, version):
    """Do Metadata requests from before one could say no create the topic they ask for?"""
    request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),))
    answer = client.ask("Metadata", version, request)

    assert [(t.error_code, t.name, len(t.partitions)) for t in answer.topics] == [(0, topic, 1)]


def test_metadata_request_that_says_no_does_not_create(client, shared, topic):
    """Does allow_auto_topic_creation=false leave an unknown topic unknown?"""
    assert client.describe_topic(topic, allow_creation=False).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert topic not in shared.ask(lambda broker: broker.metadata.topics)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "a" * 250, "../../etc", "nul\0"])
def test_bad_names_are_not_created(client, shared, name):
    """Is a name that cannot be a topic's refused before anything is made of it?"""
    before = shared.ask(lambda broker: set(broker.metadata.topics))

    assert client.describe_topic(name, allow_creation=True).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert client.create_topic(name).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert shared.ask(lambda broker: set(broker.metadata.topics)) == before


# --- 4: keys and sizes


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_keyless_record_to_a_compacted_topic(client, topic, codec):
    """Is a batch with one keyless record refused as INVALID_RECORD with a reason, and nothing of it appended?"""
    client.create_topic(topic, cleanup_policy="compact")
    records = [NewRecord(timestamp=1_700_000_000_000, key=key, value=b"v") for key in (b"a", None, b"c")]
    refused = client.produce(topic, build_batch(records, codec=codec))

    assert (refused.error_code, refused.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    assert "key" in refused.error_message
    assert client.list_offset(topic, -1).offset == 0


def test_max_message_bytes_to_the_byte(client, topic):
    """Is a batch of exactly max.message.bytes taken, and one byte more refused?"""
    overhead = len(batch_of(1, value=b"x" * 2000)) - 2000
    client.create_topic(topic, max_message_bytes=str(overhead + 2000))

    assert client.produce(topic, batch_of(1, value=b"x" * 2000)).error_code == 0
    assert client.produce(topic, batch_of(1, value=b"x" * 2001)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert client.list_offset(topic, -1).offset == 1


# --- 5: every setting


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_describe_configs_lists_everything(client, topic, version):
    """Does a topic's description hold every topic setting, with value and source, set or not?"""
    client.create_topic(topic, retention_ms="1234")
    resource = DescribeConfigsResource(resource_type=2, resource_name=topic, configuration_keys=None)
    (answer,) = client.ask(
        "DescribeConfigs", version, DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
    ).results
    found = {config.name: (config.value, config.config_source) for config in answer.configs}

    assert set(found) >= {name for name, setting in TOPIC_SETTINGS.items() if not setting.hidden}
    assert found["retention.ms"] == ("1234", 1)
    assert found["segment.bytes"] == ("1073741824", 5)


# --- 8: idempotence


def test_last_five_batches_are_known(client, topic):
    """Are the last five batches of a producer answered with their first offsets when they come again, and no others?"""
    client.create_topic(topic)
    producer = client.new_producer_id()
    sequences = [0, 2, 4, 6, 8, 10, 12]
    first = [client.produce(topic, batch_of(2, producer=producer, sequence=s)).base_offset for s in sequences]
    again = [client.produce(topic, batch_of(2, producer=producer, sequence=s)) for s in sequences]

    assert first == sequences
    assert [(a.error_code, a.base_offset) for a in again[2:]] == [(0, s) for s in sequences[2:]]
    assert {a.error_code for a in again[:2]} <= {
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    }
    assert client.list_offset(topic, -1).offset == 14


def test_gap_in_a_producers_numbers(client, topic):
    """Is a batch that skips a number refused, and the right next one taken?"""
    client.create_topic(topic)
    producer = client.new_producer_id()
    client.produce(topic, batch_of(3, producer=producer, sequence=0))

    gap = client.produce(topic, batch_of(1, producer=producer, sequence=4))
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert client.produce(topic, batch_of(1, producer=producer, sequence=3)).base_offset == 3


def test_epoch_bump(client, topic):
    """May a producer start over at 0 with a higher epoch, and is its old epoch then fenced (KIP-360)?"""
    client.create_topic(topic)
    producer_id, epoch = client.new_producer_id()
    client.produce(topic, batch_of(3, producer=(producer_id, epoch), sequence=0))

    wrong = client.produce(topic, batch_of(1, producer=(producer_id, epoch + 1), sequence=3))
    assert wrong.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert client.produce(topic, batch_of(1, producer=(producer_id, epoch + 1), sequence=0)).base_offset == 3
    old = client.produce(topic, batch_of(1, producer=(producer_id, epoch), sequence=3))
    assert old.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequence_numbers_wrap(client, topic):
    """Does a producer's numbering go on at 0 after 2^31 - 1?"""
    client.create_topic(topic)
    producer = client.new_producer_id()
    last = 2**31 - 1

    assert client.produce(topic, batch_of(2, producer=producer, sequence=last - 1)).base_offset == 0
    assert client.produce(topic, batch_of(3, producer=producer, sequence=0)).base_offset == 2
    assert client.produce(topic, batch_of(2, producer=producer, sequence=last - 1)).base_offset == 0


def test_pipelined_duplicates(client, topic):
    """Are two copies of a batch on the wire before either is answered stored once, and answered alike?"""
    client.create_topic(topic)
    batch = bytes(batch_of(4, producer=client.new_producer_id(), sequence=0))
    waiting = [client.produce_later(topic, batch, version=9) for _ in range(5)]
    answers = [client.receive("Produce", 9, w).responses[0].partition_responses[0] for w in waiting]

    assert [(a.error_code, a.base_offset) for a in answers] == [(0, 0)] * 5
    assert client.list_offset(topic, -1).offset == 4


# --- 9: topic ids


def produce_by_id(client, topic_id):
    data = TopicProduceData(topic_id=topic_id, partition_data=(PartitionProduceData(index=0, records=batch_of(1)),))
    answer = client.ask("Produce", 13, ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(data,)))
    return answer.responses[0].partition_responses[0].error_code


def fetch_by_id(client, topic_id, version):
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = FetchTopic(topic_id=topic_id, partitions=(asked,))
    answer = client.ask("Fetch", version, FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1000, topics=(topic,)))
    return answer.responses[0].partitions[0].error_code


@pytest.mark.parametrize("version", [13, 18])
def test_ids_name_topics(client, topic, version):
    """Is an id that is no topic's refused by name, and that of a deleted one not taken for its successor's?"""
    old = client.create_topic(topic).topic_id
    assert (produce_by_id(client, old), fetch_by_id(client, old, version)) == (0, 0)
    client.delete_topic(topic)
    new = client.create_topic(topic).topic_id

    for stranger in (old, uuid4()):
        assert produce_by_id(client, stranger) == ErrorCode.UNKNOWN_TOPIC_ID
        assert fetch_by_id(client, stranger, version) == ErrorCode.UNKNOWN_TOPIC_ID
    assert (produce_by_id(client, new), fetch_by_id(client, new, version)) == (0, 0)
    assert client.list_offset(topic, -1).offset == 1


# --- 11: counts and tags without end


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(struct.pack(">i", 2**31 - 1), id="huge count, nothing behind it"),
        pytest.param(struct.pack(">i", 1_000_001) + b"\0\0" * 1_000_001, id="more elements than any request has"),
        pytest.param(struct.pack(">i", -2), id="negative count"),
    ],
)
def test_counts_are_bounded(shared, wire, body):
    """Does a count that cannot be end the connection at once, and touch no other?"""
    client, other = wire(shared), wire(shared)
    client.send_frame(struct.pack(">hhih", METADATA, 0, 1, -1) + body)

    assert client.is_closed_by_broker()
    assert other.describe_topic("nothing").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("where", ["header", "body"])
def test_tags_are_bounded(shared, wire, where):
    """Do more than ten thousand tagged fields end the connection, and are a few unknown ones skipped?"""

    def tags(count: int) -> bytes:
        out = bytearray()
        write_uvarint(out, count)
        for tag in range(1000, 1000 + count):
            write_uvarint(out, tag)
            out += b"\1x"
        return bytes(out)

    def request(count: int) -> bytes:
        header, body = (tags(count), b"\0") if where == "header" else (b"\0", tags(count))
        return struct.pack(">hhih", METADATA, 12, 5, -1) + header + b"\1" + b"\0\0" + body

    client, other = wire(shared), wire(shared)
    client.send_frame(request(10_001))
    other.send_frame(request(3))

    assert client.is_closed_by_broker()
    assert other.receive_frame()[:4] == struct.pack(">i", 5)


# --- and the rest of what a stranger may send


@pytest.mark.parametrize("acks", [-2, 2, 100])
def test_acks_that_do_not_exist(client, topic, acks):
    """Are acks other than -1, 0 and 1 refused?"""
    client.create_topic(topic)

    assert client.produce(topic, batch_of(1), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert client.list_offset(topic, -1).offset == 0


def test_failed_acks_0_ends_the_connection(client, topic):
    """With acks=0, is a closed connection how the producer hears of an error?"""
    client.produce(f"{topic}-unknown", batch_of(1), acks=0)

    assert client.is_closed_by_broker()


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_failed_acks_0_on_a_compacted_topic(client, shared, wire, topic, codec):
    """Does the connection end also where the error shows only once a thread has opened the batch?"""
    client.create_topic(topic, cleanup_policy="compact")
    batch = build_batch([NewRecord(timestamp=1_700_000_000_000, key=None, value=b"v")], codec=codec)
    client.produce(topic, batch, acks=0)

    assert client.is_closed_by_broker()
    assert wire(shared).list_offset(topic, -1).offset == 0


def test_requests_after_acks_0(client, topic):
    """Is a produce with acks=0 not answered at all, and the request behind it answered as itself?"""
    client.create_topic(topic)
    client.produce(topic, batch_of(2), acks=0)
    client.produce(topic, batch_of(1))

    assert client.list_offset(topic, -1).offset == 3


def test_one_partition_fails_the_other_does_not(client, topic):
    """Does every partition of one request stand for itself?"""
    client.create_topic(topic, partitions=2)
    good, bad = bytes(batch_of(1)), bytearray(batch_of(1))
    bad[-1] ^= 1
    partitions = (
        PartitionProduceData(index=0, records=bytes(bad)),
        PartitionProduceData(index=1, records=good),
        PartitionProduceData(index=2, records=good),
        PartitionProduceData(index=0, records=None),
    )
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=(TopicProduceData(name=topic, partition_data=partitions),)
    )
    (answered,) = client.ask("Produce", 9, request).responses

    assert [(r.index, r.error_code, r.base_offset) for r in answered.partition_responses] == [
        (0, ErrorCode.CORRUPT_MESSAGE, -1),
        (1, 0, 0),
        (2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (0, ErrorCode.INVALID_RECORD, -1),
    ]
