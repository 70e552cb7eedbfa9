"""Coordinators of several brokers, asked in the wire's own words: who is named, who confirms, who writes markers."""

import asyncio

import pytest

from caught_up import caught_up
from cluster_shell import BrokerGroup
from headrace.model.errors import ErrorCode
from headrace.records.build import NewRecord, build_batch
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.list_groups import ListGroupsRequest
from headrace.wire.messages.list_transactions import ListTransactionsRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

pytestmark = pytest.mark.slow

GROUP, TRANSACTION = 0, 1
NODES = (1, 2, 3)
PRODUCE, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, HEARTBEAT, LIST_GROUPS = 0, 8, 9, 10, 12, 16
CREATE_TOPICS, DELETE_TOPICS, INIT_PRODUCER_ID, ADD_PARTITIONS, END_TXN, MARKERS = 19, 20, 22, 24, 26, 27
TXN_OFFSET_COMMIT, LIST_TRANSACTIONS = 28, 66
WORK_S = 50


@pytest.fixture
def group():
    """Three nodes that are brokers and controllers."""
    with BrokerGroup(3) as group:
        yield group


class Wire:
    """Asks any broker, over a link of broker 1."""

    def __init__(self, group):
        self._group = group
        self._broker = group.brokers[1]

    async def ask(self, node, api_key, request):
        """A broker's answer, in the newest version."""
        return await self._broker.peers.ask(node, api_key, request, purpose="test")

    async def create(self, name, *, partitions=3, factor=3):
        """A topic, known to all brokers."""
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)
        (result,) = (await self.ask(1, CREATE_TOPICS, CreateTopicsRequest(topics=(topic,)))).topics
        assert result.error_code == 0, result.error_message
        await caught_up(self._group.brokers.values())

    def leader(self, topic, index):
        """Who leads a partition."""
        return self._broker.metadata.topics[topic].partitions[index].leader

    async def coordinator(self, key, kind, *, of=1):
        """Who a broker says coordinates a key."""
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
        (found,) = (await self.ask(of, FIND_COORDINATOR, request)).coordinators
        return ErrorCode(found.error_code), found.node_id, found.port

    async def served(self, node, api_key, request, code=lambda answer: answer.error_code):
        """The first answer that is not about a coordinator on its way."""
        while True:
            answer = await self.ask(node, api_key, request)
            if code(answer) not in {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE}:
                return answer

    async def claim(self, name):
        """A transactional id's coordinator, and the producer's identity."""
        _, node, _ = await self.coordinator(name, TRANSACTION)
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        answer = await self.served(node, INIT_PRODUCER_ID, request)
        assert answer.error_code == 0
        return node, (answer.producer_id, answer.producer_epoch)

    async def produce(self, name, identity, index, *, sequence=0):
        """Write a transactional record as a producer of the newest protocol; the error code."""
        batch = build_batch(
            [NewRecord(timestamp=1, key=None, value=b"v")],
            producer_id=identity[0],
            producer_epoch=identity[1],
            base_sequence=sequence,
            transactional=True,
        )
        topic = self._broker.metadata.topics["a"]
        data = TopicProduceData(
            topic_id=topic.topic_id, partition_data=(PartitionProduceData(index=index, records=bytes(batch)),)
        )
        request = ProduceRequest(transactional_id=name, acks=-1, timeout_ms=30_000, topic_data=(data,))
        answer = await self.ask(topic.partitions[index].leader, PRODUCE, request)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    async def end(self, node, name, identity, *, commit=True):
        """End a transaction; the error code, and who to go on as."""
        request = EndTxnRequest(
            transactional_id=name, producer_id=identity[0], producer_epoch=identity[1], committed=commit
        )
        answer = await self.ask(node, END_TXN, request)
        return ErrorCode(answer.error_code), (answer.producer_id, answer.producer_epoch)

    async def verify(self, node, name, identity, *indexes):
        """What a broker hears that asks whether partitions are in a transaction."""
        asked = AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=identity[0],
            producer_epoch=identity[1],
            verify_only=True,
            topics=(AddPartitionsToTxnTopic(name="a", partitions=indexes),),
        )
        answer = await self.ask(node, ADD_PARTITIONS, AddPartitionsToTxnRequest(transactions=(asked,)))
        results = answer.results_by_transaction[0].topic_results[0].results_by_partition
        return [ErrorCode(each.partition_error_code) for each in results]


def over(group, work):
    """Do something on the nodes' loop with a wire of broker 1."""

    async def limited(_):
        async with asyncio.timeout(WORK_S):
            return await work(Wire(group))

    return group.call(1, limited)


def stable(group, topic, index):
    """Whether everything in a partition is decided, as its leader knows: last stable offset and end."""
    node = group.leader_of(topic, index)

    def ends(broker):
        partition = broker.partitions.require(topic, index)
        return partition.last_stable_offset, partition.log.log_end_offset

    return group.ask(node, ends)


def test_every_broker_names_the_same_coordinators(group):
    """Do all brokers, asked at once for the first time, name one broker for each key, with replicas on all three?"""
    keys = [f"g{number}" for number in range(6)]

    async def ask(wire):
        async def found(node, key):
            while True:
                code, *where = await wire.coordinator(key, GROUP, of=node)
                if code is ErrorCode.NONE:
                    return key, tuple(where)

        return await asyncio.gather(*(found(node, key) for node in NODES for key in keys))

    said = over(group, ask)

    named = dict(said)
    assert set(said) == set(named.items())
    assert len({node for node, _ in named.values()}) > 1
    assert all(group.address(node).endswith(f":{port}") for node, port in named.values())
    states = group.ask(1, lambda broker: broker.metadata.topics["__consumer_offsets"].partitions)
    assert {len(state.replicas) for state in states} == {3}


def test_a_broker_that_does_not_coordinate_says_so(group):
    """Is a group's member sent away by the brokers that do not coordinate it?"""

    async def ask(wire):
        _, home, _ = await wire.coordinator("g", GROUP)
        answers = {}
        for node in NODES:
            request = HeartbeatRequest(group_id="g", member_id="m")
            answer = await wire.served(node, HEARTBEAT, request, code=not_loading)
            answers[node] = ErrorCode(answer.error_code)
        return home, answers

    def not_loading(answer):
        # A coordinator that reads its log calls every heartbeat good, as Kafka's does.
        return answer.error_code or ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    home, answers = over(group, ask)

    assert answers == {
        node: ErrorCode.UNKNOWN_MEMBER_ID if node == home else ErrorCode.NOT_COORDINATOR for node in NODES
    }


def test_the_first_write_adds_its_partition_wherever_the_coordinator_is(group):
    """Do the leaders of three brokers add their partitions by themselves, and does one EndTxn reach all (KIP-890)?"""

    async def transact(wire):
        await wire.create("a")
        node, identity = await wire.claim("t")
        written = await asyncio.gather(*(wire.produce("t", identity, index) for index in range(3)))
        members = await wire.verify(node, "t", identity, 0, 1, 2)
        code, after = await wire.end(node, "t", identity)
        late = await wire.produce("t", identity, 0, sequence=1)
        return written, members, code, after[1] - identity[1], late

    written, members, code, bump, late = over(group, transact)

    assert written == members == [ErrorCode.NONE] * 3
    assert (code, bump) == (ErrorCode.NONE, 1)
    assert late in {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE}
    leaders = {group.leader_of("a", index) for index in range(3)}
    assert leaders == set(NODES)
    for index in range(3):
        group.call(1, lambda _, index=index: settled(group, index))
    assert [stable(group, "a", index) for index in range(3)] == [(2, 2)] * 3


async def settled(group, index):
    """Until the transaction on a partition has ended, on its leader."""
    while True:
        for broker in group.brokers.values():
            partition = broker.partitions.find(("a", index))
            if partition is not None and partition.is_led:
                if partition.last_stable_offset == partition.log.log_end_offset:
                    return
                break
        await asyncio.sleep(0.01)


def test_a_write_nobody_asked_for_opens_nothing(group):
    """Is a write refused on every broker whose producer the coordinator does not know?"""

    async def transact(wire):
        await wire.create("a")
        await wire.claim("t")
        return [await wire.produce("t", (999_999, 0), index) for index in range(3)]

    assert over(group, transact) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 3
    assert [stable(group, "a", index) for index in range(3)] == [(0, 0)] * 3


def test_offsets_in_a_transaction_of_another_broker(group):
    """Do a group's offsets count when its coordinator and the transaction's are different brokers?"""

    async def transact(wire):
        await wire.create("a")
        node, identity = await wire.claim("t")
        homes = {}
        for name in (f"g{number}" for number in range(8)):
            homes.setdefault((await wire.coordinator(name, GROUP))[1], name)
        codes = [await commit_offset(wire, home, name, identity) for home, name in homes.items()]
        open_offsets = [await committed(wire, home, name) for home, name in homes.items()]
        code, _ = await wire.end(node, "t", identity)
        while -1 in (offsets := [await committed(wire, home, name) for home, name in homes.items()]):
            pass
        return set(homes), codes, open_offsets, code, offsets

    homes, codes, open_offsets, code, offsets = over(group, transact)

    assert len(homes) > 1
    assert codes == [ErrorCode.NONE] * len(homes)
    assert open_offsets == [-1] * len(homes)
    assert (code, offsets) == (ErrorCode.NONE, [5] * len(homes))


async def commit_offset(wire, node, group_id, identity):
    """Commit an offset in a transaction; the error code."""
    place = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=group_id,
        producer_id=identity[0],
        producer_epoch=identity[1],
        topics=(TxnOffsetCommitRequestTopic(name="a", partitions=(place,)),),
    )
    answer = await wire.served(
        node, TXN_OFFSET_COMMIT, request, lambda answer: answer.topics[0].partitions[0].error_code
    )
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def committed(wire, node, group_id):
    """A group's offset of partition 0, -1 if it has none that counts."""
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group_id, topics=None),))
    (found,) = (await wire.served(node, OFFSET_FETCH, request, lambda answer: answer.groups[0].error_code)).groups
    return next((place.committed_offset for topic in found.topics for place in topic.partitions), -1)


def test_a_deposed_coordinator_is_fenced(group):
    """Does a leader refuse the marker of a coordinator of an older epoch than one it has heard from?"""

    async def marked(wire, identity, epoch):
        marker = WritableTxnMarker(
            producer_id=identity[0],
            producer_epoch=identity[1],
            transaction_result=True,
            coordinator_epoch=epoch,
            topics=(WritableTxnMarkerTopic(name="a", partition_indexes=(0,)),),
        )
        answer = await wire.ask(wire.leader("a", 0), MARKERS, WriteTxnMarkersRequest(markers=(marker,)))
        return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)

    async def depose(wire):
        await wire.create("a")
        _, identity = await wire.claim("t")
        return [await marked(wire, identity, epoch) for epoch in (3, 2, 3)]

    assert over(group, depose) == [
        ErrorCode.NONE,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.NONE,
    ]


def test_lists_are_each_brokers_own(group):
    """Is every group and every transactional id listed by its coordinator, and by nobody else?"""
    names = [f"n{number}" for number in range(6)]

    async def ask(wire):
        await wire.create("a")
        homes = {}
        for name in names:
            homes[name] = (await wire.coordinator(name, GROUP))[1], (await wire.claim(name))[0]
            await plain_commit(wire, homes[name][0], name)
        groups, transactions = {}, {}
        for node in NODES:
            listed = await wire.served(node, LIST_GROUPS, ListGroupsRequest())
            groups |= {(node, each.group_id): None for each in listed.groups}
            listed = await wire.served(node, LIST_TRANSACTIONS, ListTransactionsRequest())
            transactions |= {(node, each.transactional_id): None for each in listed.transaction_states}
        return homes, set(groups), set(transactions)

    homes, groups, transactions = over(group, ask)

    assert groups == {(of_group, name) for name, (of_group, _) in homes.items()}
    assert transactions == {(of_id, name) for name, (_, of_id) in homes.items()}


def commit_request(wire, group_id, topic="a"):
    """What commits an offset of a group without members."""
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    known = wire._broker.metadata.topics[topic].topic_id
    return OffsetCommitRequest(
        group_id=group_id,
        topics=(OffsetCommitRequestTopic(name=topic, topic_id=known, partitions=(place,)),),
        generation_id_or_member_epoch=-1,
    )


async def plain_commit(wire, node, group_id, topic="a"):
    """Commit an offset of a group without members."""
    request = commit_request(wire, group_id, topic)
    answer = await wire.served(node, OFFSET_COMMIT, request, lambda answer: answer.topics[0].partitions[0].error_code)
    assert answer.topics[0].partitions[0].error_code == 0


def test_a_deleted_topic_is_forgotten_by_groups_everywhere(group):
    """Do groups forget a topic's offsets also on coordinators that never held a partition of it?"""

    async def ask(wire):
        await wire.create("lone", partitions=1, factor=1)
        homes = {}
        for name in (f"g{number}" for number in range(8)):
            homes.setdefault((await wire.coordinator(name, GROUP))[1], name)
        for home, name in homes.items():
            await plain_commit(wire, home, name, "lone")
        before = [await committed(wire, home, name) for home, name in homes.items()]
        gone = DeleteTopicsRequest(topics=(DeleteTopicState(name="lone"),))
        assert (await wire.ask(1, DELETE_TOPICS, gone)).responses[0].error_code == 0
        while set(after := [await committed(wire, home, name) for home, name in homes.items()]) != {-1}:
            pass
        return before, after

    before, after = over(group, ask)

    assert set(before) == {7}
    assert len(after) > 1


def test_a_coordinator_short_of_replicas():
    """Does a coordinator refuse to write while too few replicas are in sync, still tell what it knows, and go on?"""
    with BrokerGroup(3, settings={"min.insync.replicas": "3"}) as group:

        async def begin(wire):
            await wire.create("a")
            _, home, _ = await wire.coordinator("g", GROUP)
            await plain_commit(wire, home, "g")
            return home, wire._broker.groups.topic, wire._broker.groups.partition_for("g")

        home, topic, index = over(group, begin)

        def in_sync(count):
            return lambda metadata: len(metadata.topics[topic].partitions[index].isr) == count

        away = next(node for node in (2, 3) if node != home)
        group.kill(away)
        group.until(home, in_sync(2))

        async def refuse(wire):
            answer = await wire.ask(home, OFFSET_COMMIT, commit_request(wire, "g"))
            return ErrorCode(answer.topics[0].partitions[0].error_code), await committed(wire, home, "g")

        assert over(group, refuse) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, 7)
        group.start(away)
        group.until(home, in_sync(3))
        over(group, lambda wire: plain_commit(wire, home, "g"))
