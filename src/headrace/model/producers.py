"""What is remembered of a producer on one partition (KIP-98), as every room passes it around."""

from typing import NamedTuple


class ProducerBatch(NamedTuple):
    """One batch a producer wrote: enough to recognise it when it comes again."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int


class ProducerEntry(NamedTuple):
    """One producer's standing on one partition, oldest remembered batch first."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_timestamp_ms: int
    current_transaction_first_offset: int
    """-1 while no transaction of this producer is open here."""
    batches: tuple[ProducerBatch, ...]
