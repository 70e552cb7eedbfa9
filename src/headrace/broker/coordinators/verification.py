"""The first write of a transaction on a partition is confirmed by the transaction's coordinator (KIP-890).

Otherwise a write that arrives after its transaction has ended would open one that nobody ends, and hold back every
read_committed reader. Newer producers do not name partitions themselves: for them the question adds the partition.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary, ref

from headrace.broker.coordinators.confirmation import Membership
from headrace.model.errors import ErrorCode, KafkaError
from headrace.records.batch import read_header
from headrace.records.produced import deep_check, needs_deep_check, refusal_anew

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.broker.lane import Done
    from headrace.broker.partition import Appended, Partition
    from headrace.cores.producers import Verification
    from headrace.records.batch import BatchHeader

PRODUCE_ADDS_FIRST = 12
PRODUCE_ABORTABLE_FIRST = 11
"""The versions of Produce since which the partition is added, and since which TRANSACTION_ABORTABLE is understood."""

QUEUE_MAX = 32
"""Batches of one producer that wait for one partition's answer; clients have five in flight."""

_TRY_AGAIN = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        # Another partition that was asked about with this one is not known to the coordinator yet.
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
)
"""Said of the coordinator, which a producer does not expect to hear of from a partition."""


class Question(NamedTuple):
    """Is the transaction that this batch is to belong to open, and is the partition in it?"""

    transactional_id: str
    partition: Partition
    header: BatchHeader
    adds: bool
    """Whether the partition is to be added if it is not in it yet."""


async def confirm(broker: Broker, question: Question) -> Verification:
    """The guard to append with, or KafkaError; a coordinator busy with the last transaction is asked for a while."""
    if not question.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty.")
    retry_ms: int = broker.config["add.partitions.to.txn.retry.backoff.ms"]
    patience_ms: int = broker.config["add.partitions.to.txn.retry.backoff.max.ms"]
    membership = Membership(
        transactional_id=question.transactional_id,
        producer_id=question.header.producer_id,
        producer_epoch=question.header.producer_epoch,
        place=(question.partition.topic, question.partition.index),
        adds=question.adds,
    )
    waited_ms = 0
    while True:
        # A new guard each time: a marker that is written meanwhile takes the old one away, as it should.
        guard = question.partition.start_verification(question.header, epoch_bumps=question.adds)
        try:
            await broker.transactions.confirmations.ask(membership)
        except KafkaError as error:
            if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS or not question.adds or waited_ms >= patience_ms:
                raise
        else:
            return guard
        await asyncio.sleep(retry_ms / 1000)
        waited_ms += retry_ms


def partition_error(error: KafkaError, *, knows_abortable: bool) -> KafkaError:
    """A coordinator's refusal as a partition tells it."""
    if error.code is ErrorCode.PRODUCER_FENCED:
        return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message)
    if error.code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return KafkaError(ErrorCode.INVALID_TXN_STATE, error.message)
    return error


def produce_error(error: KafkaError, version: int) -> KafkaError:
    """A coordinator's refusal as a producer of this version understands it."""
    error = partition_error(error, knows_abortable=version >= PRODUCE_ABORTABLE_FIRST)
    is_busy = error.code is ErrorCode.CONCURRENT_TRANSACTIONS and version < PRODUCE_ADDS_FIRST
    if is_busy or error.code in _TRY_AGAIN:
        # Of the codes that say "not stored, try again" the one that makes no client look for another leader.
        return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, f"The transaction could not be verified: {error}")
    return error


class _Waiting(NamedTuple):
    """A batch that waits for an answer, or for those before it."""

    batch: bytearray
    header: BatchHeader
    transactional_id: str
    version: int
    done: Done


class Verifications:
    """Batches on hold until their transaction is confirmed; those of one producer stay in order."""

    __slots__ = ("_broker_ref", "_queues")

    def __init__(self, broker: Broker) -> None:
        self._broker_ref = ref(broker)
        self._queues: dict[tuple[Partition, int], deque[_Waiting]] = {}

    @property
    def _broker(self) -> Broker:
        broker = self._broker_ref()
        assert broker is not None, "who asks is the broker's own"
        return broker

    def must_wait(self, partition: Partition, header: BatchHeader, version: int) -> bool:
        """Whether a transactional batch may not be appended at once."""
        return (partition, header.producer_id) in self._queues or self._is_asked(partition, header, version)

    def _is_asked(self, partition: Partition, header: BatchHeader, version: int) -> bool:
        return partition.must_verify(header) and (version >= PRODUCE_ADDS_FIRST or self._checks_older_producers)

    @property
    def _checks_older_producers(self) -> bool:
        """Newer ones rely on it, so for them there is no choice."""
        return bool(self._broker.config["transaction.partition.verification.enable"])

    def submit(
        self,
        partition: Partition,
        batch: memoryview,
        header: BatchHeader,
        done: Done,
        *,
        transactional_id: str | None,
        version: int,
    ) -> None:
        """Verify and append `batch` in its turn, then call `done`; the batch is copied, its frame is only borrowed."""
        if transactional_id is None:
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "A transactional batch came in a request without transactional id.",
            )
        key = (partition, header.producer_id)
        queue = self._queues.get(key)
        waiting = _Waiting(bytearray(batch), header, transactional_id, version, done)
        if queue is None:
            queue = self._queues[key] = deque([waiting])
            self._broker.spawn(self._run(partition, header.producer_id, queue))
        elif len(queue) < QUEUE_MAX:
            queue.append(waiting)
        else:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "Too many batches wait to be verified; try again.")

    async def _run(self, partition: Partition, producer_id: int, queue: deque[_Waiting]) -> None:
        try:
            while queue:
                waiting = queue[0]
                result: Appended | KafkaError
                try:
                    result = await self._append(partition, waiting)
                except KafkaError as error:
                    result = refusal_anew(error)
                queue.popleft()
                waiting.done(result)
        finally:
            del self._queues[partition, producer_id]

    async def _append(self, partition: Partition, waiting: _Waiting) -> Appended:
        batch, header = waiting.batch, waiting.header
        guard = await self._confirmed(partition, waiting)
        if needs_deep_check(header, partition.config):
            replacement = await asyncio.get_running_loop().run_in_executor(
                self._broker.checkers, deep_check, memoryview(batch), header, partition.config, self._broker.clock()
            )
            if replacement is not None:
                batch, header = replacement, read_header(replacement)
        if partition.fault is not None:
            raise partition.fault.with_traceback(None)
        if guard is not None:
            partition.check_verified(header, guard)
        return partition.append(memoryview(batch), header, self._broker.clock())

    async def _confirmed(self, partition: Partition, waiting: _Waiting) -> Verification | None:
        """The guard that a confirmed batch is appended with; None if the transaction is open here by now."""
        header, version = waiting.header, waiting.version
        if not self._is_asked(partition, header, version):
            return None
        question = Question(waiting.transactional_id, partition, header, version >= PRODUCE_ADDS_FIRST)
        try:
            return await confirm(self._broker, question)
        except KafkaError as error:
            raise produce_error(error, version) from error


_OF_BROKERS: WeakKeyDictionary[Broker, Verifications] = WeakKeyDictionary()


def verifications_of(broker: Broker) -> Verifications:
    """What is on hold at a broker."""
    found = _OF_BROKERS.get(broker)
    if found is None:
        found = _OF_BROKERS[broker] = Verifications(broker)
    return found
