"""A coordinator to try shards with: it counts marks."""

import asyncio

from headrace.broker.coordinators.coordinator import CoordinatorTopic
from headrace.cores.outcome import Outcome
from headrace.model.group_records import OffsetCommitKey, OffsetCommitValue

TOPIC = CoordinatorTopic(
    name="__tallies",
    partitions="offsets.topic.num.partitions",
    replication_factor="offsets.topic.replication.factor",
    read_bytes="offsets.load.buffer.size",
    write_timeout_ms="offsets.commit.timeout.ms",
    configs=lambda _: {"cleanup.policy": "compact"},
)


class Tally:
    """A core that counts: a mark is a record, and whoever waits for a count is told when it is reached."""

    def __init__(self):
        self.marks = {}
        self.waiting = []
        self.rings = []
        self.rang = asyncio.Event()

    def replay(self, key, value, producer_id=-1):
        """Take a mark in."""
        self.marks[key.group] = value.offset

    def replay_end(self, producer_id, *, commit):
        """Nothing here is part of a transaction."""

    def loaded(self, now_ms):
        """Nothing to do."""
        return Outcome()

    def on_timer(self, key, now_ms):
        """Ring."""
        self.rings.append(key)
        self.rang.set()
        return Outcome()

    def mark(self, name, token, now_ms):
        """Count one more and answer with the count; those who waited for it too."""
        outcome = Outcome()
        key, value = OffsetCommitKey(group=name), OffsetCommitValue(offset=self.marks.get(name, 0) + 1)
        self.replay(key, value)
        outcome.records.append((key, value))
        for waiter in self.waiting:
            outcome.reply(waiter, self.marks[name])
        self.waiting.clear()
        return outcome.reply(token, self.marks[name])

    def wait(self, token, now_ms):
        """Be told of the next mark."""
        self.waiting.append(token)
        return Outcome()


def mark(shard, name):
    """Have a shard count one more; the future of its answer."""
    return shard.begin(lambda token, now_ms: shard.core.mark(name, token, now_ms))
