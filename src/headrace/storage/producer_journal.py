"""What the log asks of whoever remembers a partition's producers."""

from collections.abc import Iterable
from typing import Protocol

from headrace.model.producers import ProducerEntry
from headrace.records.batch import BatchHeader


class ProducerJournal(Protocol):
    """Producer state that can be loaded, brought up to date batch by batch, and written down."""

    def load(self, entries: Iterable[ProducerEntry]) -> None:
        """Forget everything and take over a snapshot."""

    def replay(self, header: BatchHeader, view: memoryview) -> None:
        """Take note of a batch that is in the log."""

    def entries(self) -> list[ProducerEntry]:
        """Everything worth remembering."""
