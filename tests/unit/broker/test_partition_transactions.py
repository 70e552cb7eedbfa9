"""Transactions on one partition as its broker serves it: markers, the last stable offset, fetches and lists."""

import asyncio
from types import SimpleNamespace

import pytest

from headrace.broker.api import Call
from headrace.broker.handlers.api01_fetch import API as FETCH
from headrace.broker.handlers.api02_list_offsets import API as LIST_OFFSETS
from headrace.broker.handlers.api61_describe_producers import API as DESCRIBE_PRODUCERS
from headrace.model.errors import ErrorCode, KafkaError
from headrace.net.reply import PendingReply
from headrace.records.batch import read_header
from headrace.records.build import NewRecord, build_batch
from headrace.records.control import EndTransactionMarker, read_end_marker
from headrace.wire.codec import decode_response, encode_request
from headrace.wire.header import RequestHeader
from headrace.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

NOW_MS = 1_700_000_000_000
FETCH_VERSION = 12
RESPONSE_HEADER_BYTES = 9


def make_batch(count=1, *, producer_id=7, sequence=0, epoch=0, transactional=True):
    """A batch of a transaction."""
    return build_batch(
        [NewRecord(NOW_MS, b"k", b"v") for _ in range(count)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


class Teller:
    """The one partition of a topic, written to in transactions."""

    def __init__(self, desk, topic="orders", **configs):
        self.desk = desk
        self.topic = topic
        desk.create(topic, **configs)

    @property
    def partition(self):
        """As the broker has it now."""
        return self.desk.broker.partitions.require(self.topic, 0)

    def write(self, count=1, **options):
        """Append a batch and wait until it is safe; its offset."""
        batch = make_batch(count, **options)
        return self._do(lambda: self.partition.append(memoryview(batch), read_header(batch), NOW_MS))

    def end(self, *, commit, producer_id=7, epoch=0, coordinator_epoch=3, version=1):
        """Append a marker and wait until it is safe; its offset."""
        return self._do(
            lambda: self.partition.append_end_marker(
                producer_id,
                epoch,
                commit=commit,
                coordinator_epoch=coordinator_epoch,
                now_ms=NOW_MS,
                transaction_version=version,
            )
        )

    def _do(self, append):
        async def work():
            appended = append()
            safe = asyncio.get_running_loop().create_future()
            self.partition.when_safe(appended.end_offset, safe.set_result)
            assert await safe is None
            return appended.base_offset

        return self.desk.run(work())

    def latest(self, isolation_level):
        """What ListOffsets says is the end."""
        asked = ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=-1)
        topic = ListOffsetsTopic(name=self.topic, partitions=(asked,))
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=(topic,))
        return self.desk.ask(LIST_OFFSETS, request).topics[0].partitions[0].offset

    def fetch(self, offset=0, *, isolation_level=1, max_wait_ms=0, min_bytes=1, meanwhile=None):
        """One fetch's answer for the partition; `meanwhile` runs once the fetch is parked."""

        async def work():
            loop = asyncio.get_running_loop()
            header = RequestHeader(FETCH.key, FETCH_VERSION, 1, "test", 0)
            call = Call(
                self.desk.broker,
                SimpleNamespace(
                    listener_name="PLAINTEXT", loop=loop, closed=False, sends_files=False, lend=lambda _: None
                ),
                header,
            )
            asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
            request = FetchRequest(
                max_wait_ms=max_wait_ms,
                min_bytes=min_bytes,
                isolation_level=isolation_level,
                topics=(FetchTopic(topic=self.topic, partitions=(asked,)),),
            )
            frame = memoryview(encode_request(FETCH.key, FETCH_VERSION, request))
            answer = FETCH.handle(call, frame, 0)
            if isinstance(answer, PendingReply):
                ready = loop.create_future()
                answer.attach(lambda: ready.set_result(None))
                if meanwhile is not None:
                    assert not ready.done()
                    meanwhile(ready)
                await ready
                answer = answer.buffers
            else:
                assert meanwhile is None, "the fetch was answered at once"
            return b"".join(answer)

        data = self.desk.run(work())
        response = decode_response(FETCH.key, FETCH_VERSION, memoryview(data), RESPONSE_HEADER_BYTES)
        return response.responses[0].partitions[0]


@pytest.fixture
def teller(desk):
    """A topic of one partition."""
    return Teller(desk)


def test_the_last_stable_offset(teller):
    """Does an open transaction hold back read_committed readers, and no others, until it ends?"""
    teller.write(2, producer_id=-1, sequence=-1, epoch=-1, transactional=False)
    teller.write(3)
    teller.write(1, producer_id=8)

    assert (teller.latest(0), teller.latest(1)) == (6, 2)
    assert teller.end(commit=True) == 6
    assert (teller.latest(0), teller.latest(1)) == (7, 5)
    teller.end(commit=False, producer_id=8)
    assert (teller.latest(0), teller.latest(1)) == (8, 8)


def test_fetches_of_committed_data(teller):
    """Does a read_committed fetch end at the last stable offset and name the aborted transactions it crosses?"""
    teller.write(2)
    teller.end(commit=False)
    teller.write(1, sequence=2)
    teller.end(commit=True)
    teller.write(1, producer_id=9)

    committed, uncommitted = teller.fetch(), teller.fetch(isolation_level=0)
    assert (committed.high_watermark, committed.last_stable_offset) == (6, 5)
    assert [(one.producer_id, one.first_offset) for one in committed.aborted_transactions] == [(7, 0)]
    assert uncommitted.aborted_transactions is None
    assert len(uncommitted.records) > len(committed.records)
    assert teller.fetch(3).aborted_transactions == ()


def test_the_marker_is_kafkas(teller):
    """Does the log hold a control batch with the outcome, the coordinator's epoch and the producer's?"""
    teller.write()
    offset = teller.end(commit=True, epoch=2, coordinator_epoch=11, version=2)
    data = bytes(teller.fetch(offset).records)

    assert read_end_marker(data) == EndTransactionMarker(True, 11, NOW_MS)
    assert read_header(data).base_offset == offset == 1
    assert (read_header(data).producer_id, read_header(data).producer_epoch) == (7, 2)


def test_parked_readers_are_woken(teller):
    """Is a read_committed fetch that waits behind an open transaction answered when the transaction ends?"""
    teller.write(2)

    def end_it(_ready):
        teller.partition.append_end_marker(7, 0, commit=True, coordinator_epoch=0, now_ms=NOW_MS, transaction_version=1)

    found = teller.fetch(max_wait_ms=60_000, meanwhile=end_it)

    assert found.last_stable_offset == 3
    assert len(found.records) > 0


def test_a_marker_of_nothing(teller):
    """Is a marker written for a producer without a transaction here, and does it change nothing?"""
    teller.write(1, producer_id=8)
    assert teller.end(commit=False) == 1

    assert teller.latest(1) == 0
    assert teller.fetch().aborted_transactions == ()


def test_markers_that_are_refused(teller):
    """Is nothing written for a marker of an older epoch or coordinator?"""
    teller.write(epoch=4)
    teller.end(commit=True, epoch=4, coordinator_epoch=9)

    for options, code in (
        ({"epoch": 3}, ErrorCode.INVALID_PRODUCER_EPOCH),
        ({"epoch": 4, "coordinator_epoch": 8}, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ):
        with pytest.raises(KafkaError) as caught:
            teller.end(commit=False, **options)
        assert caught.value.code == code
    assert teller.latest(0) == 2


@pytest.mark.parametrize("stop", ["restart", "crash", "power_cut"])
def test_across_a_stop(teller, stop):
    """Are an open transaction, an aborted one and the sequence as before when the broker comes back?"""
    teller.write(2)
    teller.end(commit=False)
    teller.write(1, sequence=2)
    getattr(teller.desk, stop)()

    assert (teller.latest(0), teller.latest(1)) == (4, 3)
    assert [(one.producer_id, one.first_offset) for one in teller.fetch().aborted_transactions] == [(7, 0)]
    assert teller.write(1, sequence=3) == 4
    teller.end(commit=True)
    assert teller.latest(1) == 6


def test_producers_are_described(teller):
    """Does DescribeProducers tell where the open transaction began, and the last coordinator's epoch?"""
    teller.write(2)
    teller.end(commit=True, coordinator_epoch=5)
    teller.write(1, sequence=2)
    request = DescribeProducersRequest(topics=(TopicRequest(name="orders", partition_indexes=(0,)),))
    (producer,) = teller.desk.ask(DESCRIBE_PRODUCERS, request).topics[0].partitions[0].active_producers

    assert (producer.coordinator_epoch, producer.current_txn_start_offset, producer.last_sequence) == (5, 3, 2)


def test_records_deleted_under_a_transaction(teller):
    """Does the last stable offset never lie before the log's start?"""
    teller.write(3)
    teller.write(2, producer_id=-1, sequence=-1, epoch=-1, transactional=False)
    teller.partition.log.advance_start_offset(2)

    assert teller.latest(1) == 2


def test_verification(teller):
    """Must the first batch of a transaction be verified, and is an answer that a marker overtook worth nothing?"""
    partition = teller.partition
    header = read_header(make_batch())

    assert partition.must_verify(header)
    assert not partition.must_verify(read_header(make_batch(transactional=False)))
    guard = partition.start_verification(header, epoch_bumps=False)
    partition.check_verified(header, guard)
    teller.end(commit=False)
    with pytest.raises(KafkaError) as caught:
        partition.check_verified(header, guard)
    assert caught.value.code == ErrorCode.INVALID_TXN_STATE
    teller.write()
    assert not partition.must_verify(read_header(make_batch(sequence=1)))
