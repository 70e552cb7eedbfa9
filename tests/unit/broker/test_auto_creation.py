"""Topics that are created because somebody asked for them."""

from headrace.broker.auto_creation import create_missing
from headrace.model.errors import ErrorCode


def test_missing_topics_are_created_with_the_defaults(open_desk):
    """Do asked-for topics come to be, each once, with num.partitions partitions?"""
    desk = open_desk({"num.partitions": "3"})

    errors = desk.run(create_missing(desk.broker, ["a", "b", "a"]))

    assert errors == {}
    assert {name: len(topic.partitions) for name, topic in desk.broker.metadata.topics.items()} == {"a": 3, "b": 3}


def test_what_cannot_be_created_is_told(desk):
    """Is each name that cannot be told with its reason, while the others are created?"""
    desk.create("taken.name")

    errors = desk.run(create_missing(desk.broker, ["good", "bad/name", "taken_name", "__cluster_metadata"]))

    assert errors == {
        "bad/name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "taken_name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "__cluster_metadata": ErrorCode.INVALID_REQUEST,
    }
    assert set(desk.broker.metadata.topics) == {"taken.name", "good"}


def test_topics_of_coordinators_do_not_come_by_asking(desk):
    """Is an internal topic, which must have its own shape, not made with the defaults?"""
    errors = desk.run(create_missing(desk.broker, ["__consumer_offsets", "good"]))

    assert errors == {"__consumer_offsets": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert set(desk.broker.metadata.topics) == {"good"}


def test_asking_for_too_many_creates_none(open_desk):
    """Is there an end to what asking can create, counted in topics and in partitions?"""
    desk = open_desk({"num.partitions": "100"})
    names = [f"t{number}" for number in range(10_001)]

    many = desk.run(create_missing(desk.broker, names))
    fewer = desk.run(create_missing(desk.broker, names[:101]))

    assert set(many.values()) == set(fewer.values()) == {ErrorCode.POLICY_VIOLATION}
    assert (len(many), len(fewer)) == (10_001, 101)
    assert desk.broker.metadata.topics == {}


def test_replication_that_cannot_be_is_told(open_desk):
    """Is a default replication factor beyond the number of brokers told?"""
    desk = open_desk({"default.replication.factor": "3"})

    assert desk.run(create_missing(desk.broker, ["a"])) == {"a": ErrorCode.INVALID_REPLICATION_FACTOR}
