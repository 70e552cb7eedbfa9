"""The replicas of a broker follow the metadata: logs come and go, parts change, and nothing is taken up too early."""

import asyncio

import pytest

from headrace.broker.handlers.api20_delete_topics import API as DELETE_TOPICS
from headrace.broker.handlers.api35_describe_log_dirs import API as DESCRIBE_LOG_DIRS
from headrace.cores.controller.partition_change import RECOVERING
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import PartitionChangeRecord
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest

OTHER = 2


class Fetchers:
    """Notes who is followed, and copies nothing."""

    def __init__(self):
        self.followed = {}

    def follow(self, partition, leader_id):
        self.followed[partition.topic, partition.index] = leader_id

    def leave(self, partition):
        self.followed.pop((partition.topic, partition.index), None)

    def settle(self):
        pass

    def stop(self):
        self.followed.clear()


@pytest.fixture
def led(desk):
    """A broker with a topic of one partition, which it leads; followers of it copy nothing."""
    desk.create("t")
    desk.produce("t", 3)
    desk.fetchers = desk.broker.replicas._fetchers = Fetchers()
    return desk


def partition_of(desk):
    """Partition 0 of the topic as the broker has it."""
    return desk.broker.partitions.find(("t", 0))


def topic_id_of(desk):
    """The topic's id."""
    return desk.broker.metadata.topics["t"].topic_id


def changed(desk, **change):
    """The metadata says something new of the partition."""
    topic_id = topic_id_of(desk)
    desk.broker.metadata.replay(PartitionChangeRecord(topic_id=topic_id, partition_id=0, **change))
    desk.run(desk.broker.replicas.apply([(topic_id, 0)], []))


def refused(work, *args):
    """The code something is refused with."""
    with pytest.raises(KafkaError) as error:
        work(*args)
    return error.value.code


def test_leader_becomes_follower_and_leader_again(led):
    """Does a broker refuse, copy from the new leader, and lead again in a later epoch, with all it had?"""
    changed(led, replicas=(1, OTHER), isr=(1, OTHER), leader=OTHER)
    partition = partition_of(led)
    assert (False, 1, {("t", 0): OTHER}) == (partition.is_led, partition.leader_epoch, led.fetchers.followed)
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == refused(led.broker.partitions.require_led, "t", 0)

    changed(led, leader=1)

    assert (True, 2, {}) == (partition.is_led, partition.leader_epoch, led.fetchers.followed)
    assert partition.replicated is not None
    assert (3, 3) == (partition.log.log_end_offset, partition.log.high_watermark)
    assert partition is led.broker.partitions.require_led("t", 0)


def test_replica_on_a_failed_disk_is_not_copied(led):
    """Does a follower whose disk failed ask no leader any more, and is the controller told at once?"""
    changed(led, replicas=(1, OTHER), isr=(1, OTHER), leader=OTHER)
    assert {("t", 0): OTHER} == led.fetchers.followed
    heartbeats = led.broker.membership._beat_now
    heartbeats.clear()

    partition = partition_of(led)
    led.broker.partitions.take_offline(
        led.broker.partitions.log_dir_of(partition), KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "gone")
    )
    assert {} == led.fetchers.followed
    assert heartbeats.is_set()
    changed(led, leader=-1)
    changed(led, leader=OTHER)

    assert {} == led.fetchers.followed


def test_partition_without_leader_is_not_copied(led):
    """Does a broker follow nobody while nobody leads?"""
    changed(led, replicas=(1, OTHER), isr=(1, OTHER), leader=OTHER)
    changed(led, leader=-1)

    assert {} == led.fetchers.followed
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == refused(led.broker.partitions.require_led, "t", 0)


def test_an_unclean_leader_says_so(led, caplog):
    """Does a broker that was elected without being in sync warn of what may be lost, and one that was not does not?"""
    changed(led, replicas=(1, OTHER), isr=(OTHER,), leader=OTHER)
    assert "unclean_leader" not in caplog.text
    changed(led, isr=(1,), leader=1, leader_recovery_state=RECOVERING)

    assert "unclean_leader partition=t-0 epoch=2 end_offset=3" in caplog.text


def test_partition_that_moved_away_is_erased(led):
    """Is a replica that the metadata gave to others gone from memory and from the log dir?"""
    changed(led, replicas=(OTHER,), isr=(OTHER,), leader=OTHER)

    assert partition_of(led) is None
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == refused(led.broker.partitions.require, "t", 0)
    assert "t-0" not in led.broker.store.log_dirs[0].log_names()


def test_partition_that_comes_back_is_new(led):
    """Does a replica that moved away and comes back begin with an empty log?"""
    changed(led, replicas=(OTHER,), isr=(OTHER,), leader=OTHER)
    changed(led, replicas=(OTHER, 1))

    assert (0, {("t", 0): OTHER}) == (partition_of(led).log.log_end_offset, led.fetchers.followed)


def test_deleted_topic_is_erased(led):
    """Is a deleted topic's log taken out, and whoever waits told?"""
    partition, heard = partition_of(led), []
    partition.when_safe(100, heard.append)

    (deleted,) = led.ask(DELETE_TOPICS, DeleteTopicsRequest(topics=(DeleteTopicState(name="t"),))).responses

    assert 0 == deleted.error_code
    assert [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] == [error.code for error in heard]
    assert partition_of(led) is None
    assert "t-0" not in led.broker.store.log_dirs[0].log_names()


def test_log_that_could_not_be_opened_is_not_begun_anew(led):
    """Is a partition whose log is damaged left as it is, and told as a storage error?"""
    partition = partition_of(led)
    led.broker.partitions.let_go(partition, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, ""))
    led.broker.store.offline.add("t-0")

    changed(led, leader=1)

    assert partition_of(led) is None
    assert ErrorCode.KAFKA_STORAGE_ERROR == refused(led.broker.partitions.require, "t", 0)
    led.broker.partitions._found["t", 0] = led.broker.partitions._found[topic_id_of(led), 0] = partition


def test_nothing_is_taken_up_before_the_own_registration_is_seen(led):
    """Does a process act on no metadata that may be about the one before it?"""
    broker = led.broker
    own = broker.membership.broker_epoch
    broker.membership.broker_epoch = own + 1

    changed(led, replicas=(1, OTHER), isr=(1, OTHER), leader=OTHER)
    assert partition_of(led).is_led
    broker.membership.broker_epoch = own
    changed(led, isr=(1, OTHER))

    assert not partition_of(led).is_led


def test_coordinators_are_told(led):
    """Do coordinators hear which partitions are led here in which epoch, and which no more?"""
    told = []
    broker = led.broker

    async def lead(topic, indexes):
        told.append(("led", topic, list(indexes)))

    broker.led, broker.resigned = lead, lambda topic, indexes: told.append(("resigned", topic, list(indexes)))
    changed(led, replicas=(1, OTHER), isr=(1, OTHER), leader=OTHER)
    changed(led, leader=1)
    changed(led, isr=(1,))
    changed(led, leader=1)

    assert [("resigned", "t", [0]), ("led", "t", [0]), ("led", "t", [0])] == told


def test_high_watermark_outlives_a_restart(led):
    """Does a follower know after a restart how far everything was committed, and no further?"""
    changed(led, replicas=(1, OTHER), isr=(1, OTHER), leader=OTHER)
    partition = partition_of(led)
    partition.log.high_watermark = 2
    led.run(led.broker.housekeeping.note_high_watermarks())
    assert 2 == led.broker.store.log_dir_of(partition.log).high_watermark("t-0")

    partition.restore_high_watermark(99)

    assert 3 == partition.log.high_watermark


def test_stop_tells_who_waits_for_replicas(led):
    """Are producers that wait for followers told to look elsewhere when the broker stops?"""
    changed(led, replicas=(1, OTHER), isr=(1, OTHER), leader=1)
    heard = []
    partition_of(led).when_safe(100, heard.append)

    led.broker.replicas.resign()

    assert [ErrorCode.NOT_LEADER_OR_FOLLOWER] == [error.code for error in heard]


def test_many_partitions_leave_the_loop_to_others(led):
    """Do others get a turn of the loop while metadata changes many partitions?"""
    led.create("many", partitions=250)
    turns = []

    async def count():
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    async def tick():
        counting = asyncio.ensure_future(count())
        await led.broker.replicas.tick()
        counting.cancel()

    led.run(tick())
    assert len(turns) >= 2


def test_broker_starts_without_a_dir_that_does_not_answer(open_desk):
    """Does a broker whose second disk is dead serve what is on the first, and begin nothing of the second anew?"""
    desk = open_desk({"log.dirs": "/data,/second"})
    desk.create("t", partitions=6)
    first, second = ({name for name in log_dir.logs if name[0] == "t"} for log_dir in desk.broker.store.log_dirs)
    assert 3 == len(first) == len(second)
    desk.run(
        desk.broker.until(lambda metadata: len({state.directories for state in metadata.topics["t"].partitions}) == 2)
    )

    desk.files.fail_next("unlink", path_contains="/second/.kafka_cleanshutdown")
    desk.restart()

    served = {f"t-{partition.index}" for partition in desk.broker.partitions if partition.topic == "t"}
    assert first == served
    index = int(min(second).rpartition("-")[2])
    assert ErrorCode.KAFKA_STORAGE_ERROR == refused(desk.broker.partitions.require, "t", index)
    told = desk.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None)).results
    assert {"/data": 0, "/second": ErrorCode.KAFKA_STORAGE_ERROR} == {one.log_dir: one.error_code for one in told}
