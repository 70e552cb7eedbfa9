"""Is the broker that asks the one that registered last under its id?"""

from __future__ import annotations

from headrace.cores.metadata import Metadata
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import RegisterBrokerRecord


def check_broker_epoch(metadata: Metadata, broker_id: int, broker_epoch: int) -> RegisterBrokerRecord:
    """The broker's registration; refused if it has none, or registered again since."""
    broker = metadata.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
    if broker.broker_epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {broker.broker_epoch}, but got broker epoch {broker_epoch}",
        )
    return broker
