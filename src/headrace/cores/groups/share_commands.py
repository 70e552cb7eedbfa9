"""What is asked of share groups, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from msgspec import Struct

from headrace.cores.groups.share_group import Assignment
from headrace.model.errors import KafkaError

LEAVE_EPOCH = -1
JOIN_EPOCH = 0


class ShareHeartbeat(Struct, frozen=True, kw_only=True):
    """A member joins, stays, or leaves."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...] | None
    """What it subscribes to, None if that is as before."""


class StateBegin(Struct, frozen=True, kw_only=True):
    """Delivery states that the share coordinator is to begin: by topic id and partition, the offset to start from."""

    state_epoch: int
    start_offsets: Mapping[UUID, Mapping[int, int]]


class ShareHeartbeatAnswer(Struct, frozen=True, kw_only=True):
    """Where a member stands."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None
    """None if the member knows it."""
    begin: StateBegin | None = None


class ShareMemberDescription(Struct, frozen=True, kw_only=True):
    """One member, for people."""

    member_id: str
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    assignment: Assignment


class ShareGroupDescription(Struct, frozen=True, kw_only=True):
    """A group, for people."""

    group_id: str
    state_name: str
    group_epoch: int
    assignment_epoch: int
    members: tuple[ShareMemberDescription, ...]


class OffsetsAlteration(Struct, frozen=True, kw_only=True):
    """What became of a wish to set start offsets."""

    begin: StateBegin
    errors: Mapping[tuple[str, int], KafkaError]
    """By topic name and partition."""


class OffsetsDeletion(Struct, frozen=True, kw_only=True):
    """What became of a wish to forget the offsets of topics."""

    partitions: Mapping[UUID, tuple[int, ...]]
    """What the share coordinator is to forget."""
    errors: Mapping[str, KafkaError]
    """By topic name."""
