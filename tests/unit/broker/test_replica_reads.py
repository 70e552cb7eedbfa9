"""A follower's fetch at its leader: answered by appends, told of marks, and cheap where nothing happened."""

import asyncio
from types import SimpleNamespace

import pytest

from headrace.broker import replica_reads
from headrace.broker.api import Call
from headrace.broker.handlers.api01_fetch import handle
from headrace.broker.refusals import Refusals
from headrace.broker.traffic import Traffics
from headrace.cores.fetch_sessions import FetchSessions
from headrace.cores.replication.quota import ReplicationQuota
from headrace.model.errors import ErrorCode, KafkaError
from headrace.net.reply import PendingReply
from headrace.wire.codec import decode_response, encode_request
from headrace.wire.header import RequestHeader, parse_response_header
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from unit.broker.replica_bench import NOW_MS, OTHER, THIRD, TOPIC_ID, Standing

VERSION = 17


class Link:
    """A follower's connection to the leader of one partition."""

    def __init__(self, standing, loop):
        self.standing = standing
        self.session = (0, 0)
        self.connection = SimpleNamespace(
            loop=loop,
            closed=False,
            listener_name="PLAINTEXT",
            peer=("somewhere", 1),
            sends_files=False,
            lend=lambda _: None,
        )
        self.broker = SimpleNamespace(
            metadata=SimpleNamespace(brokers=standing.brokers, topics_by_id={}, topics={}),
            partitions=SimpleNamespace(
                find={(TOPIC_ID, 0): standing.partition}.get,
                of={TOPIC_ID: {0: standing.partition}}.get,
                missing=lambda topic, index: KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, ""),
                selects_by_rack=False,
                traffics=Traffics(),
            ),
            fetch_sessions=FetchSessions(10),
            fetch_bytes_max=1 << 20,
            clock=lambda: NOW_MS,
            refusals=Refusals(lambda: NOW_MS),
            random_session_id=lambda: 9,
            endpoints_for=lambda listener: [],
            throttles=SimpleNamespace(leader=ReplicationQuota(samples_max=11, sample_ms=1000)),
        )

    def ask(self, offset=None, *, wait_ms=60_000, replica=OTHER, epoch=0):
        """Send a fetch, of one partition or of nothing new; the answer, in time."""
        asked = FetchPartition(
            partition=0,
            current_leader_epoch=epoch,
            fetch_offset=offset or 0,
            last_fetched_epoch=0 if offset else -1,
            log_start_offset=0,
            partition_max_bytes=1 << 20,
        )
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=replica, replica_epoch=10),
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self.session[0],
            session_epoch=self.session[1],
            topics=() if offset is None else (FetchTopic(topic_id=TOPIC_ID, partitions=(asked,)),),
        )
        call = Call(self.broker, self.connection, RequestHeader(1, VERSION, 1, "broker-2", 0))
        reply = handle(call, memoryview(encode_request(1, VERSION, request)), 0)
        answer = asyncio.get_running_loop().create_future()
        if isinstance(reply, PendingReply):
            reply.attach(lambda: answer.set_result(self._decoded(reply.buffers)))
        else:
            answer.set_result(self._decoded(reply))
        return answer

    def _decoded(self, buffers):
        frame = memoryview(b"".join(bytes(buffer) for buffer in buffers))[4:]
        _, body = parse_response_header(1, VERSION, frame)
        response = decode_response(1, VERSION, frame, body)
        self.session = (response.session_id, self.session[1] + 1)
        return response


def play(scene):
    """Play a scene with broker 2's link to broker 1, which leads."""

    async def run():
        standing = Standing()
        standing.told()
        async with asyncio.timeout(20):
            await scene(standing, Link(standing, asyncio.get_running_loop()))

    asyncio.run(run())


def row_of(response):
    """The one partition that was told."""
    ((row,),) = (topic.partitions for topic in response.responses)
    return row


def test_append_answers_a_parked_fetch():
    """Does a follower that waits get what is appended, though it is neither flushed nor committed?"""

    async def scene(standing, link):
        first = link.ask(0)
        assert not first.done()
        standing.append(2)
        row = row_of(await first)
        assert (0, True) == (row.high_watermark, len(row.records) > 0)

    play(scene)


def test_marks_are_told_by_themselves(monkeypatch):
    """Does a follower that has everything hear soon that the high watermark moved, in an answer without records?"""
    monkeypatch.setattr(replica_reads, "MARKS_TOLD_MS", 0)

    async def scene(standing, link):
        standing.append(2)
        assert 0 == row_of(await link.ask(0)).high_watermark
        standing.flusher.flush()
        waiting = link.ask(2)
        assert not waiting.done()
        standing.fetched(THIRD, 2)
        row = row_of(await waiting)
        assert (2, b"") == (row.high_watermark, bytes(row.records or b""))

    play(scene)


def test_level_follower_is_not_read_for(monkeypatch):
    """Is a partition passed over that a follower is level with, and still counted as level?"""

    async def scene(standing, link):
        standing.append(1)
        await link.ask(0)
        standing.flusher.flush()
        standing.fetched(THIRD, 1)
        await link.ask(1, wait_ms=0)
        follower = standing.partition.replicated.followers[OTHER]
        follower.last_caught_up_ms = -5
        monkeypatch.setattr(standing.partition.__class__, "fetched", None)

        waiting = link.ask()

        assert not waiting.done()
        assert follower.last_caught_up_ms > 0
        standing.append(1)
        assert row_of(await waiting).records

    play(scene)


def test_lost_leadership_ends_the_wait():
    """Is a parked follower told at once that another leads now?"""

    async def scene(standing, link):
        waiting = link.ask(0)
        standing.told(leader=OTHER, leader_epoch=1, partition_epoch=1)
        assert ErrorCode.NOT_LEADER_OR_FOLLOWER == row_of(await waiting).error_code

    play(scene)


@pytest.mark.parametrize(("epoch", "code"), [(1, ErrorCode.UNKNOWN_LEADER_EPOCH), (-1, ErrorCode.NONE)])
def test_epochs_are_checked_on_arrival(epoch, code):
    """Is a follower that knows a newer leader told to wait for our metadata?"""

    async def scene(standing, link):
        standing.append(1)
        assert code == row_of(await link.ask(0, epoch=epoch, wait_ms=0)).error_code

    play(scene)


def test_unregistered_broker_is_refused():
    """Is a fetch refused as a whole that comes from no broker of the cluster?"""

    async def scene(standing, link):
        response = await link.ask(0, replica=77)
        assert (ErrorCode.NOT_LEADER_OR_FOLLOWER, ()) == (response.error_code, response.responses)

    play(scene)


@pytest.mark.parametrize("is_in_sync", [False, True])
def test_throttled_follower_waits_for_the_quota(monkeypatch, is_in_sync):
    """Is a throttled follower sent nothing while too much was sent lately, unless it is in sync?"""
    now_ms = [0]
    monkeypatch.setattr(replica_reads, "steady_ms", lambda: now_ms[0])

    async def scene(standing, link):
        quota = link.broker.throttles.leader
        quota.bound = 10
        quota.throttle("t", ("0:1",), 1)
        standing.told(partition_epoch=1, isr=(1, 2, 3) if is_in_sync else (1, 3))
        standing.append(2)
        first = row_of(await link.ask(0))
        assert len(first.records) > 10
        standing.append(2)
        second = await link.ask(0, wait_ms=0)
        assert is_in_sync == bool(second.responses)
        now_ms[0] = 600_000
        third = row_of(await link.ask(0, wait_ms=0))
        assert len(third.records) > len(first.records)

    play(scene)


def test_other_partitions_are_not_throttled():
    """Does a quota that is exceeded hold nobody back who is not listed?"""

    async def scene(standing, link):
        quota = link.broker.throttles.leader
        quota.bound = 1
        quota.throttle("t", ("0:2", "1:1"), 1)
        quota.record(1 << 30, replica_reads.steady_ms())
        standing.told(partition_epoch=1, isr=(1, 3))
        standing.append(2)
        assert row_of(await link.ask(0)).records

    play(scene)
