import dataclasses
from collections.abc import Callable

import pytest

from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.log_config import LogConfig
from headrace.settings.broker import BrokerConfig
from headrace.settings.topic import TOPIC_SETTINGS, resolve_log_config, validate_topic_overrides

Node = Callable[..., BrokerConfig]


def test_a_topic_that_says_nothing_has_the_defaults(node: Node) -> None:
    """Are the defaults of the log and those of the table the same?"""
    assert resolve_log_config({}, node()) == LogConfig()


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("segment.bytes", "2000000", "segment_bytes", 2000000),
        ("internal.segment.bytes", "1000", "segment_bytes", 1000),
        ("segment.ms", "1", "segment_ms", 1),
        ("segment.jitter.ms", "5", "segment_jitter_ms", 5),
        ("segment.index.bytes", "4096", "segment_index_bytes", 4096),
        ("segment.preallocate.bytes", "0", "segment_preallocate_bytes", 0),
        ("index.interval.bytes", "0", "index_interval_bytes", 0),
        ("retention.ms", "-1", "retention_ms", -1),
        ("retention.bytes", "100", "retention_bytes", 100),
        ("delete.retention.ms", "7", "delete_retention_ms", 7),
        ("min.cleanable.dirty.ratio", "0.1", "min_cleanable_dirty_ratio", 0.1),
        ("min.compaction.lag.ms", "3", "min_compaction_lag_ms", 3),
        ("max.compaction.lag.ms", "4", "max_compaction_lag_ms", 4),
        ("file.delete.delay.ms", "8", "file_delete_delay_ms", 8),
        ("max.message.bytes", "9", "max_message_bytes", 9),
        ("max.decompressed.message.bytes", "10", "max_decompressed_bytes", 10),
        ("compression.type", "uncompressed", "compression_type", "uncompressed"),
        ("message.timestamp.type", "LogAppendTime", "message_timestamp_log_append", True),
        ("message.timestamp.before.max.ms", "11", "message_timestamp_before_max_ms", 11),
        ("message.timestamp.after.max.ms", "12", "message_timestamp_after_max_ms", 12),
        ("flush.messages", "13", "flush_messages", 13),
        ("flush.ms", "14", "flush_ms", 14),
        ("flush.on.acks.all", "false", "flush_on_acks_all", False),
        ("min.insync.replicas", "2", "min_insync_replicas", 2),
        ("unclean.leader.election.enable", "true", "unclean_leader_election", True),
    ],
)
def test_an_override_reaches_the_log(node: Node, name: str, text: str, field: str, value: object) -> None:
    """Does each topic setting change its own field of the log's config, and no other?"""
    expected = dataclasses.replace(LogConfig(), **{field: value})  # type: ignore[arg-type]

    assert resolve_log_config({name: text}, node()) == expected


@pytest.mark.parametrize(
    ("text", "delete", "compact"),
    [
        ("delete", True, False),
        ("compact", False, True),
        ("compact, delete", True, True),
        ("", False, False),
    ],
)
def test_the_cleanup_policy_is_a_set(node: Node, text: str, delete: bool, compact: bool) -> None:
    """Are both policies, either and none understood?"""
    config = resolve_log_config({"cleanup.policy": text}, node())

    assert (config.cleanup_delete, config.cleanup_compact) == (delete, compact)


@pytest.mark.parametrize(
    ("broker", "field", "value"),
    [
        ({"log.retention.hours": "2"}, "retention_ms", 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "retention_ms", 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, "retention_ms", 4),
        ({"log.retention.hours": "-1"}, "retention_ms", -1),
        ({"log.retention.ms": "-5"}, "retention_ms", -1),
        ({"log.roll.hours": "1"}, "segment_ms", 3_600_000),
        ({"log.roll.hours": "1", "log.roll.ms": "9"}, "segment_ms", 9),
        ({"log.roll.jitter.hours": "1"}, "segment_jitter_ms", 3_600_000),
        ({"log.flush.scheduler.interval.ms": "5"}, "flush_ms", 5),
        ({"log.flush.scheduler.interval.ms": "5", "log.flush.interval.ms": "6"}, "flush_ms", 6),
        ({"log.segment.bytes": "5000000"}, "segment_bytes", 5_000_000),
        ({"message.max.bytes": "7"}, "max_message_bytes", 7),
        ({"flush.on.acks.all": "false"}, "flush_on_acks_all", False),
        ({"log.cleanup.policy": "compact,delete"}, "cleanup_compact", True),
    ],
)
def test_the_broker_gives_the_default(node: Node, broker: dict[str, str], field: str, value: object) -> None:
    """Does a topic follow its broker along the chain of units, the finest unit first?"""
    assert getattr(resolve_log_config({}, node(settings=broker)), field) == value


def test_the_topic_wins_over_dynamic_broker_settings(node: Node) -> None:
    """Does a topic's own word beat even what was set on the broker while it runs?"""
    broker = node().with_dynamic({"log.retention.ms": "9000"})

    assert resolve_log_config({}, broker).retention_ms == 9000
    assert resolve_log_config({"retention.ms": "5"}, broker).retention_ms == 5


THROTTLED = "leader.replication.throttled.replicas"

REFUSED = [
    ({"nope": "1"}, "Unknown topic config name: nope"),
    ({"log.retention.ms": "1"}, "Unknown topic config name: log.retention.ms"),
    ({"retention.ms": "abc"}, "Invalid value abc for configuration retention.ms: Not a number of type LONG"),
    ({"retention.ms": "-5"}, "Invalid value -5 for configuration retention.ms: Value must be at least -1"),
    ({"segment.bytes": "10"}, "Invalid value 10 for configuration segment.bytes: Value must be at least 1048576"),
    (
        {"segment.bytes": "99999999999"},
        "Invalid value 99999999999 for configuration segment.bytes: Not a number of type INT",
    ),
    (
        {"min.cleanable.dirty.ratio": "1.5"},
        "Invalid value 1.5 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
    ),
    (
        {"compression.type": "brotli"},
        (
            "Invalid value brotli for configuration compression.type: "
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"
        ),
    ),
    (
        {"compression.gzip.level": "0"},
        "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
    ),
    (
        {"preallocate": "yes"},
        "Invalid value yes for configuration preallocate: Expected value to be either true or false",
    ),
    (
        {"message.timestamp.type": "createtime"},
        (
            "Invalid value createtime for configuration message.timestamp.type: "
            "String must be one of: CreateTime, LogAppendTime"
        ),
    ),
    (
        {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"},
        "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (50)",
    ),
    (
        {"remote.storage.enable": "true"},
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.",
    ),
    (
        {THROTTLED: "0:1,x"},
        (
            f"Invalid value [0:1, x] for configuration {THROTTLED}: {THROTTLED} must be the literal '*' or a list of "
            "replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
        ),
    ),
]
"""What Apache Kafka 4.3.1 answers to the same overrides, word for word."""


@pytest.mark.parametrize(("overrides", "message"), REFUSED)
def test_overrides_that_cannot_be_are_refused_as_by_kafka(node: Node, overrides: dict[str, str], message: str) -> None:
    """Is the error the one a Kafka broker gives?"""
    with pytest.raises(KafkaError) as caught:
        validate_topic_overrides(overrides, node())

    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert caught.value.message == message


def test_a_topic_opens_whatever_became_of_its_broker(node: Node) -> None:
    """Does a topic that was fine when it was made still open after its broker's defaults moved against it?"""
    broker = node(settings={"log.cleaner.max.compaction.lag.ms": "50"})

    assert resolve_log_config({"min.compaction.lag.ms": "100"}, broker).max_compaction_lag_ms == 50
    with pytest.raises(KafkaError, match="conflict topic config setting"):
        validate_topic_overrides({"min.compaction.lag.ms": "100"}, broker)


@pytest.mark.parametrize("replicas", ["*", "0:1", "0:1,1:2", ""])
def test_throttled_replicas_are_pairs_or_a_star(node: Node, replicas: str) -> None:
    """Are the forms Kafka's reassignment tool writes accepted?"""
    validate_topic_overrides({"follower.replication.throttled.replicas": replicas}, node())


def test_every_served_topic_setting_reaches_the_log() -> None:
    """Is no setting called served that neither a log is told nor the quotas of replication are?"""
    tested = {case[0] for case in test_an_override_reaches_the_log.pytestmark[0].args[1]}
    throttles = {"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}

    served = {name for name, setting in TOPIC_SETTINGS.items() if setting.served}
    assert served == tested | throttles | {"cleanup.policy"}
