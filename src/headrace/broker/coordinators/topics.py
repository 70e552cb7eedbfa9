"""The coordinators' topics, as Kafka shapes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.coordinator import CoordinatorTopic

if TYPE_CHECKING:
    from headrace.settings.broker import BrokerConfig


def _offsets(config: BrokerConfig) -> dict[str, str]:
    return {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config["offsets.topic.segment.bytes"]),
    }


def _transactions(config: BrokerConfig) -> dict[str, str]:
    return {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": str(config["transaction.state.log.min.isr"]),
        "segment.bytes": str(config["transaction.state.log.segment.bytes"]),
        "unclean.leader.election.enable": "false",
    }


def _share_state(config: BrokerConfig) -> dict[str, str]:
    return {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": str(config["share.coordinator.state.topic.min.isr"]),
        "retention.ms": "-1",
        "segment.bytes": str(config["share.coordinator.state.topic.segment.bytes"]),
    }


OFFSETS: Final = CoordinatorTopic(
    name="__consumer_offsets",
    partitions="offsets.topic.num.partitions",
    replication_factor="offsets.topic.replication.factor",
    read_bytes="offsets.load.buffer.size",
    write_timeout_ms="offsets.commit.timeout.ms",
    configs=_offsets,
)
TRANSACTIONS: Final = CoordinatorTopic(
    name="__transaction_state",
    partitions="transaction.state.log.num.partitions",
    replication_factor="transaction.state.log.replication.factor",
    read_bytes="transaction.state.log.load.buffer.size",
    write_timeout_ms="request.timeout.ms",
    configs=_transactions,
)
SHARE_STATE: Final = CoordinatorTopic(
    name="__share_group_state",
    partitions="share.coordinator.state.topic.num.partitions",
    replication_factor="share.coordinator.state.topic.replication.factor",
    read_bytes="share.coordinator.load.buffer.size",
    write_timeout_ms="share.coordinator.write.timeout.ms",
    configs=_share_state,
)
