"""What one partition remembers of its idempotent producers, so that a batch sent twice is written once (KIP-98).

Per producer id: its epoch, and its last five batches (as many as a client may have in flight). A batch is

    a duplicate     if its sequence numbers are exactly those of a remembered batch: answered with the old offsets
    next            if it begins right behind the last one; after 2**31 - 1 comes 0
    a fresh start   if its epoch is newer and it begins at 0: the old epoch's batches are forgotten
    welcome         with any sequence if we know nothing of its producer: retention or expiry may have taken
                    what we knew, and the client cannot tell (KIP-360)

and everything else is refused: an older epoch, a gap, a batch older than the five.

The state is a function of the log. The leader calls `check`, appends, then `record`; a restart loads a snapshot and
replays what came after it. Nobody else changes it.
"""

from collections.abc import Iterable

from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.producers import ProducerBatch, ProducerEntry
from headrace.records.batch import TRANSACTIONAL, BatchHeader
from headrace.records.control import read_end_marker

BATCHES_MAX = 5
PRODUCERS_MAX = 10_000
"""Producers remembered on one partition; a client that takes a new id for every batch must not fill the memory."""

NO_TRANSACTION = -1
NO_EPOCH = -1

_SEQUENCE_MAX = 2**31 - 1
_new_batch = tuple.__new__


class _Producer:
    """One producer's standing; the mutable twin of ProducerEntry."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp_ms", "transaction_first_offset")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.coordinator_epoch = NO_EPOCH
        self.last_timestamp_ms = -1
        self.transaction_first_offset = NO_TRANSACTION
        self.batches: tuple[ProducerBatch, ...] = ()

    def enter_epoch(self, epoch: int) -> None:
        """Sequence numbers start anew with every epoch, so the batches of another one say nothing."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches = ()


class ProducerStates:
    """The producers of one partition, the longest idle first."""

    __slots__ = ("_producers", "_producers_max")

    def __init__(self, producers_max: int = PRODUCERS_MAX) -> None:
        self._producers: dict[int, _Producer] = {}
        self._producers_max = producers_max

    def __len__(self) -> int:
        return len(self._producers)

    def check(self, header: BatchHeader) -> ProducerBatch | None:
        """The remembered batch if this is its duplicate, None if it may be appended, else KafkaError; only looks."""
        producer = self._producers.get(header[9])
        if producer is None:
            return None
        first, batches = header[11], producer.batches
        if header[10] == producer.epoch:
            expected = _next_sequence(batches[-1].last_sequence) if batches else 0
            if first != expected:
                last = header.last_sequence
                for batch in batches:
                    if batch.first_sequence == first and batch.last_sequence == last:
                        return batch
                raise _out_of_order(header, f"{expected} was expected")
        elif header.producer_epoch < producer.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch {header.producer_epoch} of producer {header.producer_id} is older than {producer.epoch}",
            )
        elif first != 0:
            raise _out_of_order(header, f"a new epoch begins at 0, the last was {producer.epoch}")
        if producer.transaction_first_offset != NO_TRANSACTION and not header[5] & TRANSACTIONAL:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {header.producer_id} has an open transaction here and sent a batch outside of it",
            )
        return None

    def record(self, header: BatchHeader, first_offset: int, timestamp_ms: int) -> None:
        """Remember a batch that was appended at `first_offset`."""
        _, _, _, _, _, attributes, last_delta, _, _, producer_id, epoch, sequence, _ = header
        producer = self._touch(producer_id, epoch)
        batch = _new_batch(
            ProducerBatch,
            (sequence, (sequence + last_delta) & _SEQUENCE_MAX, first_offset, first_offset + last_delta, timestamp_ms),
        )
        producer.batches = (*producer.batches[1 - BATCHES_MAX :], batch)
        producer.last_timestamp_ms = timestamp_ms
        if attributes & TRANSACTIONAL and producer.transaction_first_offset == NO_TRANSACTION:
            producer.transaction_first_offset = first_offset

    def replay(self, header: BatchHeader, view: memoryview) -> None:
        """Take in a batch as it stands in the log, an end of transaction marker too."""
        if header.producer_id < 0:
            return
        if not header.is_control:
            self.record(header, header.base_offset, header.max_timestamp)
            return
        marker = read_end_marker(view, header)
        if marker is None:
            return
        producer = self._touch(header.producer_id, header.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp_ms = marker.timestamp_ms
        producer.transaction_first_offset = NO_TRANSACTION

    def load(self, entries: Iterable[ProducerEntry]) -> None:
        """Forget everything and know what the snapshot knew."""
        self._producers.clear()
        for entry in entries:
            producer = self._touch(entry.producer_id, entry.producer_epoch)
            producer.coordinator_epoch = entry.coordinator_epoch
            producer.last_timestamp_ms = entry.last_timestamp_ms
            producer.transaction_first_offset = entry.current_transaction_first_offset
            producer.batches = entry.batches[-BATCHES_MAX:]

    def entries(self) -> list[ProducerEntry]:
        """Everything that is known, for a snapshot; the longest idle producer first."""
        return [
            ProducerEntry(
                producer_id,
                producer.epoch,
                producer.coordinator_epoch,
                producer.last_timestamp_ms,
                producer.transaction_first_offset,
                producer.batches,
            )
            for producer_id, producer in self._producers.items()
        ]

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers idle for `expiration_ms`, unless a transaction of theirs is open; how many those were."""
        idle = [
            producer_id
            for producer_id, producer in self._producers.items()
            if producer.transaction_first_offset == NO_TRANSACTION
            and now_ms - producer.last_timestamp_ms >= expiration_ms
        ]
        for producer_id in idle:
            del self._producers[producer_id]
        return len(idle)

    def _touch(self, producer_id: int, epoch: int) -> _Producer:
        """The producer in this epoch, now the least idle; a new one may cost the longest idle its place."""
        producer = self._producers.pop(producer_id, None)
        if producer is None:
            producer = _Producer(epoch)
            if len(self._producers) >= self._producers_max:
                self._make_room()
        self._producers[producer_id] = producer
        producer.enter_epoch(epoch)
        return producer

    def _make_room(self) -> None:
        """A producer within a transaction keeps its place: its first offset holds back the last stable offset."""
        for producer_id, producer in self._producers.items():
            if producer.transaction_first_offset == NO_TRANSACTION:
                del self._producers[producer_id]
                return


def _next_sequence(sequence: int) -> int:
    return 0 if sequence == _SEQUENCE_MAX else sequence + 1


def _out_of_order(header: BatchHeader, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Producer {header.producer_id} sent sequence {header.base_sequence} in epoch {header.producer_epoch}: {why}",
    )
