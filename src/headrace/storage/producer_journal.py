"""What the log asks of whoever remembers a partition's producers."""

from collections.abc import Iterable
from typing import Protocol

from headrace.model.producers import ProducerEntry
from headrace.records.batch import BatchHeader
from headrace.records.control import AbortedTransaction


class ProducerJournal(Protocol):
    """Producer state that can be loaded, brought up to date batch by batch, and written down."""

    @property
    def first_unstable_offset(self) -> int:
        """From here on a transaction may still be undone; beyond every offset if there is none."""

    def load(self, entries: Iterable[ProducerEntry]) -> None:
        """Forget everything and take over a snapshot."""

    def replay(self, header: BatchHeader, view: memoryview) -> AbortedTransaction | None:
        """Take note of a batch that is in the log; answers the transaction it aborted, if it is an abort marker."""

    def entries(self) -> list[ProducerEntry]:
        """Everything worth remembering."""
