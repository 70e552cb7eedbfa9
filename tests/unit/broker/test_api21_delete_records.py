"""DeleteRecords."""

import pytest

from headrace.broker.handlers.api21_delete_records import API
from headrace.model.errors import ErrorCode
from headrace.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic


def delete(desk, offsets, *, version=None):
    """Low watermark and error code of each partition, asked by (topic, partition) and offset."""
    request = DeleteRecordsRequest(
        topics=tuple(
            DeleteRecordsTopic(name=name, partitions=(DeleteRecordsPartition(partition_index=index, offset=offset),))
            for (name, index), offset in offsets.items()
        )
    )
    answer = desk.ask(API, request, version=version)
    return {
        (topic.name, one.partition_index): (one.low_watermark, one.error_code)
        for topic in answer.topics
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", range(API.low, API.high + 1))
@pytest.mark.parametrize(("offset", "start"), [(0, 0), (3, 3), (8, 8), (-1, 8)])
def test_log_starts_where_told(desk, version, offset, start):
    """Does the log start at the offset, or at the high watermark for -1, in every version?"""
    desk.create("orders")
    desk.produce("orders", 8)

    assert delete(desk, {("orders", 0): offset}, version=version) == {("orders", 0): (start, 0)}
    assert desk.broker.partitions.require("orders", 0).log.log_start_offset == start


def test_start_never_goes_back(desk):
    """Is an offset before the start answered with the start as it is?"""
    desk.create("orders")
    desk.produce("orders", 8)
    delete(desk, {("orders", 0): 5})

    assert delete(desk, {("orders", 0): 2}) == {("orders", 0): (5, 0)}


@pytest.mark.parametrize("offset", [9, -2, 2**63 - 1])
def test_offset_that_is_not_there_is_refused(desk, offset):
    """Is an offset past the high watermark or below zero refused?"""
    desk.create("orders")
    desk.produce("orders", 8)

    assert delete(desk, {("orders", 0): offset}) == {("orders", 0): (-1, ErrorCode.OFFSET_OUT_OF_RANGE)}
    assert desk.broker.partitions.require("orders", 0).log.log_start_offset == 0


def test_each_partition_stands_for_itself(desk):
    """Are records deleted where they can be, beside partitions where they cannot?"""
    desk.create("orders")
    desk.create("compacted", cleanup_policy="compact")
    desk.create("both", cleanup_policy="compact,delete")
    desk.create("__consumer_offsets")
    for topic in ("orders", "compacted", "both", "__consumer_offsets"):
        desk.produce(topic, 4)

    results = delete(
        desk,
        {
            ("orders", 0): 2,
            ("orders", 1): 2,
            ("missing", 0): 2,
            ("compacted", 0): 2,
            ("both", 0): 2,
            ("__consumer_offsets", 0): 2,
        },
    )

    assert results == {
        ("orders", 0): (2, 0),
        ("orders", 1): (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("missing", 0): (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("compacted", 0): (-1, ErrorCode.POLICY_VIOLATION),
        ("both", 0): (2, 0),
        ("__consumer_offsets", 0): (-1, ErrorCode.INVALID_TOPIC_EXCEPTION),
    }


def test_deleted_records_stay_deleted_after_a_power_cut(open_desk):
    """Is the new start on the disk when the deletion is answered?"""
    desk = open_desk()
    desk.create("orders")
    desk.produce("orders", 8)
    delete(desk, {("orders", 0): 5})

    desk.power_cut()

    log = desk.broker.partitions.require("orders", 0).log
    assert (log.log_start_offset, log.log_end_offset) == (5, 8)


def test_deletion_that_cannot_be_written_down_is_told(desk):
    """Is a deletion that did not reach the disk answered with KAFKA_STORAGE_ERROR?"""
    desk.create("orders")
    desk.produce("orders", 8)
    desk.files.fail_next("fsync", path_contains="log-start-offset-checkpoint")

    assert delete(desk, {("orders", 0): 5}) == {("orders", 0): (-1, ErrorCode.KAFKA_STORAGE_ERROR)}
