"""DescribeProducers."""

from headrace.broker.handlers.api61_describe_producers import API
from headrace.model.errors import ErrorCode
from headrace.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest


def partitions(desk, *topics):
    """Each partition of the answer by topic and index."""
    request = DescribeProducersRequest(
        topics=tuple(TopicRequest(name=name, partition_indexes=indexes) for name, indexes in topics)
    )
    answer = desk.ask(API, request)
    return {(topic.name, one.partition_index): one for topic in answer.topics for one in topic.partitions}


def test_producers_are_told(desk):
    """Are the idempotent producers of a partition told, and those without an id not?"""
    desk.create("orders", partitions=2)
    desk.produce("orders", 3)
    desk.produce("orders", 5, producer_id=4001)

    found = partitions(desk, ("orders", (0, 1)))

    (producer,) = found["orders", 0].active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (4001, 0, 4)
    assert (producer.last_timestamp, producer.coordinator_epoch) == (1_700_000_000_000, -1)
    assert producer.current_txn_start_offset == -1
    assert found["orders", 1].active_producers == ()


def test_what_is_not_there_is_told(desk):
    """Are unknown partitions, topics and names each told as such?"""
    desk.create("orders")

    found = partitions(desk, ("orders", (0, 3)), ("missing", (0,)), ("a/b", (0,)))

    assert {key: one.error_code for key, one in found.items()} == {
        ("orders", 0): 0,
        ("orders", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("missing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("a/b", 0): ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


def test_small_request_cannot_ask_for_an_endless_answer(desk):
    """Is a partition that is named a thousand times described once?"""
    desk.create("orders")
    request = DescribeProducersRequest(topics=(TopicRequest(name="orders", partition_indexes=(0,) * 10),) * 100)

    (topic,) = desk.ask(API, request).topics

    assert len(topic.partitions) == 1
