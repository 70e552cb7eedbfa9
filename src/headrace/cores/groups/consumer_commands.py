"""What members of consumer groups and administrators ask, and what they are answered."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from msgspec import Struct

from headrace.cores.groups.consumer_reconciliation import Owned

NO_TIMEOUT = -1


class ConsumerHeartbeat(Struct, frozen=True, kw_only=True):
    """A member says that it lives, what it wants and what it owns; what has not changed may be left out (None)."""

    group_id: str
    member_id: str
    """The member's own, or one that was made for it if it may come without."""
    member_epoch: int
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NO_TIMEOUT
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    server_assignor: str | None = None
    owned: Owned | None = None

    @property
    def is_full(self) -> bool:
        """Whether the member told all, as it does when it does not know whether it was heard."""
        tells_topics = self.topics is not None or self.regex is not None
        return self.rebalance_timeout_ms != NO_TIMEOUT and tells_topics and self.owned is not None


class ConsumerHeartbeatAnswer(Struct, frozen=True, kw_only=True):
    """A member's epoch, and what it may own if that has changed."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    assignment: Mapping[UUID, tuple[int, ...]] | None = None


class NamedPartitions(Struct, frozen=True, kw_only=True):
    """Partitions of a topic, for a person to read."""

    topic_id: UUID
    topic: str
    partitions: tuple[int, ...]


class DescribedConsumer(Struct, frozen=True, kw_only=True):
    """A member as an administrator sees it."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str
    assignment: tuple[NamedPartitions, ...]
    """What it owns, along with what it has not given up yet."""
    target: tuple[NamedPartitions, ...]
    is_classic: bool


class DescribedConsumerGroup(Struct, frozen=True, kw_only=True):
    """A consumer group as an administrator sees it."""

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[DescribedConsumer, ...]
