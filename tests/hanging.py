"""A transaction that no coordinator knows, as a broker that does not verify them lets a producer leave behind."""

from headrace.records.build import NewRecord, build_batch
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire_client import WireClient

# The last version in which a producer says by itself which partitions belong to its transaction.
_VERSION = 11


def leave_hanging(wire: WireClient, topic: str, partition: int, producer_id: int) -> None:
    """Write one record of a transaction that was never begun."""
    batch = build_batch(
        [NewRecord(1, None, b"left behind", ())],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=bytes(batch)),))
    request = ProduceRequest(transactional_id="nobody", acks=-1, timeout_ms=10_000, topic_data=(data,))
    (answered,) = wire.ask("Produce", _VERSION, request).responses
    (result,) = answered.partition_responses
    assert result.error_code == 0, result
