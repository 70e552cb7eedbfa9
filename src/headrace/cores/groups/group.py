"""What every kind of group has in common, as offsets, describing and deleting need it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from headrace.cores.outcome import Entry


class GroupType(StrEnum):
    """The kinds of groups, by the names that ListGroups uses."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Group(Protocol):
    """One group of any kind."""

    group_id: str

    @property
    def kind(self) -> GroupType:
        """Which protocol the group speaks."""

    @property
    def state_name(self) -> str:
        """Its state in the words that the protocol uses, for instance Stable or Empty."""

    @property
    def protocol_type(self) -> str:
        """What ListGroups says the group is for; "consumer" for consumers."""

    def is_empty(self) -> bool:
        """Whether it has no members."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic, so that its offsets must neither expire nor be deleted."""

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
    ) -> Callable[[str, UUID, int], None] | None:
        """KafkaError unless a member may commit offsets in this generation or member epoch.

        What comes back, if anything, does the same for each partition, by topic, topic id and partition.
        """

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """KafkaError unless a member of this epoch may ask for committed offsets; None and -1 ask without claiming."""

    def check_delete(self) -> None:
        """KafkaError unless the group may be deleted."""

    def tombstones(self) -> list[Entry]:
        """The records that make the log forget the group (not its offsets)."""

    def hard_state(self) -> Any:
        """What a replay of the log makes of the group, in a form that can be compared."""
