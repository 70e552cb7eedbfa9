"""The leader of a partition."""

import pytest

from headrace.cores.replication.messages import AlterAnswer, EpochEnd, ReplicationSettings
from headrace.model.errors import ErrorCode, KafkaError


def refusal(call, *arguments, **options):
    """The error code something is refused with."""
    with pytest.raises(KafkaError) as refused:
        call(*arguments, **options)
    return refused.value.code


# --- the high watermark


def test_waits_for_all_in_sync(lead):
    """Does the high watermark wait until every in-sync follower says that it has a record?"""
    scene = lead()
    scene.append(3)
    assert scene.mark == 0
    scene.fetch(2, 3)
    assert scene.mark == 0
    scene.fetch(3, 2)
    assert scene.mark == 2
    scene.fetch(3, 3)
    assert scene.mark == 3


def test_waits_for_own_flush(lead):
    """Do the leader's own records count only from its disk, where the topic flushes?"""
    scene = lead()
    scene.append(2, flush=False)
    scene.fetch(2, 2)
    scene.fetch(3, 2)
    assert scene.mark == 0

    scene.log.recovery_point = 1
    assert scene.leader.flushed(0)
    assert scene.mark == 1


def test_without_flushing(lead):
    """Does the end of the log count where the topic does not flush?"""
    scene = lead(isr=(1,), replicas=(1,), flushes=False)
    scene.append(2, flush=False)

    assert scene.mark == 2


def test_alone(lead):
    """Does a leader alone in the ISR advance with its own disk, and a new one at once?"""
    scene = lead(4, 4, isr=(1,), high_watermark=1)
    assert scene.mark == 2
    scene.append()
    assert scene.mark == 3


def test_never_goes_back(lead):
    """Does the high watermark stay when a follower that was ahead comes back shorter?"""
    scene = lead()
    scene.append(3)
    scene.fetch(2, 3)
    scene.fetch(3, 3)
    scene.fetch(2, 1, broker_epoch=11)

    assert scene.mark == 3


def test_stays_under_the_minimum(lead):
    """Does nothing become committed while fewer are in sync than the topic asks for (KIP-966)?"""
    scene = lead(isr=(1,), min_isr=2)
    scene.append(2)

    assert scene.mark == 0
    assert scene.leader.outcome(1) is None


def test_minimum_above_the_replicas(lead):
    """Is no more asked for than there are replicas?"""
    scene = lead(isr=(1,), replicas=(1,), min_isr=3)
    scene.leader.check_enough_replicas()
    scene.append()

    assert scene.mark == 1


def test_new_settings(lead):
    """May a lower minimum let the high watermark move?"""
    scene = lead(isr=(1,), min_isr=2)
    scene.append()

    assert scene.leader.configure(ReplicationSettings(min_insync_replicas=1), 0)
    assert scene.leader.settings.min_insync_replicas == 1
    assert scene.mark == 1


def test_waits_for_one_about_to_join(lead):
    """Is a follower outside the ISR that keeps pace waited for, until it has lagged too long?"""
    scene = lead(isr=(1, 3))
    scene.append(2)
    scene.fetch(2, 2)
    request = scene.leader.take_request()
    scene.leader.answered(request, AlterAnswer(error=ErrorCode.INELIGIBLE_REPLICA), 0)
    scene.append(2)
    scene.fetch(3, 4)
    assert scene.mark == 2

    assert scene.leader.tick(1001)
    assert scene.mark == 4


def test_one_that_the_controller_took_out_is_not_waited_for(lead, registration):
    """Is a follower that left the ISR by metadata waited for only from its next fetch on?"""
    scene = lead()
    scene.append(2)
    scene.fetch(2, 2)
    scene.fetch(3, 2)
    scene.append(1)
    scene.fetch(3, 3)
    assert scene.mark == 2

    assert scene.leader.update(registration(isr=(1, 3), partition_epoch=8), 0)
    assert scene.mark == 3
    scene.fetch(2, 3)
    scene.append(1)
    scene.fetch(3, 4)

    assert scene.mark == 3


# --- writing


def test_not_enough_replicas(lead):
    """Is a write with acks=all refused before anything is appended?"""
    scene = lead(isr=(1, 2), min_isr=3)
    assert refusal(scene.leader.check_enough_replicas) == ErrorCode.NOT_ENOUGH_REPLICAS

    lead(isr=(1, 2), min_isr=2).leader.check_enough_replicas()


def test_outcome(lead):
    """Does a produce wait for the high watermark, and learn if the ISR became too small meanwhile?"""
    scene = lead(min_isr=2)
    scene.append(2)
    assert scene.leader.outcome(2) is None
    scene.fetch(2, 2)
    scene.fetch(3, 2)
    assert scene.leader.outcome(2) is ErrorCode.NONE

    scene.leader.configure(ReplicationSettings(min_insync_replicas=3), 0)
    scene.leader.isr.commit((1, 2), 8)
    assert scene.leader.outcome(2) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


# --- fetches


@pytest.mark.parametrize(
    ("follower", "epoch", "broker_epoch", "error"),
    [
        (2, 4, 10, ErrorCode.FENCED_LEADER_EPOCH),
        (2, 6, 10, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (9, 5, 10, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, 5, 9, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
    ids=["old epoch", "new epoch", "no replica", "restarted since"],
)
def test_refused_fetches(lead, follower, epoch, broker_epoch, error):
    """Is a fetch refused that is not of this epoch, of no replica, or of an earlier life of one?"""
    scene = lead()
    scene.append()

    assert refusal(scene.fetch, follower, 1, epoch=epoch, broker_epoch=broker_epoch) == error
    assert scene.leader.followers[2].offset == -1


def test_a_diverged_follower_is_not_counted(lead):
    """Is a follower told where it parted from us, and not counted by what it asked for?"""
    scene = lead(3, 3)
    scene.append(3)

    assert scene.fetch(2, 4, last_epoch=4) == EpochEnd(3, 2)
    assert scene.leader.followers[2].offset == -1
    assert scene.fetch(2, 2, last_epoch=3) is None
    assert scene.leader.followers[2].offset == 2


def test_records_that_cannot_be_compared(lead):
    """Must a follower start over whose records we deleted before we could compare them?"""
    scene = lead(3, 3, isr=(1,))
    scene.append(3)
    scene.log.advance_start(2)

    assert refusal(scene.fetch, 2, 2, last_epoch=4) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert scene.leader.followers[2].offset == -1
    assert scene.fetch(2, 2) is None
    assert scene.fetch(3, 3, last_epoch=5) is None


def test_low_watermark(lead, status):
    """Is the low watermark the lowest start of the live replicas, whoever is dead aside?"""
    scene = lead()
    scene.append(5)
    scene.fetch(2, 5, log_start_offset=3)
    scene.fetch(3, 5, log_start_offset=1)
    scene.log.advance_start(4)
    assert scene.leader.low_watermark() == 1

    scene.brokers[3] = status(fenced=True)
    assert scene.leader.low_watermark() == 3


# --- shrinking


def test_shrinks(lead):
    """Does a follower that has not been level for too long lose its place, and only when the controller says so?"""
    scene = lead()
    scene.append(2)
    scene.fetch(2, 2)
    scene.now_ms = 900
    scene.fetch(2, 2)
    scene.leader.tick(1000)
    assert scene.leader.take_request() is None

    scene.leader.tick(1001)
    request = scene.leader.take_request()
    assert request.isr == ((1, 10), (2, 10))
    assert scene.leader.take_request() is None
    assert scene.mark == 0
    scene.leader.tick(5000)
    assert scene.leader.take_request() is None
    assert scene.leader.answered(request, AlterAnswer(leader_epoch=5, partition_epoch=8, isr=(1, 2)), 1100)
    assert scene.mark == 2


def test_level_followers_stay(lead):
    """Does a follower that has everything stay in, though it has been silent?"""
    scene = lead()
    scene.append(1)
    scene.fetch(2, 1)
    scene.fetch(3, 1)
    scene.leader.tick(10**6)

    assert scene.leader.take_request() is None


# --- expanding


def test_expands(lead):
    """Does a follower that has reached the high watermark and our epoch's start come in, and count at once?"""
    scene = lead(4, 4, isr=(1, 2), high_watermark=1)
    scene.fetch(3, 1, last_epoch=4)
    assert scene.leader.take_request() is None
    scene.fetch(3, 2, last_epoch=4)
    request = scene.leader.take_request()
    assert request.isr == ((1, 10), (2, -1), (3, 10))

    scene.append()
    scene.fetch(2, 3)
    assert scene.mark == 2
    scene.leader.answered(request, AlterAnswer(leader_epoch=5, partition_epoch=8, isr=(1, 2, 3)), 0)
    assert scene.leader.isr.committed == {1, 2, 3}
    scene.fetch(3, 3)
    assert scene.mark == 3


def test_high_watermark_is_not_enough(lead):
    """Must a follower reach the start of our epoch, even where we know the high watermark to be lower (KAFKA-7128)?"""
    scene = lead(4, 4, 4, isr=(1, 2), high_watermark=1)
    scene.fetch(3, 2, last_epoch=4)

    assert scene.leader.take_request() is None


@pytest.mark.parametrize(
    ("broker_epoch", "broker"),
    [
        (10, {"fenced": True}),
        (10, {"in_controlled_shutdown": True}),
        (11, {}),
        (10, None),
    ],
    ids=["fenced", "leaving", "restarted, and we have not heard", "unknown"],
)
def test_ineligible(lead, status, broker_epoch, broker):
    """Does a follower stay out that the controller would refuse?"""
    scene = lead(isr=(1, 2))
    if broker is None:
        del scene.brokers[3]
    else:
        scene.brokers[3] = status(**broker)
    scene.fetch(3, 0, broker_epoch=broker_epoch)

    assert scene.leader.take_request() is None


def test_refused_expansion(lead):
    """Does a follower that the controller refuses no longer count, and may be asked for again?"""
    scene = lead(isr=(1, 2))
    scene.fetch(3, 0)
    request = scene.leader.take_request()
    scene.leader.answered(request, AlterAnswer(error=ErrorCode.INELIGIBLE_REPLICA), 0)
    assert scene.leader.isr.maximal == {1, 2}

    scene.fetch(3, 0)
    assert scene.leader.take_request() == request


def test_unanswered(lead):
    """Is a request that got no answer sent again as it was?"""
    scene = lead(isr=(1, 2))
    scene.fetch(3, 0)
    request = scene.leader.take_request()
    scene.leader.answered(request, AlterAnswer(error=ErrorCode.REQUEST_TIMED_OUT), 0)

    assert scene.leader.take_request() is request


def test_the_answer_of_another_epoch(lead):
    """Is an answer dropped that tells of a newer leader epoch: the metadata will?"""
    scene = lead(isr=(1, 2))
    scene.fetch(3, 0)
    request = scene.leader.take_request()

    assert not scene.leader.answered(request, AlterAnswer(leader_epoch=6, partition_epoch=9, isr=(1, 3)), 0)
    assert scene.leader.isr.maximal == {1, 2, 3}
    assert scene.leader.isr.pending is request


# --- metadata


def test_metadata_overtakes_a_request(lead, registration):
    """Is the answer to a request dropped once newer metadata has come?"""
    scene = lead(isr=(1, 2))
    scene.fetch(3, 0)
    request = scene.leader.take_request()
    scene.leader.update(registration(isr=(1,), partition_epoch=8), 0)
    assert scene.leader.isr.maximal == {1}

    answer = AlterAnswer(leader_epoch=5, partition_epoch=8, isr=(1, 2, 3))
    assert not scene.leader.answered(request, answer, 0)
    assert scene.leader.isr.committed == {1}


def test_a_new_epoch_of_our_own(lead, registration):
    """Does a new epoch begin at the end of the log, with the followers' offsets kept?"""
    scene = lead()
    scene.append(2)
    scene.fetch(2, 2)
    scene.fetch(3, 1)
    scene.leader.update(registration(leader_epoch=6, partition_epoch=8), 50)

    assert (scene.leader.leader_epoch, scene.leader.epoch_start_offset, scene.mark) == (6, 2, 1)
    assert scene.leader.followers[2].offset == 2
    assert refusal(scene.fetch, 2, 2, epoch=5) == ErrorCode.FENCED_LEADER_EPOCH


def test_other_replicas(lead, registration):
    """Are replicas that were added followed, and those that left forgotten?"""
    scene = lead()
    scene.append(1)
    scene.fetch(2, 1)
    scene.leader.update(registration(replicas=(1, 2, 4), isr=(1, 2), partition_epoch=8), 0)

    assert set(scene.leader.followers) == {2, 4}
    assert scene.mark == 1
    assert refusal(scene.fetch, 3, 1) == ErrorCode.UNKNOWN_LEADER_EPOCH
