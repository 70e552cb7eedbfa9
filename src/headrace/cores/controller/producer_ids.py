"""Blocks of producer ids (67 AllocateProducerIds)."""

from __future__ import annotations

from headrace.cores.controller.broker_epochs import check_broker_epoch
from headrace.cores.controller.outcome import Outcome
from headrace.cores.metadata import Metadata
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import ProducerIdsRecord

PRODUCER_ID_BLOCK = 1000
"""Ids given to a broker at once: few enough to waste at a restart, enough to write a record seldom."""

_PRODUCER_ID_MAX = 2**63 - 1


def allocate_producer_ids(metadata: Metadata, *, broker_id: int, broker_epoch: int) -> Outcome[range]:
    """Give a broker its next block of producer ids."""
    if metadata.brokers:
        # A node that is its own cluster does not register, and has no epoch to be wrong about.
        check_broker_epoch(metadata, broker_id, broker_epoch)
    first = metadata.next_producer_id
    if first > _PRODUCER_ID_MAX - PRODUCER_ID_BLOCK:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit",
        )
    block = range(first, first + PRODUCER_ID_BLOCK)
    record = ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=block.stop)
    return Outcome([record], block)
