"""DescribeTopicPartitions."""

import pytest

from headrace.broker.handlers.api75_describe_topic_partitions import API
from headrace.model.errors import ErrorCode
from headrace.model.ids import ZERO_ID
from headrace.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest


def page(desk, *names, limit=2000, cursor=None):
    """One page of the answer."""
    return desk.ask(
        API,
        DescribeTopicPartitionsRequest(
            topics=tuple(TopicRequest(name=name) for name in names),
            response_partition_limit=limit,
            cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        ),
    )


def shape(answer):
    """Topic names with their partitions, and where the answer goes on."""
    cursor = answer.next_cursor
    return (
        [(topic.name, [partition.partition_index for partition in topic.partitions]) for topic in answer.topics],
        cursor and (cursor.topic_name, cursor.partition_index),
    )


@pytest.fixture
def three_topics(desk):
    """Topics a (1 partition), b (3) and c (2)."""
    for name, partitions in (("c", 2), ("b", 3), ("a", 1)):
        desk.create(name, partitions=partitions)
    return desk


def test_topic_is_described(desk):
    """Is everything about a partition told?"""
    topic_id = desk.create("orders").topic_id

    (topic,) = page(desk, "orders").topics
    (partition,) = topic.partitions

    assert (topic.error_code, topic.topic_id, topic.is_internal) == (0, topic_id, False)
    assert topic.topic_authorized_operations == sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
    assert (partition.leader_id, partition.leader_epoch) == (1, 0)
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ((1,), (1,), ())
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ((), ())


def test_no_names_mean_all(three_topics):
    """Are all topics described, in the order of their names?"""
    assert shape(page(three_topics)) == ([("a", [0]), ("b", [0, 1, 2]), ("c", [0, 1])], None)


def test_topics_come_in_the_order_of_their_names(three_topics):
    """Are the asked topics described in order, each once?"""
    assert shape(page(three_topics, "c", "a", "c")) == ([("a", [0]), ("c", [0, 1])], None)


@pytest.mark.parametrize("limit", range(1, 8))
@pytest.mark.parametrize("names", [(), ("a", "b", "c")])
def test_pages_join_without_gap_or_overlap(three_topics, limit, names):
    """Does following the cursor show each partition once, in pages that keep the limit?"""
    seen, cursor = [], None
    for _ in range(10):
        topics, cursor = shape(page(three_topics, *names, limit=limit, cursor=cursor))
        assert sum(len(partitions) for _, partitions in topics) <= limit
        seen += [(name, index) for name, partitions in topics for index in partitions]
        if cursor is None:
            break

    assert seen == [("a", 0), ("b", 0), ("b", 1), ("b", 2), ("c", 0), ("c", 1)]


def test_broker_limits_the_page_too(open_desk):
    """Does max.request.partition.size.limit hold against a greedy client?"""
    desk = open_desk({"max.request.partition.size.limit": "2"})
    desk.create("orders", partitions=3)

    assert shape(page(desk, "orders")) == ([("orders", [0, 1])], ("orders", 2))


def test_a_page_has_at_least_one_partition(three_topics):
    """Does a client that asks for none still get on?"""
    assert shape(page(three_topics, limit=0)) == ([("a", [0])], ("b", 0))


def test_what_is_not_there_is_told(three_topics):
    """Are unknown and misnamed topics told, each with its error, among the others?"""
    answer = page(three_topics, "a", "aa", "a/b")

    assert {(topic.name, topic.error_code, topic.topic_id == ZERO_ID) for topic in answer.topics} == {
        ("a", 0, False),
        ("aa", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION, True),
    }


def test_topic_deleted_between_pages_is_passed_over(three_topics):
    """Does a cursor at a topic that is gone go on with the next?"""
    assert shape(page(three_topics, cursor=("bb", 7))) == ([("c", [0, 1])], None)


def test_cursor_past_the_end_of_a_topic_goes_on(three_topics):
    """Does a cursor past a topic's last partition go on with the next topic?"""
    assert shape(page(three_topics, cursor=("b", 99))) == ([("b", []), ("c", [0, 1])], None)


@pytest.mark.parametrize(("names", "cursor"), [(("a", "c"), ("b", 0)), (("a", "b"), ("b", -1)), ((), ("b", -1))])
def test_cursor_that_cannot_be_is_refused(three_topics, names, cursor):
    """Is a cursor outside the asked topics, or at a negative partition, told at each of them?"""
    answer = page(three_topics, *names, cursor=cursor)

    assert [(topic.name, topic.error_code, topic.partitions) for topic in answer.topics] == [
        (name, ErrorCode.INVALID_REQUEST, ()) for name in names
    ]
    assert answer.next_cursor is None


def test_internal_topics_are_marked(desk):
    """Does a client that hides internal topics know them?"""
    desk.create("__consumer_offsets")

    assert page(desk).topics[0].is_internal
