"""The file that holds a replica's epoch and vote."""

import json
from random import Random
from uuid import UUID

import pytest

from headrace.coordination.quorum.quorum_state_file import read_quorum_state, write_quorum_state
from headrace.cores.raft.quorum_state import QuorumState
from headrace.cores.raft.voters import ReplicaKey
from headrace.model.errors import StorageFault
from headrace.storage.files import write_all
from headrace.storage.memory_files import MemoryFiles

VOTED = QuorumState(7, -1, ReplicaKey(3, UUID(int=12345)))


@pytest.fixture
def files():
    """A disk with an empty directory."""
    files = MemoryFiles()
    files.mkdir("/log")
    files.fsync_dir("/")
    return files


def write(files, text):
    """Put a text in the file's place."""
    write_all(files.open("/log/quorum-state", create=True), text, 0)


def test_nothing_written(files):
    """Does a replica that was never in a quorum begin in epoch 0, without a vote?"""
    assert QuorumState() == read_quorum_state(files, "/log")


def test_the_text_is_kafkas(files):
    """Has the file the fields that Kafka 4.3 writes, in its version 1?"""
    write_quorum_state(files, "/log", VOTED)

    assert {
        "leaderId": -1,
        "leaderEpoch": 7,
        "votedId": 3,
        "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAwOQ",
        "data_version": 1,
    } == json.loads(files.read("/log/quorum-state"))


def test_the_last_state_survives_a_power_cut(files):
    """Is what was written there after any power cut, and never half of it?"""
    for epoch in range(1, 20):
        write_quorum_state(files, "/log", QuorumState(epoch, epoch % 3, None))
        files.power_cut(Random(epoch))

        assert QuorumState(epoch, epoch % 3, None) == read_quorum_state(files, "/log")


def test_a_crash_in_the_middle_leaves_the_old_or_the_new(files):
    """Is the state before or after a write found, at whichever step the disk fails?"""
    write_quorum_state(files, "/log", QuorumState(1))
    for operation in ("create", "write", "fsync", "rename", "fsync_dir"):
        files.fail_next(operation)
        with pytest.raises(StorageFault):
            write_quorum_state(files, "/log", VOTED)
        files.power_cut()

        assert read_quorum_state(files, "/log") in {QuorumState(1), VOTED}


def test_an_older_form_is_read(files):
    """Is the file of a Kafka from before directories understood?"""
    write(files, b'{"clusterId":"x","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"data_version":0}')

    assert QuorumState(2, 1, None) == read_quorum_state(files, "/log")


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"leaderEpoch":-1}', b'{"leaderEpoch":"x"}', b"\xff\xfe"])
def test_a_damaged_file_is_not_guessed_at(files, text):
    """Does a replica that cannot read its vote refuse to start, rather than vote twice?"""
    write(files, text)

    with pytest.raises(StorageFault):
        read_quorum_state(files, "/log")
