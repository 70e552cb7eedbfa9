"""A producer at the desk: the transaction APIs in plain calls, for the tests that ask the broker about them."""

import asyncio

import pytest

from headrace.broker.api import Call
from headrace.broker.coordinators import marker_post
from headrace.broker.handlers import (
    api00_produce,
    api22_init_producer_id,
    api24_add_partitions_to_txn,
    api25_add_offsets_to_txn,
    api26_end_txn,
    api28_txn_offset_commit,
    api65_describe_transactions,
)
from headrace.model.errors import ErrorCode
from headrace.net.reply import PendingReply
from headrace.records.build import NewRecord, build_batch
from headrace.wire.codec import decode_response, encode_request
from headrace.wire.header import RequestHeader, parse_response_header
from headrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.wire.messages.describe_transactions import DescribeTransactionsRequest
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

OLD, NEW = 11, 12
"""The last version of Produce whose producers name partitions themselves, and the first that leaves it to brokers."""


class Teller:
    """A producer at the desk, in plain calls."""

    def __init__(self, desk):
        self.desk = desk
        self.broker = desk.broker

    def init(self, name="t", *, version=5, timeout_ms=60_000, producer_id=-1, epoch=-1):
        """Ask for an identity; the error code, the producer id and the epoch."""
        request = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=timeout_ms, producer_id=producer_id, producer_epoch=epoch
        )
        answer = self.desk.ask(api22_init_producer_id.API, request, version=version)
        return answer.error_code, (answer.producer_id, answer.producer_epoch)

    def claimed(self, name="t"):
        """An identity, whatever has to end first."""
        for _ in range(20):
            code, identity = self.init(name)
            if code != ErrorCode.CONCURRENT_TRANSACTIONS:
                assert code == 0
                return identity
            self.settle()
        raise AssertionError("still not over")

    def add(self, identity, *places, name="t", version=3):
        """Name partitions; their error codes."""
        topics = tuple(AddPartitionsToTxnTopic(name=topic, partitions=(index,)) for topic, index in places)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=identity[0],
            v3_and_below_producer_epoch=identity[1],
            v3_and_below_topics=topics,
        )
        answer = self.desk.ask(api24_add_partitions_to_txn.API, request, version=version)
        return codes_of(answer.results_by_topic_v3_and_below)

    def verify(self, identity, *places, name="t", verify_only=True):
        """What a broker asks; the error codes."""
        asked = AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=identity[0],
            producer_epoch=identity[1],
            verify_only=verify_only,
            topics=tuple(AddPartitionsToTxnTopic(name=topic, partitions=(index,)) for topic, index in places),
        )
        answer = self.desk.ask(
            api24_add_partitions_to_txn.API, AddPartitionsToTxnRequest(transactions=(asked,)), version=5
        )
        return codes_of(answer.results_by_transaction[0].topic_results)

    def add_offsets(self, identity, group, *, version=4, name="t"):
        """Name a group; the error code."""
        request = AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=identity[0], producer_epoch=identity[1], group_id=group
        )
        return self.desk.ask(api25_add_offsets_to_txn.API, request, version=version).error_code

    def end(self, identity, *, commit=True, version=5, name="t"):
        """End a transaction; the error code, and who to go on as."""
        request = EndTxnRequest(
            transactional_id=name, producer_id=identity[0], producer_epoch=identity[1], committed=commit
        )
        answer = self.desk.ask(api26_end_txn.API, request, version=version)
        return answer.error_code, (answer.producer_id, answer.producer_epoch)

    def commit_offset(self, identity, *, topic="a", partition=0, offset=5, group="g", version=5, **fields):
        """Commit an offset in the transaction; the error code."""
        place = TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id=group,
            producer_id=identity[0],
            producer_epoch=identity[1],
            topics=(TxnOffsetCommitRequestTopic(name=topic, partitions=(place,)),),
            **fields,
        )
        answer = self.desk.ask(api28_txn_offset_commit.API, request, version=version)
        return answer.topics[0].partitions[0].error_code

    def produce(self, identity, topic="a", **fields):
        """Write a transactional batch; the error code and the offset."""
        return self.desk.run(self.produced(identity, topic, **fields))

    async def produced(self, identity, topic="a", *, sequence=0, version=OLD, name="t", count=1, key=b"k"):
        """The same on the broker's loop, where several may be under way."""
        records = batch(identity, sequence, count, key)
        data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=records),))
        body = encode_request(
            0, version, ProduceRequest(transactional_id=name, acks=-1, timeout_ms=1000, topic_data=(data,))
        )
        call = Call(self.broker, None, RequestHeader(0, version, 1, "test", 0))
        reply = api00_produce.API.handle(call, memoryview(bytearray(body)), 0)
        if isinstance(reply, PendingReply):
            ready = asyncio.get_running_loop().create_future()
            reply.attach(lambda: ready.set_result(None))
            if reply.buffers is None:
                await ready
            reply = reply.buffers
        frame = memoryview(b"".join(reply))[4:]
        _, start = parse_response_header(0, version, frame)
        (result,) = decode_response(0, version, frame, start).responses[0].partition_responses
        return result.error_code, result.base_offset

    def state(self, name="t"):
        """Where a transactional id stands."""
        (found,) = self.desk.ask(
            api65_describe_transactions.API, DescribeTransactionsRequest(transactional_ids=(name,))
        ).transaction_states
        return found.transaction_state or ErrorCode(found.error_code).name

    def settle(self):
        """Let everything that is under way come to its end."""

        async def done():
            while self.broker._tasks:
                await asyncio.wait(set(self.broker._tasks))

        self.desk.run(done())

    def stable(self, topic="a"):
        """What readers of committed data may read up to, and what there is."""
        partition = self.broker.partitions.require(topic, 0)
        return partition.last_stable_offset, partition.log.log_end_offset


def batch(identity, sequence, count, key):
    """A transactional batch."""
    return bytes(
        build_batch(
            [NewRecord(timestamp=1, key=key, value=b"v", headers=()) for _ in range(count)],
            producer_id=identity[0],
            producer_epoch=identity[1],
            base_sequence=sequence,
            transactional=True,
        )
    )


def committed(teller, group="g"):
    """What the broker knows of offsets, those of open transactions too."""
    return teller.broker.groups.shard_for(group).core.hard_state()["offsets"]


def codes_of(topics):
    """The error codes of an AddPartitionsToTxn answer."""
    return [each.partition_error_code for topic in topics for each in topic.results_by_partition]


def watch_end(teller, monkeypatch):
    """Comes when markers have been written."""
    marked = teller.desk.run(_future())
    write = marker_post.write_markers

    async def watched(*arguments):
        results = await write(*arguments)
        if not marked.done():
            marked.set_result(None)
        return results

    monkeypatch.setattr(marker_post, "write_markers", watched)
    return marked


async def _future():
    return asyncio.get_running_loop().create_future()


SMALL = {"transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "2"}


@pytest.fixture
def teller(open_desk):
    """A producer at a broker whose coordinators are up, with a topic to write to."""
    return teller_at(open_desk(SMALL))


def teller_at(desk):
    """A producer at this broker, with its coordinators and a topic to write to."""
    desk.run(desk.broker.transactions.ensure_topic())
    desk.run(desk.broker.groups.ensure_topic())
    desk.create("a")
    return Teller(desk)
