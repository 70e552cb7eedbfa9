"""Taking over what is committed: in order, from memory or from the log, snapshots in between."""

import asyncio
from uuid import UUID

import pytest

from headrace.coordination.quorum.applier import Applier
from headrace.coordination.quorum.snapshot_file import Snapshot
from headrace.cores.metadata import Metadata
from headrace.cores.raft.log_mirror import OffsetAndEpoch
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    TopicRecord,
)


def topic(number):
    """A topic's record."""
    return TopicRecord(name=f"topic-{number}", topic_id=UUID(int=number + 1000))


class Stage:
    """An applier over a log, and what it told."""

    def __init__(self, shelf):
        self.log = shelf.open_log()
        self.faults = []
        self.told = []
        self.applier = Applier(Metadata(), self.log, on_fault=self.faults.append)
        self.applier.on_commit = self._on_commit
        self.applier.start()

    async def _on_commit(self, records):
        self.told.append(list(records))

    def append(self, *numbers, epoch=1):
        """Append a decision."""
        return self.log.append_decision([topic(number) for number in numbers], epoch)


def test_only_what_is_committed(shelf, play):
    """Are records taken over up to the committed offset, batch by batch, and no further?"""

    async def scene():
        stage = Stage(shelf)
        for number in range(0, 6, 2):
            stage.append(number, number + 1)
        stage.applier.committed(4)
        await stage.applier.reached(4)

        assert [[topic(0), topic(1)], [topic(2), topic(3)]] == stage.told
        assert OffsetAndEpoch(4, 1) == stage.applier.position
        stage.applier.stop()

    play(scene())


def test_decisions_of_this_node(shelf, play):
    """Is who decided told when the decision is taken over, and is an earlier one from the log taken over before?"""

    async def scene():
        stage = Stage(shelf)
        stage.append(1)
        done = stage.applier.decided(stage.append(2))
        stage.applier.committed(1)
        await stage.applier.reached(1)
        assert not done.done()
        stage.applier.committed(2)
        await done

        assert [[topic(1)], [topic(2)]] == stage.told
        stage.applier.stop()

    play(scene())


def test_losing_the_lead(shelf, play):
    """Are only those told of a lost lead whose decision is not committed?"""

    async def scene():
        stage = Stage(shelf)
        safe, unsafe = (stage.applier.decided(stage.append(number)) for number in (1, 2))
        stage.applier.committed(1)
        stage.applier.forget_decisions(KafkaError(ErrorCode.NOT_CONTROLLER))

        with pytest.raises(KafkaError):
            await unsafe
        await safe
        stage.applier.stop()

    play(scene())


def test_a_snapshot_in_between(shelf, play):
    """Is a snapshot taken over as the difference, and the log behind it after that?"""

    async def scene():
        stage = Stage(shelf)
        stage.append(1, 2)
        stage.applier.committed(2)
        await stage.applier.reached(2)
        stage.applier.load(OffsetAndEpoch(50, 3), Snapshot(9, None, [topic(2), topic(3)]))
        await stage.log.begin_again(50)
        stage.append(4, epoch=3)
        stage.applier.committed(51)
        await stage.applier.reached(51)

        assert {"topic-2", "topic-3", "topic-4"} == set(stage.applier.metadata.topics)
        assert 3 == len(stage.told)
        assert [] == stage.faults
        stage.applier.stop()

    play(scene())


def test_the_log_goes_while_it_is_read(shelf, play):
    """Is a log that was emptied under the reader no fault, if a snapshot takes its place?"""

    async def scene():
        stage = Stage(shelf)
        stage.append(1)
        await stage.applier.turn.acquire()
        stage.applier.committed(1)
        stage.applier.load(OffsetAndEpoch(50, 3), Snapshot(9, None, [topic(5)]))
        await stage.log.begin_again(50)
        stage.applier.turn.release()
        await stage.applier.reached(50)

        assert {"topic-5"} <= set(stage.applier.metadata.topics)
        assert [] == stage.faults
        stage.applier.stop()

    play(scene())


def test_a_transaction_is_taken_over_at_its_end(shelf, play):
    """Is nothing of a transaction in the image or told before its end, and nothing ever of one that is aborted?"""

    async def scene():
        stage = Stage(shelf)
        batches = [
            [topic(0), BeginTransactionRecord(name="first"), topic(1)],
            [topic(2)],
            [topic(3), EndTransactionRecord(), topic(4), BeginTransactionRecord(name="second"), topic(5)],
            [topic(6), AbortTransactionRecord(reason="none"), topic(7)],
        ]
        seen = []
        for batch in batches:
            offset = stage.log.append_decision(batch, 1).end_offset
            stage.applier.committed(offset)
            await stage.applier.reached(offset)
            seen.append((sorted(stage.applier.metadata.topics), stage.applier.transaction.is_open))

        first, second = ["topic-0"], [f"topic-{number}" for number in range(5)]
        assert [(first, True), (first, True), (second, True), ([*second, "topic-7"], False)] == seen
        assert [[topic(0)], [topic(number) for number in range(1, 5)], [topic(7)]] == stage.told
        stage.applier.stop()

    play(scene())


def test_a_snapshot_ends_what_is_held_back(shelf, play):
    """Is a transaction forgotten that was open when a snapshot took the place of the log?"""

    async def scene():
        stage = Stage(shelf)
        stage.log.append_decision([BeginTransactionRecord(), topic(1)], 1)
        stage.applier.committed(2)
        await stage.applier.reached(2)
        stage.applier.load(OffsetAndEpoch(50, 3), Snapshot(9, None, [topic(2)]))
        await stage.log.begin_again(50)
        stage.append(3, epoch=3)
        stage.applier.committed(51)
        await stage.applier.reached(51)

        assert {"topic-2", "topic-3"} == set(stage.applier.metadata.topics)
        assert [] == stage.faults
        stage.applier.stop()

    play(scene())


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([BeginTransactionRecord(), BeginTransactionRecord()], id="two beginnings"),
        pytest.param([EndTransactionRecord()], id="an end alone"),
        pytest.param([AbortTransactionRecord()], id="an abort alone"),
    ],
)
def test_a_transaction_that_makes_no_sense(shelf, play, records):
    """Is a log whose transactions do not fit together told as damaged?"""

    async def scene():
        stage = Stage(shelf)
        stage.log.append_decision(records, 1)
        stage.applier.committed(len(records))
        await asyncio.wait({stage.applier._task}, timeout=10)

        assert 1 == len(stage.faults)
        assert [] == stage.told

    play(scene())


def test_damage_is_told(shelf, play):
    """Is a committed batch that cannot be read the end of it, and told?"""

    async def scene():
        stage = Stage(shelf)
        stage.append(1)
        shelf.files.flip_bit(f"{stage.log.log.path}/00000000000000000000.log", 70)
        stage.applier.committed(1)
        await asyncio.wait({stage.applier._task}, timeout=10)

        assert 1 == len(stage.faults)
        assert [] == stage.told

    play(scene())


def test_waiting_ends_with_the_stop(shelf, play):
    """Is who waits for an offset that never comes let go when it stops?"""

    async def scene():
        stage = Stage(shelf)
        waiting = asyncio.create_task(stage.applier.reached(99))
        await asyncio.sleep(0)
        stage.applier.stop()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    play(scene())
