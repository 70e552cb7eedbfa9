"""Committing, fetching and deleting offsets, and their expiry.

Any kind of group commits here; a group without members, or one that never had any, may be committed to by anyone. An
offset stays as long as a member reads its topic. After that it expires with `offsets.retention.minutes`, counted from
its commit, or from when the group became empty if that was later; a group whose last offset expires goes with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from msgspec import Struct

from headrace.cores.groups.classic import refresh_session
from headrace.cores.groups.classic_group import ClassicGroup
from headrace.cores.groups.consumer_group import ConsumerGroup
from headrace.cores.groups.group import GroupType
from headrace.cores.groups.streams_group import StreamsGroup
from headrace.cores.outcome import Outcome
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.group_records import OffsetCommitKey, OffsetCommitValue
from headrace.model.ids import ZERO_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from headrace.cores.groups.group import Group
    from headrace.cores.groups.offset_store import Place
    from headrace.cores.groups.shard import Groups
    from headrace.cores.outcome import TimerKey, Token

EXPIRY_TIMER = "offset-expiry"
NO_OFFSET = -1
NO_EXPIRY = -1
NO_RETENTION = -1
TOMBSTONES_MAX = 5_000
"""Offsets that expire in one step, so that a step stays short and its records fit into one batch."""

_RECORD_OVERHEAD_BYTES = 96
"""A generous guess at what a commit's record needs besides its names and metadata."""
_UTF8_BYTES_MAX = 4
_TOO_LARGE = ErrorCode.OFFSET_METADATA_TOO_LARGE
_NONE = ErrorCode.NONE
"""A member of an enumeration is looked up more slowly than anything else is done to an offset."""


class NewOffset(Struct, frozen=True, kw_only=True, gc=False):
    """One partition's offset to be committed."""

    topic: str
    partition: int
    offset: int
    topic_id: UUID = ZERO_ID
    leader_epoch: int = -1
    metadata: str = ""


class CommitCommand(Struct, frozen=True, kw_only=True):
    """A group has read so far. The answer is an error code for each offset."""

    group_id: str
    offsets: tuple[NewOffset, ...]
    member_id: str = ""
    instance_id: str | None = None
    generation_id: int = -1
    retention_ms: int = NO_RETENTION
    unknown_group: ErrorCode = ErrorCode.ILLEGAL_GENERATION
    """What a member of a group that is not there is told; it depends on what its client understands."""
    knows_member_epochs: bool = True


class FetchedTopic(Struct, frozen=True, kw_only=True):
    """A topic whose offsets are asked for."""

    topic: str
    partitions: tuple[int, ...]
    topic_id: UUID = ZERO_ID


class FetchCommand(Struct, frozen=True, kw_only=True):
    """How far has a group read? The answer is `FetchedOffset`s by topic."""

    group_id: str
    topics: tuple[FetchedTopic, ...] | None
    """None asks for all there are."""
    member_id: str | None = None
    member_epoch: int = -1
    require_stable: bool = False


class FetchedOffset(Struct, frozen=True, kw_only=True):
    """How far a group has read one partition."""

    partition: int
    offset: int = NO_OFFSET
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


FetchedOffsets = list[tuple[str, tuple[FetchedOffset, ...]]]
"""By topic, in the order asked for."""


# --- commit


def commit(groups: Groups, command: CommitCommand, token: Token, now_ms: int) -> Outcome:
    """Note how far a group has read."""
    group = groups.groups.get(command.group_id)
    if group is None and command.generation_id >= 0:
        raise KafkaError(command.unknown_group, f"Group {command.group_id} not found.")
    check = None
    if group is not None:
        if not command.knows_member_epochs:
            _refuse_members_by_epoch(group, command.member_id)
        check = group.check_commit(command.member_id, command.instance_id, command.generation_id, transactional=False)
    outcome = Outcome()
    errors = _write(groups, command, check, outcome, now_ms)
    if isinstance(group, ClassicGroup):
        refresh_session(group, command.member_id, outcome, now_ms)
    return outcome.reply(token, errors)


def _refuse_members_by_epoch(group: Group, member_id: str) -> None:
    """KafkaError for a member of the newer protocols whose client cannot be told that its epoch is stale."""
    modern = isinstance(group, StreamsGroup) and member_id in group.members
    if isinstance(group, ConsumerGroup):
        member = group.members.get(member_id)
        modern = member is not None and member.classic is None
    if modern:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, "Members of consumer and streams groups commit with version 9 or above."
        )


def commit_in_transaction(
    groups: Groups, command: CommitCommand, token: Token, now_ms: int, *, producer_id: int, producer_epoch: int
) -> Outcome:
    """Note how far a group has read, should the producer's transaction commit (KIP-98, KIP-447)."""
    if not command.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "A transaction can only commit the offsets of a named group.")
    group = groups.groups.get(command.group_id)
    if group is None and command.generation_id >= 0:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"Group {command.group_id} not found.")
    check = None
    if group is not None:
        try:
            check = group.check_commit(
                command.member_id, command.instance_id, command.generation_id, transactional=True
            )
        except KafkaError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from error
            raise
    outcome = Outcome(producer=(producer_id, producer_epoch))
    return outcome.reply(token, _write(groups, command, check, outcome, now_ms))


def _write(
    groups: Groups,
    command: CommitCommand,
    check: Callable[[str, UUID, int], None] | None,
    outcome: Outcome,
    now_ms: int,
) -> tuple[ErrorCode, ...]:
    limits = groups.limits
    metadata_max = limits.offset_metadata_max
    errors = [
        _TOO_LARGE if len(offset.metadata) > metadata_max else _NONE if check is None else _refusal(offset, check)
        for offset in command.offsets
    ]
    accepted: Sequence[NewOffset] = command.offsets
    if any(errors):
        accepted = [offset for offset, error in zip(accepted, errors, strict=True) if error is _NONE]
    if not _fits(command.group_id, accepted, limits.write_bytes_max):
        raise KafkaError(ErrorCode.INVALID_COMMIT_OFFSET_SIZE, "The commit is larger than one write to the log.")
    expire_timestamp = NO_EXPIRY if command.retention_ms == NO_RETENTION else now_ms + command.retention_ms
    group_id, records, producer = command.group_id, outcome.records, outcome.producer
    if accepted:
        _ensure_group(groups, group_id)
    put = groups.offsets.put
    for offset in accepted:
        topic, partition = offset.topic, offset.partition
        key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
        value = OffsetCommitValue(
            offset=offset.offset,
            leader_epoch=offset.leader_epoch,
            metadata=offset.metadata,
            commit_timestamp=now_ms,
            expire_timestamp=expire_timestamp,
            topic_id=offset.topic_id,
        )
        # What `Groups.replay` does with an offset, without looking for it.
        if producer is None:
            put(group_id, (topic, partition), value)
        else:
            replay_pending(groups, key, value, producer[0])
        records.append((key, value))
    return tuple(errors)


def _fits(group_id: str, offsets: Sequence[NewOffset], bytes_max: int) -> bool:
    """Whether a commit is no more than one write; it is only measured where it might be."""
    length = (_RECORD_OVERHEAD_BYTES + len(group_id)) * len(offsets)
    for each in offsets:
        length += len(each.metadata) + len(each.topic)
    if length * _UTF8_BYTES_MAX <= bytes_max:
        return True
    own = _RECORD_OVERHEAD_BYTES + len(group_id.encode())
    return sum(own + len(each.metadata.encode()) + len(each.topic.encode()) for each in offsets) <= bytes_max


def _refusal(offset: NewOffset, check: Callable[[str, UUID, int], None]) -> ErrorCode:
    """Why a member must not commit one offset, if so."""
    try:
        check(offset.topic, offset.topic_id, offset.partition)
    except KafkaError as error:
        return error.code
    return _NONE


# --- fetch


def fetch(groups: Groups, command: FetchCommand, token: Token, now_ms: int) -> Outcome:
    """Tell how far a group has read; what a group does not have is no error."""
    del now_ms
    group = groups.groups.get(command.group_id)
    if group is not None:
        try:
            group.check_fetch(command.member_id, command.member_epoch)
        except KafkaError as error:
            # A kind of group that has no offsets is, to this question, like no group at all.
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
    topics = _all_topics(groups, command.group_id) if command.topics is None else command.topics
    return Outcome().reply(token, [(topic.topic, _fetched(groups, command, topic)) for topic in topics])


def _all_topics(groups: Groups, group_id: str) -> list[FetchedTopic]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in groups.offsets.of_group(group_id):
        by_topic.setdefault(topic, []).append(partition)
    return [FetchedTopic(topic=topic, partitions=tuple(partitions)) for topic, partitions in by_topic.items()]


def _fetched(groups: Groups, command: FetchCommand, topic: FetchedTopic) -> tuple[FetchedOffset, ...]:
    committed = groups.offsets.of_group(command.group_id)
    offsets = []
    for partition in topic.partitions:
        place = (topic.topic, partition)
        known = committed.get(place)
        if command.require_stable and groups.offsets.is_pending(command.group_id, place):
            offsets.append(FetchedOffset(partition=partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT))
        elif known is None or _are_different(known.value.topic_id, topic.topic_id):
            # Never committed, or that was another topic of the same name.
            offsets.append(FetchedOffset(partition=partition))
        else:
            value = known.value
            offsets.append(
                FetchedOffset(
                    partition=partition,
                    offset=value.offset,
                    leader_epoch=value.leader_epoch,
                    metadata=value.metadata,
                )
            )
    return tuple(offsets)


def _are_different(topic_id: UUID, other_id: UUID) -> bool:
    """Whether these are two topics for sure; older clients and records do not tell the id."""
    return ZERO_ID not in (topic_id, other_id) and topic_id != other_id


# --- delete


def delete_offsets(groups: Groups, group_id: str, places: Sequence[Place], token: Token, now_ms: int) -> Outcome:
    """Forget offsets of topics that no member reads (KIP-496); the answer is an error code for each."""
    del now_ms
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group must have a name.")
    group = groups.find(group_id)
    _check_offset_delete(group)
    outcome = Outcome()
    errors = []
    for place in places:
        subscribed = group.is_subscribed_to(place[0])
        errors.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE)
        if not subscribed:
            _forget(groups, group_id, [place], outcome)
    return outcome.reply(token, tuple(errors))


def _check_offset_delete(group: Group) -> None:
    if group.kind is GroupType.SHARE:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, "A share group has no offsets of this kind.")
    if isinstance(group, ClassicGroup) and not group.is_empty() and not group.is_of_consumers:
        # Its members' metadata is opaque, so nobody can tell what they read.
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")


def delete_group(groups: Groups, group_id: str, token: Token, now_ms: int) -> Outcome:
    """Forget a group without members, and all its offsets (KIP-229); the answer is None."""
    del now_ms
    group = groups.find(group_id)
    group.check_delete()
    outcome = Outcome()
    _forget(groups, group_id, groups.offsets.places(group_id), outcome)
    for key, value in group.tombstones():
        groups.emit(outcome, key, value)
    return outcome.reply(token, None)


def forget_topics(groups: Groups, topics: Collection[tuple[str, UUID]], now_ms: int) -> Outcome:
    """Forget the offsets of topics that were deleted; one that has come again under the same name keeps its own."""
    del now_ms
    outcome = Outcome()
    gone = dict(topics)
    for group_id, place in list(groups.offsets.all_places()):
        topic_id = gone.get(place[0])
        if topic_id is not None and not all(
            _are_different(topic_id, known) for known in groups.offsets.topic_ids(group_id, place)
        ):
            _forget(groups, group_id, [place], outcome)
    return outcome


def _forget(groups: Groups, group_id: str, places: Sequence[Place], outcome: Outcome) -> None:
    """Write tombstones for what is there, committed or pending."""
    known = groups.offsets.of_group(group_id)
    for place in places:
        if place in known or groups.offsets.is_pending(group_id, place):
            groups.emit(outcome, OffsetCommitKey(group=group_id, topic=place[0], partition=place[1]), None)


# --- expiry


def expire(groups: Groups, key: TimerKey, now_ms: int) -> Outcome:
    """Forget what has expired, and groups that have nothing any more."""
    outcome = Outcome()
    for group in tuple(groups.groups.values()):
        if len(outcome.records) < TOMBSTONES_MAX:
            _expire_group(groups, group, outcome, now_ms)
    is_full = len(outcome.records) >= TOMBSTONES_MAX
    outcome.wake(key, now_ms if is_full else now_ms + groups.limits.offsets_retention_check_interval_ms)
    return outcome


def _expire_group(groups: Groups, group: Group, outcome: Outcome, now_ms: int) -> None:
    group_id = group.group_id
    room = TOMBSTONES_MAX - len(outcome.records)
    expired = expired_places(groups, group, now_ms)[:room]
    _forget(groups, group_id, expired, outcome)
    has_offsets = groups.offsets.of_group(group_id) or groups.offsets.has_pending(group_id)
    if not has_offsets and group.is_empty() and group.kind is not GroupType.SHARE:
        for key, value in group.tombstones():
            groups.emit(outcome, key, value)


def expired_places(groups: Groups, group: Group, now_ms: int) -> list[Place]:
    """The partitions whose offsets have expired; none that a member reads or a transaction is about to commit."""
    retention_ms = groups.limits.offsets_retention_ms
    places = []
    for place, committed in groups.offsets.of_group(group.group_id).items():
        value = committed.value
        since_ms = (
            group.expires_from(value.commit_timestamp) if isinstance(group, ClassicGroup) else (value.commit_timestamp)
        )
        if since_ms is None or group.is_subscribed_to(place[0]) or groups.offsets.is_pending(group.group_id, place):
            continue
        expires_ms = since_ms + retention_ms if value.expire_timestamp == NO_EXPIRY else value.expire_timestamp
        if now_ms >= expires_ms:
            places.append(place)
    return places


# --- what the shard is given


def replay_offset(groups: Groups, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
    """Take in a commit; it makes a group of one that has no members and never says more than its offsets."""
    place = (key.topic, key.partition)
    if value is None:
        groups.offsets.remove(key.group, place)
        return
    _ensure_group(groups, key.group)
    groups.offsets.put(key.group, place, value)


def replay_pending(groups: Groups, key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int) -> None:
    """Take in a commit that counts when its transaction does."""
    if value is None:
        replay_offset(groups, key, value)
        return
    _ensure_group(groups, key.group)
    groups.offsets.put_pending(key.group, (key.topic, key.partition), value, producer_id)


def _ensure_group(groups: Groups, group_id: str) -> None:
    if group_id not in groups.groups:
        groups.groups[group_id] = ClassicGroup(group_id)


def loaded(groups: Groups, now_ms: int) -> Outcome:
    """Look for expired offsets from now on, at the usual interval: members had no chance yet to say they live."""
    outcome = Outcome()
    outcome.wake((EXPIRY_TIMER,), now_ms + groups.limits.offsets_retention_check_interval_ms)
    return outcome


REPLAY: dict[type, Callable[[Groups, Any, Any], None]] = {OffsetCommitKey: replay_offset}

TIMERS: dict[str, Callable[[Groups, TimerKey, int], Outcome]] = {EXPIRY_TIMER: expire}
