"""What a command of the controller decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from headrace.cores.metadata import Metadata
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import MetadataRecord

Reply = TypeVar("Reply")

RECORDS_PER_REQUEST_MAX = 10_000
"""Records one admin request may become; Kafka's number, so that one request cannot stall the log."""


class Outcome(Struct, Generic[Reply], frozen=True):
    """What a command decided: records to commit, and the reply that is true once they are."""

    records: Sequence[MetadataRecord]
    reply: Reply


Command = Callable[[Metadata], Outcome[Reply]]
"""A decision to be taken against the state as it is when its turn comes."""


def check_size(records: Sequence[MetadataRecord]) -> None:
    """Refuse a request that became too many records, as a whole."""
    if len(records) > RECORDS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
