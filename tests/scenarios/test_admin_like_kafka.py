"""The same admin requests to Headrace and to Apache Kafka: both must give the same answer, field by field.

Left out are what cannot be the same (ids, ports, paths, room on the disk) and where we differ on purpose, which the
handlers' headers tell.
"""

import time
from uuid import UUID

import pytest
from msgspec import to_builtins

from headrace.model.ids import ZERO_ID
from headrace.testing.cluster import Cluster
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.peer import KafkaPeer
from headrace.wire.messages import (
    alter_configs,
    alter_replica_log_dirs,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    incremental_alter_configs,
    list_config_resources,
)
from wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
NOT_COMPARED = {
    # Kafka has no such settings.
    "flush.on.acks.all",
    "log.segment.preallocate.bytes",
    "max.decompressed.message.bytes",
    "segment.preallocate.bytes",
    # A new Kafka cluster writes it down as a dynamic default, for replicas we do not have yet.
    "min.insync.replicas",
}
DEADLINE_S = 20


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    """Headrace and Apache Kafka, each with the same topics."""
    try:
        peer = KafkaPeer(tmp_path_factory.mktemp("peer") / "kafka")
        peer.command()
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    # Its sample file says some defaults aloud, which would be told as the file's.
    lines = peer.properties.read_text().splitlines(keepends=True)
    peer.properties.write_text("".join(line for line in lines if not line.startswith(("log.re", "log.se", "num."))))
    with peer, Cluster() as cluster, WireClient(cluster.port) as ours, WireClient(peer.port) as theirs:
        both = Both(ours, theirs)
        both.same(
            "CreateTopics",
            7,
            new_topics(
                ("a", 2, {"retention.ms": "5000"}), ("dot.ted", 1, {}), ("packed", 1, {"cleanup.policy": "compact"})
            ),
        )
        both.agree(
            "DescribeTopicPartitions",
            0,
            describe_topic_partitions.DescribeTopicPartitionsRequest(response_partition_limit=100),
        )
        yield both


class Both:
    """Asks both brokers."""

    def __init__(self, ours, theirs):
        self._ours, self._theirs = ours, theirs

    def same(self, api, version, request):
        """Ask once; the answers must be the same."""
        ours = comparable(self._ours.ask(api, version, request))
        assert ours == comparable(self._theirs.ask(api, version, request))
        return ours

    def agree(self, api, version, request):
        """Ask until the answers are the same: Kafka's broker learns a little later what its controller decided."""
        end = time.monotonic() + DEADLINE_S
        ours = comparable(self._ours.ask(api, version, request))
        while (theirs := comparable(self._theirs.ask(api, version, request))) != ours:
            assert time.monotonic() < end, (ours, theirs)
        return ours

    def same_of_own_dirs(self, api, version, request_of):
        """Ask each broker something about its own log dir; the answers must be the same."""
        everything = describe_log_dirs.DescribeLogDirsRequest(topics=None)
        answers = []
        for broker in (self._ours, self._theirs):
            path = broker.ask("DescribeLogDirs", 5, everything).results[0].log_dir
            answers.append(comparable(broker.ask(api, version, request_of(path))))
        assert answers[0] == answers[1]


def comparable(answer):
    """An answer without what is different by nature, and without order."""
    return simple(to_builtins(answer, builtin_types=(UUID,)))


UNLIKE = {"port", "cluster_id", "log_dir", "total_bytes", "usable_bytes", "documentation"}


def simple(value, field=""):
    """One value of an answer, made comparable."""
    if field in UNLIKE:
        return field
    if isinstance(value, UUID):
        return value if value == ZERO_ID else "an id"
    if isinstance(value, dict):
        return {name: simple(each, name) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        kept = (each for each in value if not isinstance(each, dict) or each.get("name") not in NOT_COMPARED)
        return sorted((simple(each) for each in kept), key=repr)
    return value


# --- topics


def new_topics(*topics, **options):
    """A request for topics of one replica: name, partitions, settings, and hand-made assignments."""
    return create_topics.CreateTopicsRequest(
        topics=tuple(new_topic(*topic) for topic in topics), timeout_ms=30_000, **options
    )


def new_topic(name, partitions=1, configs=None, factor=1, assignments=()):
    """One wanted topic."""
    return create_topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=tuple(
            create_topics.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ),
        assignments=tuple(
            create_topics.CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
            for index, ids in assignments
        ),
    )


def placed(name, *assignments, partitions=-1, factor=-1):
    """A topic placed by hand."""
    return (name, partitions, None, factor, assignments)


@pytest.mark.parametrize(
    "request_",
    [
        new_topics(("a",), ("dot_ted",), ("..",), (".",), ("",), ("sp ace",), ("__cluster_metadata",)),
        new_topics(("n1", 0), ("n2", -2), ("n3", 1, {}, 0), ("n4", 1, {}, -2)),
        new_topics(("twice",), ("twice",)),
        new_topics(("dry", 3), validate_only=True),
        new_topics(("big", 10_001)),
        new_topics(("big1", 6000), ("big2", 6000)),
        new_topics(
            placed("p1", (0, (1,)), partitions=1),
            placed("p2", (0, (1,)), factor=1),
            placed("p3", (1, (1,))),
            placed("p4", (0, ())),
            placed("p5", (0, (1, 1))),
            placed("p6", (0, (9,))),
            placed("p7", (0, (1,)), (0, (1,))),
        ),
        new_topics(
            ("c1", 1, {"no.such": "1"}),
            ("c2", 1, {"retention.ms": "x"}),
            ("c3", 1, {"retention.ms": None, "cleanup.policy": None}),
            ("c4", 1, {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}),
            ("c5", 1, {"compression.type": "foo"}),
            ("c6", 1, {"retention.ms": "-5"}),
            ("c7", 1, {"no.such": "1"}, 3),
            ("a", 1, {"no.such": "1"}),
        ),
    ],
)
def test_create_topics(brokers, request_):
    """Are topics created and refused alike, with the same words?"""
    brokers.same("CreateTopics", 7, request_)


def gone(**fields):
    """A topic to delete."""
    return delete_topics.DeleteTopicState(**fields)


@pytest.mark.parametrize(
    "topics",
    [
        (gone(name="nope"), gone(topic_id=UUID(int=77_777)), gone(), gone(name="a", topic_id=UUID(int=5))),
        (gone(name="a"), gone(name="a")),
        (gone(topic_id=UUID(int=77_777)), gone(topic_id=UUID(int=77_777))),
    ],
)
def test_delete_topics(brokers, topics):
    """Are deletions that cannot be refused alike?"""
    brokers.same("DeleteTopics", 6, delete_topics.DeleteTopicsRequest(topics=topics, timeout_ms=30_000))


def grown(*topics, **options):
    """A request for more partitions: name, count, hand-made assignments."""
    return create_partitions.CreatePartitionsRequest(
        topics=tuple(
            create_partitions.CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=None
                if placement is None
                else tuple(create_partitions.CreatePartitionsAssignment(broker_ids=ids) for ids in placement),
            )
            for name, count, placement in topics
        ),
        timeout_ms=30_000,
        **options,
    )


@pytest.mark.parametrize(
    "request_",
    [
        grown(("a", 2, None), ("dot.ted", 3, [(1,)]), ("packed", 0, None)),
        grown(("a", 3, [(9,)]), ("dot.ted", 2, [(1, 1)]), ("packed", 2, [()])),
        grown(("a", 3, None), ("a", 4, None)),
        grown(("a", 3, []), ("packed", -1, None)),
        grown(("a", 3, None), validate_only=True),
    ],
)
def test_create_partitions(brokers, request_):
    """Is growth refused alike?"""
    brokers.same("CreatePartitions", 3, request_)


def described(*names, limit=2000, cursor=None):
    """A request to describe topics, a page at a time."""
    return describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=tuple(describe_topic_partitions.TopicRequest(name=name) for name in names),
        response_partition_limit=limit,
        cursor=cursor and describe_topic_partitions.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


@pytest.mark.parametrize(
    "request_",
    [
        described(),
        described("a", "nope", "b/c", "a"),
        described(limit=2),
        described(limit=0),
        described("a", "dot.ted", "packed", limit=3),
        described(limit=2, cursor=("a", 1)),
        described(cursor=("aa", 0)),
        described(cursor=("a", 50)),
        described("dot.ted", "nope", cursor=("nope", 0)),
        described("a", cursor=("dot.ted", 0)),
        described(cursor=("a", -1)),
    ],
)
def test_describe_topic_partitions(brokers, request_):
    """Are topics described alike, page by page?"""
    brokers.agree("DescribeTopicPartitions", 0, request_)


# --- settings


def asked(*resources, **options):
    """A request to describe settings: type, name, keys."""
    return describe_configs.DescribeConfigsRequest(
        resources=tuple(
            describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name, keys in resources
        ),
        **options,
    )


SERVED_ALIKE = (
    "node.id",
    "num.partitions",
    "message.max.bytes",
    "log.retention.ms",
    "log.retention.hours",
    "log.segment.bytes",
    "process.roles",
    "ssl.keystore.password",
)


@pytest.mark.parametrize(
    "request_",
    [
        asked((TOPIC, "a", ("retention.ms", "flush.ms", "nope")), (TOPIC, "packed", None), include_synonyms=True),
        asked((TOPIC, "", None), (TOPIC, "b/c", None)),
        asked((BROKER, "1", SERVED_ALIKE), (BROKER, "5", None), (BROKER, "abc", None), include_synonyms=True),
        asked((8, "", None), (8, "5", None), (16, "", None), (GROUP, "", None)),
        asked((GROUP, "nobody", None), include_synonyms=True),
        asked((GROUP, "nobody", ("share.auto.offset.reset", "nope", "group.share.session.timeout.ms"))),
    ],
)
def test_describe_configs(brokers, request_):
    """Is every setting told alike: value, source, type and the chain behind it?"""
    brokers.agree("DescribeConfigs", 4, request_)


BAD_FOR_GROUPS = (
    ("no.such", "1"),
    ("group.share.session.timeout.ms", "50000"),
    ("consumer.assignor.offload.enable", "true"),
    ("consumer.session.timeout.ms", "soon"),
    ("consumer.session.timeout.ms", "0"),
    ("consumer.session.timeout.ms", "44999"),
    ("consumer.session.timeout.ms", "60001"),
    ("consumer.heartbeat.interval.ms", "4999"),
    ("consumer.heartbeat.interval.ms", "15001"),
    ("consumer.assignment.interval.ms", "-1"),
    ("consumer.assignment.interval.ms", "15001"),
    ("share.session.timeout.ms", "2147483648"),
    ("share.session.timeout.ms", "60001"),
    ("share.heartbeat.interval.ms", "1"),
    ("share.record.lock.duration.ms", "999"),
    ("share.record.lock.duration.ms", "14999"),
    ("share.record.lock.duration.ms", "60001"),
    ("share.delivery.count.limit", "1"),
    ("share.delivery.count.limit", "11"),
    ("share.partition.max.record.locks", "99"),
    ("share.partition.max.record.locks", "4001"),
    ("share.assignment.interval.ms", "15001"),
    ("share.renew.acknowledge.enable", "maybe"),
    ("share.isolation.level", "READ_COMMITTED"),
    ("share.auto.offset.reset", "none"),
    ("share.auto.offset.reset", "EARLIEST"),
    ("share.auto.offset.reset", ""),
    ("share.auto.offset.reset", "by_duration"),
    ("share.auto.offset.reset", "by_duration:"),
    ("share.auto.offset.reset", "by_duration:P1DT"),
    ("share.auto.offset.reset", "by_duration:P1Y"),
    ("share.auto.offset.reset", "by_duration:-PT1S"),
    ("share.auto.offset.reset", "by_duration:PT9223372036854775808S"),
    ("streams.session.timeout.ms", "1"),
    ("streams.heartbeat.interval.ms", "15001"),
    ("streams.num.standby.replicas", "-1"),
    ("streams.num.standby.replicas", "3"),
    ("streams.initial.rebalance.delay.ms", "-1"),
    ("streams.assignment.interval.ms", "15001"),
)
"""Settings that no group can be given."""

# No spaces around a number that has bounds: Kafka takes it, and then fails to act on it.
FINE_FOR_GROUPS = (
    ("consumer.session.timeout.ms", "50000"),
    ("share.renew.acknowledge.enable", " FALSE "),
    ("share.isolation.level", " read_committed"),
    ("share.auto.offset.reset", " earliest "),
    ("share.auto.offset.reset", "by_duration:pt1,5s"),
    ("share.auto.offset.reset", "by_duration:PT-1H61M"),
    ("share.auto.offset.reset", "by_duration:PT9223372036854775807S"),
    ("streams.initial.rebalance.delay.ms", "+7"),
    ("streams.num.standby.replicas", "2"),
)


def changed(*resources, **options):
    """A request to change settings one by one: type, name, (key, operation, value)."""
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=tuple(
            incremental_alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(
                    incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in configs
                ),
            )
            for kind, name, configs in resources
        ),
        **options,
    )


@pytest.mark.parametrize(
    "request_",
    [
        changed(
            (TOPIC, "nope", [("retention.ms", SET, "1")]),
            (TOPIC, "nope2", [("no.such", SET, "1")]),
            (TOPIC, "", [("retention.ms", SET, "1")]),
            (TOPIC, "b/c", [("retention.ms", SET, "1")]),
            (99, "x", []),
            (BROKER, "5", [("log.retention.ms", SET, "1000")]),
            (BROKER, "abc", [("log.retention.ms", SET, "1000")]),
        ),
        changed((TOPIC, "a", [("no.such", SET, "1")]), (TOPIC, "packed", [("retention.ms", APPEND, "1")])),
        changed((TOPIC, "a", [("retention.ms", SET, None)]), (TOPIC, "packed", [("retention.ms", SET, "soon")])),
        changed((TOPIC, "a", [("retention.ms", SET, "1"), ("retention.ms", SET, "2")])),
        changed((TOPIC, "a", [("flush.ms", SET, "7")]), (TOPIC, "a", [("flush.ms", SET, "8")])),
        changed((TOPIC, "a", [("flush.ms", SET, "7")]), validate_only=True),
        changed((BROKER, "1", [("node.id", SET, "3")])),
        changed((BROKER, "1", [("log.retention.ms", SET, "x")])),
        changed((BROKER, "1", [("log.retention.ms", APPEND, "3")])),
        changed((BROKER, "", [("num.partitions", SET, "3")])),
        changed(*((GROUP, f"g{place}", [(name, SET, value)]) for place, (name, value) in enumerate(BAD_FOR_GROUPS))),
        changed(
            (GROUP, "", [("share.session.timeout.ms", SET, "50000")]),
            (GROUP, "g1", [("share.session.timeout.ms", SET, None)]),
            (GROUP, "g2", [("share.session.timeout.ms", APPEND, "50000")]),
            (GROUP, "g3", [("no.such", SUBTRACT, "50000")]),
            (GROUP, "g4", [("no.such", DELETE, None)]),
            (GROUP, "g5", [("share.session.timeout.ms", SET, "50000"), ("share.session.timeout.ms", DELETE, None)]),
            (GROUP, "g6", []),
        ),
        changed((GROUP, "g7", [("share.session.timeout.ms", SET, "50000")]), validate_only=True),
    ],
)
def test_change_that_cannot_be_is_refused_alike(brokers, request_):
    """Is each impossible change refused with the same code and words?"""
    brokers.same("IncrementalAlterConfigs", 1, request_)


def replaced(*resources, **options):
    """A request to replace settings: type, name, (key, value)."""
    return alter_configs.AlterConfigsRequest(
        resources=tuple(
            alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(alter_configs.AlterableConfig(name=key, value=value) for key, value in configs),
            )
            for kind, name, configs in resources
        ),
        **options,
    )


@pytest.mark.parametrize(
    "request_",
    [
        replaced(
            (TOPIC, "nope", [("flush.ms", "7")]),
            (TOPIC, "packed", [("flush.ms", None)]),
            (BROKER, "5", []),
            (8, "1", []),
            (99, "x", []),
        ),
        replaced((TOPIC, "a", [("flush.ms", "7"), ("flush.ms", "8")])),
        replaced(
            (GROUP, "", []), (GROUP, "g1", [("no.such", "1")]), (GROUP, "g2", [("share.session.timeout.ms", None)])
        ),
    ],
)
def test_replacement_that_cannot_be_is_refused_alike(brokers, request_):
    """Is each impossible replacement refused with the same code and words?"""
    brokers.same("AlterConfigs", 2, request_)


def test_changes_come_to_the_same(brokers):
    """Do the same changes leave the same settings, with the same sources?"""
    brokers.same("CreateTopics", 7, new_topics(("changing", 1, {"retention.ms": "5000"})))
    shown = asked((TOPIC, "changing", ("cleanup.policy", "retention.ms", "flush.ms")), include_synonyms=True)
    shown_broker = asked((BROKER, "1", ("log.retention.ms",)), (BROKER, "", ("log.retention.ms",)))
    brokers.agree("DescribeConfigs", 4, shown)

    for changes in (
        [("cleanup.policy", APPEND, "compact"), ("retention.ms", DELETE, None)],
        [("cleanup.policy", SUBTRACT, "delete"), ("flush.ms", SET, "7")],
    ):
        brokers.same("IncrementalAlterConfigs", 1, changed((TOPIC, "changing", changes)))
        brokers.agree("DescribeConfigs", 4, shown)
    brokers.same("AlterConfigs", 2, replaced((TOPIC, "changing", [("flush.ms", "8")])))
    brokers.agree("DescribeConfigs", 4, shown)
    brokers.same(
        "IncrementalAlterConfigs",
        1,
        changed(
            (BROKER, "1", [("log.retention.ms", SET, "777777")]), (BROKER, "", [("log.retention.ms", SET, "888888")])
        ),
    )
    brokers.agree("DescribeConfigs", 4, shown_broker)
    brokers.agree("DescribeConfigs", 4, shown)
    brokers.same("AlterConfigs", 2, replaced((BROKER, "1", [])))
    brokers.agree("DescribeConfigs", 4, shown_broker)


def test_changes_of_groups_come_to_the_same(brokers):
    """Do groups that are given the same settings tell the same, with the same sources, and are they listed alike?"""
    listing = list_config_resources.ListConfigResourcesRequest(resource_types=(GROUP,))
    shown = asked((GROUP, "g", None), include_synonyms=True)
    for name, value in FINE_FOR_GROUPS:
        brokers.same("IncrementalAlterConfigs", 1, changed((GROUP, "g", [(name, SET, value)])))
        brokers.agree("DescribeConfigs", 4, shown)
    assert len(brokers.agree("ListConfigResources", 1, listing)["config_resources"]) == 1

    brokers.same("AlterConfigs", 2, replaced((GROUP, "g", [("consumer.heartbeat.interval.ms", "6000")])))
    brokers.agree("DescribeConfigs", 4, shown)
    brokers.same(
        "IncrementalAlterConfigs", 1, changed((GROUP, "g", [("consumer.heartbeat.interval.ms", DELETE, None)]))
    )

    brokers.agree("DescribeConfigs", 4, shown)
    assert brokers.agree("ListConfigResources", 1, listing)["config_resources"] == []


@pytest.mark.parametrize(("version", "kinds"), [(0, ()), (1, ()), (1, (TOPIC,)), (1, (4, 8, 16, 32)), (1, (99,))])
def test_list_config_resources(brokers, version, kinds):
    """Are resources listed alike?"""
    brokers.agree(
        "ListConfigResources", version, list_config_resources.ListConfigResourcesRequest(resource_types=kinds)
    )


# --- records, disks, the cluster


@pytest.mark.parametrize(
    ("topic", "partition", "offset"),
    [("a", 0, 0), ("a", 0, -1), ("a", 0, 1), ("a", 0, -2), ("a", 77, 0), ("nope", 0, 0), ("packed", 0, 0)],
)
def test_delete_records(brokers, topic, partition, offset):
    """Are records deleted, or not, alike?"""
    asked_for = delete_records.DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = delete_records.DeleteRecordsRequest(
        topics=(delete_records.DeleteRecordsTopic(name=topic, partitions=(asked_for,)),), timeout_ms=30_000
    )

    brokers.agree("DeleteRecords", 2, request)


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        (2, {"include_cluster_authorized_operations": True, "include_fenced_brokers": True}),
        (2, {"endpoint_type": 2}),
        (2, {"endpoint_type": 3}),
        (0, {}),
    ],
)
def test_describe_cluster(brokers, version, fields):
    """Is the cluster described alike?"""
    brokers.same("DescribeCluster", version, describe_cluster.DescribeClusterRequest(**fields))


@pytest.mark.parametrize(("version", "topics"), [(5, None), (5, {}), (1, {"a": (0, 99), "nope": (0,)})])
def test_describe_log_dirs(brokers, version, topics):
    """Are log dirs described alike?"""
    wanted = topics and tuple(
        describe_log_dirs.DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics.items()
    )
    request = describe_log_dirs.DescribeLogDirsRequest(topics=wanted if topics is None or topics else ())

    brokers.agree("DescribeLogDirs", version, request)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("ending", "topics"),
    [
        ("", {"a": (0, 1)}),
        ("", {"a": (0, 99), "nope": (0,), "b/c": (0,)}),
        ("", {"t" * 249: (0,)}),
        ("/", {"a": (0,)}),
        ("-nope", {"a": (0,), "nope": (0,)}),
        ("", {}),
    ],
)
def test_alter_replica_log_dirs(brokers, version, ending, topics):
    """Are moves to the dir where a replica is, of what is not there and to dirs that are not, answered alike?"""
    rows = tuple(
        alter_replica_log_dirs.AlterReplicaLogDirTopic(name=name, partitions=indexes)
        for name, indexes in topics.items()
    )

    def request_of(path):
        wanted = alter_replica_log_dirs.AlterReplicaLogDir(path=path + ending, topics=rows)
        return alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=(wanted,))

    brokers.same_of_own_dirs("AlterReplicaLogDirs", version, request_of)


def test_describe_producers(brokers):
    """Are partitions without producers, and those that are not there, described alike?"""
    request = describe_producers.DescribeProducersRequest(
        topics=(
            describe_producers.TopicRequest(name="a", partition_indexes=(0,)),
            describe_producers.TopicRequest(name="nope", partition_indexes=(0,)),
            describe_producers.TopicRequest(name="b/c", partition_indexes=(0,)),
        )
    )

    brokers.agree("DescribeProducers", 0, request)
