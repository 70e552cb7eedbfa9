"""What an assignor is told about a group, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from msgspec import Struct

Target = dict[UUID, frozenset[int]]
"""Partitions by topic; topics without partitions are left out."""


class MemberSpec(Struct, frozen=True, kw_only=True):
    """One member: what it reads, and what it was to own until now."""

    topics: frozenset[UUID]
    """Only topics that exist."""
    target: Mapping[UUID, frozenset[int]]
    instance_id: str | None = None


class GroupSpec(Struct, frozen=True, kw_only=True):
    """A group whose partitions are to be shared out."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[UUID, int]
    """How many partitions each topic has that a member reads."""
    homogeneous: bool
    """Whether all members have the same subscription, which is simpler to share out."""


Assignor = Callable[[GroupSpec], dict[str, Target]]
"""Gives every member of the group its target."""
