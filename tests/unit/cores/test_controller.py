"""The controller's decisions."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cores.controller import (
    PARTITIONS_PER_REQUEST_MAX,
    PRODUCER_ID_BLOCK,
    ConfigChange,
    CreatedTopic,
    Defaults,
    DeletedTopic,
    MorePartitions,
    NewTopic,
    Outcome,
    allocate_producer_ids,
    change_configs,
    create_partitions,
    create_topics,
    delete_topics,
    place_replicas,
)
from headrace.cores.metadata import RESOURCE_BROKER, RESOURCE_TOPIC, Metadata
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import ZERO_ID
from headrace.model.metadata_records import ConfigRecord, PartitionRecord, TopicRecord

BROKERS = [1, 2, 3]
DEFAULTS = Defaults(partitions=2, replication_factor=1)


def new(name: str, number: int = 1000, **fields) -> NewTopic:
    """A wanted topic."""
    return NewTopic(name=name, topic_id=UUID(int=number), **fields)


def commit(metadata: Metadata, outcome: Outcome) -> None:
    """Make a decision true."""
    for record in outcome.records:
        metadata.replay(record)


def cluster(*topics: NewTopic) -> Metadata:
    """A cluster with these topics."""
    metadata = Metadata()
    commit(metadata, create_topics(metadata, topics, brokers=BROKERS, defaults=DEFAULTS))
    return metadata


def refusal(metadata: Metadata, topic: NewTopic) -> tuple[ErrorCode, str]:
    """Why a topic cannot be created."""
    outcome = create_topics(metadata, [topic], brokers=BROKERS, defaults=DEFAULTS)
    error = outcome.reply[topic.name]
    assert isinstance(error, KafkaError)
    assert not outcome.records
    return error.code, error.message


# --- creating topics


def test_topic_comes_before_its_settings_and_these_before_its_partitions():
    """Can whoever makes a partition's log know the topic and its settings by then?"""
    topic = new("orders", partitions=2, replication_factor=3, configs={"b": "2", "a": "1"})

    outcome = create_topics(Metadata(), [topic], brokers=BROKERS, defaults=DEFAULTS)

    assert [TopicRecord, ConfigRecord, ConfigRecord, PartitionRecord, PartitionRecord] == [
        type(record) for record in outcome.records
    ]
    assert [record.name for record in outcome.records if isinstance(record, ConfigRecord)] == ["a", "b"]
    assert {
        "orders": CreatedTopic(name="orders", topic_id=topic.topic_id, partitions=2, replication_factor=3)
    } == outcome.reply


def test_missing_counts_take_the_defaults():
    """Does -1 mean the configured number?"""
    topic = cluster(new("orders")).topics["orders"]

    assert [len(partition.replicas) for partition in topic.partitions] == [1, 1]


def test_hand_made_assignment_is_kept():
    """Are replicas placed as told, whatever the order of the partitions in the request?"""
    metadata = cluster(new("orders", assignments=[(1, (3, 1)), (0, (2, 3))]))

    assert [partition.replicas for partition in metadata.topics["orders"].partitions] == [(2, 3), (3, 1)]
    assert [partition.leader for partition in metadata.topics["orders"].partitions] == [2, 3]


def test_validation_alone_commits_nothing():
    """Does validate_only give the same reply and no record?"""
    real = create_topics(Metadata(), [new("orders")], brokers=BROKERS, defaults=DEFAULTS)
    dry = create_topics(Metadata(), [new("orders")], brokers=BROKERS, defaults=DEFAULTS, validate_only=True)

    assert real.reply == dry.reply
    assert dry.records == []


def test_one_bad_topic_does_not_spoil_the_others():
    """Are the good topics of a request created beside the bad ones?"""
    outcome = create_topics(Metadata(), [new("bad name"), new("orders", 1001)], brokers=BROKERS, defaults=DEFAULTS)

    assert [record.name for record in outcome.records if isinstance(record, TopicRecord)] == ["orders"]
    assert list(outcome.reply) == ["bad name", "orders"]


def test_name_in_a_request_twice_is_created_neither_time():
    """Is a duplicate refused and answered once?"""
    outcome = create_topics(Metadata(), [new("a"), new("a", 1001)], brokers=BROKERS, defaults=DEFAULTS)

    assert outcome.records == []
    assert {name: (error.code, error.message) for name, error in outcome.reply.items()} == {
        "a": (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    }


def test_names_of_one_request_may_not_collide_either():
    """Is the second of two names that metrics cannot tell apart refused?"""
    outcome = create_topics(Metadata(), [new("a.b"), new("a_b", 1001)], brokers=BROKERS, defaults=DEFAULTS)

    assert isinstance(outcome.reply["a.b"], CreatedTopic)
    assert outcome.reply["a_b"].code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("taken", ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'taken' already exists."),
        ("dot_ted", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic 'dot_ted' collides with existing topic: dot.ted"),
        ("dot.ted", ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'dot.ted' already exists."),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '..' is not allowed"),
        (
            "__cluster_metadata",
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
    ],
)
def test_names_that_cannot_be_are_refused(name, code, message):
    """Is each kind of bad name refused in Kafka's words?"""
    metadata = cluster(new("taken"), new("dot.ted", 1001))

    assert (code, message) == refusal(metadata, new(name, 2000))


def test_existing_name_is_told_before_bad_settings():
    """Does a client that creates its topics at every start hear that they exist, whatever it sends along?"""
    fault = KafkaError(ErrorCode.INVALID_CONFIG, "no such setting")

    assert refusal(cluster(new("taken")), new("taken", config_fault=fault))[0] == ErrorCode.TOPIC_ALREADY_EXISTS
    assert refusal(Metadata(), new("fresh", config_fault=fault, partitions=0)) == (
        ErrorCode.INVALID_CONFIG,
        "no such setting",
    )


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"partitions": 0}, ErrorCode.INVALID_PARTITIONS, "non-positive"),
        ({"partitions": -2}, ErrorCode.INVALID_PARTITIONS, "non-positive"),
        ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
        ({"replication_factor": -2}, ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
        ({"replication_factor": 4}, ErrorCode.INVALID_REPLICATION_FACTOR, "only 3 broker(s) are registered"),
        ({"assignments": [(0, (1,))], "partitions": 1}, ErrorCode.INVALID_REQUEST, "numPartitions was not set to -1"),
        (
            {"assignments": [(0, (1,))], "replication_factor": 1},
            ErrorCode.INVALID_REQUEST,
            "replication factor was not set to -1",
        ),
        ({"assignments": [(0, ())]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "empty replica list"),
        ({"assignments": [(1, (1,))]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "consecutive 0-based"),
        ({"assignments": [(-1, (1,)), (0, (1,))]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "consecutive 0-based"),
        (
            {"assignments": [(0, (1,)), (0, (2,))]},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "multiple manual partition assignments for partition 0",
        ),
        ({"assignments": [(0, (2, 1, 2))]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "the broker 2 more than once"),
        ({"assignments": [(0, (1, 9))]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 9, but no such broker"),
        (
            {"assignments": [(0, (1,)), (1, (1, 2))]},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "a partition with 2 replica(s), but this is not consistent with previous partitions, which have 1",
        ),
    ],
)
def test_counts_and_placements_that_cannot_be_are_refused(fields, code, words):
    """Is each impossible count or placement refused with its own reason?"""
    refused, message = refusal(Metadata(), new("orders", **fields))

    assert code == refused
    assert words in message


def test_request_for_too_many_partitions_is_refused_as_a_whole():
    """Is there an end to what one request may create, counted over its topics?"""
    half = PARTITIONS_PER_REQUEST_MAX // 2
    fitting = [new("a", partitions=half), new("b", 1001, partitions=half)]

    assert len(create_topics(Metadata(), fitting, brokers=BROKERS, defaults=DEFAULTS).reply) == 2
    with pytest.raises(KafkaError) as refused:
        create_topics(Metadata(), [*fitting, new("c", 1002)], brokers=BROKERS, defaults=DEFAULTS)
    assert refused.value.code == ErrorCode.POLICY_VIOLATION


# --- placing replicas


@given(
    st.sets(st.integers(0, 1000), min_size=1, max_size=8).flatmap(
        lambda brokers: st.tuples(
            st.just(sorted(brokers)), st.integers(1, 40), st.integers(1, len(brokers)), st.integers(0, 10_000)
        )
    )
)
def test_replicas_are_distinct_and_leaders_spread(case):
    """Has each partition its replicas on different brokers, and does no broker lead two more than another?"""
    brokers, partitions, factor, first = case

    placement = place_replicas(brokers, partitions=partitions, factor=factor, first=first)

    assert all(factor == len(replicas) == len(set(replicas)) for replicas in placement)
    led = [sum(replicas[0] == broker for replicas in placement) for broker in brokers]
    assert max(led) - min(led) <= 1


def test_topics_of_one_partition_are_spread_over_brokers():
    """Do many small topics, made in one request, use all brokers?"""
    metadata = cluster(*(new(f"t{number}", 1000 + number, partitions=1) for number in range(6)))

    leaders = [topic.partitions[0].leader for topic in metadata.topics.values()]
    assert [leaders.count(broker) for broker in BROKERS] == [2, 2, 2]


# --- deleting topics


def test_topics_are_deleted_by_name_and_by_id():
    """Does each way of naming a topic delete it, and only it?"""
    metadata = cluster(new("a", 1001), new("b", 1002), new("c", 1003))

    outcome = delete_topics(metadata, names=["a"], topic_ids=[UUID(int=1002)])
    commit(metadata, outcome)

    assert list(metadata.topics) == ["c"]
    assert {("a", UUID(int=1001), None), ("b", UUID(int=1002), None)} == {
        (topic.name, topic.topic_id, topic.error) for topic in outcome.reply
    }


@pytest.mark.parametrize(
    ("names", "ids", "expected"),
    [
        (["x"], [], [("x", ZERO_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        ([], [9], [(None, UUID(int=9), ErrorCode.UNKNOWN_TOPIC_ID)]),
        (["a", "a"], [], [("a", ZERO_ID, ErrorCode.INVALID_REQUEST)]),
        ([], [1001, 1001], [(None, UUID(int=1001), ErrorCode.INVALID_REQUEST)]),
        (["a"], [1001], [("a", UUID(int=1001), ErrorCode.INVALID_REQUEST)]),
    ],
)
def test_unclear_deletions_delete_nothing(names, ids, expected):
    """Is a topic that is unknown, or named twice in whatever way, left alone and reported once?"""
    outcome = delete_topics(cluster(new("a", 1001)), names=names, topic_ids=[UUID(int=number) for number in ids])

    assert outcome.records == []
    assert expected == [(topic.name, topic.topic_id, topic.error.code) for topic in outcome.reply if topic.error]
    assert all(isinstance(topic, DeletedTopic) for topic in outcome.reply)


# --- growing topics


def grow(metadata: Metadata, name: str, count: int, assignments=None) -> KafkaError | None:
    """Raise a topic's partition count."""
    wanted = [MorePartitions(name=name, count=count, assignments=assignments)]
    outcome = create_partitions(metadata, wanted, brokers=BROKERS)
    commit(metadata, outcome)
    return outcome.reply[name]


def test_topic_grows_by_itself_and_as_told():
    """Are new partitions added behind the old ones, placed by us or by the caller?"""
    metadata = cluster(new("orders", partitions=1, replication_factor=2))

    assert grow(metadata, "orders", 2) is None
    assert grow(metadata, "orders", 3, [(3, 1)]) is None

    partitions = metadata.topics["orders"].partitions
    assert [partition.index for partition in partitions] == [0, 1, 2]
    assert partitions[2].replicas == (3, 1)
    assert [len(partition.replicas) for partition in partitions] == [2, 2, 2]


@pytest.mark.parametrize(
    ("name", "count", "assignments", "code", "words"),
    [
        ("x", 3, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        ("orders", 2, None, ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            "orders",
            1,
            None,
            ErrorCode.INVALID_PARTITIONS,
            "The topic orders currently has 2 partition(s); 1 would not be an increase.",
        ),
        ("orders", 4, [(1,)], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "add 2 additional partition(s), but only 1"),
        ("orders", 3, [(1, 2)], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "with 2 replica(s)"),
        ("orders", 3, [(8,)], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no such broker"),
    ],
)
def test_growth_that_cannot_be_is_refused(name, count, assignments, code, words):
    """Is each impossible growth refused with its own reason, leaving the topic as it was?"""
    metadata = cluster(new("orders", partitions=2))

    error = grow(metadata, name, count, assignments)

    assert error is not None
    assert code == error.code
    assert words in error.message
    assert len(metadata.topics["orders"].partitions) == 2


def test_growth_of_one_topic_twice_in_a_request_is_refused():
    """Is a topic that is named twice left as it was?"""
    metadata = cluster(new("orders"))
    wanted = [MorePartitions(name="orders", count=3), MorePartitions(name="orders", count=4)]

    outcome = create_partitions(metadata, wanted, brokers=BROKERS)

    assert outcome.records == []
    assert outcome.reply["orders"].message == "Duplicate topic name."


def test_growth_has_an_end_and_can_be_tried_out():
    """Is a request for too many partitions refused as a whole, and does validate_only commit nothing?"""
    metadata = cluster(new("orders", partitions=2))
    fitting = [MorePartitions(name="orders", count=2 + PARTITIONS_PER_REQUEST_MAX)]
    too_many = [MorePartitions(name="orders", count=3 + PARTITIONS_PER_REQUEST_MAX)]

    dry = create_partitions(metadata, fitting, brokers=BROKERS, validate_only=True)

    assert (dry.records, dry.reply) == ([], {"orders": None})
    with pytest.raises(KafkaError) as refused:
        create_partitions(metadata, too_many, brokers=BROKERS)
    assert refused.value.code == ErrorCode.POLICY_VIOLATION


# --- settings


def change(name: str, values, kind: int = RESOURCE_TOPIC) -> ConfigChange:
    """A change to exactly these overrides."""
    return ConfigChange(resource_type=kind, resource_name=name, change=lambda old: values)


def test_only_what_differs_is_recorded():
    """Does a change write what is new, changed or gone, and nothing else?"""
    metadata = cluster(new("orders", configs={"same": "1", "changed": "1", "gone": "1"}))

    outcome = change_configs(metadata, [change("orders", {"same": "1", "changed": "2", "new": "1"})], brokers=BROKERS)

    assert [(record.name, record.value) for record in outcome.records] == [
        ("changed", "2"),
        ("gone", None),
        ("new", "1"),
    ]
    assert outcome.reply == [None]


def test_change_sees_what_is_set():
    """Is a change made from the overrides as they are at its turn?"""
    metadata = cluster(new("orders", configs={"a": "1"}))
    seen = []

    def keep(old):
        seen.append(dict(old))
        return old

    wanted = ConfigChange(resource_type=RESOURCE_TOPIC, resource_name="orders", change=keep)
    outcome = change_configs(metadata, [wanted], brokers=BROKERS)

    assert seen == [{"a": "1"}]
    assert outcome.records == []


def test_failed_change_does_not_spoil_the_others():
    """Is each resource changed or not on its own?"""

    def refuse(old):
        raise KafkaError(ErrorCode.INVALID_CONFIG, "no")

    wanted = [
        ConfigChange(resource_type=RESOURCE_TOPIC, resource_name="orders", change=refuse),
        change("", {"a": "1"}, RESOURCE_BROKER),
        change("2", {"a": "2"}, RESOURCE_BROKER),
        change("missing", {"a": "1"}),
        change("9", {"a": "1"}, RESOURCE_BROKER),
    ]

    outcome = change_configs(cluster(new("orders")), wanted, brokers=BROKERS)

    assert [record.resource_name for record in outcome.records] == ["", "2"]
    assert [error and error.code for error in outcome.reply] == [
        ErrorCode.INVALID_CONFIG,
        None,
        None,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.BROKER_ID_NOT_REGISTERED,
    ]


def test_validated_change_is_not_made():
    """Does validate_only commit nothing?"""
    outcome = change_configs(
        cluster(new("orders")), [change("orders", {"a": "1"})], brokers=BROKERS, validate_only=True
    )

    assert (outcome.records, outcome.reply) == ([], [None])


# --- producer ids


def test_blocks_of_producer_ids_never_overlap():
    """Does each block begin where the last one ended, whoever gets it?"""
    metadata = Metadata()
    blocks = []
    for broker in (1, 2, 1):
        outcome = allocate_producer_ids(metadata, broker_id=broker, broker_epoch=0)
        commit(metadata, outcome)
        blocks.append(outcome.reply)

    assert [range(start, start + PRODUCER_ID_BLOCK) for start in (0, 1000, 2000)] == blocks


# --- all together

NAMES = st.sampled_from(["a", "b", "a.b", "a_b", "bad name", "c"])
IDS = st.integers(1000, 1008).map(lambda number: UUID(int=number))
VALUES = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(["1", "2"]))
FRESH_IDS = (UUID(int=number) for number in range(10_000, 10_000_000))

COMMANDS = st.one_of(
    st.lists(
        st.builds(
            NewTopic,
            name=NAMES,
            topic_id=st.builds(lambda: next(FRESH_IDS)),
            partitions=st.integers(-2, 4),
            replication_factor=st.integers(-1, 4),
            configs=VALUES,
        ),
        max_size=3,
    ).map(lambda wanted: lambda m: create_topics(m, wanted, brokers=BROKERS, defaults=DEFAULTS)),
    st.lists(NAMES, max_size=2).map(lambda names: lambda m: delete_topics(m, names=names)),
    st.integers(0, 3).map(lambda place: lambda m: delete_topics(m, topic_ids=list(m.topics_by_id)[place : place + 1])),
    st.tuples(NAMES, st.integers(0, 6)).map(
        lambda case: lambda m: create_partitions(m, [MorePartitions(name=case[0], count=case[1])], brokers=BROKERS)
    ),
    st.tuples(NAMES, VALUES).map(lambda case: lambda m: change_configs(m, [change(*case)], brokers=BROKERS)),
    st.just(lambda m: allocate_producer_ids(m, broker_id=1, broker_epoch=0)),
)


def state(metadata: Metadata) -> dict[str, object]:
    """All there is to know of a state, to compare."""
    return {name: getattr(metadata, name) for name in Metadata.__slots__}


@given(st.lists(COMMANDS, max_size=12))
def test_state_is_what_the_log_says(commands):
    """Is the state of a controller that decided everything the state of one that only read the log?"""
    leader, log = Metadata(), []
    for command in commands:
        outcome = command(leader)
        log.extend(outcome.records)
        commit(leader, outcome)
        check_invariants(leader)

    follower = Metadata()
    for record in log:
        follower.replay(record)

    assert state(leader) == state(follower)


def check_invariants(metadata: Metadata) -> None:
    """What is true of every state a controller can bring about."""
    assert {topic.topic_id: topic for topic in metadata.topics.values()} == metadata.topics_by_id
    assert len({name.replace(".", "_") for name in metadata.topics}) == len(metadata.topics)
    assert set(metadata.config_resources(RESOURCE_TOPIC)) <= set(metadata.topics)
    for topic in metadata.topics.values():
        assert list(range(len(topic.partitions))) == [partition.index for partition in topic.partitions]
        assert len({len(partition.replicas) for partition in topic.partitions}) == 1
        assert all(partition.leader in partition.isr for partition in topic.partitions)
        assert all(set(partition.isr) <= set(partition.replicas) for partition in topic.partitions)
