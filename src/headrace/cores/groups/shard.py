"""All groups on one partition of `__consumer_offsets`, of every kind, and their committed offsets.

Each kind of group is a module that contributes what it does with its records, its timers, and a log that has been read;
this one only finds the right module. Steps are functions of those modules and get the `Groups` they work on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from headrace.cores.groups import classic, consumer, offsets, share, streams, upgrade
from headrace.cores.groups.group import GroupType
from headrace.cores.groups.offset_store import OffsetStore
from headrace.cores.outcome import Outcome
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.group_records import OffsetCommitKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headrace.cores.groups.classic_commands import HeartbeatCommand, JoinCommand, LeaveCommand, SyncCommand
    from headrace.cores.groups.consumer_group import ConsumerGroup
    from headrace.cores.groups.group import Group
    from headrace.cores.groups.limits import GroupLimits
    from headrace.cores.groups.share_group import ShareGroup
    from headrace.cores.groups.streams_group import StreamsGroup
    from headrace.cores.metadata import Metadata
    from headrace.cores.outcome import TimerKey, Token

NO_PRODUCER = -1
GroupT = TypeVar("GroupT", "ConsumerGroup", "ShareGroup", "StreamsGroup")


class Kind(Protocol):
    """What a kind's module contributes."""

    @property
    def REPLAY(self) -> Mapping[type, Callable[[Groups, Any, Any], None]]:  # noqa: N802
        """By the class of a record's key: take the record in."""

    @property
    def TIMERS(self) -> Mapping[str, Callable[[Groups, TimerKey, int], Outcome]]:  # noqa: N802
        """By the first word of a timer's key: what to do when it has run out."""

    def loaded(self, groups: Groups, now_ms: int) -> Outcome:
        """Set timers, and finish what was under way."""


class ClassicDoor(Protocol):
    """What a kind has that serves members of the classic protocol too, so that a group can move member by member."""

    def join_classic(self, groups: Groups, group: Any, command: JoinCommand, token: Token, now_ms: int) -> Outcome:
        """As `classic.join`."""

    def sync_classic(self, groups: Groups, group: Any, command: SyncCommand, token: Token, now_ms: int) -> Outcome:
        """As `classic.sync`."""

    def heartbeat_classic(
        self, groups: Groups, group: Any, command: HeartbeatCommand, token: Token, now_ms: int
    ) -> Outcome:
        """As `classic.heartbeat`."""

    def leave_classic(self, groups: Groups, group: Any, command: LeaveCommand, token: Token, now_ms: int) -> Outcome:
        """As `classic.leave`."""


KINDS: tuple[Kind, ...] = (offsets, classic, consumer, share, streams)
"""A kind that is listed here is served."""

CLASSIC_DOORS: Mapping[GroupType, ClassicDoor] = {GroupType.CONSUMER: upgrade}
"""Kinds other than classic that let members of the classic protocol in."""

_REPLAY = {key: replay for kind in KINDS for key, replay in kind.REPLAY.items()}
_TIMERS = {word: on_timer for kind in KINDS for word, on_timer in kind.TIMERS.items()}


class Groups:
    """The core of one shard of the group coordinator."""

    __slots__ = ("_limits", "groups", "metadata", "offsets")

    def __init__(self, metadata: Metadata, limits: Callable[[], GroupLimits]) -> None:
        self.metadata = metadata
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self._limits = limits

    @property
    def limits(self) -> GroupLimits:
        """The settings as they are now."""
        return self._limits()

    def replay(self, key: Any, value: Any, producer_id: int = NO_PRODUCER) -> None:
        """Take in one record; a producer id says that it counts only when that producer's transaction commits."""
        if producer_id != NO_PRODUCER:
            # Nothing but offsets is written in transactions of others.
            assert type(key) is OffsetCommitKey
            offsets.replay_pending(self, key, value, producer_id)
            return
        replay = _REPLAY.get(type(key))
        # A record of a kind that is not served stays in the log and means nothing here.
        if replay is not None:
            replay(self, key, value)

    def told_of(self, kind: type[GroupT], group_id: str, *, create: bool) -> GroupT | None:
        """The group a record is about; a record that says something makes the group be there.

        A group of another kind under the same name only held offsets, or its own tombstones were compacted away.
        """
        group = self.groups.get(group_id)
        if isinstance(group, kind):
            return group
        if not create:
            return None
        created = self.groups[group_id] = kind(group_id)
        return created

    def replay_end(self, producer_id: int, *, commit: bool) -> None:
        """A producer's transaction has ended: its offsets count from now on, or are forgotten."""
        self.offsets.end(producer_id, commit=commit)

    def loaded(self, now_ms: int) -> Outcome:
        """The log has been read."""
        outcome = Outcome()
        for kind in KINDS:
            _merge(outcome, kind.loaded(self, now_ms))
        return outcome

    def on_timer(self, key: TimerKey, now_ms: int) -> Outcome:
        """A timer has run out, perhaps late, perhaps one that matters no more."""
        return _TIMERS[key[0]](self, key, now_ms)

    # --- for steps

    def emit(self, outcome: Outcome, key: Any, value: Any) -> None:
        """Decide a record: it takes effect at once, and is written when the step is over."""
        self.replay(key, value)
        outcome.records.append((key, value))

    def find(self, group_id: str) -> Group:
        """A group that must be there."""
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def classic_door(self, kind: GroupType) -> ClassicDoor | None:
        """How members of the classic protocol get into groups of another kind, if they do."""
        return CLASSIC_DOORS.get(kind)

    def hard_state(self) -> dict[str, Any]:
        """All that is a function of the log, in a form that can be compared."""
        groups = {group_id: (group.kind, group.hard_state()) for group_id, group in self.groups.items()}
        return {"groups": groups, "offsets": self.offsets.hard_state()}


def _merge(outcome: Outcome, other: Outcome) -> None:
    """Add what another part decided; loading belongs to nobody's transaction."""
    assert other.producer is None
    outcome.records += other.records
    outcome.replies += other.replies
    outcome.timers += other.timers
    outcome.effects += other.effects
