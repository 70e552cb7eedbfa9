"""One partition of a coordinator's topic, as long as it is led here in one epoch, with the core that lives on it.

Every step runs to its end on the event loop: the core decides, its records are appended, and when the partition says
that they are safe the replies go out. A step without records waits for those before it, so that no answer tells of
what a crash, or another leader, could still undo.

A shard answers once everything that its leader's log held when it began is committed and read: what an earlier leader
had told somebody is among it, and what is not committed yet could still be lost. It ends with its epoch: whoever leads
next, be it this broker again, begins with a shard of its own, and whatever comes back late to an old one is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from headrace.model.errors import ErrorCode, KafkaError, MalformedRequest, StorageFault
from headrace.records.batch import TRANSACTIONAL, check_batch, split_batches
from headrace.records.build import build_entries
from headrace.records.control import read_end_marker
from headrace.records.walk import walk
from headrace.wire.coordinator_records import UnknownRecord

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from concurrent.futures import Executor

    from headrace.broker.partition import Partition
    from headrace.cores.outcome import Outcome, TimerKey
    from headrace.records.batch import BatchHeader
    from headrace.wire.coordinator_records import RecordCodec

logger = logging.getLogger(__name__)

NOT_LED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""What a partition says whose leader is another broker by now, or this one in a later epoch."""
_TIMER_RETRY_S = 1.0
"""A timer that runs out while too few replicas are in sync runs so much longer, again and again."""


class Core(Protocol):
    """What a shard needs of the core it drives."""

    def replay(self, key: Any, value: Any, producer_id: int = -1) -> None:
        """Take in one record; a producer id says that it counts only when that producer's transaction commits."""

    def replay_end(self, producer_id: int, *, commit: bool) -> None:
        """Take in the end of a producer's transaction on this partition."""

    def loaded(self, now_ms: int) -> Outcome:
        """The log has been read: set timers, and finish what was under way."""

    def on_timer(self, key: TimerKey, now_ms: int) -> Outcome:
        """A timer that was set has run out."""


CoreT = TypeVar("CoreT", bound=Core)
ResponseT = TypeVar("ResponseT")


class _Pending:
    """What is to be told when some records are safe."""

    __slots__ = ("core", "deadline_s", "is_over", "outcome")

    def __init__(self, core: Any, outcome: Outcome, deadline_s: float) -> None:
        self.core = core
        self.outcome = outcome
        self.deadline_s = deadline_s
        self.is_over = False


class Shard(Generic[CoreT]):
    """A core and the partition its records live in."""

    def __init__(
        self,
        partition: Partition,
        make_core: Callable[[], CoreT],
        codec: RecordCodec,
        *,
        clock: Callable[[], int],
        on_effect: Callable[[Shard[CoreT], Any], None],
        read_bytes: int,
        write_timeout_s: float,
    ) -> None:
        """So much of the log is read at once; so long somebody waits for replicas before hearing that they are late."""
        self.partition = partition
        self.epoch = partition.leader_epoch
        """The coordinator's epoch: the partition's leader epoch, by which a deposed coordinator is told."""
        self._make_core = make_core
        self._codec = codec
        self._clock = clock
        self._on_effect = on_effect
        self._read_bytes = read_bytes
        self._write_timeout_s = write_timeout_s
        self._timers: dict[TimerKey, asyncio.TimerHandle] = {}
        self._waiting: set[asyncio.Future[Any]] = set()
        self._pending: deque[_Pending] = deque()
        self._pending_timer: asyncio.TimerHandle | None = None
        self._afterwards: list[Callable[[CoreT, int], Outcome]] = []
        """Steps for when the log has been read."""
        self._is_loaded = False
        self._is_closed = False
        self._core: CoreT | None = None

    @property
    def index(self) -> int:
        """The partition's number, which is the shard's."""
        return self.partition.index

    @property
    def is_closed(self) -> bool:
        """Whether another shard, here or elsewhere, has taken over."""
        return self._is_closed

    @property
    def is_loaded(self) -> bool:
        """Whether the log has been read, so that questions can be answered."""
        return self._is_loaded

    @property
    def core(self) -> CoreT:
        """The state; KafkaError while the log is still being read, and when another shard has taken over."""
        if self._core is None or not self._is_loaded:
            raise self._refusal()
        return self._core

    def _refusal(self) -> KafkaError:
        return not_coordinator() if self._is_closed else loading()

    # --- steps

    def begin(self, step: Callable[[Any, int], Outcome]) -> asyncio.Future[Any]:
        """Run a step on behalf of somebody; the future has the reply once it is true for good, often at once.

        The reply may be a KafkaError as a value: `answer_of` raises it. As the core takes its records in at once, a
        step that may write is refused before it is taken while too few replicas are in sync.
        """
        self._check_enough_replicas()
        return self.begin_look(step)

    def begin_look(self, step: Callable[[Any, int], Outcome]) -> asyncio.Future[Any]:
        """As `begin`, for a step that writes nothing, and so needs no replicas."""
        token = asyncio.get_running_loop().create_future()
        self._waiting.add(token)
        try:
            self._run(step, token)
        except KafkaError:
            self._waiting.discard(token)
            raise
        if token.done():
            self._waiting.discard(token)
        else:
            token.add_done_callback(self._waiting.discard)
        return token

    async def ask(self, step: Callable[[Any, int], Outcome]) -> Any:
        """Run a step on behalf of somebody who waits, and give the reply once it is true for good."""
        return answer_of(await self.begin(step))

    async def look(self, step: Callable[[Any, int], Outcome]) -> Any:
        """As `ask`, for a step that writes nothing, and so needs no replicas."""
        return answer_of(await self.begin_look(step))

    def act(self, step: Callable[[int], Outcome]) -> None:
        """Run a step nobody waits for; nothing while the core is loading, which will see the same by itself."""
        if self._is_loaded:
            try:
                self._run(step)
            except KafkaError as error:
                logger.warning("coordinator_step_failed topic=%s reason=%s", self.partition.topic, error)

    def act_once_loaded(self, step: Callable[[CoreT, int], Outcome]) -> None:
        """Run a step nobody waits for on the core, now or as soon as there is one."""
        core = self._core
        if core is not None and self._is_loaded:
            self.act(lambda now_ms: step(core, now_ms))
        elif not self._is_closed:
            self._afterwards.append(step)

    def _run(self, step: Callable[..., Outcome], *on_behalf: Any) -> None:
        """Run a step, which gets who it is for, if anybody, and the time."""
        if not self._is_loaded:
            raise self._refusal()
        now_ms = self._clock()
        try:
            outcome = step(*on_behalf, now_ms)
        except KafkaError:
            # Refused before anything changed: that is a core's promise for an error it raises.
            raise
        except Exception as bug:
            logger.exception("coordinator_failed topic=%s partition=%d", self.partition.topic, self.index)
            self._give_up()
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator failed; its log has it.") from bug
        self._carry_out(outcome, now_ms)

    def _carry_out(self, outcome: Outcome, now_ms: int) -> None:
        if outcome.records:
            try:
                self._append(outcome, now_ms)
            except KafkaError as error:
                self._give_up()
                raise self._write_refused(error) from error
        for key, at_ms in outcome.timers:
            self._set_timer(key, at_ms, now_ms)
        if outcome.replies or outcome.effects:
            self._deliver_when_safe(outcome)

    def _append(self, outcome: Outcome, now_ms: int) -> None:
        producer_id, producer_epoch = outcome.producer or (-1, -1)
        batch, header = build_entries(
            self._codec.encode_all(outcome.records),
            now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=outcome.producer is not None,
        )
        self._check_leads()
        self.partition.append(memoryview(batch), header, now_ms)

    def _check_leads(self) -> None:
        """KafkaError if the partition takes nothing, or nothing of this shard's epoch."""
        if self.partition.fault is not None:
            raise self.partition.fault.with_traceback(None)
        if self.partition.leader_epoch != self.epoch:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "The partition is led in a later epoch.")

    def _check_enough_replicas(self) -> None:
        try:
            self.partition.check_enough_replicas()
        except KafkaError as error:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from error

    def _write_refused(self, error: KafkaError) -> KafkaError:
        """A partition's refusal as a coordinator tells it."""
        if error.code in NOT_LED:
            return not_coordinator()
        logger.error(
            "coordinator_write_failed topic=%s partition=%d reason=%s", self.partition.topic, self.index, error
        )
        return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)

    # --- telling

    def _deliver_when_safe(self, outcome: Outcome) -> None:
        partition = self.partition
        end_offset = partition.log.log_end_offset
        if partition.is_safe(end_offset):
            self._tell(outcome)
            return
        loop = asyncio.get_running_loop()
        pending = _Pending(self._core, outcome, loop.time() + self._write_timeout_s)
        partition.when_safe(end_offset, lambda error: self._deliver(pending, error))
        if pending.is_over:
            return
        # What is safe is so in order, so those that are over lie in front.
        while self._pending and self._pending[0].is_over:
            self._pending.popleft()
        self._pending.append(pending)
        if self._pending_timer is None:
            self._pending_timer = loop.call_at(pending.deadline_s, self._on_late)

    def _deliver(self, pending: _Pending, error: KafkaError | None) -> None:
        pending.is_over = True
        if pending.core is not self._core:
            # The state that decided this is gone, and who waited has been told.
            return
        if error is not None and error.code is not ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
            self._give_up()
            return
        # That replicas have gone since changes nothing: what is committed was on enough of them.
        self._tell(pending.outcome)

    def _tell(self, outcome: Outcome) -> None:
        for token, answer in outcome.replies:
            if not token.done():
                token.set_result(answer)
        for effect in outcome.effects:
            self._on_effect(self, effect)

    def _on_late(self) -> None:
        """Tell those who wait for too long; their records may become safe all the same, and then they count."""
        self._pending_timer = None
        now_s = asyncio.get_running_loop().time()
        late = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator's records are not safe yet; try again.")
        while self._pending and (self._pending[0].is_over or self._pending[0].deadline_s <= now_s):
            for token, _ in self._pending.popleft().outcome.replies:
                if not token.done():
                    token.set_result(late)
        if self._pending:
            self._pending_timer = asyncio.get_running_loop().call_at(self._pending[0].deadline_s, self._on_late)

    # --- the end of somebody's transaction

    def end_transaction(
        self, producer_id: int, producer_epoch: int, *, commit: bool, coordinator_epoch: int, transaction_version: int
    ) -> int:
        """Write the marker that ends a transaction on this partition and have the core take it in; the end offset."""
        self._check_leads()
        appended = self.partition.append_end_marker(
            producer_id,
            producer_epoch,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            now_ms=self._clock(),
            transaction_version=transaction_version,
        )
        if self._core is not None:
            self._core.replay_end(producer_id, commit=commit)
        return appended.end_offset

    # --- timers

    def _set_timer(self, key: TimerKey, at_ms: int | None, now_ms: int) -> None:
        old = self._timers.pop(key, None)
        if old is not None:
            old.cancel()
        if at_ms is not None:
            delay_s = max(at_ms - now_ms, 0) / 1000
            self._timers[key] = asyncio.get_running_loop().call_later(delay_s, self._on_timer, key)

    def _on_timer(self, key: TimerKey) -> None:
        try:
            self._check_enough_replicas()
        except KafkaError:
            # What it leads to could not be written down, and whoever could not be heard meanwhile is not to blame.
            self._timers[key] = asyncio.get_running_loop().call_later(_TIMER_RETRY_S, self._on_timer, key)
            return
        self._timers.pop(key, None)
        core = self._core
        if core is not None:
            self.act(lambda now_ms: core.on_timer(key, now_ms))

    # --- coming and going

    async def load(self, executor: Executor, turns: AbstractAsyncContextManager[Any] | None = None) -> None:
        """Read the log into a fresh core; then questions are answered. Only the reading waits for its turn."""
        core = self._make_core()
        async with turns or nullcontext():
            if self._is_closed:
                return
            loop = asyncio.get_running_loop()
            count, end_offset = await loop.run_in_executor(executor, self._replay, core)
        if self._is_closed:
            return
        # Who led before may have told nobody yet of the last records, and those may still be lost with us: what they
        # say must not be told either before they are committed.
        await self._until_safe(end_offset)
        if self._is_closed:
            return
        self._core = core
        self._is_loaded = True
        if count:
            logger.info(
                "coordinator_loaded topic=%s partition=%d epoch=%d records=%d",
                self.partition.topic,
                self.index,
                self.epoch,
                count,
            )
        self._run(core.loaded)
        afterwards, self._afterwards = self._afterwards, []
        for step in afterwards:
            self.act_once_loaded(step)

    async def _until_safe(self, end_offset: int) -> None:
        safe: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()

        def settle(error: KafkaError | None) -> None:
            if not safe.done():
                safe.set_result(error)

        self._waiting.add(safe)
        try:
            self.partition.when_safe(end_offset, settle)
            error = await safe
        finally:
            self._waiting.discard(safe)
        if error is not None and not self._is_closed:
            raise error

    def _replay(self, core: CoreT) -> tuple[int, int]:
        """Every record of the log, in order; how many, and where the log ended. Blocking."""
        log = self.partition.log
        offset, end, count = log.log_start_offset, log.log_end_offset, 0
        while offset < end and not self._is_closed:
            data = memoryview(log.read(offset, max_bytes=self._read_bytes, limit_offset=end).load())
            for position, header in split_batches(data):
                batch = data[position : position + header.size]
                check_batch(batch)
                count += self._replay_batch(core, header, batch)
                offset = header.last_offset + 1
            if not data:
                raise StorageFault(f"{log.path}: nothing to read at {offset}, the log ends at {end}")
        return count, end

    def _replay_batch(self, core: CoreT, header: BatchHeader, batch: memoryview) -> int:
        if header.is_control:
            marker = read_end_marker(batch, header)
            if marker is not None:
                core.replay_end(header.producer_id, commit=marker.committed)
            return 0
        producer_id = header.producer_id if header.attributes & TRANSACTIONAL else -1
        count = 0
        for record in walk(batch):
            try:
                key, value = self._codec.decode(bytes(record.key or b""), record.value)
            except (UnknownRecord, MalformedRequest) as problem:
                logger.warning("coordinator_record_skipped topic=%s reason=%s", self.partition.topic, problem)
                continue
            core.replay(key, value, producer_id)
            count += 1
        return count

    def _give_up(self) -> None:
        """The state may be ahead of the log: forget it, and tell everyone who waits to look for a coordinator again."""
        self._forget()
        if not self._is_closed:
            self._on_effect(self, Reload())

    def close(self) -> None:
        """Stop answering, for good."""
        self._is_closed = True
        self._forget()

    def _forget(self) -> None:
        self._is_loaded = False
        self._core = None
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._pending_timer is not None:
            self._pending_timer.cancel()
            self._pending_timer = None
        self._pending.clear()
        for token in tuple(self._waiting):
            if not token.done():
                token.set_result(not_coordinator())


def not_coordinator() -> KafkaError:
    """Sends a client to look for the coordinator again."""
    return KafkaError(ErrorCode.NOT_COORDINATOR, "This is not the correct coordinator.")


def loading() -> KafkaError:
    """Has a client ask again."""
    return KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The coordinator is loading its state; try again.")


def responded(reply: asyncio.Future[Any], respond: Callable[[Any], ResponseT]) -> ResponseT | Awaitable[ResponseT]:
    """The response that a reply becomes: at once if it is there, as most are, and no task has to be made for it."""
    return respond(reply.result()) if reply.done() else _respond_later(reply, respond)


async def _respond_later(reply: asyncio.Future[Any], respond: Callable[[Any], ResponseT]) -> ResponseT:
    return respond(await reply)


def answer_of(reply: Any) -> Any:
    """A reply, raised if it is an error."""
    if isinstance(reply, KafkaError):
        raise KafkaError(reply.code, reply.message)
    return reply


class Reload:
    """The effect of a shard that lost its state: read the log again."""
