"""What a replica wakes up with, whatever a crash left."""

import asyncio
from uuid import UUID

import pytest

from headrace.coordination.quorum.applier import Applier
from headrace.coordination.quorum.opening import open_replica
from headrace.coordination.quorum.quorum_state_file import write_quorum_state
from headrace.coordination.quorum.snapshot_file import SnapshotFiles
from headrace.cores.metadata import Metadata
from headrace.cores.raft.log_mirror import EMPTY, OffsetAndEpoch
from headrace.cores.raft.outputs import AppendControl, LeaderChange, Voters
from headrace.cores.raft.quorum_state import QuorumState
from headrace.cores.raft.voters import BOOTSTRAP_OFFSET, Endpoint, ReplicaKey, Voter, VoterSet
from headrace.model.errors import StorageFault
from headrace.model.metadata_records import TopicRecord


def voters(*ids):
    """A voter set."""
    return VoterSet(Voter(ReplicaKey(n, UUID(int=n)), (Endpoint("CONTROLLER", "x", n),)) for n in ids)


def topic(number):
    """A topic's record."""
    return TopicRecord(name=f"topic-{number}", topic_id=UUID(int=number + 1000))


class Replica:
    """A log of epoch 1 with ten topics behind its leader change, and its snapshots."""

    def __init__(self, shelf, *, count=10):
        self.log = shelf.open_log()
        self.files = shelf.files
        self.snapshots = SnapshotFiles(shelf.files, self.log.log.path)
        if count:
            self.log.append_control(AppendControl(0, 1, (LeaderChange(1, (1,), (1,)),)))
        for number in range(count):
            self.log.append_decision([topic(number)], 1)

    def snapshot(self, offset, epoch, *, topics=0, voters=None):
        """Write a snapshot."""
        snapshot_id = OffsetAndEpoch(offset, epoch)
        records = [topic(number) for number in range(topics)]
        self.snapshots.write(snapshot_id, records, timestamp_ms=5, voters=voters, now_ms=5)
        return snapshot_id

    def open(self, *, static=None):
        """Open it."""

        async def in_a_loop():
            applier = Applier(Metadata(), self.log, on_fault=pytest.fail)
            opened = open_replica(
                self.files,
                self.log.log.path,
                log=self.log,
                snapshots=self.snapshots,
                applier=applier,
                static_voters=static,
            )
            return opened, applier

        return asyncio.run(in_a_loop())


def test_nothing(shelf):
    """Does an empty directory give an empty log, epoch 0, and the voters of the settings?"""
    opened, applier = Replica(shelf, count=0).open(static=voters(1, 2))

    assert (0, 0, QuorumState()) == (opened.mirror.start_offset, opened.mirror.end_offset, opened.state)
    assert voters(1, 2) == opened.mirror.voters.last
    assert 0 == opened.mirror.voters.kraft_version
    assert EMPTY == applier.position


def test_a_log(shelf):
    """Are the end, the epochs and the vote told, and is nothing taken for committed?"""
    replica = Replica(shelf)
    write_quorum_state(replica.files, replica.log.log.path, QuorumState(4, 2, None))

    opened, applier = replica.open()

    assert (0, 11, 1) == (opened.mirror.start_offset, opened.mirror.end_offset, opened.mirror.last_epoch)
    assert QuorumState(4, 2, None) == opened.state
    assert {} == applier.metadata.topics
    assert replica.log.log.recovery_point == 11


def test_the_newest_snapshot_is_loaded(shelf):
    """Does the image begin with the newest snapshot, though the log has everything still?"""
    replica = Replica(shelf)
    kept = [replica.snapshot(3, 1, topics=2), replica.snapshot(6, 1, topics=5)]

    opened, applier = replica.open()

    assert kept == opened.mirror.snapshots
    assert (OffsetAndEpoch(6, 1), 5) == (applier.position, len(applier.metadata.topics))


@pytest.mark.parametrize(("offset", "epoch"), [(50, 1), (12, 1), (5, 2), (50, 3)])
def test_a_crash_while_a_snapshot_was_loaded(shelf, offset, epoch):
    """Is the log emptied for a snapshot that has more than the log, by epoch or by offset?"""
    replica = Replica(shelf)
    snapshot_id = replica.snapshot(offset, epoch, topics=7)

    opened, applier = replica.open()

    assert offset == opened.mirror.start_offset == opened.mirror.end_offset == replica.log.start_offset
    assert (epoch, [snapshot_id]) == (opened.mirror.last_epoch, opened.mirror.snapshots)
    assert 7 == len(applier.metadata.topics)


def test_a_crash_while_the_log_was_cleaned(shelf):
    """Does the log start at its first snapshot where segments were gone already, and do older snapshots go?"""
    replica = Replica(shelf)
    replica.snapshot(3, 1)
    replica.snapshot(6, 1, voters=voters(1, 2, 3))
    replica.log.raise_start_now(5)

    opened, _ = replica.open()

    assert [OffsetAndEpoch(6, 1)] == opened.mirror.snapshots == replica.snapshots.ids()
    assert 6 == opened.mirror.start_offset == replica.log.start_offset
    assert (5, voters(1, 2, 3)) == (opened.mirror.voters.last_offset, opened.mirror.voters.last)


def test_a_log_without_its_beginning_is_refused(shelf):
    """Is a log that starts later than 0 refused where no snapshot covers what was before?"""
    replica = Replica(shelf)
    replica.snapshot(3, 1)
    replica.log.raise_start_now(5)

    with pytest.raises(StorageFault):
        replica.open()


def test_voters_of_formatting(shelf):
    """Do the voters a directory was formatted with count from before the first record, and over the settings?"""
    replica = Replica(shelf, count=0)
    replica.snapshots.write_bootstrap(voters(7), now_ms=0)

    opened, applier = replica.open(static=voters(1))

    assert (BOOTSTRAP_OFFSET, voters(7)) == (opened.mirror.voters.last_offset, opened.mirror.voters.last)
    assert 1 == opened.mirror.voters.kraft_version
    assert opened.mirror.latest_snapshot is None
    assert EMPTY == applier.position


def test_voters_in_the_log(shelf):
    """Do voters in the log count from where they stand?"""
    replica = Replica(shelf)
    replica.snapshots.write_bootstrap(voters(7), now_ms=0)
    replica.log.append_control(AppendControl(11, 1, (Voters(voters(7, 8)),)))

    opened, _ = replica.open()

    assert (11, voters(7, 8)) == (opened.mirror.voters.last_offset, opened.mirror.voters.last)
    assert voters(7) == opened.mirror.voters.at(11)
