"""Copying from a leader: what is asked, what an answer does, and what happens when things go wrong."""

import asyncio
from types import SimpleNamespace

import pytest

from headrace.broker import replica_fetcher
from headrace.broker.replica_fetcher import ReplicaFetcher
from headrace.cores.replication.quota import ReplicationQuota
from headrace.model.errors import ErrorCode
from headrace.net.link import LinkBroken
from headrace.wire.messages.fetch import EpochEndOffset, FetchableTopicResponse, FetchResponse, PartitionData
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from unit.broker.replica_bench import NOW_MS, OTHER, TOPIC_ID, Standing, batch_of

SETTINGS = {
    "replica.fetch.wait.max.ms": 500,
    "replica.fetch.min.bytes": 1,
    "replica.fetch.response.max.bytes": 1 << 20,
    "replica.fetch.max.bytes": 1 << 20,
    "replica.fetch.backoff.ms": 0,
    "replica.socket.timeout.ms": 1000,
}
FETCH, LIST_OFFSETS = 1, 2


class Peers:
    """The other brokers: every question waits until the test answers it."""

    def __init__(self):
        self.asked = asyncio.Queue()
        self.closed = []
        self._open = None

    async def ask(self, node_id, api_key, request, *, purpose="requests", timeout_s=None):
        assert OTHER == node_id
        answer = asyncio.get_running_loop().create_future()
        if api_key == FETCH:
            self._open = answer
        self.asked.put_nowait((api_key, request, answer))
        return await answer

    def link(self, node_id, purpose):
        return self

    def close(self, reason):
        """The follower hangs up."""
        self.closed.append(reason)
        if self._open is not None and not self._open.done():
            self._open.set_exception(LinkBroken(reason))


class Scene:
    """A follower of one partition, its fetcher, and the leader's side of the link."""

    def __init__(self, standing):
        self.standing = standing
        self.peers = Peers()
        self.tasks = []
        self.quota = ReplicationQuota(samples_max=11, sample_ms=1000)
        broker = SimpleNamespace(
            node_id=1,
            broker_epoch=10,
            config=SETTINGS,
            peers=self.peers,
            clock=lambda: NOW_MS,
            readers=None,
            spawn=lambda work: self.tasks.append(asyncio.ensure_future(work)),
            partitions=SimpleNamespace(log_dir_of=lambda partition: standing.log_dir),
            throttles=SimpleNamespace(follower=self.quota),
        )
        self.fetcher = ReplicaFetcher(broker, OTHER, 0)

    def follow(self, **told):
        """Begin to copy, or go on in a new epoch."""
        self.standing.told(leader=OTHER, **told)
        self.fetcher.add(self.standing.partition)
        self.fetcher.nudge()

    async def asked(self):
        """The next question, once the follower has flushed what it must."""
        asked = asyncio.ensure_future(self.peers.asked.get())
        while not asked.done():
            self.standing.flusher.flush()
            await asyncio.sleep(0)
        return asked.result()

    async def fetched(self, *, error=0, records=b"", high_watermark=0, diverging=None, start=0):
        """Answer the next fetch; gives what was asked, by offset and epochs, None if nothing new was said."""
        api_key, request, answer = await self.asked()
        assert FETCH == api_key
        told = PartitionData(
            partition_index=0,
            error_code=int(error),
            high_watermark=high_watermark,
            log_start_offset=start,
            diverging_epoch=diverging or EpochEndOffset(),
            records=bytes(records),
        )
        topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=(told,))
        if not answer.done():
            answer.set_result(FetchResponse(session_id=9, responses=(topic,)))
        rows = [one for topic in request.topics for one in topic.partitions]
        return rows[0] if rows else None

    async def end(self):
        """Stop."""
        self.fetcher.stop()
        for task in self.tasks:
            task.cancel()


def play(scene_of, standing=None):
    """Play a scene to its end."""

    async def run():
        scene = Scene(standing or Standing())
        try:
            async with asyncio.timeout(20):
                await scene_of(scene)
        finally:
            await scene.end()
        return scene

    return asyncio.run(run())


def test_records_are_flushed_before_more_is_asked_for():
    """Does a follower say that it has records only when they are on its disk?"""

    async def scene_of(scene):
        scene.follow()
        first = await scene.fetched(records=batch_of(3), high_watermark=0)
        log = scene.standing.log
        for _ in range(50):
            await asyncio.sleep(0)
        assert (3, 0) == (log.log_end_offset, log.recovery_point)
        assert scene.peers.asked.empty()
        assert (0, -1) == (first.fetch_offset, first.last_fetched_epoch)
        second = await scene.fetched(high_watermark=3)
        assert (3, 0) == (second.fetch_offset, second.last_fetched_epoch)
        assert 3 == log.recovery_point
        await scene.asked()
        assert 3 == log.high_watermark

    play(scene_of)


def test_follower_truncates_where_the_leader_says():
    """Does a follower cut what the leader does not have, and ask again from there?"""
    standing = Standing()
    standing.told(leader=OTHER)
    standing.log.append_follower(memoryview(batch_of(3, epoch=0)), NOW_MS)
    standing.log.append_follower(memoryview(batch_of(2, base_offset=3, epoch=1)), NOW_MS)
    standing.partition.flush()
    standing.flusher.flush()

    async def scene_of(scene):
        scene.follow(leader_epoch=2, partition_epoch=1)
        asked = await scene.fetched(diverging=EpochEndOffset(epoch=0, end_offset=2))
        assert (5, 1, 2) == (asked.fetch_offset, asked.last_fetched_epoch, asked.current_leader_epoch)
        # The leader's epoch 0 ended at 2, amid a batch of ours: all of that batch goes.
        asked = await scene.fetched()
        assert 0 == asked.fetch_offset == standing.log.log_end_offset

    play(scene_of, standing)


def test_follower_outside_the_leaders_log_starts_over():
    """Does a follower whose offset the leader has deleted ask where the leader begins, and begin there?"""

    async def scene_of(scene):
        scene.follow()
        await scene.fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE)
        for offset in (20, 30):
            api_key, request, answer = await scene.asked()
            assert (LIST_OFFSETS, 1) == (api_key, request.replica_id)
            row = ListOffsetsPartitionResponse(partition_index=0, offset=offset, leader_epoch=0)
            answer.set_result(ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="t", partitions=(row,)),)))
        asked = await scene.fetched()
        assert (20, 20) == (asked.fetch_offset, asked.log_start_offset)

    play(scene_of)


@pytest.mark.parametrize(
    "error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID]
)
def test_errors_that_pass_are_tried_again(error):
    """Does a follower ask again when the leader does not know yet that it leads?"""

    async def scene_of(scene):
        scene.follow()
        await scene.fetched(error=error)
        asked = await scene.fetched(records=batch_of(1))
        assert asked is None, "the session knows what was asked"
        await scene.asked()
        assert 1 == scene.standing.log.log_end_offset

    play(scene_of)


def test_fenced_follower_waits_for_the_metadata():
    """Does a follower of an old epoch ask nothing more until the metadata says who leads?"""

    async def scene_of(scene):
        scene.follow()
        await scene.fetched(error=ErrorCode.FENCED_LEADER_EPOCH)
        for _ in range(50):
            await asyncio.sleep(0)
        assert scene.peers.asked.empty()
        scene.follow(leader_epoch=1, partition_epoch=1)
        asked = await scene.fetched()
        assert 1 == asked.current_leader_epoch

    play(scene_of)


def test_new_epoch_does_not_wait_for_the_fetch_under_way():
    """Is the leader asked at once in a new epoch, though a fetch is parked there, and is its late answer ignored?"""

    async def scene_of(scene):
        scene.follow()
        _, _, parked = await scene.asked()
        scene.follow(leader_epoch=1, partition_epoch=1)
        assert parked.done()
        asked = await scene.fetched(records=batch_of(1, epoch=1))
        assert (1, 0) == (asked.current_leader_epoch, asked.fetch_offset)
        await scene.asked()
        assert 1 == len(scene.peers.closed)
        assert 1 == scene.standing.log.log_end_offset

    play(scene_of)


def test_broken_link_asks_everything_again():
    """After a link broke, is the same asked again in a new session?"""

    async def scene_of(scene):
        scene.follow()
        _, _, answer = await scene.asked()
        answer.set_exception(LinkBroken("gone"))
        _, request, _ = await scene.asked()
        assert 0 == request.session_epoch
        assert [0] == [one.fetch_offset for topic in request.topics for one in topic.partitions]

    play(scene_of)


def test_partition_that_is_led_here_now_takes_nothing():
    """Is what a former leader sends dropped by a broker that has become the leader itself?"""

    async def scene_of(scene):
        scene.follow()
        _, _, answer = await scene.asked()
        scene.standing.told(leader_epoch=1, partition_epoch=1)
        told = PartitionData(partition_index=0, records=bytes(batch_of(1)), high_watermark=1)
        topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=(told,))
        answer.set_result(FetchResponse(session_id=9, responses=(topic,)))
        for _ in range(20):
            await asyncio.sleep(0)
        assert 0 == scene.standing.log.log_end_offset

    play(scene_of)


def test_partition_that_is_led_here_now_is_not_truncated():
    """Is a log left whole whose broker became its leader after it was decided to cut it, and before that was done?"""
    standing = Standing()
    standing.told(leader=OTHER)
    standing.log.append_follower(memoryview(batch_of(3, epoch=0)), NOW_MS)
    standing.partition.flush()
    standing.flusher.flush()

    async def scene_of(scene):
        decided = asyncio.Queue()
        scene.fetcher._broker.spawn = decided.put_nowait
        scene.follow(leader_epoch=1, partition_epoch=1)
        await scene.fetched(diverging=EpochEndOffset(epoch=0, end_offset=2))
        cutting = await decided.get()
        standing.told(leader_epoch=2, partition_epoch=2)
        await cutting
        assert 3 == standing.log.log_end_offset

    play(scene_of, standing)


def test_throttled_follower_waits_before_it_asks(monkeypatch):
    """Does a throttled follower that is behind ask for nothing while too much was copied lately?"""
    now_ms, looks = [0], []

    def look():
        looks.append(1)
        return now_ms[0]

    monkeypatch.setattr(replica_fetcher, "steady_ms", look)
    monkeypatch.setattr(replica_fetcher, "THROTTLED_MS", 1)

    async def scene_of(scene):
        scene.quota.bound = 10
        scene.quota.throttle("t", ("*",), 1)
        scene.follow()
        await scene.fetched(records=batch_of(3), high_watermark=100)
        while len(looks) < 5:
            scene.standing.flusher.flush()
            await asyncio.sleep(0)
        assert scene.peers.asked.empty()
        now_ms[0] = 600_000
        second = await scene.fetched()
        assert 3 == second.fetch_offset

    play(scene_of)


def test_throttled_follower_that_is_level_asks_on():
    """Does a throttled follower that has all that is committed go on, whatever was copied?"""

    async def scene_of(scene):
        scene.quota.bound = 10
        scene.quota.throttle("t", ("*",), 1)
        scene.follow()
        await scene.fetched(records=batch_of(3), high_watermark=3)
        assert 3 == (await scene.fetched()).fetch_offset
        assert scene.quota.is_exceeded(replica_fetcher.steady_ms())

    play(scene_of)


def test_throttled_follower_of_a_new_epoch_asks():
    """Does a throttled follower that was told nothing yet in this epoch ask, whatever was copied: is it in sync?"""

    async def scene_of(scene):
        scene.quota.bound = 10
        scene.quota.throttle("t", ("*",), 1)
        scene.quota.record(1_000_000, replica_fetcher.steady_ms())
        scene.follow()
        assert 0 == (await scene.fetched(high_watermark=0)).fetch_offset

    play(scene_of)
