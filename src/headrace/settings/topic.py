"""A topic's settings: what it says for itself, and for the rest what its broker's settings say.

A value is looked for in the topic's overrides, then along the broker settings that stand for it (`retention.ms`
in `log.retention.ms`, `.minutes`, `.hours`), then in the table.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.log_config import LogConfig
from headrace.settings.broker import BrokerConfig
from headrace.settings.fault import ConfigFault
from headrace.settings.setting import Setting, Value
from headrace.settings.table import read_table
from headrace.settings.tables.topic import ROWS

TOPIC_SETTINGS: Mapping[str, Setting] = MappingProxyType(read_table(ROWS, "topic"))

_THROTTLED = re.compile(r"[0-9]+:[0-9]+", re.ASCII)


def resolve_log_config(topic_overrides: Mapping[str, str], broker: BrokerConfig) -> LogConfig:
    """What a log of this topic is told; KafkaError(INVALID_CONFIG) if an override cannot be."""
    values = resolve_topic_values(topic_overrides, broker)
    segment_bytes: int = values["internal.segment.bytes"] or values["segment.bytes"]
    return LogConfig(
        segment_bytes=segment_bytes,
        segment_ms=values["segment.ms"],
        segment_jitter_ms=values["segment.jitter.ms"],
        segment_index_bytes=values["segment.index.bytes"],
        segment_preallocate_bytes=values["segment.preallocate.bytes"],
        index_interval_bytes=values["index.interval.bytes"],
        preallocate=values["preallocate"],
        retention_ms=values["retention.ms"],
        retention_bytes=values["retention.bytes"],
        cleanup_delete="delete" in values["cleanup.policy"],
        cleanup_compact="compact" in values["cleanup.policy"],
        delete_retention_ms=values["delete.retention.ms"],
        min_cleanable_dirty_ratio=values["min.cleanable.dirty.ratio"],
        min_compaction_lag_ms=values["min.compaction.lag.ms"],
        max_compaction_lag_ms=values["max.compaction.lag.ms"],
        file_delete_delay_ms=values["file.delete.delay.ms"],
        max_message_bytes=values["max.message.bytes"],
        max_decompressed_bytes=values["max.decompressed.message.bytes"],
        compression_type=values["compression.type"],
        message_timestamp_log_append=values["message.timestamp.type"] == "LogAppendTime",
        message_timestamp_before_max_ms=values["message.timestamp.before.max.ms"],
        message_timestamp_after_max_ms=values["message.timestamp.after.max.ms"],
        flush_messages=values["flush.messages"],
        flush_ms=values["flush.ms"],
        flush_on_acks_all=values["flush.on.acks.all"],
        min_insync_replicas=values["min.insync.replicas"],
        unclean_leader_election=values["unclean.leader.election.enable"],
    )


def resolve_topic_values(topic_overrides: Mapping[str, str], broker: BrokerConfig) -> dict[str, Any]:
    """Every topic setting's value by name; KafkaError(INVALID_CONFIG) if an override cannot be."""
    for name in topic_overrides:
        if name not in TOPIC_SETTINGS:
            raise _refusal(f"Unknown topic config name: {name}")
    try:
        return {
            name: setting.parse(topic_overrides[name]) if name in topic_overrides else broker_default(setting, broker)
            for name, setting in TOPIC_SETTINGS.items()
        }
    except ConfigFault as fault:
        raise _refusal(fault.problem) from None


def validate_topic_overrides(topic_overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """KafkaError(INVALID_CONFIG), in Kafka's words, if a topic cannot be given these settings on this broker."""
    # What goes together is asked only of a change: a topic that was fine once must open again whatever became of
    # its broker's defaults.
    _check_together(resolve_topic_values(topic_overrides, broker))


def broker_default(setting: Setting, broker: BrokerConfig) -> Value:
    """What a topic that says nothing gets for `setting`."""
    for name, factor in setting.synonyms:
        value: Value = broker[name]
        if value is None:
            continue
        if setting.low == -1 and isinstance(value, int) and value < 0:
            # A broker may write any negative number for "forever", in any unit.
            return -1
        if factor == 1:
            return value
        assert isinstance(value, int), name
        return value * factor
    return setting.default


def _check_together(values: Mapping[str, Any]) -> None:
    low, high = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if low > high:
        raise _refusal(f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})")
    if values["remote.storage.enable"]:
        raise _refusal(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    for name in ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas"):
        replicas = values[name]
        if replicas != ("*",) and not all(_THROTTLED.fullmatch(replica) for replica in replicas):
            raise _refusal(
                f"Invalid value [{', '.join(replicas)}] for configuration {name}: {name} must be the literal '*' or "
                "a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
            )


def _refusal(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)
