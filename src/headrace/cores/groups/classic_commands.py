"""What members of classic groups ask, and what they are answered."""

from __future__ import annotations

from msgspec import Struct

from headrace.model.errors import ErrorCode
from headrace.model.group_records import ClassicProtocol

UNKNOWN_MEMBER = ""
"""The member id of one who has none yet."""

NO_GENERATION = -1


class JoinCommand(Struct, frozen=True, kw_only=True):
    """Somebody wants to be in the next generation of a group."""

    group_id: str
    member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[ClassicProtocol, ...]
    new_member_id: str
    """The id to give if the member has none: chance is the caller's."""
    instance_id: str | None = None
    needs_known_member_id: bool = False
    """Whether a member without an id is sent away to come back with one (KIP-394)."""
    can_skip_assignment: bool = False
    """Whether a leader can be told that its group needs no new assignment (KIP-814)."""


class JoinedMember(Struct, frozen=True, kw_only=True):
    """One member, as the leader is told of it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class Joined(Struct, frozen=True, kw_only=True):
    """The answer to a join; an error may come with the member id that the client is to use from now on."""

    member_id: str
    error: ErrorCode = ErrorCode.NONE
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


class SyncCommand(Struct, frozen=True, kw_only=True):
    """A member asks for its assignment; the leader brings everyone's."""

    group_id: str
    member_id: str
    generation_id: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


class Synced(Struct, frozen=True, kw_only=True):
    """A member's assignment."""

    assignment: bytes
    protocol_type: str | None = None
    protocol_name: str | None = None


class HeartbeatCommand(Struct, frozen=True, kw_only=True):
    """A member says that it lives."""

    group_id: str
    member_id: str
    generation_id: int
    instance_id: str | None = None


class HeartbeatAnswer(Struct, frozen=True, kw_only=True):
    """Whether the member may go on as it is; REBALANCE_IN_PROGRESS asks it to join again."""

    error: ErrorCode = ErrorCode.NONE


class LeavingMember(Struct, frozen=True, kw_only=True):
    """One who leaves, or is removed by an administrator, who knows the instance id only."""

    member_id: str
    instance_id: str | None = None


class LeaveCommand(Struct, frozen=True, kw_only=True):
    """Members go, all at once (KIP-345)."""

    group_id: str
    members: tuple[LeavingMember, ...]


class Left(Struct, frozen=True, kw_only=True):
    """For each member that wanted to go, whether it could."""

    errors: tuple[ErrorCode, ...]


class DescribedMember(Struct, frozen=True, kw_only=True):
    """A member as an administrator sees it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedClassicGroup(Struct, frozen=True, kw_only=True):
    """A classic group as an administrator sees it."""

    state: str
    protocol_type: str
    protocol_name: str
    members: tuple[DescribedMember, ...]
