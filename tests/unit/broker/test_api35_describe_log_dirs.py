"""DescribeLogDirs."""

from errno import EIO, ENOSPC

import pytest

from headrace.broker.handlers.api35_describe_log_dirs import API
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

EVERYTHING = DescribeLogDirsRequest(topics=None)


def asked(**partitions):
    """A request for some partitions."""
    return DescribeLogDirsRequest(
        topics=tuple(DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in partitions.items())
    )


def sizes(result):
    """Size by topic and partition."""
    return {
        (topic.name, one.partition_index): one.partition_size for topic in result.topics for one in topic.partitions
    }


@pytest.mark.parametrize("version", range(API.low, API.high + 1))
def test_partitions_are_told_with_their_size(desk, version):
    """Does every version tell each partition's size on disk, and the metadata log not at all?"""
    desk.create("orders", partitions=2)
    desk.produce("orders", 10, partition=1)

    (result,) = desk.ask(API, EVERYTHING, version=version).results

    log = desk.broker.partitions.require("orders", 1).log
    assert (result.error_code, result.log_dir) == (0, "/data")
    assert sizes(result) == {("orders", 0): 0, ("orders", 1): log.size_bytes}
    assert log.size_bytes > 0


def test_room_on_the_volume_is_told(desk):
    """Are the volume's size and the room left told?"""
    (result,) = desk.ask(API, EVERYTHING).results

    assert (result.total_bytes, result.usable_bytes) == desk.files.space("/data")
    assert not result.is_cordoned


def test_only_what_is_asked_for_is_told(desk):
    """Does a list of partitions narrow the answer, whether they exist or not?"""
    desk.create("orders", partitions=2)
    desk.create("other")

    (result,) = desk.ask(API, asked(orders=(1, 7), missing=(0,))).results

    assert list(sizes(result)) == [("orders", 1)]


def test_partitions_are_told_in_their_own_dir(open_desk):
    """Is each partition told once, in the dir that holds it?"""
    desk = open_desk({"log.dirs": "/one,/two"})
    desk.create("orders", partitions=4)

    results = {result.log_dir: sizes(result) for result in desk.ask(API, EVERYTHING).results}

    assert set(results) == {"/one", "/two"}
    assert all(results.values())
    assert sorted([*results["/one"], *results["/two"]]) == [("orders", index) for index in range(4)]


@pytest.mark.parametrize("operation", ["fsync", "write"])
def test_offline_dir_is_told_as_such(open_desk, operation):
    """Is a dir whose write or flush failed told as KAFKA_STORAGE_ERROR, and the other as ever?"""
    desk = open_desk({"log.dirs": "/one,/two"})
    desk.create("orders", partitions=4)
    lost = next(index for index in range(4) if desk.files.stat(f"/two/orders-{index}"))
    desk.files.fail_next(operation, path_contains="/two/")
    with pytest.raises((AssertionError, KafkaError)):
        desk.produce("orders", 1, partition=lost)

    codes = {result.log_dir: result.error_code for result in desk.ask(API, EVERYTHING).results}

    assert codes == {"/one": 0, "/two": ErrorCode.KAFKA_STORAGE_ERROR}


@pytest.mark.parametrize(("code", "told"), [(EIO, ErrorCode.KAFKA_STORAGE_ERROR), (ENOSPC, ErrorCode.NONE)])
def test_dir_that_nobody_writes_to_fails(open_desk, code, told):
    """Does a checkpoint find a broken disk, leave a full one alone, and keep no other dir from its own?"""
    desk = open_desk({"log.dirs": "/one,/two"})
    desk.create("orders", partitions=4)
    desk.files.fail_next("write", code, path_contains="/one/recovery-point-offset-checkpoint")
    with pytest.raises(StorageFault, match="cannot write checkpoints"):
        desk.run(desk.broker.housekeeping.checkpoint())

    codes = {result.log_dir: result.error_code for result in desk.ask(API, EVERYTHING).results}

    assert codes == {"/one": told, "/two": ErrorCode.NONE}
    assert b"orders" in desk.files.read("/two/recovery-point-offset-checkpoint")
