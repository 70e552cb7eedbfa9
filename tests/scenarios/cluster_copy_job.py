"""The copy job of the crash tests on a cluster: its brokers live in the test's process, its workers in their own."""

import asyncio

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from crash.exactly_once import (
    DEADLINE_S,
    INPUT_PARTITIONS,
    PLACES,
    QUIET,
    TOPICS,
    WORKERS,
    Ending,
    ExactlyOnce,
    check,
    read_committed,
)
from headrace.net.link import LinkBroken
from headrace.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

OFFSET_FETCH = 9
ANSWER_S = 5


class ClusterCopyJob(ExactlyOnce):
    """One copy job over the brokers of a group."""

    def __init__(self, group, place, chance, *, transactions, protocol):
        super().__init__(group.bootstrap, place, chance, transactions=transactions, protocol=protocol)
        self._group = group

    def __enter__(self):
        admin = AdminClient({**QUIET, "bootstrap.servers": self.bootstrap})
        for made in admin.create_topics([NewTopic(name, count, 3) for name, count in TOPICS.items()]).values():
            made.result(DEADLINE_S)
        producer = Producer({**QUIET, "bootstrap.servers": self.bootstrap, "enable.idempotence": True})
        for number in range(self._inputs):
            producer.produce("in", b"%d" % number, partition=number % INPUT_PARTITIONS)
            producer.poll(0)
        assert producer.flush(DEADLINE_S) == 0
        for number in range(WORKERS):
            self._start(f"worker-{number}")
        return self

    def _offsets(self):
        """The group's stable offsets, as far as they can be had now."""
        nodes = tuple(self._group.brokers)
        return self._group.call(nodes[0], stable_offsets) if nodes else {}

    def account(self):
        """Assert that every input is there exactly once and nothing hangs; the figures of the run."""
        self._wait(lambda: not self.undecided(), f"transactions hang: {self.undecided()}")
        transactions = self.transactions()
        inputs = [(number % INPUT_PARTITIONS, number // INPUT_PARTITIONS) for number in range(self._inputs)]
        violations = check(inputs, transactions, read_committed(self.bootstrap), places=PLACES)
        assert violations == [], [str(violation) for violation in violations[:10]]
        assert self.is_done(), self._offsets()
        endings = {ending.name: sum(each.ending is ending for each in transactions) for ending in Ending}
        return f"{endings}, {len(inputs)} inputs, workers {self.counts}"

    def undecided(self):
        """Partitions whose last stable offset is not their end, on their leaders: at rest there are none."""
        return [place for node in tuple(self._group.brokers) for place in self._group.ask(node, _undecided)]


def _undecided(broker):
    return [
        (broker.node_id, partition.topic, partition.index)
        for partition in broker.partitions
        if partition.is_led and partition.last_stable_offset != partition.log.log_end_offset
    ]


async def stable_offsets(broker):
    """What the group's coordinator says, asked by another broker; nothing if there is none just now."""
    groups = broker.groups
    leader = groups.leader_for("copy")
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="copy", topics=None),), require_stable=True)
    if leader < 0:
        return {}
    try:
        async with asyncio.timeout(ANSWER_S):
            answer = await broker.peers.ask(leader, OFFSET_FETCH, request, purpose="test")
    except (LinkBroken, TimeoutError):
        return {}
    (found,) = answer.groups
    places = [place for topic in found.topics for place in topic.partitions]
    return {place.partition_index: place.committed_offset for place in places if not place.error_code}
