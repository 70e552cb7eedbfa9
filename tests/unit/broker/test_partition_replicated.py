"""A partition with other replicas: when a write is safe, who may fetch, and what becomes of those who wait."""

import asyncio
from errno import ENOSPC

import pytest

from headrace.broker import led_partition
from headrace.cores.replication.messages import AlterAnswer, FetchAnswer
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.records.build import NewRecord, build_batch
from headrace.wire.fetch import FetchPartition
from unit.broker.replica_bench import ME, NOW_MS, OTHER, THIRD, Standing, batch_of


@pytest.fixture
def standing():
    """Broker 1's replica of a partition that brokers 1, 2 and 3 hold."""
    return Standing()


def waiting(standing, end_offset):
    """Somebody who waits until an offset is safe: a list that gets what they are told."""
    heard = []
    standing.partition.when_safe(end_offset, heard.append)
    return heard


def refusal(work, *args, **settings):
    """The error code that something is refused with."""
    with pytest.raises(KafkaError) as refused:
        work(*args, **settings)
    return refused.value.code


def test_nothing_is_served_before_a_part_is_known(standing):
    """Does a partition refuse writes and followers until the metadata said who leads it?"""
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == standing.partition.fault.code
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == refusal(standing.fetched, OTHER, 0)
    assert not standing.partition.is_led


def test_write_is_safe_when_all_in_sync_have_it(standing):
    """Is a producer told only when the leader's disk and every follower in sync have its records?"""
    standing.told()
    heard = waiting(standing, standing.append(2))

    standing.flusher.flush()
    standing.fetched(OTHER, 2)
    assert (0, []) == (standing.log.high_watermark, heard)
    standing.fetched(THIRD, 2)

    assert (2, [None]) == (standing.log.high_watermark, heard)


def test_followers_alone_are_not_enough(standing):
    """Does a topic that flushes wait for the leader's own disk though all followers have the records?"""
    standing.told()
    heard = waiting(standing, standing.append())
    standing.fetched(OTHER, 1)
    standing.fetched(THIRD, 1)
    assert [] == heard

    standing.flusher.flush()

    assert [None] == heard


def test_topic_that_does_not_flush_counts_log_ends():
    """Where nothing is flushed, is a write safe as soon as all replicas have it in their logs?"""
    standing = Standing(flush_on_acks_all=False)
    standing.told()
    heard = waiting(standing, standing.append())
    standing.fetched(OTHER, 1)
    standing.fetched(THIRD, 1)

    assert [None] == heard
    assert [] == standing.flusher.owners


def test_single_replica_follows_its_flush(standing):
    """Does a partition without followers go by its own flush, and count none?"""
    standing.told(replicas=(ME,))
    heard = waiting(standing, standing.append())
    assert standing.partition.replicated is None

    standing.flusher.flush()

    assert [None] == heard


def test_replica_that_is_added_counts(standing):
    """When a partition gets its first follower, does what was safe before stay so, and what comes wait for it?"""
    standing.told(replicas=(ME,))
    standing.append()
    standing.flusher.flush()
    standing.partition.replica.role.high_watermark = standing.log.high_watermark
    standing.told(replicas=(ME, OTHER), partition_epoch=1)
    heard = waiting(standing, standing.append())
    standing.flusher.flush()
    assert (1, []) == (standing.log.high_watermark, heard)

    standing.fetched(OTHER, 2)

    assert [None] == heard


def test_lost_leadership_is_told(standing):
    """Does everyone who waits hear that another leads now, and is nothing taken any more?"""
    standing.told()
    heard = waiting(standing, standing.append())

    standing.told(leader=OTHER, leader_epoch=1, partition_epoch=1)

    assert [ErrorCode.NOT_LEADER_OR_FOLLOWER] == [error.code for error in heard]
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == refusal(standing.partition.check, memoryview(batch_of(1)), NOW_MS)
    assert 1 == standing.partition.leader_epoch


def test_late_flush_of_a_former_leader_moves_nothing(standing):
    """Does a flush that ends after leadership was lost leave the high watermark alone?"""
    standing.told()
    standing.append()
    standing.told(leader=OTHER, leader_epoch=1, partition_epoch=1)

    standing.flusher.flush()

    assert (1, 0) == (standing.log.recovery_point, standing.log.high_watermark)


def test_too_few_in_sync_refuse_acks_all():
    """Is acks=all refused while too few are in sync, acks=1 not, and a write that came before told afterwards?"""
    standing = Standing(min_insync_replicas=2)
    standing.told(isr=(ME,))
    batch = memoryview(batch_of(1))

    assert ErrorCode.NOT_ENOUGH_REPLICAS == refusal(standing.partition.check, batch, NOW_MS, -1)
    assert ErrorCode.NOT_ENOUGH_REPLICAS == refusal(standing.partition.check_enough_replicas)
    standing.partition.check(batch, NOW_MS, 1)


def test_producer_hears_of_too_few_after_the_append():
    """Is a producer whose records are below the high watermark told that too few replicas have them?"""
    standing = Standing(min_insync_replicas=2)
    standing.told(isr=(ME, OTHER))
    end_offset = standing.append()
    standing.flusher.flush()
    standing.fetched(OTHER, 1)
    assert standing.partition.outcome(end_offset) is None

    standing.told(isr=(ME,), partition_epoch=1)

    assert ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND == standing.partition.outcome(end_offset).code


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"epoch": 4}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 6}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"epoch": 5, "broker_epoch": 9}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_fetch_of_another_time_is_refused(standing, settings, code):
    """Is a follower refused that means another leader epoch, or has been restarted since?"""
    standing.told(leader_epoch=5)

    assert code == refusal(standing.fetched, OTHER, 0, **settings)


def test_unknown_follower_is_refused(standing):
    """Is a broker told to try again that is not known here as a replica?"""
    standing.told(replicas=(ME, OTHER))
    assert ErrorCode.UNKNOWN_LEADER_EPOCH == refusal(standing.fetched, THIRD, 0)

    standing.told(replicas=(ME,), partition_epoch=1)
    assert ErrorCode.UNKNOWN_LEADER_EPOCH == refusal(standing.fetched, OTHER, 0)


def test_diverging_follower_is_told_where(standing):
    """Is a follower with records of an epoch that ended earlier told where it ended, and not counted?"""
    standing.told()
    standing.append(3)
    standing.told(leader_epoch=1, partition_epoch=1)
    standing.append()

    diverging = standing.fetched(OTHER, 5, epoch=1, last_epoch=0)

    assert (0, 3) == (diverging.epoch, diverging.end_offset)
    assert -1 == standing.partition.replicated.followers[OTHER].offset


def test_level_follower_is_only_noted(standing):
    """Is a follower that lacks nothing taken down as level, and one that lags, moved or is new looked at closely?"""
    standing.told(isr=(ME, OTHER))
    standing.append(2)
    standing.flusher.flush()
    standing.fetched(OTHER, 2)
    standing.fetched(THIRD, 2)
    standing.wanted.clear()
    partition, level = standing.partition, FetchPartition(0, 0, 2, 0, 0, 1 << 20)
    follower = partition.replicated.followers[OTHER]

    assert partition.is_level(OTHER, 10, level, follower.last_caught_up_ms + 100)
    assert follower.last_caught_up_ms == follower.last_fetch_ms
    for node, broker_epoch, asked in (
        (OTHER, 11, level),
        (OTHER, 10, FetchPartition(0, 1, 2, 0, 0, 1 << 20)),
        (OTHER, 10, FetchPartition(0, 0, 1, 0, 0, 1 << 20)),
        (OTHER, 10, FetchPartition(0, 0, 2, 0, 1, 1 << 20)),
        (9, 10, level),
    ):
        assert not partition.is_level(node, broker_epoch, asked, 0)
    standing.append()
    assert not partition.is_level(OTHER, 10, level, 0)


class Parked:
    """A follower's fetch that waits."""

    def __init__(self):
        self.woken = []

    def wake_for(self, partition):
        self.woken.append("records")

    def wake_for_marks(self, partition):
        self.woken.append("marks")


def test_parked_followers_are_woken(standing):
    """Is a follower's fetch woken by every append, by the high watermark, and when leadership is lost?"""
    standing.told()
    parked = Parked()
    standing.partition.park_replica(parked)

    standing.append()
    assert ["records"] == parked.woken
    standing.flusher.flush()
    standing.fetched(OTHER, 1)
    standing.fetched(THIRD, 1)
    assert ["records", "marks"] == parked.woken
    standing.told(leader=OTHER, leader_epoch=1, partition_epoch=1)
    assert ["records", "marks", "records"] == parked.woken


def test_isr_changes_are_asked_for_and_answered(standing):
    """Is a follower that has come level asked into the ISR, once, and counted when the controller agrees?"""
    standing.told(isr=(ME, OTHER))
    standing.fetched(THIRD, 0)
    standing.fetched(THIRD, 0)
    (request,) = standing.wanted
    assert (ME, OTHER, THIRD) == request.broker_ids

    standing.partition.isr_answered(request, AlterAnswer(leader_epoch=0, partition_epoch=1, isr=(ME, OTHER, THIRD)))

    assert {ME, OTHER, THIRD} == standing.partition.replicated.isr.committed


def test_deleted_records_are_waited_for(standing):
    """Is a deletion of records done only when the live followers start later too, and lost with the leadership?"""
    standing.told()
    standing.append(5)
    standing.flusher.flush()
    standing.fetched(OTHER, 5)
    standing.fetched(THIRD, 5)
    standing.brokers[THIRD].fenced = True
    heard = []
    standing.partition.delete_before(3, heard.append)
    assert [] == heard

    standing.fetched(OTHER, 5, start=3)

    assert [None] == heard
    standing.partition.delete_before(4, heard.append)
    standing.told(leader=OTHER, leader_epoch=1, partition_epoch=1)
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == heard[1].code


def test_deleted_records_do_not_wait_for_the_dead(standing):
    """Is a deletion done when the follower it waits for is fenced: with the next fetch of another, or what changed?"""
    standing.told()
    standing.append(5)
    standing.flusher.flush()
    standing.fetched(OTHER, 5)
    standing.fetched(THIRD, 5)
    heard = []
    standing.partition.delete_before(3, heard.append)
    standing.fetched(OTHER, 5, start=3)
    same = FetchPartition(0, 0, 5, 0, 3, 1 << 20)
    # A fetch that brings nothing new is not passed over while somebody waits.
    assert not standing.partition.is_level(OTHER, 10, same, 0)
    standing.brokers[THIRD].fenced = True
    assert [] == heard

    standing.fetched(OTHER, 5, start=3)
    assert [None] == heard
    assert standing.partition.is_level(OTHER, 10, same, 0)
    standing.partition.delete_before(4, heard.append)
    standing.brokers[OTHER].fenced = True
    standing.told(partition_epoch=1, isr=(ME,))

    assert [None, None] == heard


def answer(high_watermark, log_start_offset=0):
    """What a leader says beside the records."""
    return FetchAnswer(high_watermark=high_watermark, log_start_offset=log_start_offset)


def test_follower_takes_in_what_the_leader_sends(standing):
    """Does a follower append with the leader's numbers, and know no more to be committed than it has?"""
    standing.told(leader=OTHER)

    standing.partition.take_in(memoryview(batch_of(3, epoch=0)), answer(10), NOW_MS)

    assert (3, 3, 0) == (standing.log.log_end_offset, standing.log.high_watermark, standing.log.epoch_at(2))


def test_follower_starts_later_when_it_is_safe(standing):
    """Does a follower let its log start where the leader's does only when what lies before is on its disk?"""
    standing.told(leader=OTHER)
    standing.partition.take_in(memoryview(batch_of(3)), answer(3, 2), NOW_MS)
    assert 0 == standing.log.log_start_offset

    standing.partition.flush()
    standing.flusher.flush()

    assert 2 == standing.log.log_start_offset


def test_damaged_records_are_refused(standing):
    """Is a batch whose checksum is wrong not appended?"""
    standing.told(leader=OTHER)
    batch = batch_of(1)
    batch[-1] ^= 1

    assert ErrorCode.CORRUPT_MESSAGE == refusal(standing.partition.take_in, memoryview(batch), answer(1), NOW_MS)
    assert 0 == standing.log.log_end_offset


def test_full_disk_is_told_and_passes(standing):
    """Does a follower whose disk is full say so once, take the same records later, and say that too?"""
    standing.told(leader=OTHER)
    batch = batch_of(2)
    for _ in range(2):
        standing.files.fail_next("write", ENOSPC)
        code = refusal(standing.partition.take_in, memoryview(batch), answer(2), NOW_MS)
        assert ErrorCode.KAFKA_STORAGE_ERROR == code
    assert 0 == standing.log.log_end_offset

    standing.partition.take_in(memoryview(batch), answer(2), NOW_MS)

    assert (2, 2) == (standing.log.log_end_offset, len(standing.faults))
    assert standing.faults[1] is None
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == standing.partition.fault.code


def test_broken_disk_stays_broken(standing):
    """Does a partition whose disk failed refuse writes whatever part the metadata gives it later?"""
    standing.told()
    heard = waiting(standing, standing.append())
    standing.partition.on_flush_failed(StorageFault("gone"))
    assert [ErrorCode.KAFKA_STORAGE_ERROR] == [error.code for error in heard]

    standing.told(leader=OTHER, leader_epoch=1, partition_epoch=1)
    standing.told(leader=ME, leader_epoch=2, partition_epoch=2)

    assert ErrorCode.KAFKA_STORAGE_ERROR == standing.partition.fault.code
    assert 1 == len(standing.faults)


def test_flush_is_waited_for(standing):
    """Does a follower that waits for its flush go on when the disk has everything, also after a truncation?"""
    standing.told(leader=OTHER)
    standing.partition.take_in(memoryview(batch_of(2)), answer(0), NOW_MS)

    async def wait():
        flushed = asyncio.ensure_future(standing.partition.flushed())
        await asyncio.sleep(0)
        assert not flushed.done()
        standing.flusher.flush()
        await flushed
        await standing.partition.flushed()

    asyncio.run(wait())
    assert 2 == standing.log.recovery_point


def test_part_does_not_change_under_a_truncation(standing):
    """Does whoever gives out parts wait until a thread is done with the log?"""

    async def settle():
        done = standing.partition.begin_settling()
        waits = asyncio.ensure_future(standing.partition.settled())
        await asyncio.sleep(0)
        assert (True, False) == (standing.partition.is_settling, waits.done())
        done()
        await waits
        assert not standing.partition.is_settling

    asyncio.run(settle())


def numbered(sequence):
    """A batch of one record with its place in a producer's sequence."""
    return build_batch(
        [NewRecord(timestamp=NOW_MS, value=b"v")], producer_id=7, producer_epoch=0, base_sequence=sequence
    )


def send(standing, sequence):
    """A producer's batch comes to the leader."""
    batch = numbered(sequence)
    header = standing.partition.check(memoryview(batch), NOW_MS, -1)
    standing.partition.append(memoryview(batch), header, NOW_MS)


@pytest.fixture
def clock(monkeypatch):
    """What time it is, in a list."""
    now_ms = [1_000]
    monkeypatch.setattr(led_partition, "steady_ms", lambda: now_ms[0])
    return now_ms


def test_gap_after_a_change_of_leader_closes_by_itself(standing, clock):
    """Is a batch whose predecessor was refused before we led told to come again, and not that it is out of order?"""
    standing.told(leader=OTHER)
    standing.log.append_follower(memoryview(numbered(0)), NOW_MS)
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == refusal(send, standing, 1)

    standing.told(leader_epoch=1, partition_epoch=1)

    assert ErrorCode.NOT_ENOUGH_REPLICAS == refusal(send, standing, 2)
    send(standing, 1)
    send(standing, 2)
    assert ErrorCode.NOT_ENOUGH_REPLICAS == refusal(send, standing, 4)
    clock[0] += led_partition.GAPS_CLOSE_MS
    assert ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER == refusal(send, standing, 4)


def test_gap_after_too_few_replicas_closes_by_itself(clock):
    """The same where the predecessor was refused because too few replicas were in sync?"""
    standing = Standing(min_insync_replicas=2)
    standing.told()
    send(standing, 0)
    assert ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER == refusal(send, standing, 2)
    standing.told(partition_epoch=1, isr=(ME,))
    assert ErrorCode.NOT_ENOUGH_REPLICAS == refusal(send, standing, 1)

    standing.told(partition_epoch=2)

    assert ErrorCode.NOT_ENOUGH_REPLICAS == refusal(send, standing, 2)
    send(standing, 1)
    send(standing, 2)
