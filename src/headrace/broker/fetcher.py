"""Reading for one fetch request: which partitions, how much of each, and parking until there is enough.

A fetch is evaluated as a whole each time: once on arrival and once when something it waits for was appended.
What it finds in the page cache leaves from there, small pieces as slices of mapped segments; what is cold is sent by a
thread, or brought there by one first, in bounded pieces, while its connection takes no further requests. The same goes
for finding it: a thread reads the index and the pages that a search needs, if they are not in memory.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, ClassVar
from uuid import UUID

from headrace.broker.file_sending import LostHalfway, send_from_files, sent_by_a_thread
from headrace.broker.partition import not_led_here
from headrace.cores.replication.read_replica import THE_LEADER
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.net.reply import Buffers, PendingReply
from headrace.storage.readable_log import NotAtHand
from headrace.wire.fetch import FetchedPartition, encode_fetch_response

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Mapping, Sequence

    from headrace.broker.api import Call
    from headrace.broker.partition import Partition
    from headrace.cores.fetch_sessions import CachedPartition, FetchSession
    from headrace.storage.file_range import FileRange
    from headrace.storage.log import Span
    from headrace.wire.fetch import FetchCommand, FetchPartition

    Session = FetchSession[FetchPartition]
    Cached = CachedPartition[FetchPartition]

WAIT_MS_MAX = 300_000
COLD_BYTES_MAX = 16 * 1024 * 1024
"""How much one fetch reads from a cold disk; the client asks again for more."""
COLD_FETCHES_MAX = 4
READ_COMMITTED = 1
FOLLOWERS_FIRST = 11
"""Clients of this version on may read from followers (KIP-392)."""
HINTS_FIRST = 16
"""Clients of this version on are told who leads instead (KIP-951)."""
HINTED = frozenset({int(ErrorCode.NOT_LEADER_OR_FOLLOWER), int(ErrorCode.FENCED_LEADER_EPOCH)})

TopicKey = str | UUID


class Found:
    """What one evaluation found for one partition; the marks are -1 where there is only an error to tell."""

    __slots__ = (
        "aborted",
        "cached",
        "diverging_epoch",
        "error_code",
        "high_watermark",
        "is_cold",
        "last_stable_offset",
        "log_start_offset",
        "partition",
        "preferred",
        "records",
        "span",
    )

    def __init__(self, cached: Cached, error_code: int = 0) -> None:
        self.cached = cached
        self.error_code = error_code
        self.high_watermark = self.last_stable_offset = self.log_start_offset = -1
        self.diverging_epoch: tuple[int, int] | None = None
        self.partition: Partition | None = None
        self.preferred = THE_LEADER
        """The replica that the consumer should rather read from."""
        self.span: Span | None = None
        self.is_cold = False
        """Whether the disk must be asked where the records are; they are looked for again when a thread did that."""
        self.aborted: Sequence[tuple[int, int]] = ()
        self.records: list[memoryview | FileRange] = []

    def fail(self, error: KafkaError | StorageFault) -> None:
        """Nothing can be read here; say why."""
        code = error.code if isinstance(error, KafkaError) else ErrorCode.KAFKA_STORAGE_ERROR
        self.error_code = int(code)
        self.high_watermark = self.last_stable_offset = self.log_start_offset = -1
        self.span = None
        self.is_cold = False
        self.aborted = ()

    def read(self, partition: Partition, budget: int, fetch: Fetch, *, at_least_one: bool, wait: bool = False) -> None:
        """Find the batches to return and the marks to tell."""
        asked = self.cached.asked
        self.check(partition, fetch)
        self.partition = partition
        log = partition.log
        self.high_watermark = log.high_watermark
        self.last_stable_offset = partition.last_stable_offset
        self.log_start_offset = log.log_start_offset
        if self.diverging_epoch is not None or self.preferred != THE_LEADER:
            return
        span = log.read(
            asked.fetch_offset,
            max_bytes=min(asked.partition_max_bytes, max(budget, 0)),
            limit_offset=self.limit(fetch),
            at_least_one=at_least_one,
            wait=wait,
        )
        if span.size:
            if fetch.committed:
                self.aborted = [
                    (transaction.producer_id, transaction.first_offset)
                    for transaction in log.aborted_transactions(asked.fetch_offset, span.end_offset, wait=wait)
                ]
            self.span = span

    def check(self, partition: Partition, fetch: Fetch) -> None:
        """Refuse who follows another leader, and say where the reader's log parts from ours (KIP-320)."""
        asked = self.cached.asked
        if asked.current_leader_epoch >= 0:
            check_epoch(partition, asked.current_leader_epoch)
        if not partition.is_led:
            check_follower(partition, fetch.version)
        elif fetch.client_rack:
            self.preferred = fetch.read_replica_for(partition, asked.fetch_offset)
        if asked.last_fetched_epoch >= 0:
            epoch, end_offset = partition.log.end_offset_for_epoch(asked.last_fetched_epoch)
            if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
                self.diverging_epoch = (epoch, end_offset)

    def limit(self, fetch: Fetch) -> int:
        """Where this reader's view of the log ends."""
        return self.last_stable_offset if fetch.committed else self.high_watermark

    def prefetch(self, fetch: Fetch) -> None:
        """Have the disk's part of finding the batches done; blocking, in a thread."""
        assert self.partition is not None, "only what was found can be cold"
        asked = self.cached.asked
        self.partition.log.prefetch(
            asked.fetch_offset, max_bytes=asked.partition_max_bytes, limit_offset=self.limit(fetch)
        )

    def is_at_hand(self) -> bool:
        """Whether the records can be had without waiting for the disk, or there are none to wait for."""
        if self.span is None:
            return not self.is_cold
        try:
            return self.span.is_warm()
        except StorageFault as fault:
            self.fail(fault)
            return True

    def take(self, *, from_files: bool) -> None:
        """Take the records as they lie in memory, or in their file for who sends from there."""
        if self.span is not None:
            try:
                self.records = [self.span.piece() if from_files else self.span.view()]
            except StorageFault as fault:
                self.fail(fault)

    def count(self) -> None:
        """Take down what the reader is sent."""
        assert self.partition is not None, "records come from a partition"
        self.partition.traffic.bytes_out += sum(map(len, self.records))

    def answer(self, *, committed: bool, leader: tuple[int, int] | None = None) -> FetchedPartition:
        """As the wire wants it; `leader` is who leads instead, by id and epoch."""
        return FetchedPartition(
            partition=self.cached.partition,
            error_code=self.error_code,
            high_watermark=self.high_watermark,
            last_stable_offset=self.last_stable_offset,
            log_start_offset=self.log_start_offset,
            aborted=self.aborted if committed else None,
            preferred_read_replica=self.preferred,
            diverging_epoch=self.diverging_epoch,
            current_leader=leader,
            records=self.records,
        )


class Fetch:
    """One fetch request from arrival to answer."""

    __slots__ = (
        "_call",
        "_command",
        "_full",
        "_parked",
        "_reply",
        "_retrying",
        "_session",
        "_timer",
        "_wanted",
        "client_rack",
        "committed",
        "version",
    )

    FOUND: ClassVar[type[Found]] = Found

    def __init__(
        self, call: Call, command: FetchCommand, wanted: Sequence[Cached], session: Session | None, *, full: bool
    ) -> None:
        self._call = call
        self._command = command
        self.version = call.header.api_version
        self.committed = command.isolation_level == READ_COMMITTED
        self.client_rack = command.rack_id if command.rack_id and call.broker.partitions.selects_by_rack else ""
        """The rack of a consumer that may be sent to another replica; empty where none is."""
        self._wanted = wanted
        self._session = session
        self._full = full
        self._reply: PendingReply | None = None
        self._retrying = False
        self._timer: asyncio.TimerHandle | None = None
        self._parked: list[Partition] = []

    def start(self) -> Buffers | PendingReply:
        """Answer now if there is enough, or an error; otherwise park."""
        found, size, urgent = self._evaluate()
        command = self._command
        if urgent or size >= command.min_bytes or command.max_wait_ms <= 0 or not self._wanted:
            return self._answer(found)
        self._reply = PendingReply()
        self._park(found)
        return self._reply

    # --- evaluating

    def _evaluate(self) -> tuple[list[Found], int, bool]:
        """Read every wanted partition within the limits: what was found, its size, and whether it must be told now."""
        broker = self._call.broker
        find_topic = broker.partitions.of
        last: TopicKey | None = None
        held: Mapping[int, Partition] = {}
        budget = min(self._command.max_bytes, broker.fetch_bytes_max)
        found: list[Found] = []
        size = 0
        urgent = False
        for cached in self._to_read():
            entry = self.FOUND(cached)
            found.append(entry)
            if cached.topic is not last:
                last = cached.topic
                held = find_topic(last) or {}
            partition = held.get(cached.partition)
            try:
                if partition is None:
                    raise broker.partitions.missing(cached.topic, cached.partition)
                entry.read(partition, budget - size, self, at_least_one=size == 0)
            except NotAtHand:
                entry.is_cold = urgent = True
                continue
            except (KafkaError, StorageFault) as error:
                entry.fail(error)
                broker.partitions.traffics.failed_fetches += 1
                urgent = True
                continue
            if entry.span is not None:
                size += entry.span.size
            elif entry.diverging_epoch is not None or entry.preferred != THE_LEADER:
                urgent = True
        return found, size, urgent

    def _to_read(self) -> Iterable[Cached]:
        """The partitions to look at."""
        return self._wanted

    def read_replica_for(self, partition: Partition, offset: int) -> int:
        """The replica that a consumer of this rack should read from (KIP-392)."""
        if partition.replicated is None:
            return THE_LEADER
        return self._call.broker.partitions.read_replica_for(partition.replicated, self.client_rack, offset)

    # --- waiting

    def _begin_waiting(self) -> None:
        wait_ms = min(self._command.max_wait_ms, WAIT_MS_MAX)
        self._timer = self._call.connection.loop.call_later(wait_ms / 1000, self._expire)

    def _end_waiting(self) -> None:
        assert self._timer is not None, "only a parked fetch is unparked"
        self._timer.cancel()
        self._timer = None

    def _park(self, found: list[Found]) -> None:
        self._begin_waiting()
        for entry in found:
            if entry.partition is not None:
                entry.partition.park(self)
                self._parked.append(entry.partition)

    def wake(self) -> None:
        """Something was appended: look again, once per turn of the loop however much came."""
        if not self._retrying:
            self._retrying = True
            self._call.connection.loop.call_soon(self._retry)

    def _retry(self) -> None:
        self._retrying = False
        if self._timer is None:
            return
        if self._call.connection.closed:
            self._unpark()
            return
        found, size, urgent = self._evaluate()
        if urgent or size >= self._command.min_bytes:
            self._complete(found)

    def _expire(self) -> None:
        if self._timer is None:
            return
        if self._call.connection.closed:
            self._unpark()
        else:
            self._complete(self._evaluate()[0])

    def _unpark(self) -> None:
        self._end_waiting()
        for partition in self._parked:
            partition.unpark(self)
        self._parked.clear()

    def _complete(self, found: list[Found]) -> None:
        self._unpark()
        assert self._reply is not None, "a parked fetch has a reply to fill"
        result = self._answer(found)
        if isinstance(result, PendingReply):
            later, reply = result, self._reply
            later.attach(lambda: reply.send(later.buffers or ()))
        else:
            self._reply.send(result)

    # --- answering

    def _answer(self, found: list[Found]) -> Buffers | PendingReply:
        """Encode what was found; from a thread first where the disk must be waited for."""
        if all(entry.is_at_hand() for entry in found):
            for entry in found:
                entry.take(from_files=self._call.connection.sends_files)
            return self._encode(found)
        reply = PendingReply(exclusive=True)
        self._call.broker.spawn(self._load(found, reply))
        return reply

    async def _load(self, found: list[Found], reply: PendingReply) -> None:
        async with self._call.broker.cold_fetches:
            peer = self._call.connection.lend(self._reply or reply)
            with ExitStack() as until_sending:
                if peer is not None:
                    until_sending.enter_context(peer)
                is_unread = await self._bring(found, may_send=peer is not None)
                pieces = self._encode(found)
                if is_unread:
                    # The thread that sends closes it.
                    until_sending.pop_all()
            reply.send(await self._send(peer, pieces) if peer is not None and is_unread else pieces)

    async def _bring(self, found: list[Found], *, may_send: bool) -> bool:
        """Have records found and read, as many as one fetch may; whether some can be sent unread."""
        broker = self._call.broker
        left = COLD_BYTES_MAX
        is_unread = False
        for entry in found:
            if entry.is_cold and left > 0:
                await self._find_again(entry, found)
            if entry.span is None or left <= 0:
                continue
            try:
                piece = entry.span.piece() if may_send else entry.span.view()
                if isinstance(piece, memoryview):
                    piece = await asyncio.get_running_loop().run_in_executor(broker.readers, entry.span.bring, piece)
                else:
                    is_unread = True
            except StorageFault as fault:
                entry.fail(fault)
                continue
            left -= len(piece)
            entry.records = [piece]
        return is_unread

    async def _send(self, peer: socket.socket, pieces: Buffers) -> Buffers:
        """Have a thread send what comes from the disk: answers what is left to send the ordinary way."""
        try:
            return await sent_by_a_thread(self._call.broker.readers, partial(send_from_files, peer, pieces))
        except LostHalfway as loss:
            self._call.connection.close(f"a reply could not be finished: {loss}")
            return ()

    async def _find_again(self, entry: Found, found: list[Found]) -> None:
        """Look for a partition's batches once a thread has read what that needs from the disk."""
        broker = self._call.broker
        entry.is_cold = False
        try:
            await asyncio.get_running_loop().run_in_executor(broker.readers, entry.prefetch, self)
            assert entry.partition is not None, "only what was found can be cold"
            size = sum(other.span.size for other in found if other.span is not None)
            budget = min(self._command.max_bytes, broker.fetch_bytes_max) - size
            entry.read(entry.partition, budget, self, at_least_one=size == 0, wait=True)
        except (KafkaError, StorageFault) as error:
            entry.fail(error)

    def _tell(self, entry: Found) -> bool:
        """Whether a session's client must hear of this partition; remembers what it is told."""
        cached = entry.cached
        told = cached.changed(
            high_watermark=entry.high_watermark,
            log_start_offset=entry.log_start_offset,
            must_tell=(self._full or bool(entry.records) or entry.error_code != 0 or entry.diverging_epoch is not None),
        )
        if entry.error_code:
            cached.forget_answer()
        return told

    def _encode(self, found: list[Found]) -> Buffers:
        header = self._call.header
        session = self._session
        topics: list[tuple[TopicKey, list[FetchedPartition]]] = []
        last: TopicKey | None = None
        served: list[tuple[TopicKey, int]] = []
        leaders: set[int] = set()
        for entry in found:
            cached = entry.cached
            if session is not None and not self._tell(entry):
                continue
            if entry.records:
                served.append((cached.topic, cached.partition))
                entry.count()
            leader = None
            if entry.error_code in HINTED and self.version >= HINTS_FIRST:
                leader = leader_hint(self._call, cached.topic, cached.partition, leaders)
            answer = entry.answer(committed=self.committed, leader=leader)
            if cached.topic == last:
                topics[-1][1].append(answer)
            else:
                topics.append((cached.topic, [answer]))
                last = cached.topic
        if session is not None and len(session.partitions) > 1:
            session.served_last(served)
        return encode_fetch_response(
            header.api_version,
            header.correlation_id,
            throttle_ms=0,
            error_code=0,
            session_id=session.session_id if session is not None else 0,
            topics=topics,
            endpoints=endpoints_of(self._call, leaders),
        )


def leader_hint(call: Call, topic: TopicKey, index: int, leaders: set[int]) -> tuple[int, int] | None:
    """Who leads a partition, and in which epoch, for a client that asked the wrong broker; noted in `leaders`."""
    metadata = call.broker.metadata
    known = metadata.topics_by_id.get(topic) if isinstance(topic, UUID) else metadata.topics.get(topic)
    if known is None or not 0 <= index < len(known.partitions):
        return None
    state = known.partitions[index]
    if state.leader >= 0:
        leaders.add(state.leader)
    return state.leader, state.leader_epoch


def endpoints_of(call: Call, leaders: set[int]) -> Sequence[tuple[int, str, int, str | None]]:
    """Where a client finds these brokers."""
    if not leaders:
        return ()
    return [known for known in call.broker.endpoints_for(call.connection.listener_name) if known[0] in leaders]


def check_follower(partition: Partition, version: int) -> None:
    """Refuse a consumer that knows nothing of followers, and anyone while the log is being truncated."""
    if version < FOLLOWERS_FIRST or partition.is_settling or partition.leader_epoch < 0:
        raise not_led_here()


def check_epoch(partition: Partition, current_leader_epoch: int) -> None:
    """Fence a client that follows another leader than the one there is (KIP-320)."""
    if current_leader_epoch < 0 or current_leader_epoch == partition.leader_epoch:
        return
    if current_leader_epoch < partition.leader_epoch:
        raise KafkaError(
            ErrorCode.FENCED_LEADER_EPOCH, "The leader epoch in the request is older than the epoch on the broker."
        )
    raise KafkaError(
        ErrorCode.UNKNOWN_LEADER_EPOCH, "The leader epoch in the request is newer than the epoch on the broker."
    )
