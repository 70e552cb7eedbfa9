"""Records of new partitions, from where their replicas were placed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from headrace.cores.controller.placement import UNASSIGNED, Brokers
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import MetadataRecord, PartitionRecord

Refuse = Callable[[int], KafkaError]
"""How to refuse a partition, by its number, none of whose replicas lives."""


def no_live_replica(partition: int) -> KafkaError:
    """A hand-made assignment on brokers that are all fenced or shutting down."""
    return KafkaError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        f"All brokers specified in the manual partition assignment for partition {partition} are fenced or in "
        "controlled shutdown.",
    )


def partition_records(
    topic_id: UUID, placement: Sequence[Sequence[int]], brokers: Brokers, *, first: int, refuse: Refuse
) -> list[MetadataRecord]:
    """New partitions of a topic, numbered from `first`: in sync is whoever lives, and the first of these leads."""
    active = {broker_id for broker_id, broker in brokers.items() if broker.is_active}
    records: list[MetadataRecord] = []
    for index, replicas in enumerate(placement, first):
        isr = tuple(replica for replica in replicas if replica in active)
        if not isr:
            raise refuse(index)
        records.append(
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=tuple(replicas),
                isr=isr,
                leader=isr[0],
                directories=_directories(replicas, brokers),
            )
        )
    return records


def _directories(replicas: Sequence[int], brokers: Brokers) -> tuple[UUID, ...]:
    told = [brokers[replica].directory for replica in replicas]
    if all(directory is None for directory in told):
        return ()
    return tuple(UNASSIGNED if directory is None else directory for directory in told)
