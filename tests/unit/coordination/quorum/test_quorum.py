"""A quorum of one on a disk in memory: deciding, restarting, and failing."""

import asyncio
from random import Random
from uuid import UUID

import pytest

from headrace.coordination.quorum.snapshot_policy import SnapshotPolicy
from headrace.cores.controller import Outcome
from headrace.cores.raft.log_mirror import OffsetAndEpoch
from headrace.cores.raft.messages import FetchRequest, FetchSnapshotRequest, VoteRequest
from headrace.cores.raft.voters import ReplicaKey
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.model.metadata_records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorum_nodes import CLUSTER, creation, static_voters


def nothing(metadata):
    """A command that only looks."""
    return Outcome([], len(metadata.topics))


def fetch(node, offset, **facts):
    """A fetch as an observer sends it."""
    return FetchRequest(
        cluster_id=CLUSTER,
        replica=ReplicaKey(9),
        epoch=node.quorum.leader_epoch,
        fetch_offset=offset,
        last_epoch=facts.pop("last_epoch", node.quorum.leader_epoch if offset else 0),
        **facts,
    )


def test_it_leads_at_once(shelf, play):
    """Does the only voter lead when it has started, without waiting for any timeout?"""

    async def scene():
        node = await shelf.alone(core={"election_timeout_ms": 3_600_000, "fetch_timeout_ms": 3_600_000})
        assert node.quorum.is_active
        assert (1, 1) == (node.quorum.leader_id, node.quorum.leader_epoch)
        assert [True] == node.leaderships
        await node.stop()
        await node.start(static_voters([node]), core={"election_timeout_ms": 3_600_000})
        assert node.quorum.is_active
        await node.stop()

    play(scene())


def test_decisions_are_there_after_a_power_cut(shelf, play):
    """Is everything that was answered there again, though the node ended without a flush?"""

    async def scene():
        for number in range(5):
            node = await shelf.alone()
            assert number == len(node.quorum.metadata.topics)
            assert [] == node.committed
            await node.quorum.run(creation(f"topic-{number}"))
            assert number + 1 == len(node.quorum.metadata.topics)
            assert 1 == len(node.committed)
            shelf.files.power_cut(Random(number))
            await node.kill()

    play(scene())


def test_the_next_offset_is_the_records_own(shelf, play):
    """Does a command that decides know the offset its first record will have?"""

    async def scene():
        node = await shelf.alone()
        seen = []

        def decide(metadata):
            seen.append(node.quorum.next_offset)
            return Outcome([NoOpRecord(), NoOpRecord()], None)

        await asyncio.gather(*(node.quorum.run(decide) for _ in range(3)))
        assert [1, 3, 5] == seen
        assert 7 == node.quorum.applied_offset
        await node.stop()

    play(scene())


def test_half_a_transaction_is_aborted_by_the_next_leader(shelf, play):
    """Does a leader drop what its predecessor left half done, before anything of its own is decided?"""

    async def scene():
        node = await shelf.alone()
        half = [BeginTransactionRecord(name="half"), TopicRecord(name="never", topic_id=UUID(int=7))]
        await node.quorum.run(lambda metadata: Outcome(half, None))
        await node.kill()

        node = await shelf.alone()
        await node.quorum.run(creation("topic"))
        assert ["topic"] == list(node.quorum.metadata.topics)
        await node.stop()

        node = await shelf.alone()
        assert ["topic"] == list(node.quorum.metadata.topics)
        await node.stop()

    play(scene())


def test_no_snapshot_has_half_a_transaction(shelf, play):
    """Does a snapshot wait for the end of a transaction, and then have all of it?"""

    async def scene():
        node = await shelf.alone()
        half = [BeginTransactionRecord(), TopicRecord(name="whole", topic_id=UUID(int=7))]
        await node.quorum.run(lambda metadata: Outcome(half, None))
        await node.quorum.snapshot()
        before = node.quorum._snapshots.ids()
        await node.quorum.run(lambda metadata: Outcome([EndTransactionRecord()], None))
        await node.quorum.snapshot()
        (written,) = node.quorum._snapshots.ids()

        assert [] == before
        assert OffsetAndEpoch(node.quorum.applied_offset, 1) == written
        assert ["whole"] == [record.name for record in node.quorum._snapshots.read(written).records]
        await node.stop()

    play(scene())


def test_looking_waits_for_what_was_decided_before(shelf, play):
    """Is a reply without records given only when all that it may speak of is committed?"""

    async def scene():
        node = await shelf.alone()
        order = []

        async def run(name, command):
            reply = await node.quorum.run(command)
            order.append((name, len(node.quorum.metadata.topics)))
            return reply

        _, seen = await asyncio.gather(run("decided", creation("topic")), run("looked", nothing))

        assert 1 == seen
        assert [("decided", 1), ("looked", 1)] == order
        await node.stop()

    play(scene())


def test_a_full_disk_refuses_a_command_only(shelf, play):
    """Does the controller go on after a decision could not be written, as if it had never been taken?"""

    async def scene():
        node = await shelf.alone()
        shelf.files.fail_next("write", 28, path_contains=".log")
        with pytest.raises(KafkaError) as refused:
            await node.quorum.run(creation("too-much"))
        await node.quorum.run(creation("fits"))

        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert {"fits"} == set(node.quorum.metadata.topics)
        assert node.quorum.is_active
        await node.stop()

    play(scene())


def test_a_failed_flush_ends_it(shelf, play):
    """Does a controller whose log cannot be flushed stop being one, and refuse whatever it is asked?"""

    async def scene():
        node = await shelf.alone()
        await node.quorum.run(creation("safe"))
        shelf.files.fail_next("fsync", path_contains=".log")
        results = await asyncio.gather(
            *(node.quorum.run(creation(f"unsafe-{n}")) for n in range(3)), return_exceptions=True
        )

        assert [ErrorCode.KAFKA_STORAGE_ERROR] * 3 == [error.code for error in results]
        assert not node.quorum.is_active
        assert [True, False] == node.leaderships
        assert {"safe"} == set(node.quorum.metadata.topics)
        for refused in (node.quorum.run(nothing), node.quorum.handle(fetch(node, 0)), node.quorum.caught_up()):
            with pytest.raises(KafkaError) as error:
                await refused
            assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        await node.quorum.stop()

    play(scene())


def test_a_state_that_cannot_be_written_ends_it(shelf, play):
    """Does a voter that cannot write down its vote not lead?"""

    async def scene():
        shelf.files.fail_next("fsync", path_contains="quorum-state")
        with pytest.raises(KafkaError) as error:
            await shelf.alone()
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR

    play(scene())


def test_what_the_node_could_not_take_over(shelf, play):
    """Is a decision that is committed but could not be acted on told as a storage error, and made up for later?"""

    async def scene():
        node = await shelf.alone()
        full = True
        made = []

        async def on_commit(records):
            if full:
                raise StorageFault("full")
            made.extend(records)

        node.quorum.on_commit = on_commit
        with pytest.raises(KafkaError) as error:
            await node.quorum.run(creation("topic"))
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert {"topic"} == set(node.quorum.metadata.topics)
        with pytest.raises(StorageFault):
            await node.quorum.finish()
        full = False
        await node.quorum.finish()
        await node.quorum.finish()

        assert 3 == len(made)
        await node.stop()

    play(scene())


def test_a_mistake_of_the_node_does_not_stop_the_image(shelf, play, caplog):
    """Does the image go on when whoever is told of a commit makes a mistake, and is that seen?"""

    async def scene():
        node = await shelf.alone()

        async def on_commit(records):
            raise ValueError("oh")

        node.quorum.on_commit = on_commit
        with pytest.raises(KafkaError):
            await node.quorum.run(creation("one"))
        node.quorum.on_commit = None
        await node.quorum.run(creation("two"))

        assert {"one", "two"} == set(node.quorum.metadata.topics)
        assert "commit_not_taken_over" in caplog.text
        await node.stop()

    play(scene())


def test_a_decision_that_cannot_be_replayed_ends_it(shelf, play):
    """Does a controller stop that wrote a record which its own image refuses?"""

    async def scene():
        node = await shelf.alone()
        unknown = RemoveTopicRecord(topic_id=UUID(int=4711))
        with pytest.raises(KafkaError) as error:
            await node.quorum.run(lambda metadata: Outcome([unknown], None))

        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert not node.quorum.is_active
        await node.kill()
        node = await shelf.alone()
        await node.quorum.run(creation("sound"))
        assert {"sound"} == set(node.quorum.metadata.topics)
        await node.stop()

    play(scene())


def test_the_image_stands_still_while_it_is_held(shelf, play):
    """Is nothing taken over while somebody looks at the whole image?"""

    async def scene():
        node = await shelf.alone()
        async with node.quorum.turn:
            running = asyncio.create_task(node.quorum.run(creation("topic")))
            await node.quorum._log.quiet()
            for _ in range(10):
                await asyncio.sleep(0)
            assert {} == node.quorum.metadata.topics
        await running
        assert {"topic"} == set(node.quorum.metadata.topics)
        await node.stop()

    play(scene())


def test_snapshots_by_size(shelf, play):
    """Is a snapshot written when enough was committed, and does a restart begin with it?"""

    async def scene():
        policy = SnapshotPolicy(bytes_between=2000, interval_ms=0)
        node = await shelf.alone(snapshots=policy)
        for number in range(30):
            await node.quorum.run(creation(f"topic-{number}"))
        written = node.quorum._snapshotting._writing
        if written is not None:
            await written
        found = node.quorum._snapshots.ids()
        await node.kill()
        assert len(found) > 1
        node = await shelf.alone(snapshots=policy)
        assert 30 == len(node.quorum.metadata.topics)
        await node.stop()

    play(scene())


def test_snapshots_by_time(shelf, play):
    """Is a snapshot written when there was news for long enough, though little?"""

    async def scene():
        node = await shelf.alone(snapshots=SnapshotPolicy(interval_ms=1))
        files, loop, written = node.quorum._snapshots, asyncio.get_running_loop(), asyncio.Event()
        write = files.write

        def write_and_tell(*facts, **more):
            loop.call_soon_threadsafe(written.set)
            return write(*facts, **more)

        files.write = write_and_tell
        await node.quorum.run(creation("topic"))
        await asyncio.wait_for(written.wait(), 10)
        await node.stop()

    play(scene())


def test_a_snapshot_that_fails(shelf, play, caplog):
    """Does the node go on when a snapshot cannot be written, and write the next?"""

    async def scene():
        node = await shelf.alone(snapshots=SnapshotPolicy(bytes_between=1, interval_ms=0))
        shelf.files.fail_next("create", 28, path_contains=".checkpoint")
        await node.quorum.run(creation("one"))
        while (writing := node.quorum._snapshotting._writing) is not None:
            await asyncio.wait({writing})
        assert "metadata_snapshot_failed" in caplog.text
        assert [] == node.quorum._snapshots.ids()
        await node.quorum.run(creation("two"))
        while (writing := node.quorum._snapshotting._writing) is not None:
            await asyncio.wait({writing})
        assert 1 == len(node.quorum._snapshots.ids())
        await node.stop()

    play(scene())


def test_fetches(shelf, play):
    """Does a fetch bring the log as it is, wait for news, and say where to go on?"""

    async def scene():
        node = await shelf.alone()
        await node.quorum.run(creation("topic"))
        answer = await node.quorum.handle(fetch(node, 0))
        (piece,) = answer.batches
        assert bytes(piece.records) == node.quorum._log.find(0, 1 << 20).load()
        assert node.quorum.applied_offset == answer.high_watermark

        end = node.quorum.next_offset
        waiting = asyncio.create_task(node.quorum.handle(fetch(node, end, max_wait_ms=60_000)))
        await asyncio.sleep(0)
        assert not waiting.done()
        await node.quorum.run(creation("news"))
        assert (await waiting).batches[0].base_offset == end
        await node.stop()

    play(scene())


def test_pieces_of_snapshots(shelf, play):
    """Are pieces handed out with the size, and positions and snapshots refused that are not there?"""

    async def scene():
        node = await shelf.alone()
        await node.quorum.run(creation("topic"))
        await node.quorum.snapshot()
        (found,) = node.quorum._snapshots.ids()

        async def piece(snapshot_id, position, max_bytes=10):
            return await node.quorum.handle(
                FetchSnapshotRequest(
                    replica=ReplicaKey(9),
                    epoch=node.quorum.leader_epoch,
                    snapshot_id=snapshot_id,
                    position=position,
                    max_bytes=max_bytes,
                )
            )

        first = await piece(found, 0)
        assert 10 == len(first.data)
        rest = await piece(found, 10, 1 << 30)
        assert first.size == 10 + len(rest.data)
        assert ErrorCode.POSITION_OUT_OF_RANGE is (await piece(found, first.size)).error
        assert ErrorCode.POSITION_OUT_OF_RANGE is (await piece(found, -1)).error
        assert ErrorCode.SNAPSHOT_NOT_FOUND is (await piece(OffsetAndEpoch(1, 1), 0)).error
        await node.stop()

    play(scene())


def test_questions_end_with_the_node(shelf, play):
    """Is whoever waits for an answer told when the node stops?"""

    async def scene():
        node = await shelf.alone()
        end = node.quorum.next_offset
        waiting = asyncio.create_task(node.quorum.handle(fetch(node, end, max_wait_ms=60_000, high_watermark=end)))
        await asyncio.sleep(0)
        node.quorum.abandon()
        with pytest.raises(KafkaError):
            await waiting
        with pytest.raises(KafkaError):
            await node.quorum.run(nothing)
        await node.quorum.stop()

    play(scene())


def test_nothing_is_answered_before_the_start(shelf, play):
    """Is a node that has not read its vote yet silent about it?"""

    async def scene():
        node = await shelf.alone()
        node.quorum._is_open = False
        request = VoteRequest(epoch=9, candidate=ReplicaKey(2), last_offset=9, last_epoch=1)
        with pytest.raises(KafkaError):
            await node.quorum.handle(request)
        node.quorum._is_open = True
        await node.stop()

    play(scene())
