"""Copying partitions from the broker that leads them: one link, one fetch at a time, for as many as it leads.

A round: ask for all partitions whose last question was answered, append what comes, flush where the topic flushes, and
only then ask again, because the offset we ask with says what we have. The core (cores/replication/follower.py) decides
what an answer means; what takes long, to truncate or to ask for the leader's range, is done beside the rounds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from headrace.broker.replica_session import ReplicaSession
from headrace.broker.replica_truncation import find_range, truncate
from headrace.broker.steady_clock import steady_ms
from headrace.cores.replication.follower import StartOver, Truncate, Verdict
from headrace.cores.replication.messages import EpochEnd, FetchAnswer
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.net.link import LinkBroken
from headrace.wire.messages.fetch import ReplicaState

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.broker.partition import Partition
    from headrace.broker.replica_session import Key
    from headrace.cores.replication.follower import Action, Follower
    from headrace.cores.replication.messages import FetchPosition
    from headrace.wire.messages.fetch import FetchRequest, FetchResponse, PartitionData

logger = logging.getLogger(__name__)

FETCH = 1
BACKOFF_FIRST_MS = 20
"""The first pause after an error; each further one doubles it, up to `replica.fetch.backoff.ms`.

Most errors are a broker that has not heard yet who leads, which passes in a moment.
"""
HURRY_MS = 200
"""A partition that paused longer waits for the fetch under way; to hang up for it each time would cost the others."""
THROTTLED_MS = 500
"""How long a throttled partition waits at most before it looks again: the throttle may have been lifted."""
YIELD_BYTES = 256 * 1024
"""After so much was appended others get a turn of the loop."""

SESSION_ERRORS = frozenset({ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH})


class ReplicaFetcher:
    """Follows one leader broker over one of the links to it."""

    def __init__(self, broker: Broker, leader_id: int, number: int) -> None:
        self._broker = broker
        self.leader_id = leader_id
        self._purpose = f"replica-{number}"
        self._partitions: dict[Key, Partition] = {}
        self._asked: dict[Key, FetchPosition] = {}
        """Open questions: sent and not answered, or to be sent with the next request."""
        self._due: dict[Key, None] = {}
        """Partitions to ask for in the next round."""
        self._pauses_ms: dict[Key, int] = {}
        """How long those pause that failed last time."""
        self._session = ReplicaSession()
        self._wake = asyncio.Event()
        self._link_pause_ms = 0
        self._is_parked = False
        """Whether a request is under way that the leader may hold for a while."""
        self._was_interrupted = False
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._partitions)

    # --- coming and going

    def add(self, partition: Partition) -> None:
        """Follow a partition, in the epoch it is in now."""
        key = (partition.topic_id, partition.index)
        self._partitions[key] = partition
        self._asked.pop(key, None)
        self._pauses_ms.pop(key, None)
        self._due[key] = None

    def discard(self, partition: Partition) -> None:
        """Follow a partition no longer."""
        key = (partition.topic_id, partition.index)
        self._partitions.pop(key, None)
        self._asked.pop(key, None)
        self._pauses_ms.pop(key, None)
        self._due.pop(key, None)

    def nudge(self) -> None:
        """Have partitions that were added asked for now, not when the leader has let go of the fetch under way."""
        if self._task is None and self._partitions:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=f"fetch-{self.leader_id}")
        self._wake.set()
        if self._is_parked and self._due:
            self._was_interrupted = True
            with contextlib.suppress(LinkBroken):
                self._broker.peers.link(self.leader_id, self._purpose).close("there is more to ask for")

    def stop(self) -> None:
        """Ask for nothing more."""
        if self._task is not None:
            self._task.cancel()

    # --- rounds

    async def _run(self) -> None:
        while True:
            try:
                await self._round()
            except Exception:
                # The last line of defence: a mistake about one answer must not end the copying of all partitions.
                logger.exception("replica_fetch_failed leader=%d", self.leader_id)
                self._ask_all_again()
                await asyncio.sleep(self._config("replica.fetch.backoff.ms") / 1000)

    async def _round(self) -> None:
        self._ask()
        if not self._asked:
            self._wake.clear()
            await self._wake.wait()
            return
        try:
            response = await self._send(self._request())
        except LinkBroken as reason:
            await self._on_broken(reason)
            return
        if self._link_pause_ms:
            logger.info("replica_link_restored leader=%d", self.leader_id)
            self._link_pause_ms = 0
        if response.error_code:
            await self._on_refused(ErrorCode(response.error_code))
            return
        self._session.answered(response.session_id)
        await self._take(response)

    def _config(self, name: str) -> int:
        value: int = self._broker.config[name]
        return value

    def _ask(self) -> None:
        """Pose the questions that are due."""
        due, self._due = self._due, {}
        for key in due:
            partition = self._partitions.get(key)
            if partition is None or partition.is_settling or key in self._asked:
                continue
            follower = None if partition.replica is None else partition.replica.follower
            if follower is not None and self._holds_back(key, partition, follower):
                continue
            asked = None if follower is None else follower.ask()
            if asked is not None:
                self._asked[key] = asked
            elif follower is not None and follower.must_flush:
                self._broker.spawn(self._flush_first(key, partition))

    def _holds_back(self, key: Key, partition: Partition, follower: Follower) -> bool:
        """Whether a throttled partition that is behind has to wait, as lately much was copied (KIP-73)."""
        quota = self._broker.throttles.follower
        if not quota.is_throttled(partition.topic, partition.index) or follower.is_level:
            return False
        wait_ms = quota.wait_ms(steady_ms())
        if not wait_ms:
            return False
        asyncio.get_running_loop().call_later(min(wait_ms, THROTTLED_MS) / 1000, self._ask_again, key)
        return True

    async def _flush_first(self, key: Key, partition: Partition) -> None:
        await partition.flushed()
        if partition.log.fault is None:
            self._due[key] = None
            self.nudge()

    def _request(self) -> FetchRequest:
        return self._session.request(
            self._asked,
            replica=ReplicaState(replica_id=self._broker.node_id, replica_epoch=self._broker.broker_epoch),
            max_wait_ms=self._config("replica.fetch.wait.max.ms"),
            min_bytes=self._config("replica.fetch.min.bytes"),
            max_bytes=self._config("replica.fetch.response.max.bytes"),
            partition_max_bytes=self._config("replica.fetch.max.bytes"),
        )

    async def _send(self, request: FetchRequest) -> FetchResponse:
        self._is_parked = True
        try:
            response: FetchResponse = await self._broker.peers.ask(
                self.leader_id,
                FETCH,
                request,
                purpose=self._purpose,
                timeout_s=self._config("replica.socket.timeout.ms") / 1000,
            )
        finally:
            self._is_parked = False
        return response

    async def _on_broken(self, reason: LinkBroken) -> None:
        """The leader cannot be reached, or we hung up ourselves to ask for more."""
        self._start_over()
        if self._was_interrupted:
            self._was_interrupted = False
            return
        if not self._link_pause_ms:
            logger.info("replica_link_broken leader=%d reason=%s", self.leader_id, reason)
        self._link_pause_ms = self._longer(self._link_pause_ms)
        await asyncio.sleep(self._link_pause_ms / 1000)

    async def _on_refused(self, error: ErrorCode) -> None:
        """The whole request was refused; the session is lost, or the leader has not heard of us yet."""
        self._start_over()
        if error not in SESSION_ERRORS:
            self._link_pause_ms = self._longer(self._link_pause_ms)
            await asyncio.sleep(self._link_pause_ms / 1000)

    def _start_over(self) -> None:
        """What was asked may not have been heard; the questions themselves are still open."""
        self._session.reset()

    def _ask_all_again(self) -> None:
        """Nothing is known of what was asked: pose every question anew."""
        self._start_over()
        self._asked.clear()
        self._due.update(dict.fromkeys(self._partitions))

    def _longer(self, pause_ms: int) -> int:
        return min(max(BACKOFF_FIRST_MS, 2 * pause_ms), max(BACKOFF_FIRST_MS, self._config("replica.fetch.backoff.ms")))

    # --- answers

    async def _take(self, response: FetchResponse) -> None:
        """Act on an answer, partition by partition, then flush what it brought."""
        unflushed: list[Partition] = []
        taken_bytes = 0
        for topic in response.responses:
            for told in topic.partitions:
                key = (topic.topic_id, told.partition_index)
                asked = self._asked.pop(key, None)
                partition = self._partitions.get(key)
                if asked is None or partition is None or partition.replica is None:
                    continue
                taken_bytes += self._take_one(key, partition, asked, told)
                follower = partition.replica.follower
                if follower is not None and follower.must_flush:
                    unflushed.append(partition)
                if taken_bytes >= YIELD_BYTES:
                    taken_bytes = 0
                    await asyncio.sleep(0)
        if unflushed:
            await asyncio.gather(*(partition.flushed() for partition in unflushed))

    def _take_one(self, key: Key, partition: Partition, asked: FetchPosition, told: PartitionData) -> int:
        """Act on the answer for one partition; how many bytes were appended."""
        assert partition.replica is not None
        follower = partition.replica.follower
        if follower is None or partition.is_settling:
            return 0
        answer = _answer(told)
        action = follower.answered(asked, answer)
        if action is not Verdict.APPEND:
            self._act(key, partition, asked, action, answer.error)
            return 0
        records = memoryview(told.records or b"")
        try:
            partition.take_in(records, answer, self._broker.clock())
        except (KafkaError, StorageFault) as fault:
            logger.error(  # noqa: TRY400 - the reason says it all
                "replica_append_failed partition=%s-%d reason=%s", partition.topic, partition.index, fault
            )
            if not partition.is_broken:
                self._pause(key)
            return 0
        quota = self._broker.throttles.follower
        if quota.is_throttled(partition.topic, partition.index):
            quota.record(len(records), steady_ms())
        self._pauses_ms.pop(key, None)
        self._due[key] = None
        return len(records)

    def _act(self, key: Key, partition: Partition, asked: FetchPosition, action: Action, error: ErrorCode) -> None:
        """Do what an answer without records asks for."""
        match action:
            case Truncate() | StartOver():
                assert partition.replica is not None
                self._broker.spawn(self._truncate(key, partition, action, partition.replica.follower))
            case Verdict.FIND_RANGE:
                self._broker.spawn(self._find_range(key, partition, asked))
            case Verdict.RETRY:
                self._pause(key)
            case Verdict.AWAIT_METADATA:
                logger.info("replica_fenced partition=%s-%d reason=%s", partition.topic, partition.index, error.name)
            case _:
                pass

    def _pause(self, key: Key) -> None:
        """Ask for a partition again after a while."""
        pause_ms = self._pauses_ms[key] = self._longer(self._pauses_ms.get(key, 0))
        asyncio.get_running_loop().call_later(pause_ms / 1000, self._again, key)

    def _again(self, key: Key) -> None:
        self._ask_again(key)
        if key in self._due and self._pauses_ms.get(key, 0) <= HURRY_MS:
            self.nudge()

    def _ask_again(self, key: Key) -> None:
        """Ask for a partition with the next request, whenever that is."""
        if key in self._partitions and key not in self._asked:
            self._due[key] = None
            self._wake.set()

    async def _truncate(
        self, key: Key, partition: Partition, action: Truncate | StartOver, follower: Follower | None
    ) -> None:
        """Have a thread cut the log, then ask again."""
        if partition.replica is None or partition.replica.follower is not follower:
            # The metadata gave us another part before this task had its turn: we may lead what was to be cut.
            return
        if await truncate(self._broker, partition, action):
            self._again(key)

    async def _find_range(self, key: Key, partition: Partition, asked: FetchPosition) -> None:
        """Ask the leader which offsets it has, and act on that."""
        found = await find_range(self._broker, self.leader_id, partition, asked)
        follower = None if partition.replica is None else partition.replica.follower
        if follower is None or self._partitions.get(key) is not partition:
            return
        if found is None:
            self._pause(key)
            return
        self._act(key, partition, asked, follower.found(asked, found), ErrorCode.OFFSET_OUT_OF_RANGE)


def _answer(told: PartitionData) -> FetchAnswer:
    """A leader's word, records aside, as the core takes it."""
    try:
        error = ErrorCode(told.error_code)
    except ValueError:
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    diverging = told.diverging_epoch
    return FetchAnswer(
        error=error,
        diverging=EpochEnd(diverging.epoch, diverging.end_offset) if diverging.end_offset >= 0 else None,
        high_watermark=told.high_watermark,
        log_start_offset=told.log_start_offset,
    )
