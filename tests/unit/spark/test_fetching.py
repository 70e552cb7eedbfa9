"""Ranges fetched from a real broker that is told to fail; what needs Spark is in tests/spark."""

import contextlib
import logging

import pytest

from headrace import KafkaAdmin
from headrace.client.fault import ClientFault, NoBroker, TimedOut
from headrace.client.options import connection_options
from headrace.client.records import TopicPartition
from headrace.model.errors import ErrorCode
from headrace.records.batch import read_header
from headrace.records.build import NewRecord, build_batch
from headrace.records.walk import walk
from headrace.spark.fetching import BARREN_MAX, NO_LEADER, Fetching, FetchRules, _Reading
from headrace.spark.links import Links
from headrace.spark.offsets import DataLost, Range
from headrace.testing.ports import free_port
from headrace.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from headrace.wire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

RULES = FetchRules(wait_max_ms=10, patience_s=20.0)


def batch(*values: bytes) -> bytes:
    return bytes(build_batch([NewRecord(timestamp=1, value=value) for value in values]))


@pytest.fixture
def fetched():
    """What comes of ranges: (partition, offset, value) of each record, in the order it came."""
    opened = []

    def read(bootstrap, *wanted, rules=RULES, leader=NO_LEADER, **clock):
        links = Links(connection_options(bootstrap))
        opened.append(links)
        found = []
        chunks = Fetching(links, rules, **clock).chunks([(one, leader) for one in wanted])
        with contextlib.closing(chunks):
            for chunk in chunks:
                found += records_of(chunk)
        return found

    yield read
    for links in opened:
        links.close()


def records_of(chunk):
    position, found = 0, []
    while position < len(chunk.records):
        header = read_header(chunk.records, position)
        if position + header.size > len(chunk.records):
            break
        found += [
            (chunk.place.partition, one.offset, bytes(one.value))
            for one in walk(chunk.records[position : position + header.size])
            if chunk.start <= one.offset < chunk.next
        ]
        position += header.size
    return found


def fill(wire, cluster, topic, partitions=1, batches=10, size=3):
    client = wire(cluster)
    client.create_topic(topic, partitions=partitions)
    for partition in range(partitions):
        for number in range(batches):
            client.produce(topic, batch(*(b"%d.%d" % (number, one) for one in range(size))), partition=partition)
    return client


def expected(partition, start, stop, size=3):
    return [(partition, offset, b"%d.%d" % divmod(offset, size)) for offset in range(start, stop)]


def span(topic, partition, start, stop):
    return Range(TopicPartition(topic, partition), start, stop)


def test_a_range(shared, wire, topic, fetched):
    """Is exactly the range read, whatever batches it cuts, in several answers?"""
    fill(wire, shared, topic)
    small = FetchRules(wait_max_ms=10, partition_bytes_max=150)

    assert expected(0, 4, 26) == fetched(shared.bootstrap, span(topic, 0, 4, 26))
    assert expected(0, 4, 26) == fetched(shared.bootstrap, span(topic, 0, 4, 26), rules=small)
    assert [] == fetched(shared.bootstrap, span(topic, 0, 4, 4))


def test_several_partitions(shared, wire, topic, fetched):
    """Are several partitions fetched together, even if an answer has room for one only?"""
    fill(wire, shared, topic, partitions=3)
    wanted = [span(topic, 0, 0, 30), span(topic, 1, 10, 20), span(topic, 2, 29, 30)]
    all_of_it = expected(0, 0, 30) + expected(1, 10, 20) + expected(2, 29, 30)

    assert all_of_it == sorted(fetched(shared.bootstrap, *wanted))
    cramped = FetchRules(wait_max_ms=10, partition_bytes_max=100, bytes_max=100)
    assert all_of_it == sorted(fetched(shared.bootstrap, *wanted, rules=cramped))


def test_partitions_that_wait_their_turn(shared, wire, topic, fetched):
    """Is a partition that got nothing in many answers, because others filled them, still read?"""
    fill(wire, shared, topic, partitions=20, batches=3)
    wanted = [span(topic, number, 0, 9) for number in range(20)]
    cramped = FetchRules(wait_max_ms=10, partition_bytes_max=100, bytes_max=100)

    found = sorted(fetched(shared.bootstrap, *wanted, rules=cramped))
    assert [one for number in range(20) for one in expected(number, 0, 9)] == found


def test_nothing_left_up_to_the_end(shared, topic, caplog):
    """Is a range done whose last records compaction took, so that nothing comes though the log goes on?"""
    one = _Reading(TopicPartition(topic, 0), 5, 9, 1)
    fetching = Fetching(Links(connection_options(shared.bootstrap)), RULES)
    fetching._first = one.place
    nothing = PartitionData(last_stable_offset=9, high_watermark=9, records=b"")
    for _ in range(BARREN_MAX - 1):
        fetching._advance(one, nothing, is_throttled=False)
    fetching._advance(one, nothing, is_throttled=True)
    fetching._advance(one, PartitionData(last_stable_offset=8, high_watermark=9), is_throttled=True)
    assert not one.is_done

    fetching._advance(one, nothing, is_throttled=False)
    assert one.is_done


@pytest.mark.parametrize("kind", ["refuse", "drop_reply"])
def test_connections_that_end(cluster, wire, topic, kind):
    """Does fetching go on after connections that were closed, or answers that did not come?"""
    fill(wire, cluster, topic)
    links = Links(connection_options(cluster.bootstrap, {"request.timeout.ms": "300"}))
    chunks = Fetching(links, FetchRules(wait_max_ms=10, partition_bytes_max=150)).chunks([(span(topic, 0, 0, 30), 1)])
    found = records_of(next(chunks))
    cluster.fail_next("Fetch", kind, times=2)
    for chunk in chunks:
        found += records_of(chunk)
    links.close()

    assert expected(0, 0, 30) == found


def test_broker_restart(cluster, wire, topic):
    """Does fetching go on when the broker is another process by now?"""
    fill(wire, cluster, topic)
    links = Links(connection_options(cluster.bootstrap))
    chunks = Fetching(links, FetchRules(wait_max_ms=10, partition_bytes_max=150)).chunks([(span(topic, 0, 0, 30), 1)])
    found = records_of(next(chunks))
    cluster.restart()
    for chunk in chunks:
        found += records_of(chunk)
    links.close()

    assert expected(0, 0, 30) == found


def test_a_leader_that_is_none(shared, wire, topic, fetched):
    """Is a broker that is not there, or does not lead, not asked for ever?"""
    fill(wire, shared, topic)

    assert expected(0, 0, 30) == fetched(shared.bootstrap, span(topic, 0, 0, 30), leader=77)


class MovingLeaders:
    """Brokers 1 and 2, of which 1 refuses some partitions: what `Links` is to fetching, without sockets."""

    def __init__(self, refused):
        self.refused = refused
        self.asked = []
        self.leader = 2

    def metadata(self, topics):
        parts = tuple(MetadataResponsePartition(partition_index=number, leader_id=self.leader) for number in range(3))
        return MetadataResponse(topics=tuple(MetadataResponseTopic(name=name, partitions=parts) for name in topics))

    def lane_to(self, node_id):
        return Lane(self, node_id)

    def drop_lane(self, node_id):
        assert node_id == NO_LEADER, "nothing is on its way"


class Lane:
    """A connection to one of them."""

    def __init__(self, leaders, node_id):
        self._leaders = leaders
        self._node_id = node_id
        self._waiting = None
        self.is_idle = True

    def version_of(self, api_key, *, at_most):
        return at_most

    def send(self, api_key, request, *, version):
        self._leaders.asked.append((self._node_id, {one.partition for one in request.topics[0].partitions}))
        self._waiting, self.is_idle = request, False

    def receive(self):
        self.is_idle = True
        topic = self._waiting.topics[0]
        return FetchResponse(
            responses=(
                FetchableTopicResponse(topic=topic.topic, partitions=tuple(map(self._answer, topic.partitions))),
            )
        )

    def _answer(self, asked):
        code = self._leaders.refused.get(asked.partition, 0) if self._node_id == 1 else 0
        records = build_batch([NewRecord(timestamp=1, value=b"v")] * 2, base_offset=asked.fetch_offset)
        return PartitionData(
            partition_index=asked.partition, error_code=code, records=b"" if code else bytes(records), high_watermark=99
        )


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.FENCED_LEADER_EPOCH]
)
def test_leader_that_moved(code):
    """Is a partition whose leader moved read from the new one, and what came of the others not lost?"""
    leaders = MovingLeaders({1: code})
    chunks = Fetching(leaders, RULES).chunks([(span("t", number, 0, 6), 1) for number in range(3)])

    found = sorted((part, offset) for chunk in chunks for part, offset, _ in records_of(chunk))
    assert [(number, offset) for number in range(3) for offset in range(6)] == found
    assert [(1, {0, 1, 2}), (1, {0, 2}), (1, {0, 2}), (2, {1}), (2, {1}), (2, {1})] == leaders.asked


def test_leader_that_never_serves():
    """Is a broker that is said to lead, and says that it does not, asked with pauses, and not for ever?"""
    leaders = MovingLeaders({0: ErrorCode.NOT_LEADER_OR_FOLLOWER})
    leaders.leader = 1
    moments, pauses = iter(range(0, 1000, 3)), []
    fetching = Fetching(leaders, RULES, clock=lambda: float(next(moments)), pause=pauses.append)

    with pytest.raises(ClientFault, match="t-0 has no leader that serves it"):
        list(fetching.chunks([(span("t", 0, 0, 6), 1)]))
    assert len(pauses) >= len(leaders.asked) - 2
    assert pauses == sorted(pauses)


def test_refusal_that_stays():
    """Is a refusal that does not pass told, with what to do?"""
    for code, sentence in (
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic 't' must not be read. Ask for the right to read it."),
        (ErrorCode.UNKNOWN_SERVER_ERROR, "The broker answers UNKNOWN_SERVER_ERROR: t-0. See its log."),
    ):
        with pytest.raises(ClientFault) as fault:
            list(Fetching(MovingLeaders({0: code}), RULES).chunks([(span("t", 0, 0, 6), 1)]))
        assert sentence == str(fault.value)


def test_records_that_are_gone(shared, wire, topic, fetched, caplog):
    """Are records that retention took a loss, or skipped with a warning, as the rules say?"""
    fill(wire, shared, topic)
    with KafkaAdmin(bootstrap_servers=shared.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 12})

    with pytest.raises(DataLost, match=f"{topic}-0 has no record at 4 any more; it begins at 12"):
        fetched(shared.bootstrap, span(topic, 0, 4, 30))
    with caplog.at_level(logging.WARNING, "headrace.spark"):
        lenient = FetchRules(wait_max_ms=10, fail_on_data_loss=False)
        assert expected(0, 12, 30) == fetched(shared.bootstrap, span(topic, 0, 4, 30), rules=lenient)
        assert [] == fetched(shared.bootstrap, span(topic, 0, 4, 9), rules=lenient)
        assert [] == fetched(shared.bootstrap, span(topic, 0, 99, 120), rules=lenient)
    assert "it begins at 12: some records are skipped." in caplog.text


def test_a_topic_that_is_gone(shared, topic, fetched):
    """Is a topic that stays unknown a loss, once it had time to appear?"""
    moments = iter(range(0, 1000, 3))

    def clock():
        return float(next(moments))

    patient = FetchRules(wait_max_ms=10, patience_s=500.0)
    with pytest.raises(DataLost, match=f"{topic}-0 is gone; it was read up to 4"):
        fetched(shared.bootstrap, span(topic, 0, 4, 30), rules=patient, clock=clock, pause=lambda _: None)
    lenient = FetchRules(wait_max_ms=10, patience_s=500.0, fail_on_data_loss=False)
    moments = iter(range(0, 1000, 3))
    assert [] == fetched(shared.bootstrap, span(topic, 0, 4, 30), rules=lenient, clock=clock, pause=lambda _: None)


def test_patience(shared, wire, topic, fetched):
    """Does waiting end: for a broker that is not there, and for records that do not come?"""
    fill(wire, shared, topic)
    moments = iter(range(0, 100_000, 5))
    clock = {"clock": lambda: float(next(moments)), "pause": lambda _: None}

    with pytest.raises(NoBroker, match="Cannot connect"):
        fetched(f"127.0.0.1:{free_port()}", span(topic, 0, 0, 30), **clock)
    with pytest.raises(TimedOut, match=f"No record came from {topic}-0 at 30 for 20 s"):
        fetched(shared.bootstrap, span(topic, 0, 0, 31), **clock)


def test_a_reader_that_stops(shared, wire, topic):
    """Is the connection hung up if an answer is on its way when nobody wants it any more?"""
    fill(wire, shared, topic)
    links = Links(connection_options(shared.bootstrap))
    chunks = Fetching(links, FetchRules(partition_bytes_max=150)).chunks([(span(topic, 0, 0, 30), 1)])
    next(chunks)
    chunks.close()

    assert links.lane_to(1).is_idle
    links.close()
