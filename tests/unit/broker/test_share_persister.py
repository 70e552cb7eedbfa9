"""The way to a share coordinator on another broker, which is a real broker at a desk behind a link of the test's."""

import asyncio
from types import SimpleNamespace
from uuid import UUID

import pytest

from headrace.broker import share_persister
from headrace.broker.share_persister import TRIES_MAX, told_to_consumers
from headrace.cores.share_state import Initialize, Write
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import PartitionChangeRecord
from headrace.model.share_state_records import StateBatch
from headrace.net.link import LinkBroken
from headrace.wire.messages.read_share_group_state_summary import (
    PartitionData,
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)

from .share_desk import SETTINGS, ShareDesk

GROUP = "g"


class Elsewhere:
    """A broker that leads share partitions, and asks the one at the desk about them."""

    def __init__(self, share_desk):
        self.desk = share_desk
        self.node_id = 2
        self.leader = 1
        self.refusals = []
        self.asked = []
        self.pauses = []
        self.peers = self
        self.share = SimpleNamespace(is_stopped=False, pause=self._pause)
        self.share_state = SimpleNamespace(
            ensure_topic=self._ensured, is_here=lambda _: False, leader_for=lambda _: self.leader
        )

    async def ask(self, node_id, api_key, request, *, purpose):
        """Over the wire's bytes to the desk, unless something is in the way."""
        self.asked.append(api_key)
        if self.refusals:
            raise self.refusals.pop(0)
        return await self.desk.asked(self.desk.broker.apis[api_key], request)

    async def _pause(self, seconds):
        self.pauses.append(seconds)

    async def _ensured(self):
        """The topic is there."""


@pytest.fixture
def share_desk(open_desk):
    """A broker that coordinates share groups."""
    desk = open_desk(SETTINGS)
    desk.create("orders", partitions=2)
    return ShareDesk(desk)


@pytest.fixture
def elsewhere(share_desk):
    """Another broker."""
    return Elsewhere(share_desk)


def share_id(share_desk, index=0):
    """A share partition."""
    return (GROUP, share_desk.topic_id(), index)


def begin(partition, start_offset=3):
    """The first state of a share partition."""
    return Initialize(partition=partition, state_epoch=1, start_offset=start_offset)


def decided(partition, **fields):
    """What a leader decided of records 3 to 5."""
    batch = StateBatch(first_offset=3, last_offset=5, delivery_state=2, delivery_count=1)
    told = {"state_epoch": 1, "leader_epoch": 4, "start_offset": 3, "delivery_complete_count": 3, "batches": (batch,)}
    return Write(partition=partition, **{**told, **fields})


def always():
    """Nothing newer was written."""
    return True


def test_a_state_goes_there_and_back(share_desk, elsewhere):
    """Does everything that a leader writes come back to the next one, and to who asks for a summary?"""
    partition = share_id(share_desk)

    async def run():
        await share_persister.initialize(elsewhere, begin(partition))
        first = await share_persister.read(elsewhere, partition, 4)
        await share_persister.write(elsewhere, decided(partition), always)
        summary = await share_persister.read_summary(elsewhere, partition)
        second = await share_persister.read(elsewhere, partition, 5)
        await share_persister.delete(elsewhere, partition)
        return first, summary, second, await share_persister.read_summary(elsewhere, partition)

    first, summary, second, gone = share_desk.desk.run(run())

    assert (first.state_epoch, first.leader_epoch, first.start_offset, first.batches) == (1, 4, 3, ())
    assert (summary.leader_epoch, summary.start_offset, summary.delivery_complete_count) == (4, 3, 3)
    assert second.batches == decided(partition).batches
    assert gone is None
    assert elsewhere.asked == [83, 84, 85, 87, 84, 86, 87]


def test_a_refusal_comes_as_it_was_said(share_desk, elsewhere):
    """Is a leader of an older epoch told so, and is it not tried again?"""
    partition = share_id(share_desk)

    async def run():
        await share_persister.initialize(elsewhere, begin(partition))
        await share_persister.read(elsewhere, partition, 4)
        with pytest.raises(KafkaError) as fenced:
            await share_persister.write(elsewhere, decided(partition, leader_epoch=3), always)
        return fenced.value

    refusal = share_desk.desk.run(run())

    assert refusal.code is ErrorCode.FENCED_LEADER_EPOCH
    assert told_to_consumers(refusal).code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert elsewhere.pauses == []


def test_a_coordinator_on_the_move_is_asked_again(share_desk, elsewhere):
    """Does a member not notice that the coordinator's broker died, once there is another?"""
    partition = share_id(share_desk)
    elsewhere.refusals = [LinkBroken("gone"), KafkaError(ErrorCode.NOT_COORDINATOR, ""), LinkBroken("not yet")]

    share_desk.desk.run(share_persister.initialize(elsewhere, begin(partition)))

    assert len(elsewhere.asked) == 4
    assert elsewhere.pauses == sorted(elsewhere.pauses)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda it: it.refusals.extend(LinkBroken("gone") for _ in range(TRIES_MAX)), ErrorCode.NETWORK_EXCEPTION),
        (lambda it: setattr(it, "leader", -1), ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_there_is_an_end_to_trying(share_desk, elsewhere, spoil, told):
    """Is it told in the end that there is no coordinator, in words a consumer knows?"""
    spoil(elsewhere)

    async def run():
        with pytest.raises(KafkaError) as lost:
            await share_persister.read_summary(elsewhere, share_id(share_desk))
        return lost.value

    lost = share_desk.desk.run(run())

    assert lost.code is told
    assert told_to_consumers(lost).code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(elsewhere.pauses) == TRIES_MAX - 1


def test_what_is_older_is_not_written_over_what_is_newer(share_desk, elsewhere):
    """Is a write given up that failed once, when one that came after it has succeeded meanwhile?"""
    partition = share_id(share_desk)

    async def run():
        await share_persister.initialize(elsewhere, begin(partition))
        elsewhere.refusals = [LinkBroken("gone")]
        with pytest.raises(KafkaError) as lost:
            await share_persister.write(elsewhere, decided(partition, leader_epoch=-1), lambda: False)
        return lost.value.code, (await share_persister.read_summary(elsewhere, partition)).delivery_complete_count

    assert share_desk.desk.run(run()) == (ErrorCode.NETWORK_EXCEPTION, 0)


def test_a_broker_that_does_not_coordinate_passes_nothing_on(share_desk):
    """Does a broker refuse questions of other brokers that it does not coordinate, so that none goes in circles?"""
    broker = share_desk.broker
    nowhere = (GROUP, UUID(int=77), 0)

    async def run():
        await broker.share_state.ensure_topic()
        topic = broker.metadata.topics[broker.share_state.topic]
        for state in topic.partitions:
            broker.metadata.replay(PartitionChangeRecord(topic_id=topic.topic_id, partition_id=state.index, leader=2))
        broker.share_state.resign_all()
        answer = await share_desk.asked(broker.apis[87], _summary(nowhere))
        return answer.results[0].partitions[0].error_code

    assert share_desk.desk.run(run()) == ErrorCode.NOT_COORDINATOR


def _summary(partition):
    group_id, topic_id, index = partition
    topics = (ReadStateSummaryData(topic_id=topic_id, partitions=(PartitionData(partition=index),)),)
    return ReadShareGroupStateSummaryRequest(group_id=group_id, topics=topics)


def test_writes_of_a_leader_know_their_order(share_desk, monkeypatch):
    """Does a leader tell apart a write that may be tried again from one that something newer has overtaken?"""
    share_desk.join()
    share_desk.desk.run(asyncio.sleep(0))
    share_desk.fetch(epoch=0)
    leader = share_desk.broker.share.partitions.find(share_id(share_desk))
    chances, first_may_end = [], asyncio.Event()

    async def write(broker, command, is_newest):
        if not chances:
            chances.append(is_newest)
            await first_may_end.wait()

    monkeypatch.setattr(share_persister, "write", write)

    async def run():
        nothing = SimpleNamespace(start_offset=0, delivery_complete_count=0, batches=())
        first = asyncio.ensure_future(leader.write_down(nothing))
        await asyncio.sleep(0)
        before = chances[0]()
        await leader.write_down(nothing)
        after = chances[0]()
        first_may_end.set()
        await first
        return before, after

    assert share_desk.desk.run(run()) == (True, False)


def test_a_share_partition_that_moved_away(share_desk):
    """Is a member told who leads a share partition now, and is nothing acknowledged here any more?"""
    share_desk.join()
    share_desk.fetch(epoch=0)
    partition = share_desk.broker.partitions.require("orders", 0)
    share_desk.desk.run(_follow(partition))

    found = share_desk.fetch(epoch=1)
    refused = share_desk.acknowledge(epoch=2, acks=[(0, 0, 1)])

    told = [each for topic in found.responses for each in topic.partitions if each.partition_index == 0]
    assert [each.error_code for each in told] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert (told[0].current_leader.leader_id, len(found.node_endpoints)) == (1, 1)
    assert refused[1] == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_fetch_that_waits_hears_that_its_partition_moved(share_desk):
    """Is somebody who waits for records sent to the new leader at once, rather than left to wait in vain?"""
    share_desk.join()
    share_desk.fetch(epoch=0)
    partition = share_desk.broker.partitions.require("orders", 0)
    request = share_desk.fetch_request(epoch=1, wait_ms=600_000)

    async def run():
        waiting = asyncio.ensure_future(share_desk.asked(share_desk.broker.apis[78], request))
        for _ in range(20):
            await asyncio.sleep(0)
        was_waiting = not waiting.done()
        await _follow(partition)
        return was_waiting, await waiting

    was_waiting, found = share_desk.desk.run(run())

    told = [each for topic in found.responses for each in topic.partitions]
    assert was_waiting
    assert [each.error_code for each in told] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


async def _follow(partition):
    partition.follow(partition.leader_epoch + 1)
