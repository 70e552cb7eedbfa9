"""Fetching in raw requests: sessions, limits, and waiting."""

import errno
import threading

import pytest

from headrace.broker import fetcher
from headrace.broker.file_sending import send_from_files
from headrace.model.errors import ErrorCode, StorageFault
from headrace.records.batch import split_batches
from headrace.records.build import NewRecord, build_batch
from headrace.storage.file_range import FileRange
from headrace.storage.files import RealFile, RealMapping
from headrace.storage.span import Span
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from wire_client import one_fetch


def batch(value: bytes = b"v") -> bytearray:
    return build_batch([NewRecord(timestamp=1_700_000_000_000, value=value)])


SIZE = len(batch())


@pytest.fixture
def client(shared, wire):
    return wire(shared)


def offsets_of(records) -> list[int]:
    """Base offsets of the batches of an answer."""
    return [header.base_offset for _, header in split_batches(memoryview(records or b""))]


class Session:
    """A client's side of an incremental fetch session (KIP-227)."""

    def __init__(self, client, topic: str) -> None:
        self.client, self.topic = client, topic
        self.id, self.epoch = 0, 0

    def fetch(self, places=None, *, forget=(), **options):
        """Ask with what changed; gives the answered partitions by index, each with its batches' base offsets."""
        asked = tuple(
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=options.pop("each", 1 << 20))
            for index, offset in (places or {}).items()
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=options.pop("max_bytes", 1 << 20),
            session_id=options.pop("session_id", self.id),
            session_epoch=options.pop("session_epoch", self.epoch),
            topics=(FetchTopic(topic=self.topic, partitions=asked),) if asked else (),
            forgotten_topics_data=(ForgottenTopic(topic=self.topic, partitions=tuple(forget)),) if forget else (),
        )
        answer = self.client.ask("Fetch", 12, request)
        if answer.error_code:
            return ErrorCode(answer.error_code)
        self.id = answer.session_id
        self.epoch += 1
        return {p.partition_index: offsets_of(p.records) for topic in answer.responses for p in topic.partitions}


# --- sessions


def test_session_says_only_what_changed(client, topic):
    """Does a session's answer hold all partitions first, and later only those with news?"""
    client.create_topic(topic, partitions=3)
    client.produce(topic, batch(), partition=1)
    session = Session(client, topic)

    assert session.fetch({0: 0, 1: 0, 2: 0}) == {0: [], 1: [0], 2: []}
    assert session.id > 0
    assert session.fetch({1: 1}) == {}
    client.produce(topic, batch(), partition=2)
    assert session.fetch() == {2: [0]}
    assert session.fetch() == {2: [0]}
    assert session.fetch({2: 1}) == {}


def test_session_adds_and_forgets(client, topic):
    """Are partitions that come into a session told, and forgotten ones not any more?"""
    client.create_topic(topic, partitions=3)
    session = Session(client, topic)
    assert session.fetch({0: 0}) == {0: []}
    for index in range(3):
        client.produce(topic, batch(), partition=index)

    assert session.fetch({0: 1}) == {0: []}
    assert session.fetch({1: 0, 2: 0}) == {1: [0], 2: [0]}
    assert session.fetch({2: 1}, forget=[1]) == {}
    client.produce(topic, batch(), partition=1)
    assert session.fetch() == {}
    assert session.fetch({1: 0}) == {1: [0, 1]}


def test_session_that_is_not_there(client, topic):
    """Are a session that nobody opened and a request out of turn refused, so that the client begins anew?"""
    client.create_topic(topic)
    session = Session(client, topic)
    session.fetch({0: 0})

    assert session.fetch(session_id=session.id % 2**30 + 1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert session.fetch(session_epoch=7) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert session.fetch() == {}
    ended = session.id
    assert session.fetch({0: 0}, session_epoch=-1) == {0: []}
    assert Session(client, topic).fetch(session_id=ended, session_epoch=2) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_error_in_a_session_is_told_until_it_is_gone(client, topic):
    """Is a partition that cannot be read told in every answer, and the others as ever?"""
    client.create_topic(topic, partitions=2)
    session = Session(client, topic)

    assert session.fetch({0: 5, 1: 0}) == {0: [], 1: []}
    assert session.fetch() == {0: []}
    assert session.fetch({0: 0}) == {0: []}
    assert session.fetch() == {}


def test_session_gives_everyone_a_turn(client, topic):
    """With room for one batch, do partitions of a session take turns?"""
    client.create_topic(topic, partitions=3)
    for index in range(3):
        for _ in range(2):
            client.produce(topic, batch(), partition=index)
    session = Session(client, topic)
    position = {0: 0, 1: 0, 2: 0}
    turns = []
    changed = dict(position)
    for _ in range(6):
        found = {i: got for i, got in session.fetch(changed, max_bytes=SIZE, each=SIZE).items() if got}
        changed = {index: got[-1] + 1 for index, got in found.items()}
        turns += sorted(found)

    assert sorted(turns) == [0, 0, 1, 1, 2, 2]
    assert sorted(turns[:3]) == [0, 1, 2]


# --- limits


@pytest.mark.parametrize(
    ("max_bytes", "expected"), [(1, 1), (SIZE, 1), (2 * SIZE - 1, 1), (2 * SIZE, 2), (1 << 20, 10)]
)
def test_max_bytes_in_whole_batches(client, topic, max_bytes, expected):
    """Does a fetch hold as many whole batches as fit, and at least one?"""
    client.create_topic(topic)
    for _ in range(10):
        client.produce(topic, batch())

    assert offsets_of(client.fetch(topic, 3, max_bytes=max_bytes).records) == list(range(3, 10))[:expected]


def test_offsets_out_of_range(client, topic):
    """Is an offset before the start or behind the end refused, and the end itself empty?"""
    client.create_topic(topic)
    client.produce(topic, batch())

    for offset in (-1, 2, 2**62):
        assert client.fetch(topic, offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    end = client.fetch(topic, 1)
    assert (end.error_code, end.records, end.high_watermark) == (0, b"", 1)


def test_unknown_places(client, topic):
    """Are partitions and topics that are not there told as unknown?"""
    client.create_topic(topic)

    assert client.fetch(topic, 0, partition=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.fetch(f"{topic}-no", 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("epoch", "code"), [(-1, 0), (0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_leader_epoch(client, topic, epoch, code):
    """Is a client that follows a leader we have not heard of sent back (KIP-320)?"""
    client.create_topic(topic)
    asked = FetchPartition(partition=0, fetch_offset=0, current_leader_epoch=epoch, partition_max_bytes=100)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=100, topics=(FetchTopic(topic=topic, partitions=(asked,)),)
    )

    assert client.ask("Fetch", 12, request).responses[0].partitions[0].error_code == code


def test_ordinary_client_is_no_replica(client, topic):
    """Is a fetch that claims to be another broker's not answered with data?"""
    client.create_topic(topic)
    client.produce(topic, batch())
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
    request = FetchRequest(
        replica_id=3, max_wait_ms=0, min_bytes=1, max_bytes=100, topics=(FetchTopic(topic=topic, partitions=(asked,)),)
    )
    answer = client.ask("Fetch", 12, request)

    assert answer.error_code != 0
    assert answer.responses == ()


# --- waiting

FOREVER_MS = 300_000
"""Far longer than a test waits for an answer: what comes back did not come because the time was over."""


def test_fetch_waits_for_the_first_record(shared, wire, topic, until_parked):
    """Does a fetch at the end wait, and end with the next record?"""
    client, producer = wire(shared), wire(shared)
    client.create_topic(topic)
    waiting = client.send("Fetch", 12, one_fetch(topic, 0, max_wait_ms=FOREVER_MS))
    until_parked(shared, topic)
    producer.produce(topic, batch())
    (answer,) = client.receive("Fetch", 12, waiting).responses

    assert offsets_of(answer.partitions[0].records) == [0]


def test_fetch_waits_for_enough(shared, wire, topic, until_parked):
    """Does a fetch that wants three batches' worth wait for the third, and is it still there after the second?"""
    client, producer = wire(shared), wire(shared)
    client.create_topic(topic)
    waiting = client.send("Fetch", 12, one_fetch(topic, 0, max_wait_ms=FOREVER_MS, min_bytes=3 * SIZE))
    for _ in range(3):
        until_parked(shared, topic)
        producer.produce(topic, batch())
    (answer,) = client.receive("Fetch", 12, waiting).responses

    assert offsets_of(answer.partitions[0].records) == [0, 1, 2]


def test_many_wait_for_one(shared, wire, topic, until_parked):
    """Do all fetches that wait at one partition end with one record (R24)?"""
    clients = [wire(shared) for _ in range(8)]
    clients[0].create_topic(topic)
    waiting = [client.send("Fetch", 12, one_fetch(topic, 0, max_wait_ms=FOREVER_MS)) for client in clients]
    until_parked(shared, topic, fetches=8)
    wire(shared).produce(topic, batch())

    for client, correlation_id in zip(clients, waiting, strict=True):
        (answer,) = client.receive("Fetch", 12, correlation_id).responses
        assert offsets_of(answer.partitions[0].records) == [0]


def test_wait_that_ends_with_nothing(client, topic):
    """Is a fetch answered, empty, when its time is over?"""
    client.create_topic(topic)
    answer = client.fetch(topic, 0, max_wait_ms=30)

    assert (answer.error_code, answer.records) == (0, b"")


def test_client_that_leaves_while_waiting(shared, wire, topic, until_parked):
    """Is a fetch whose client has gone forgotten, and the partition as well as before?"""
    client, producer = wire(shared), wire(shared)
    client.create_topic(topic)
    client.send("Fetch", 12, one_fetch(topic, 0, max_wait_ms=FOREVER_MS))
    until_parked(shared, topic)
    client.close()
    for _ in range(3):
        producer.produce(topic, batch())

    assert offsets_of(producer.fetch(topic, 0).records) == [0, 1, 2]
    assert shared.ask(lambda broker: broker.partitions.require(topic, 0)._fetch_waiters) == {}


def test_requests_behind_a_waiting_fetch(shared, wire, topic, until_parked):
    """Are requests pipelined behind a waiting fetch carried out at once, and answered in their turn?"""
    client = wire(shared)
    client.create_topic(topic)
    waiting = client.send("Fetch", 12, one_fetch(topic, 0, max_wait_ms=FOREVER_MS))
    until_parked(shared, topic)
    stored = client.produce_later(topic, batch())
    (answer,) = client.receive("Fetch", 12, waiting).responses

    assert offsets_of(answer.partitions[0].records) == [0]
    assert client.receive("Produce", 12, stored).responses[0].partition_responses[0].base_offset == 0


# --- from the disk


@pytest.fixture
def cold(monkeypatch):
    """No page is ever found in memory; notes that a thread sent a reply, and that it did not finish one."""
    seen = {"sent": threading.Event(), "unfinished": threading.Event()}

    def send(peer, pieces):
        assert any(isinstance(piece, FileRange) for piece in pieces)
        rest = send_from_files(peer, pieces)
        seen["unfinished" if rest else "sent"].set()
        return rest

    monkeypatch.setattr(RealMapping, "resident", lambda *_: False)
    monkeypatch.setattr(fetcher, "send_from_files", send)
    return seen


def test_what_is_cold_is_sent_from_the_files(cluster, wire, topic, cold):
    """Are records that must come from the disk answered as they are, over the same connection again and again?"""
    client = wire(cluster)
    client.create_topic(topic, segment_bytes="1048576")
    sent = [batch(bytes([number]) * 50_000) for number in range(60)]
    for one in sent:
        client.produce(topic, one)

    got = []
    while len(got) < len(sent):
        records = client.fetch(topic, len(got), max_bytes=500_000).records
        got += [bytes(records[at + 61 : at + header.size]) for at, header in split_batches(memoryview(records))]

    assert got == [bytes(one[61:]) for one in sent]
    assert cold["sent"].is_set()


def test_a_disk_that_cannot_be_read(cluster, wire, topic, cold, monkeypatch):
    """Is a reader cut off once by a disk that fails in the middle of a reply, and from then on told what is wrong?"""
    client = wire(cluster)
    client.create_topic(topic, segment_bytes="1048576")
    for number in range(30):
        client.produce(topic, batch(bytes([number]) * 50_000))

    def fail(*_):
        raise OSError(errno.EIO, "the disk is bad")

    monkeypatch.setattr(RealFile, "send", fail)
    monkeypatch.setattr("headrace.storage.span.warm", lambda _: False)
    with pytest.raises(ConnectionError):
        client.fetch(topic, 0, max_bytes=120_000)
    again = wire(cluster)
    assert offsets_of(again.fetch(topic, 0, max_bytes=120_000).records) == [0, 1], "it can be read another way"

    monkeypatch.setattr(Span, "load", lambda _: (_ for _ in ()).throw(StorageFault("the disk is bad")))
    assert again.fetch(topic, 0, max_bytes=120_000).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_who_does_not_read_what_is_cold(cluster, wire, topic, cold):
    """Does a reader that stops reading get its reply whole when it goes on, and is another served meanwhile?"""
    client, other = wire(cluster), wire(cluster)
    client.create_topic(topic, segment_bytes="14000000")
    for number in range(160):
        client.produce(topic, batch(bytes([number]) * 100_000))
    slow = client.send("Fetch", 12, one_fetch(topic, 0, max_bytes=1 << 30))
    assert cold["unfinished"].wait(20)

    assert offsets_of(other.fetch(topic, 159, max_bytes=1000).records) == [159]
    (answered,) = client.receive("Fetch", 12, slow).responses

    assert offsets_of(answered.partitions[0].records) == list(range(139))
