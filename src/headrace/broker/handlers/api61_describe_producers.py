"""DescribeProducers, key 61.

Versions: 0.
Behaviour: the producers a partition remembers, with their epoch, last sequence and open transaction, to find out who
keeps a consumer waiting. A partition that is asked for twice is answered once.
KIPs: 664.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import topic_name_fault
from headrace.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.model.producers import ProducerEntry


def handle(call: Call, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Describe the producers of each partition."""
    asked: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        asked.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return DescribeProducersResponse(
        topics=tuple(
            TopicResponse(name=name, partitions=tuple(_partition(call.broker, name, index) for index in indexes))
            for name, indexes in asked.items()
        )
    )


def _partition(broker: Broker, name: str, index: int) -> PartitionResponse:
    try:
        fault = topic_name_fault(name)
        if fault is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        producers = broker.partitions.require(name, index).producers
    except KafkaError as error:
        return PartitionResponse(partition_index=index, error_code=int(error.code), error_message=error.message or None)
    return PartitionResponse(
        partition_index=index, active_producers=tuple(_producer(entry) for entry in producers.entries())
    )


def _producer(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.batches[-1].last_sequence if entry.batches else -1,
        last_timestamp=entry.last_timestamp_ms,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.current_transaction_first_offset,
    )


API = Api(key=61, low=0, high=0, handle=handle)
