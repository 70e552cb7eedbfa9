"""One partition of a coordinator's topic with the core that lives on it.

Every step runs to its end on the event loop: the core decides, its records are appended, and when the partition says
that they are safe the replies go out. A step without records waits for those before it, so that no answer tells of
what a crash could still undo.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from headrace.model.errors import ErrorCode, KafkaError, MalformedRequest, StorageFault
from headrace.records.batch import TRANSACTIONAL, check_batch, read_header, split_batches
from headrace.records.build import NewRecord, build_batch
from headrace.records.control import read_end_marker
from headrace.records.walk import walk
from headrace.wire.coordinator_records import UnknownRecord

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from headrace.broker.partition import Partition
    from headrace.cores.outcome import Outcome, TimerKey
    from headrace.records.batch import BatchHeader
    from headrace.wire.coordinator_records import RecordCodec

logger = logging.getLogger(__name__)

_READ_BYTES = 1024 * 1024


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
    ) -> None:
        self.partition = partition
        self._make_core = make_core
        self._codec = codec
        self._clock = clock
        self._on_effect = on_effect
        self._timers: dict[TimerKey, asyncio.TimerHandle] = {}
        self._waiting: set[asyncio.Future[Any]] = set()
        self._is_loaded = False
        self._core: CoreT | None = None

    @property
    def index(self) -> int:
        """The partition's number, which is the shard's."""
        return self.partition.index

    @property
    def epoch(self) -> int:
        """The coordinator's epoch: the partition's leader epoch, by which a deposed coordinator is told."""
        return self.partition.leader_epoch

    @property
    def is_loaded(self) -> bool:
        """Whether the log has been read, so that questions can be answered."""
        return self._is_loaded

    @property
    def core(self) -> CoreT:
        """The state; KafkaError while the log is still being read."""
        if self._core is None or not self._is_loaded:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The coordinator is loading its state; try again.")
        return self._core

    # --- steps

    def begin(self, step: Callable[[Any, int], Outcome]) -> asyncio.Future[Any]:
        """Run a step on behalf of somebody; the future has the reply once it is true for good, often at once.

        The reply may be a KafkaError as a value: `answer_of` raises it.
        """
        token = asyncio.get_running_loop().create_future()
        self._waiting.add(token)
        try:
            self._run(lambda now_ms: step(token, now_ms))
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

    def act(self, step: Callable[[int], Outcome]) -> None:
        """Run a step nobody waits for; nothing while the core is loading, which will see the same by itself."""
        if self._is_loaded:
            try:
                self._run(step)
            except KafkaError as error:
                logger.warning("coordinator_step_failed topic=%s reason=%s", self.partition.topic, error)

    def _run(self, step: Callable[[int], Outcome]) -> None:
        if not self._is_loaded:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The coordinator is loading its state; try again.")
        now_ms = self._clock()
        try:
            outcome = step(now_ms)
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
                logger.error(  # noqa: TRY400 - the disk's story, told by the partition too
                    "coordinator_write_failed topic=%s partition=%d reason=%s", self.partition.topic, self.index, error
                )
                self._give_up()
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from error
        for key, at_ms in outcome.timers:
            self._set_timer(key, at_ms, now_ms)
        if outcome.replies or outcome.effects:
            self.partition.when_safe(self.partition.log.log_end_offset, lambda error: self._deliver(outcome, error))

    def _append(self, outcome: Outcome, now_ms: int) -> None:
        pairs = [self._codec.encode(key, value) for key, value in outcome.records]
        producer_id, producer_epoch = outcome.producer or (-1, -1)
        batch = build_batch(
            [NewRecord(timestamp=now_ms, key=key, value=value) for key, value in pairs],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=outcome.producer is not None,
        )
        if self.partition.fault is not None:
            raise self.partition.fault
        self.partition.append(memoryview(batch), read_header(batch), now_ms)

    def _deliver(self, outcome: Outcome, error: KafkaError | None) -> None:
        if error is not None:
            self._give_up()
            return
        for token, answer in outcome.replies:
            if not token.done():
                token.set_result(answer)
        for effect in outcome.effects:
            self._on_effect(self, effect)

    # --- the end of somebody's transaction

    def end_transaction(
        self, producer_id: int, producer_epoch: int, *, commit: bool, coordinator_epoch: int, transaction_version: int
    ) -> int:
        """Write the marker that ends a transaction on this partition and have the core take it in; the end offset."""
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
        self._timers.pop(key, None)
        core = self._core
        if core is not None:
            self.act(lambda now_ms: core.on_timer(key, now_ms))

    # --- coming and going

    async def load(self, executor: Executor) -> None:
        """Read the log into a fresh core; then questions are answered."""
        core = self._make_core()
        count = await asyncio.get_running_loop().run_in_executor(executor, self._replay, core)
        self._core = core
        self._is_loaded = True
        if count:
            logger.info("coordinator_loaded topic=%s partition=%d records=%d", self.partition.topic, self.index, count)
        self._run(core.loaded)

    def _replay(self, core: CoreT) -> int:
        """Every record of the log, in order; blocking."""
        log = self.partition.log
        offset, end, count = log.log_start_offset, log.log_end_offset, 0
        while offset < end:
            data = memoryview(log.read(offset, max_bytes=_READ_BYTES, limit_offset=end).load())
            for position, header in split_batches(data):
                batch = data[position : position + header.size]
                check_batch(batch)
                count += self._replay_batch(core, header, batch)
                offset = header.last_offset + 1
            if not data:
                raise StorageFault(f"{log.path}: nothing to read at {offset}, the log ends at {end}")
        return count

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
        self.close()
        self._on_effect(self, Reload())

    def close(self) -> None:
        """Stop answering."""
        self._is_loaded = False
        self._core = None
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        gone = KafkaError(ErrorCode.NOT_COORDINATOR, "This is not the correct coordinator.")
        for token in tuple(self._waiting):
            if not token.done():
                token.set_result(gone)


def answer_of(reply: Any) -> Any:
    """A reply, raised if it is an error."""
    if isinstance(reply, KafkaError):
        raise KafkaError(reply.code, reply.message)
    return reply


class Reload:
    """The effect of a shard that lost its state: read the log again."""
