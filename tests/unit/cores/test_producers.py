"""Idempotent producers on one partition: told apart, remembered, forgotten."""

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.cores.producers import BATCHES_MAX, ProducerStates
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.producers import ProducerBatch, ProducerEntry
from headrace.records.batch import BatchHeader, read_header
from headrace.records.build import NewRecord, build_batch
from headrace.records.control import AbortedTransaction, EndTransactionMarker, build_end_marker

SEQUENCES = 2**31


def header(sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7, **options: Any) -> BatchHeader:
    """A produced batch's header; big counts without big batches."""
    batch = build_batch(
        [NewRecord(5)], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **options
    )
    return read_header(batch)._replace(last_offset_delta=count - 1, record_count=count)


class Partition:
    """A leader's use of the core: check, append, record."""

    def __init__(self, **options: Any) -> None:
        self.states = ProducerStates(**options)
        self.end = 0

    def produce(self, batch: BatchHeader, now_ms: int = 1_000) -> int | ErrorCode:
        """The offset the batch is answered with, or the error."""
        try:
            known = self.states.check(batch)
        except KafkaError as error:
            return error.code
        if known is not None:
            return known.first_offset
        offset, self.end = self.end, self.end + batch.last_offset_delta + 1
        self.states.record(batch, offset, now_ms)
        return offset


def test_duplicates_are_answered_with_the_old_offset() -> None:
    """Is each of the last five batches recognised, and an older one refused?"""
    partition = Partition()
    batches = [header(3 * index, 3) for index in range(7)]
    offsets = [partition.produce(batch) for batch in batches]

    assert offsets == [0, 3, 6, 9, 12, 15, 18]
    assert [partition.produce(batch) for batch in batches[-BATCHES_MAX:]] == offsets[-BATCHES_MAX:]
    assert partition.produce(batches[1]) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.end == 21


def test_a_duplicate_names_the_whole_batch() -> None:
    """Does a duplicate's answer hold the first and last offset it was written at?"""
    partition = Partition()
    partition.produce(header(0, 2))
    partition.produce(header(2, 10), now_ms=44)

    assert partition.states.check(header(2, 10)) == ProducerBatch(2, 11, 2, 11, 44)


@pytest.mark.parametrize("sequence", [0, 1, 2, 4, 5, 100, 2**31 - 1])
def test_gaps_and_overlaps(sequence: int) -> None:
    """Is anything but the next sequence number refused, and nothing changed by it?"""
    partition = Partition()
    partition.produce(header(0, 3))
    before = partition.states.entries()

    assert partition.produce(header(sequence, 9)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.states.entries() == before
    assert partition.produce(header(3, 9)) == 3


def test_sequences_wrap() -> None:
    """Does 0 follow 2**31 - 1, within a batch and between two, and are both known again?"""
    partition = Partition()
    across = header(SEQUENCES - 2, 4)
    offsets = [partition.produce(batch) for batch in (across, header(2), header(3, SEQUENCES - 3), header(0))]

    assert across.last_sequence == 1
    assert offsets == [0, 4, 5, 5 + SEQUENCES - 3]
    assert partition.produce(across) == 0


def test_an_unknown_producer_may_start_anywhere() -> None:
    """Is any first sequence accepted of a producer we know nothing of, and order kept from then on?"""
    partition = Partition()

    assert partition.produce(header(500)) == 0
    assert partition.produce(header(502)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.produce(header(501)) == 1


def test_epochs() -> None:
    """Does a newer epoch start at 0 and fence the older one?"""
    partition = Partition()
    partition.produce(header(0, epoch=3))

    assert partition.produce(header(1, epoch=4)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.produce(header(0, epoch=4)) == 1
    assert partition.produce(header(0, epoch=3)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert partition.produce(header(1, epoch=3)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert partition.produce(header(0, epoch=4)) == 1
    assert partition.produce(header(1, epoch=4)) == 2


def test_producers_do_not_mix() -> None:
    """Has each producer id its own numbers?"""
    partition = Partition()

    assert [partition.produce(header(0, producer_id=number)) for number in (1, 2, 1, 2)] == [0, 1, 0, 1]


def test_batches_without_a_producer_are_not_remembered() -> None:
    """Does replay pass over ordinary batches?"""
    states = ProducerStates()
    states.replay(read_header(build_batch([NewRecord(1)])), memoryview(b""))

    assert len(states) == 0


def test_replay_gives_what_the_leader_had() -> None:
    """Is the state after a replay of the log the one the leader had, with the log's timestamps?"""
    partition = Partition()
    replayed = ProducerStates()
    for sequence in range(0, 40, 4):
        batch = header(sequence, 4)._replace(base_offset=partition.end)
        partition.produce(batch, now_ms=batch.max_timestamp)
        replayed.replay(batch, memoryview(b""))

    assert replayed.entries() == partition.states.entries()


def test_an_emptied_batch_still_counts() -> None:
    """Does a batch that compaction emptied keep its producer's sequence?"""
    states = ProducerStates()
    states.replay(header(10, 5)._replace(base_offset=100, record_count=0), memoryview(b""))

    assert states.check(header(15)) is None
    assert states.check(header(10, 5)) == ProducerBatch(10, 14, 100, 104, 5)


def test_transactions_are_noted() -> None:
    """Is an open transaction's first offset kept until its marker, and no plain batch let into it?"""
    states = ProducerStates()
    states.record(header(0, 2, transactional=True), 10, 1)
    states.record(header(2, 2, transactional=True), 12, 2)

    assert states.entries()[0].current_transaction_first_offset == 10
    with pytest.raises(KafkaError) as caught:
        states.check(header(4))
    assert caught.value.code == ErrorCode.INVALID_TXN_STATE
    marker = EndTransactionMarker(committed=True, coordinator_epoch=6, timestamp_ms=9)
    batch = build_end_marker(marker, producer_id=7, producer_epoch=1, base_offset=14)
    states.replay(read_header(batch), memoryview(batch))

    assert states.entries() == [ProducerEntry(7, 1, 6, 9, -1, ())]
    assert states.check(header(0, epoch=1)) is None


def test_a_marker_of_the_same_epoch_keeps_the_sequence() -> None:
    """Do sequence numbers go on across a marker that does not raise the epoch?"""
    states = ProducerStates()
    states.record(header(0, 2, transactional=True), 10, 1)
    batch = build_end_marker(EndTransactionMarker(False, 6, 9), producer_id=7, producer_epoch=0, base_offset=12)
    states.replay(read_header(batch), memoryview(batch))

    assert states.check(header(2)) is None
    assert states.entries()[0].current_transaction_first_offset == -1


def test_an_emptied_marker_says_nothing() -> None:
    """Is a control batch without records passed over?"""
    states = ProducerStates()
    batch = build_end_marker(EndTransactionMarker(True, 6, 9), producer_id=7, producer_epoch=0)
    states.replay(read_header(batch)._replace(record_count=0), memoryview(batch))

    assert len(states) == 0


def end(states: ProducerStates, offset: int, *, committed: bool, epoch: int = 0) -> AbortedTransaction | None:
    """A marker of producer 7 as the leader notes it."""
    return states.end(7, epoch, EndTransactionMarker(committed, 3, 9), offset)


def refusal(states: ProducerStates, epoch: int, *, version: int, coordinator_epoch: int = 3) -> ErrorCode | None:
    """Why a marker of producer 7 is refused."""
    try:
        states.check_marker(7, epoch, coordinator_epoch=coordinator_epoch, transaction_version=version)
    except KafkaError as error:
        return error.code
    return None


def test_unstable_until_its_marker_is_safe() -> None:
    """Does a transaction hold back the first unstable offset until the high watermark has passed its marker?"""
    states = ProducerStates()
    states.record(header(0, transactional=True), 10, 1)
    states.record(header(0, producer_id=8, transactional=True), 12, 1)

    assert end(states, 15, committed=True) is None
    assert states.first_unstable_offset == 10
    states.advance(15)
    assert states.first_unstable_offset == 10
    states.advance(16)
    assert states.first_unstable_offset == 12


def test_an_abort_tells_what_it_undid() -> None:
    """Is an aborted transaction told with its ends and the next open one, and an empty or committed one not?"""
    states = ProducerStates()
    states.record(header(0, transactional=True), 10, 1)
    states.record(header(0, producer_id=8, transactional=True), 12, 1)

    assert end(states, 15, committed=False) == AbortedTransaction(7, 10, 15, 12)
    assert end(states, 16, committed=False) is None
    states.record(header(1, transactional=True), 17, 1)
    assert end(states, 18, committed=True) is None


def test_an_aborted_batch_answers_nothing() -> None:
    """Is a batch like an aborted one refused and not taken for it, while a committed one is known again?"""
    states = ProducerStates()
    states.record(header(0, 2, transactional=True), 10, 1)
    end(states, 12, committed=True)
    states.record(header(2, 2, transactional=True), 13, 1)
    states.record(header(4, 2, transactional=True), 15, 1)
    end(states, 17, committed=False)

    known = states.check(header(0, 2))
    assert known is not None
    assert known.first_offset == 10
    for sequence in (2, 4):
        with pytest.raises(KafkaError) as caught:
            states.check(header(sequence, 2, transactional=True))
        assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.check(header(6, transactional=True)) is None
    loaded = ProducerStates()
    loaded.load(states.entries())
    assert loaded.check(header(6, transactional=True)) is None


def test_markers_of_old_epochs_are_refused() -> None:
    """Does no marker of an older epoch end a newer epoch's transaction, not even in a replay?"""
    states = ProducerStates()
    states.record(header(0, epoch=4, transactional=True), 10, 1)
    batch = build_end_marker(EndTransactionMarker(False, 3, 9), producer_id=7, producer_epoch=3, base_offset=12)

    assert refusal(states, 3, version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(states, 4, version=1) is None
    assert states.replay(read_header(batch), memoryview(batch)) is None
    assert states.first_unstable_offset == 10
    assert states.entries()[0].producer_epoch == 4


def test_markers_that_bump_the_epoch() -> None:
    """Must a marker of transaction version 2 be above the epoch, but for one that comes again and the last epoch?"""
    states = ProducerStates()
    states.record(header(0, epoch=4, transactional=True), 10, 1)

    assert refusal(states, 4, version=2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(states, 5, version=2) is None
    end(states, 11, committed=False, epoch=5)
    assert refusal(states, 5, version=2) is None, "the same marker again"
    states.record(header(0, epoch=5, transactional=True), 12, 1)
    assert refusal(states, 5, version=2) == ErrorCode.INVALID_PRODUCER_EPOCH, "the next transaction is not its"
    last = ProducerStates()
    last.record(header(0, epoch=2**15 - 1, transactional=True), 10, 1)
    assert refusal(last, 2**15 - 1, version=2) is None


def test_zombie_coordinators() -> None:
    """Is a marker refused whose coordinator is older than one that was heard of, and any other taken?"""
    states = ProducerStates()
    assert refusal(states, 0, version=1, coordinator_epoch=0) is None
    end(states, 1, committed=True)

    assert refusal(states, 0, version=1, coordinator_epoch=2) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert refusal(states, 0, version=1, coordinator_epoch=3) is None


def test_coordinators_number_nothing() -> None:
    """Are batches without sequence numbers held against the epoch only, and never taken for duplicates?"""
    states = ProducerStates()
    plain = header(-1, 3, transactional=True)
    states.record(plain, 10, 1)

    assert states.check(plain) is None
    states.record(plain, 13, 1)
    assert states.entries()[0].batches[-1] == ProducerBatch(-1, -1, 13, 15, 1)
    with pytest.raises(KafkaError):
        states.check(header(-1, epoch=-1, transactional=True))
    assert states.check(header(-1, epoch=1, transactional=True)) is None


def test_who_must_be_verified() -> None:
    """Is a guard good until something of its producer is written, and none needed within a transaction?"""
    states = ProducerStates()
    first = header(0, transactional=True)
    guard = states.start_verification(first, epoch_bumps=False)

    assert not states.has_transaction(7, 0)
    assert not states.is_verified(first, None)
    assert states.is_verified(first, guard)
    assert states.start_verification(header(1, transactional=True), epoch_bumps=False) is guard
    end(states, 5, committed=False)
    assert not states.is_verified(first, guard), "a marker overtook the answer"
    again = states.start_verification(first, epoch_bumps=False)
    assert states.is_verified(first, again)
    states.record(first, 6, 1)
    assert states.has_transaction(7, 0)
    assert states.is_verified(header(1, transactional=True), None)


def test_verified_batches_keep_their_order() -> None:
    """Must a batch wait for one before it that is still being verified, in its own epoch?"""
    partition = Partition()
    for sequence in (5, 4):
        partition.states.start_verification(header(sequence, transactional=True), epoch_bumps=False)

    assert partition.produce(header(5, transactional=True)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.produce(header(4, transactional=True)) == 0
    assert partition.produce(header(5, transactional=True)) == 1
    other = Partition()
    other.states.start_verification(header(0, transactional=True), epoch_bumps=False)
    other.states.start_verification(header(9, epoch=1, transactional=True), epoch_bumps=False)
    assert other.produce(header(9, epoch=1, transactional=True)) == 0


def test_clients_that_bump_begin_at_zero() -> None:
    """Must an unknown producer that has an epoch for each transaction begin at 0?"""
    partition = Partition()
    partition.states.start_verification(header(5, transactional=True), epoch_bumps=True)

    assert partition.produce(header(5, transactional=True)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.produce(header(0, transactional=True)) == 0


def test_verifications_are_bounded() -> None:
    """Do questions about ever new producers not fill the memory?"""
    states = ProducerStates(producers_max=2)
    batches = [header(0, producer_id=number, transactional=True) for number in range(4)]
    guards = [states.start_verification(batch, epoch_bumps=False) for batch in batches]

    verified = [states.is_verified(batch, guard) for batch, guard in zip(batches, guards, strict=True)]
    assert verified == [False, False, True, True]


def test_expiry() -> None:
    """Are producers forgotten after their idle time, but for those with an open transaction?"""
    states = ProducerStates()
    states.record(header(0, producer_id=1), 0, 1_000)
    states.record(header(0, producer_id=2, transactional=True), 1, 1_000)
    states.record(header(0, producer_id=3), 2, 1_001)

    assert states.expire(now_ms=1_999, expiration_ms=1_000) == 0
    assert states.expire(now_ms=2_000, expiration_ms=1_000) == 1
    assert [entry.producer_id for entry in states.entries()] == [2, 3]


def test_the_longest_idle_makes_room() -> None:
    """Is the number of producers bounded, the idle ones going first and open transactions never?"""
    partition = Partition(producers_max=3)
    for producer_id, transactional in ((1, True), (2, False), (3, False)):
        partition.produce(header(0, producer_id=producer_id, transactional=transactional))
    partition.produce(header(1, producer_id=2))
    partition.produce(header(0, producer_id=4))

    assert [entry.producer_id for entry in partition.states.entries()] == [1, 2, 4]


def test_only_transactions_may_pass_the_limit() -> None:
    """Is nobody thrown out when everybody is within a transaction?"""
    states = ProducerStates(producers_max=2)
    for producer_id in range(4):
        states.record(header(0, producer_id=producer_id, transactional=True), producer_id, 1)

    assert len(states) == 4


def test_a_snapshot_of_too_many_batches_is_cut() -> None:
    """Are only the last five batches of a snapshot believed?"""
    batches = tuple(ProducerBatch(index, index, index, index, 0) for index in range(8))
    states = ProducerStates()
    states.load([ProducerEntry(7, 0, -1, 0, -1, batches)])

    assert states.entries()[0].batches == batches[-BATCHES_MAX:]


class NaiveModel:
    """Everything a producer ever sent in its present epoch, in full; only the rules, no cleverness."""

    def __init__(self) -> None:
        self.epoch: dict[int, int] = {}
        self.written: dict[int, list[tuple[int, int, int]]] = {}

    def produce(self, producer_id: int, epoch: int, first: int, count: int, end: int) -> int | ErrorCode:
        """The offset or error for a batch that would be appended at `end`."""
        known = self.epoch.get(producer_id)
        last = (first + count - 1) % SEQUENCES
        if known is not None and epoch < known:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if known == epoch:
            written = self.written[producer_id]
            for old_first, old_last, offset in written[-5:]:
                if (old_first, old_last) == (first, last):
                    return offset
            if (written[-1][1] + 1) % SEQUENCES != first:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        elif known is not None and first != 0:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if known != epoch:
            self.written[producer_id] = []
        self.epoch[producer_id] = epoch
        self.written[producer_id].append((first, last, end))
        return end


class ProducersAgainstTheModel(RuleBasedStateMachine):
    """The core and the model are asked the same; a snapshot is taken and loaded after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.partition = Partition()
        self.model = NaiveModel()

    ids = st.integers(0, 2)
    counts = st.sampled_from([1, 2, 3, 10, SEQUENCES // 3])

    def both(self, producer_id: int, epoch: int, sequence: int, count: int) -> None:
        """Ask both and compare."""
        expected = self.model.produce(producer_id, epoch, sequence, count, self.partition.end)

        assert self.partition.produce(header(sequence, count, epoch=epoch, producer_id=producer_id)) == expected

    @rule(producer_id=ids, epoch=st.integers(0, 3), sequence=st.integers(0, 12), count=counts)
    def anything(self, producer_id: int, epoch: int, sequence: int, count: int) -> None:
        """A batch out of the blue."""
        self.both(producer_id, epoch, sequence, count)

    @precondition(lambda self: self.model.epoch)
    @rule(pick=st.integers(0, 10), count=counts)
    def next_in_order(self, pick: int, count: int) -> None:
        """The batch an honest client sends next."""
        producer_id = sorted(self.model.epoch)[pick % len(self.model.epoch)]
        last = self.model.written[producer_id][-1][1]
        self.both(producer_id, self.model.epoch[producer_id], (last + 1) % SEQUENCES, count)

    @precondition(lambda self: self.model.epoch)
    @rule(pick=st.integers(0, 10), back=st.integers(1, 7))
    def again(self, pick: int, back: int) -> None:
        """A batch sent before."""
        producer_id = sorted(self.model.epoch)[pick % len(self.model.epoch)]
        written = self.model.written[producer_id]
        first, last, _ = written[-min(back, len(written))]
        self.both(producer_id, self.model.epoch[producer_id], first, (last - first) % SEQUENCES + 1)

    @invariant()
    def a_snapshot_holds_everything(self) -> None:
        """Does a state loaded from the entries have the same entries?"""
        entries = self.partition.states.entries()
        loaded = ProducerStates()
        loaded.load(entries)

        assert loaded.entries() == entries
        self.partition.states = loaded


TestProducersAgainstTheModel = ProducersAgainstTheModel.TestCase


def test_a_transaction_of_an_older_epoch_is_not_the_one_that_begins() -> None:
    """Must the first batch of a new epoch be verified although the old epoch's marker is still to come?"""
    states = ProducerStates()
    states.record(header(0, epoch=3, transactional=True), 10, 1)
    assert states.has_transaction(7, 3)
    assert not states.has_transaction(7, 4)
