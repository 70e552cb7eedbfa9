"""A coordinator that is cut off from the others: it goes on for a while, and nothing it does may count."""

import asyncio

import pytest

from cluster_shell import BrokerGroup
from headrace.cores.groups.offsets import CommitCommand, NewOffset, commit
from headrace.model.errors import ErrorCode, KafkaError
from headrace.net.link import Link, LinkBroken

pytestmark = pytest.mark.slow

WORK_S = 50
NAME = "g"


class Cut:
    """A network from which one node can be taken: nobody reaches it, and it reaches nobody."""

    def __init__(self, group, monkeypatch):
        self._group = group
        self.node = None
        ask = Link.ask
        cut = self

        async def asked(self, api_key, version, message, *, timeout_s):
            cut.check(self)
            answer = await ask(self, api_key, version, message, timeout_s=timeout_s)
            cut.check(self)
            return answer

        monkeypatch.setattr(Link, "ask", asked)

    def check(self, link):
        """LinkBroken if a link goes to the node that is cut off, or comes from it."""
        if self.node is None:
            return
        comes_from = int(link._client_id.rpartition("-")[2])
        if comes_from == self.node or link.port in self._group._ports[self.node]:
            raise LinkBroken("the network is cut")


@pytest.fixture
def group():
    """Three nodes with a topic, and a group coordinator."""
    with BrokerGroup(3) as group:
        yield group


def commit_at(broker, offset):
    """Commit an offset of a group without members; the future of what is told."""
    shard = broker.groups.shard_for(NAME)
    command = CommitCommand(
        group_id=NAME, offsets=(NewOffset(topic="a", partition=0, offset=offset, leader_epoch=-1, metadata=""),)
    )
    return shard.begin(lambda token, now_ms: commit(shard.core, command, token, now_ms))


async def committed_at(broker, offset):
    """The same, asked again until this broker coordinates the group and has it for good."""
    async with asyncio.timeout(WORK_S):
        while True:
            try:
                told = await commit_at(broker, offset)
            except KafkaError as error:
                told = error
            if not isinstance(told, KafkaError):
                return told
            await asyncio.sleep(0.02)


def known_at(broker):
    """The group's offset as a broker's coordinator has it."""
    return [each.value.offset for each in broker.groups.shard_for(NAME).core.offsets.of_group(NAME).values()]


def place(group):
    """The partition that the group lives in, and its leader."""
    node = group.controller
    topic, index = group.ask(node, lambda broker: (broker.groups.topic, broker.groups.partition_for(NAME)))
    return topic, index, group.leader_of(topic, index)


def successor(group, topic, index, old):
    """Who leads a partition after another, as one knows that is not cut off."""
    node = next(node for node in group.brokers if node != old)
    group.until(node, lambda metadata: metadata.topics[topic].partitions[index].leader not in {-1, old})
    return group.ask(node, lambda broker: broker.metadata.topics[topic].partitions[index].leader)


def test_a_coordinator_that_is_cut_off_promises_nothing(group, monkeypatch):
    """Is a commit at a deposed coordinator not confirmed, and forgotten for what its successor confirmed (A12)?"""
    group.call(1, lambda broker: broker.groups.ensure_topic())
    topic, index, old = place(group)
    group.call(old, lambda broker: committed_at(broker, 1))
    cut = Cut(group, monkeypatch)

    cut.node = old
    promise = group.ask(old, lambda broker: commit_at(broker, 2))
    new = successor(group, topic, index, old)
    group.call(new, lambda broker: committed_at(broker, 3))
    still_leads = group.ask(old, lambda broker: broker.partitions.require(topic, index).is_led)
    cut.node = None
    told = group.call(old, lambda _: asyncio.wait_for(promise, WORK_S))
    group.until(old, lambda metadata: metadata.topics[topic].partitions[index].leader == new)

    assert still_leads
    assert told.code in {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert group.ask(new, known_at) == [3]
    group.until(new, lambda metadata: set(metadata.topics[topic].partitions[index].isr) == set(group.brokers))
    group.kill(new)
    last = successor(group, topic, index, new)
    group.call(last, loaded)
    assert group.ask(last, known_at) == [3]


async def loaded(broker):
    """Until a broker coordinates the group."""
    async with asyncio.timeout(WORK_S):
        while True:
            try:
                return broker.groups.shard_for(NAME)
            except KafkaError:
                await asyncio.sleep(0.02)


def test_a_coordinator_that_is_left_alone_writes_nothing():
    """Is a commit refused, and not written, while too few replicas are in sync, and do later ones count again?"""
    with BrokerGroup(3, controllers=1) as group:
        group.call(1, lambda broker: broker.groups.ensure_topic())
        topic, index, alone = place(group)
        group.call(alone, lambda broker: committed_at(broker, 1))
        others = [node for node in group.brokers if node not in {alone, group.controller}]
        for node in others:
            group.kill(node)
        group.until(alone, lambda metadata: metadata.topics[topic].partitions[index].isr == (alone,))

        with pytest.raises(KafkaError) as refused:
            group.ask(alone, lambda broker: commit_at(broker, 2))
        group.start(others[0])
        group.call(alone, lambda broker: committed_at(broker, 3))

        assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert group.ask(alone, known_at) == [3]
        assert group.ask(alone, lambda broker: broker.partitions.require(topic, index).log.log_end_offset) == 2
