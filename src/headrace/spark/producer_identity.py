"""Who sends: a producer's id and epoch, as a broker gave them."""

from __future__ import annotations

from dataclasses import dataclass

NO_PRODUCER_ID = NO_EPOCH = NO_SEQUENCE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A producer; one without an id is not recognised when it repeats itself."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH
    transactional_id: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether batches carry sequence numbers."""
        return self.producer_id != NO_PRODUCER_ID
