"""What one partition remembers of its idempotent producers, so that a batch sent twice is written once (KIP-98).

Per producer id: its epoch, and its last five batches (as many as a client may have in flight). A batch is

    a duplicate     if its sequence numbers are exactly those of a remembered batch: answered with the old offsets
    next            if it begins right behind the last one; after 2**31 - 1 comes 0
    a fresh start   if its epoch is newer and it begins at 0: the old epoch's batches are forgotten
    welcome         with any sequence if we know nothing of its producer: retention or expiry may have taken
                    what we knew, and the client cannot tell (KIP-360)

and everything else is refused: an older epoch, a gap, a batch older than the five. Coordinators number nothing: a batch
without a sequence number is only held against the epoch.

Transactions. The first transactional batch of a producer opens one, its marker ends it. A batch whose transaction was
aborted is never again the answer to anything; of the last one the sequence number stays, where the next begins. Before
the first batch the transaction coordinator is asked (KIP-890): `start_verification` hands out a guard that is good
until something of the producer is written, so that an answer which a marker overtook opens nothing.

The state is a function of the log. The leader calls `check`, appends, then `record`; a restart loads a snapshot and
replays what came after it. Nobody else changes it.
"""

from collections.abc import Iterable

from headrace.cores.unstable_offsets import UnstableOffsets
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.producers import ProducerBatch, ProducerEntry
from headrace.records.batch import NO_SEQUENCE, TRANSACTIONAL, BatchHeader
from headrace.records.control import AbortedTransaction, EndTransactionMarker, read_end_marker

BATCHES_MAX = 5
PRODUCERS_MAX = 10_000
"""Producers remembered on one partition; a client that takes a new id for every batch must not fill the memory."""

NO_TRANSACTION = -1
NO_EPOCH = -1
EPOCH_BUMPS_FROM = 2
"""The transaction version since which every transaction has an epoch of its own (KIP-890)."""
EPOCH_MAX = 2**15 - 1

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
        self.epoch = epoch
        self.batches = ()

    def forget_aborted(self) -> None:
        """The open transaction is aborted: none of its batches is known any more but where the last one ended."""
        first_offset, batches = self.transaction_first_offset, self.batches
        kept = tuple(batch for batch in batches if batch.first_offset < first_offset)
        if len(kept) != len(batches):
            self.batches = (*kept, batches[-1]._replace(first_sequence=NO_SEQUENCE))


class Verification:
    """A question to the transaction coordinator that is under way; also the guard that its answer comes with."""

    __slots__ = ("epoch", "epoch_bumps", "lowest_sequence")

    def __init__(self, epoch: int, lowest_sequence: int, *, epoch_bumps: bool) -> None:
        self.epoch = epoch
        self.lowest_sequence = lowest_sequence
        """Batches are sent before the first is answered for; one that overtook it must wait its turn."""
        self.epoch_bumps = epoch_bumps

    def note(self, epoch: int, sequence: int) -> None:
        """Another batch waits for the same answer."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


class ProducerStates:
    """The producers of one partition, the longest idle first."""

    __slots__ = ("_producers", "_producers_max", "_verifications", "unstable")

    def __init__(self, producers_max: int = PRODUCERS_MAX) -> None:
        self._producers: dict[int, _Producer] = {}
        self._producers_max = producers_max
        self._verifications: dict[int, Verification] = {}
        self.unstable = UnstableOffsets()

    def __len__(self) -> int:
        return len(self._producers)

    @property
    def first_unstable_offset(self) -> int:
        """Where the first transaction begins that is open, or ended above the high watermark; STABLE if none does."""
        return self.unstable.first

    def check(self, header: BatchHeader) -> ProducerBatch | None:
        """The remembered batch if this is its duplicate, None if it may be appended, else KafkaError; only looks."""
        producer = self._producers.get(header[9])
        if producer is None:
            if self._verifications:
                self._check_turn(header, producer)
            return None
        first, batches = header[11], producer.batches
        if header[10] == producer.epoch:
            last = batches[-1][1] if batches else NO_SEQUENCE
            expected = 0 if last == _SEQUENCE_MAX else last + 1
            if first != expected and first >= 0:
                return _duplicate(batches, header, expected)
        elif header.producer_epoch < producer.epoch:
            raise _older_epoch(header.producer_id, header.producer_epoch, producer.epoch)
        elif first > 0:
            raise _out_of_order(header, f"a new epoch begins at 0, the last was {producer.epoch}")
        if producer.transaction_first_offset != NO_TRANSACTION and not header[5] & TRANSACTIONAL:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {header.producer_id} has an open transaction here and sent a batch outside of it",
            )
        if self._verifications:
            self._check_turn(header, producer)
        return None

    def record(self, header: BatchHeader, first_offset: int, timestamp_ms: int) -> None:
        """Remember a batch that was appended at `first_offset`."""
        _, _, _, _, _, attributes, last_delta, _, _, producer_id, epoch, sequence, _ = header
        producer = self._touch(producer_id, epoch)
        last_sequence = (sequence + last_delta) & _SEQUENCE_MAX if sequence >= 0 else NO_SEQUENCE
        batch = _new_batch(
            ProducerBatch, (sequence, last_sequence, first_offset, first_offset + last_delta, timestamp_ms)
        )
        producer.batches = (*producer.batches[1 - BATCHES_MAX :], batch)
        producer.last_timestamp_ms = timestamp_ms
        if attributes & TRANSACTIONAL and producer.transaction_first_offset == NO_TRANSACTION:
            producer.transaction_first_offset = first_offset
            self.unstable.begin(producer_id, first_offset)
            self._verifications.pop(producer_id, None)

    def replay(self, header: BatchHeader, view: memoryview) -> AbortedTransaction | None:
        """Take in a batch as it stands in the log; an end of transaction marker may tell of an aborted transaction."""
        if header.producer_id < 0:
            return None
        if not header.is_control:
            self.record(header, header.base_offset, header.max_timestamp)
            return None
        marker = read_end_marker(view, header)
        if marker is None:
            return None
        known = self._producers.get(header.producer_id)
        if known is not None and header.producer_epoch < known.epoch:
            # No leader that knew of the newer epoch would have written it, so it is not about what is known now.
            return None
        return self.end(header.producer_id, header.producer_epoch, marker, header.base_offset)

    # Ends of transactions

    def advance(self, high_watermark: int) -> None:
        """Everything below is safe, ends of transactions too."""
        self.unstable.advance(high_watermark)

    def check_marker(
        self, producer_id: int, producer_epoch: int, *, coordinator_epoch: int, transaction_version: int
    ) -> None:
        """KafkaError if a marker of this epoch must not be written; one that comes again may (KIP-890)."""
        producer = self._producers.get(producer_id)
        if producer is None:
            return
        is_stale = producer_epoch < producer.epoch
        if transaction_version >= EPOCH_BUMPS_FROM and producer_epoch == producer.epoch:
            # The marker's epoch is above its transaction's, so one of this epoch ended something before: it comes
            # again, or else it is about to end what was begun after it. At the last epoch there is no going up.
            is_stale = producer.transaction_first_offset != NO_TRANSACTION and producer_epoch != EPOCH_MAX
        if is_stale:
            raise _older_epoch(producer_id, producer_epoch, producer.epoch)
        if coordinator_epoch < producer.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Coordinator epoch {coordinator_epoch} for producer {producer_id} is older than "
                f"{producer.coordinator_epoch}",
            )

    def end(
        self, producer_id: int, producer_epoch: int, marker: EndTransactionMarker, offset: int
    ) -> AbortedTransaction | None:
        """Remember a marker that was appended at `offset`; the transaction it aborted, if one was open here."""
        producer = self._touch(producer_id, producer_epoch)
        if not marker.committed and producer.transaction_first_offset != NO_TRANSACTION:
            producer.forget_aborted()
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp_ms = marker.timestamp_ms
        producer.transaction_first_offset = NO_TRANSACTION
        self._verifications.pop(producer_id, None)
        ended = self.unstable.end(producer_id, offset)
        if ended is None or marker.committed:
            return None
        first_offset, last_stable_offset = ended
        return AbortedTransaction(producer_id, first_offset, offset, last_stable_offset)

    # Verifying with the coordinator

    def has_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether a transaction of this producer is open here in this epoch; an older one waits for its marker."""
        producer = self._producers.get(producer_id)
        return producer is not None and producer.transaction_first_offset != NO_TRANSACTION and producer.epoch == epoch

    def start_verification(self, header: BatchHeader, *, epoch_bumps: bool) -> Verification:
        """The guard to ask the coordinator with; the same for all batches that wait for one answer."""
        producer_id, epoch, sequence = header.producer_id, header.producer_epoch, header.base_sequence
        guard = self._verifications.get(producer_id)
        if guard is None:
            guard = self._verifications[producer_id] = Verification(epoch, sequence, epoch_bumps=epoch_bumps)
            if len(self._verifications) > self._producers_max:
                del self._verifications[next(iter(self._verifications))]
        guard.note(epoch, sequence)
        return guard

    def is_verified(self, header: BatchHeader, guard: Verification | None) -> bool:
        """Whether a transactional batch may be appended: within an open transaction, or by an answer still good."""
        producer_id = header.producer_id
        return self.has_transaction(producer_id, header.producer_epoch) or (
            guard is not None and self._verifications.get(producer_id) is guard
        )

    def _check_turn(self, header: BatchHeader, producer: _Producer | None) -> None:
        """Refuse a batch that came before the first one of its transaction."""
        guard = self._verifications.get(header.producer_id)
        if guard is None or header.base_sequence <= 0 or not header.is_transactional:
            return
        if guard.epoch_bumps and (producer is None or not producer.batches):
            raise _out_of_order(header, "a transaction's first batch here begins at 0")
        if header.base_sequence > guard.lowest_sequence:
            raise _out_of_order(header, f"{guard.lowest_sequence} is still being verified")

    # Snapshots and forgetting

    def load(self, entries: Iterable[ProducerEntry]) -> None:
        """Forget everything and know what the snapshot knew."""
        self._producers.clear()
        self._verifications.clear()
        for entry in entries:
            producer = self._touch(entry.producer_id, entry.producer_epoch)
            producer.coordinator_epoch = entry.coordinator_epoch
            producer.last_timestamp_ms = entry.last_timestamp_ms
            producer.transaction_first_offset = entry.current_transaction_first_offset
            producer.batches = entry.batches[-BATCHES_MAX:]
        self.unstable.load(
            (producer.transaction_first_offset, producer_id)
            for producer_id, producer in self._producers.items()
            if producer.transaction_first_offset != NO_TRANSACTION
        )

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
        elif producer.epoch != epoch:
            producer.enter_epoch(epoch)
        self._producers[producer_id] = producer
        return producer

    def _make_room(self) -> None:
        """A producer within a transaction keeps its place: its first offset holds back the last stable offset."""
        for producer_id, producer in self._producers.items():
            if producer.transaction_first_offset == NO_TRANSACTION:
                del self._producers[producer_id]
                return


def _duplicate(batches: tuple[ProducerBatch, ...], header: BatchHeader, expected: int) -> ProducerBatch:
    """The remembered batch that a batch out of order is a copy of; KafkaError if it is of none."""
    first, last = header.base_sequence, header.last_sequence
    for batch in batches:
        if batch.first_sequence == first and batch.last_sequence == last:
            return batch
    raise _out_of_order(header, f"{expected} was expected")


def _older_epoch(producer_id: int, epoch: int, known_epoch: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_EPOCH, f"Epoch {epoch} of producer {producer_id} is older than {known_epoch}"
    )


def _out_of_order(header: BatchHeader, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Producer {header.producer_id} sent sequence {header.base_sequence} in epoch {header.producer_epoch}: {why}",
    )
