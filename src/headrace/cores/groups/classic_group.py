"""One classic group: who is in it, which generation it is in, and what each member was given.

A group goes round

    Empty -> PreparingRebalance -> CompletingRebalance -> Stable -> PreparingRebalance ...
                  |                                                      |
                  +------------------------> Empty <---------------------+   (nobody is left)

Members join while it prepares; when all have, or time is up, a new generation begins and its leader alone is told who
is in it. The leader brings the assignment, which is written to the log, and the group is stable.

What the log knows of a group is its last `GroupMetadataValue`, kept here as `stored`: the group as its last complete
generation was. All else is lost with the coordinator; members then find out by their heartbeats, and join again.
This file keeps the books; `classic_rebalance` decides when to turn the page.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

from headrace.cores.groups.classic_commands import UNKNOWN_MEMBER, DescribedClassicGroup, DescribedMember, JoinedMember
from headrace.cores.groups.classic_subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from headrace.cores.groups.group import GroupType
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.group_records import ClassicProtocol, GroupMetadataKey, GroupMetadataValue, MemberMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.cores.outcome import Entry, Token

NO_TIMESTAMP = -1


class ClassicState(StrEnum):
    """Where a group is on its round, in the protocol's words."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


TRANSITIONS = {
    ClassicState.EMPTY: {ClassicState.PREPARING_REBALANCE},
    ClassicState.PREPARING_REBALANCE: {ClassicState.COMPLETING_REBALANCE, ClassicState.EMPTY},
    ClassicState.COMPLETING_REBALANCE: {ClassicState.STABLE, ClassicState.PREPARING_REBALANCE},
    ClassicState.STABLE: {ClassicState.PREPARING_REBALANCE},
}


class ClassicMember:
    """One member; a join or sync that waits is in it as a token."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join_token",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_deadline_ms",
        "session_timeout_ms",
        "sync_token",
    )

    def __init__(
        self,
        *,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: tuple[ClassicProtocol, ...],
        assignment: bytes = b"",
        is_new: bool = False,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = is_new
        """Whether it has not been in a generation yet, and so cannot send heartbeats."""
        self.join_token: Token = None
        self.sync_token: Token = None
        self.session_deadline_ms: int | None = None

    @property
    def lives(self) -> bool:
        """Whether it needs no heartbeat, as we owe it an answer; of a new one only the join timeout can tell."""
        return not self.is_new and (self.join_token is not None or self.sync_token is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """What it told for one of its protocols."""
        return next((protocol.metadata for protocol in self.protocols if protocol.name == protocol_name), b"")

    def as_record(self, protocol_name: str | None) -> MemberMetadata:
        """The member as the log keeps it."""
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol_name),
            assignment=self.assignment,
        )


class ClassicGroup:
    """The books of one group."""

    __slots__ = (
        "_supporters",
        "_topics",
        "awaiting_join",
        "generation_id",
        "group_id",
        "initial_delay_ms",
        "initial_remaining_ms",
        "join_deadline_ms",
        "leader_id",
        "members",
        "new_member_added",
        "pending",
        "pending_sync",
        "previous_state",
        "protocol_name",
        "protocol_type_or_none",
        "state",
        "state_timestamp_ms",
        "static_ids",
        "stored",
        "sync_deadline_ms",
    )

    def __init__(self, group_id: str, stored: GroupMetadataValue | None = None) -> None:
        self.group_id = group_id
        self.stored = stored
        """What the log says; None for a group that has offsets only."""
        self.state = ClassicState.EMPTY
        self.previous_state = ClassicState.EMPTY
        self.state_timestamp_ms = NO_TIMESTAMP
        self.generation_id = 0
        self.protocol_type_or_none: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_ids: dict[str, str] = {}
        """Member ids by instance id."""
        self.pending: dict[str, int] = {}
        """Ids given out that nobody has joined with yet, and until when they are good."""
        self.pending_sync: set[str] = set()
        self.awaiting_join = 0
        """How many members wait for the next generation."""
        self.join_deadline_ms: int | None = None
        self.sync_deadline_ms: int | None = None
        self.initial_delay_ms = 0
        self.initial_remaining_ms: int | None = None
        """While a group gathers its first members: how much longer it may be made to wait."""
        self.new_member_added = False
        self._supporters: Counter[str] = Counter()
        self._topics: frozenset[str] | None = None

    # --- what every group is asked

    @property
    def kind(self) -> GroupType:
        """Classic."""
        return GroupType.CLASSIC

    @property
    def state_name(self) -> str:
        """Its state in the words that the protocol uses."""
        return self.state.value

    @property
    def protocol_type(self) -> str:
        """What the group is for: "consumer", "connect", …; nothing for a group that only commits offsets."""
        return self.protocol_type_or_none or ""

    def is_empty(self) -> bool:
        """Whether it has no members, and none are gathering."""
        return self.state is ClassicState.EMPTY

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a consumer reads the topic; if consumers do not say which topics they read, it may be any."""
        if self._topics is None:
            return self.is_of_consumers
        return topic in self._topics

    def check_commit(self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool) -> None:
        """KafkaError unless a member may commit offsets in this generation."""
        if epoch < 0 and self.is_empty():
            # An administrator, or a consumer that assigns its partitions itself.
            return
        if epoch >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if epoch != self.generation_id:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"The group is in generation {self.generation_id}.")
        elif not transactional and not self.is_empty():
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "Only members can commit while the group has some.")
        if not transactional and self.state is ClassicState.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "The group awaits its assignment.")

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Anyone may ask a classic group for its offsets."""

    def check_delete(self) -> None:
        """KafkaError unless the group is empty."""
        if not self.is_empty():
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def tombstones(self) -> list[Entry]:
        """The record that makes the log forget the group."""
        return [(GroupMetadataKey(group=self.group_id), None)]

    def hard_state(self) -> GroupMetadataValue | None:
        """What a replay of the log makes of the group."""
        return self.stored

    # --- questions

    @property
    def is_of_consumers(self) -> bool:
        """Whether its members are consumers, whose subscriptions can be read."""
        return self.protocol_type_or_none == CONSUMER_PROTOCOL_TYPE

    @property
    def all_joined(self) -> bool:
        """Whether nobody is missing who may still come."""
        return not self.pending and self.awaiting_join == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the most patient member gives the others to join."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def expires_from(self, commit_timestamp_ms: int) -> int | None:
        """From when on the retention of an offset counts; None while it must not expire at all."""
        if self.protocol_type_or_none is None:
            return commit_timestamp_ms
        if self.is_empty():
            # Kafka looks at the first only, so that what an administrator commits to a group that has long been empty
            # goes away with the next check.
            return max(self.state_timestamp_ms, commit_timestamp_ms)
        if self.state is ClassicState.STABLE and self.is_of_consumers and self._topics is not None:
            return commit_timestamp_ms
        return None

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """KafkaError unless this is a member, and the one that goes by its instance id."""
        if instance_id is not None:
            known = self.static_ids.get(instance_id)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "The group knows no member with this instance id.")
            if known != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, "Another member has taken over this instance id.")
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "The group knows no such member.")

    def supports(self, protocol_type: str, protocols: Iterable[ClassicProtocol]) -> bool:
        """Whether one with these protocols could be in the group along with those who are."""
        names = {protocol.name for protocol in protocols}
        if self.is_empty():
            return bool(protocol_type and names)
        common = len(self.members)
        return self.protocol_type_or_none == protocol_type and any(self._supporters[name] == common for name in names)

    def voted_protocol(self) -> str:
        """The protocol most members like best, of those that all of them know."""
        common = len(self.members)
        votes: Counter[str] = Counter()
        for member in self.members.values():
            names = (protocol.name for protocol in member.protocols)
            votes[next(name for name in names if self._supporters[name] == common)] += 1
        return votes.most_common(1)[0][0]

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """All members, as their leader needs to know them."""
        return tuple(
            JoinedMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                metadata=member.metadata(self.protocol_name),
            )
            for member in self.members.values()
        )

    def describe(self) -> DescribedClassicGroup:
        """The group for an administrator; metadata belongs to the protocol, which is settled in a stable group only."""
        stable = self.state is ClassicState.STABLE
        return DescribedClassicGroup(
            state=self.state.value,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name or "" if stable else "",
            members=tuple(
                DescribedMember(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    metadata=member.metadata(self.protocol_name) if stable else b"",
                    assignment=member.assignment,
                )
                for member in self.members.values()
            ),
        )

    def as_record(self) -> GroupMetadataValue:
        """The group as the log keeps it."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=self.generation_id,
            protocol=self.protocol_name,
            leader=self.leader_id,
            current_state_timestamp=self.state_timestamp_ms,
            members=tuple(member.as_record(self.protocol_name) for member in self.members.values()),
        )

    # --- book-keeping

    def enter(self, state: ClassicState, now_ms: int) -> None:
        """Go on to another state."""
        assert state in TRANSITIONS[self.state], f"{self.group_id}: {self.state} -> {state}"
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = now_ms

    def begin_generation(self, now_ms: int) -> None:
        """Those who are in now are the next generation; if nobody is, the group is empty."""
        self.generation_id += 1
        self.protocol_name = self.voted_protocol() if self.members else None
        self.note_topics()
        self.enter(ClassicState.COMPLETING_REBALANCE if self.members else ClassicState.EMPTY, now_ms)
        self.pending_sync.clear()

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """Take somebody in; the first one leads."""
        assert member.member_id not in self.members
        if member.instance_id is not None:
            assert member.instance_id not in self.static_ids
            self.static_ids[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type_or_none = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.pending.pop(member.member_id, None)
        self._supporters.update({protocol.name for protocol in member.protocols})

    def remove(self, member_id: str) -> None:
        """Strike somebody off; whoever waits in it must have been answered."""
        self.pending.pop(member_id, None)
        self.pending_sync.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        assert member.join_token is None
        assert member.sync_token is None
        self._supporters.subtract({protocol.name for protocol in member.protocols})
        if member.instance_id is not None:
            del self.static_ids[member.instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)

    def replace_static(self, instance_id: str, new_member_id: str) -> ClassicMember:
        """Give a static member that came back a new id, in its old place and with what it owned (KIP-345)."""
        old_id = self.static_ids[instance_id]
        member = self.members[old_id]
        member.member_id = new_member_id
        member.session_deadline_ms = None
        # In its old place: whoever is first in the group may become its leader.
        self.members = {each.member_id: each for each in self.members.values()}
        self.static_ids[instance_id] = new_member_id
        if self.leader_id == old_id:
            self.leader_id = new_member_id
        self.pending_sync.discard(old_id)
        return member

    def await_join(self, member: ClassicMember, token: Token) -> None:
        """A member waits for the next generation; whoever waited in its name before must have been answered."""
        assert member.join_token is None
        member.join_token = token
        self.awaiting_join += 1

    def take_join(self, member: ClassicMember) -> Token:
        """Who waits for a member's join, to be answered now; None if nobody does."""
        token, member.join_token = member.join_token, None
        self.awaiting_join -= token is not None
        return token

    def take_sync(self, member: ClassicMember) -> Token:
        """Who waits for a member's assignment, to be answered now; None if nobody does."""
        token, member.sync_token = member.sync_token, None
        return token

    def set_protocols(self, member: ClassicMember, protocols: tuple[ClassicProtocol, ...]) -> None:
        """Note what a member says of itself this time."""
        self._supporters.subtract({protocol.name for protocol in member.protocols})
        member.protocols = protocols
        self._supporters.update({protocol.name for protocol in protocols})

    def elect_leader(self) -> bool:
        """Make sure that the leader is one who joins; False if nobody does."""
        leader = self.members.get(self.leader_id or UNKNOWN_MEMBER)
        if leader is not None and leader.join_token is not None:
            return True
        joining = next((member.member_id for member in self.members.values() if member.join_token is not None), None)
        if joining is not None:
            self.leader_id = joining
        return joining is not None

    def note_topics(self) -> None:
        """Remember which topics the members read, if they say so in a form we know."""
        self._topics = None
        if self.is_of_consumers and (self.protocol_name is not None or not self.members):
            self._topics = subscribed_topics(member.metadata(self.protocol_name) for member in self.members.values())

    def restore(self) -> None:
        """Take the state from what the log says: the last generation, as if it had never stopped."""
        stored = self.stored
        if stored is None:
            return
        assert not self.members
        self.generation_id = stored.generation
        self.protocol_name = stored.protocol
        self.leader_id = stored.leader
        self.state_timestamp_ms = stored.current_state_timestamp
        self.state = ClassicState.STABLE if stored.members else ClassicState.EMPTY
        for member in stored.members:
            self.add(_restored_member(member, stored.protocol or ""), stored.protocol_type)
        self.protocol_type_or_none = stored.protocol_type or None
        self.note_topics()


def _restored_member(stored: MemberMetadata, protocol_name: str) -> ClassicMember:
    timeout_ms = stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout
    return ClassicMember(
        member_id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        session_timeout_ms=stored.session_timeout,
        rebalance_timeout_ms=timeout_ms,
        protocols=(ClassicProtocol(name=protocol_name, metadata=stored.subscription),),
        assignment=stored.assignment,
    )
