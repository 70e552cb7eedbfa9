"""Transactions of the metadata log (KIP-868): what a controller writes in several batches and means as one.

The image never shows half of one: records wait here until the end of their transaction, or are dropped at its abort.
Our own controllers write every decision as one batch and begin none; Apache Kafka's begin their first log with one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.model.errors import StorageFault
from headrace.model.metadata_records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.model.metadata_records import MetadataRecord

_MARKERS = frozenset({BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord})


class MetadataTransaction:
    """The transaction that is open where a reader of the log is, if one is."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: list[MetadataRecord] | None = None

    @property
    def is_open(self) -> bool:
        """Whether records are held back."""
        return self._held is not None

    def released(self, records: Sequence[MetadataRecord]) -> Sequence[MetadataRecord]:
        """Of these and those that were held back, the records that hold now; StorageFault if they make no sense."""
        if self._held is None and not any(type(record) in _MARKERS for record in records):
            return records
        released: list[MetadataRecord] = []
        for record in records:
            match record:
                case BeginTransactionRecord():
                    if self._held is not None:
                        raise StorageFault("A metadata transaction begins within another.")
                    self._held = []
                case EndTransactionRecord():
                    released += self._taken("ends")
                case AbortTransactionRecord():
                    self._taken("is aborted")
                case _:
                    (released if self._held is None else self._held).append(record)
        return released

    def _taken(self, how: str) -> list[MetadataRecord]:
        held, self._held = self._held, None
        if held is None:
            raise StorageFault(f"A metadata transaction {how} that never began.")
        return held
