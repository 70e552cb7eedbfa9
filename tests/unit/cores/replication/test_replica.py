"""Leader or follower, by the newest metadata."""

import pytest

from headrace.cores.replication.follower import Follower
from headrace.cores.replication.leader import Leader
from headrace.cores.replication.messages import AlterAnswer, FetchAnswer, FetchPosition, ReplicationSettings
from headrace.cores.replication.replica import Change, Replica


@pytest.fixture
def replica(log_of, status):
    """Broker 1 with three records, of which it knows two to be committed."""
    return Replica(
        log_of(1, 1, 1),
        broker_id=1,
        broker_epoch=10,
        brokers={broker_id: status() for broker_id in (1, 2, 3)},
        settings=ReplicationSettings(),
        high_watermark=2,
    )


def test_has_no_part_at_first(replica):
    """Is a replica neither before the metadata says so, with its checkpointed high watermark?"""
    assert (replica.leader, replica.follower, replica.high_watermark) == (None, None, 2)


@pytest.mark.parametrize(("checkpoint", "expected"), [(9, 3), (0, 1), (2, 2)])
def test_a_checkpoint_outside_the_log(log_of, checkpoint, expected):
    """Is a checkpointed high watermark kept within the log, which may have been cut or deleted since?"""
    log = log_of(1, 1, 1)
    log.advance_start(1)
    made = Replica(
        log,
        broker_id=1,
        broker_epoch=10,
        brokers={},
        settings=ReplicationSettings(),
        high_watermark=checkpoint,
    )

    assert made.high_watermark == expected


def test_becomes_leader(replica, registration):
    """Does a new leader begin its epoch at its end, with the high watermark it had?"""
    assert replica.update(registration(), 0) is Change.BECAME_LEADER

    leader = replica.leader
    assert isinstance(leader, Leader)
    assert (leader.leader_epoch, leader.epoch_start_offset, leader.high_watermark) == (5, 3, 2)


def test_follows_and_leads_again(replica, registration):
    """Does the high watermark go along when the part changes?"""
    replica.update(registration(leader=2), 0)
    follower = replica.follower
    assert isinstance(follower, Follower)
    follower.appended(FetchAnswer(high_watermark=9))

    assert replica.update(registration(leader_epoch=6, partition_epoch=8), 0) is Change.BECAME_LEADER
    assert replica.high_watermark == 3
    assert replica.update(registration(leader=3, leader_epoch=7, partition_epoch=9), 0) is Change.BECAME_FOLLOWER
    assert (replica.high_watermark, replica.leader) == (3, None)


def test_the_same_again(replica, registration):
    """Is metadata that changes nothing for us just taken, so that an open fetch goes on?"""
    replica.update(registration(leader=2), 0)
    follower = replica.follower

    assert replica.update(registration(leader=2, isr=(2,), partition_epoch=8), 0) is Change.UPDATED
    assert replica.follower is follower


def test_a_new_epoch_of_the_same_leader(replica, registration):
    """Does a follower begin anew with each epoch, so that an answer of the old one is ignored?"""
    replica.update(registration(leader=2), 0)
    follower = replica.follower

    assert replica.update(registration(leader=2, leader_epoch=6, partition_epoch=8), 0) is Change.BECAME_FOLLOWER
    assert replica.follower is not follower


def test_old_metadata(replica, registration):
    """Is metadata ignored that is older than what we know, also from an AlterPartition's answer?"""
    replica.update(registration(isr=(1, 2)), 0)
    leader = replica.leader
    position = FetchPosition(leader_epoch=5, offset=3)
    leader.fetch(3, position, broker_epoch=10, now_ms=0)
    request = leader.take_request()
    leader.answered(request, AlterAnswer(leader_epoch=5, partition_epoch=9, isr=(1, 2, 3)), 0)

    assert replica.update(registration(isr=(1, 2), partition_epoch=8), 0) is Change.IGNORED
    assert leader.isr.committed == {1, 2, 3}
    replica.update(registration(leader=2, leader_epoch=6, partition_epoch=10), 0)
    assert replica.update(registration(leader=3, leader_epoch=5, partition_epoch=9), 0) is Change.IGNORED


def test_leads_on(replica, registration):
    """Does a leader stay the same through changes of the ISR, and begin an epoch when told to?"""
    replica.update(registration(), 0)
    leader = replica.leader

    assert replica.update(registration(isr=(1, 2), partition_epoch=8), 0) is Change.UPDATED
    assert replica.update(registration(leader_epoch=6, partition_epoch=9), 0) is Change.NEW_EPOCH
    assert replica.leader is leader


def test_settings(replica, registration):
    """Do new settings reach whichever part we have?"""
    for leader in (1, 2):
        replica.update(registration(leader=leader, leader_epoch=5 + leader, partition_epoch=7 + leader), 0)
        replica.configure(ReplicationSettings(flushes=False, min_insync_replicas=leader), 0)

    assert not replica.follower.must_flush
    replica.update(registration(leader_epoch=9, partition_epoch=12), 0)
    assert replica.leader.min_isr == 2
