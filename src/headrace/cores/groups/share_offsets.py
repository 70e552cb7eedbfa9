"""Which partitions of a share group have a delivery state in the share coordinator, and how they come and go.

The group coordinator only keeps the book: it notes what is to be begun, the shell has the share coordinator begin it,
and tells what came of it. What is noted and never confirmed, because somebody crashed, is asked for again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from headrace.cores.groups.share_commands import OffsetsAlteration, OffsetsDeletion, StateBegin
from headrace.cores.groups.share_group import ShareGroup, StateTopics, TopicState
from headrace.cores.groups.share_records import state_topics_value
from headrace.cores.outcome import Outcome
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.share_group_records import (
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from headrace.cores.groups.shard import Groups
    from headrace.cores.metadata import Metadata
    from headrace.cores.outcome import Token

    Partitions = Mapping[UUID, Iterable[int]]

NO_OFFSET = -1
"""Where to start is decided by the partition's leader, when it is first read."""

_UNKNOWN_TOPIC = "This server does not host this topic-partition."


# --- a heartbeat's part


def begin_states(groups: Groups, group: ShareGroup, outcome: Outcome, now_ms: int, retry_ms: int) -> StateBegin | None:
    """Note the partitions that members read and that have no state yet; what the share coordinator is to begin."""
    _forget_deleted_topics(groups, group, outcome)
    missing = _missing(group, groups.metadata, now_ms)
    if not missing:
        return None
    topics = group.state_topics
    initializing = dict(topics.initializing)
    for topic_id, indexes in missing.items():
        name = groups.metadata.topics_by_id[topic_id].name
        initializing[topic_id] = _with(initializing.get(topic_id), name, indexes)
        for index in indexes:
            group.initialize_deadlines_ms[topic_id, index] = now_ms + retry_ms
    deleting = {topic_id: name for topic_id, name in topics.deleting.items() if topic_id not in missing}
    _note(groups, group, outcome, replace(topics, initializing=initializing, deleting=deleting))
    return StateBegin(
        state_epoch=group.group_epoch,
        start_offsets={topic_id: dict.fromkeys(indexes, NO_OFFSET) for topic_id, indexes in missing.items()},
    )


def _missing(group: ShareGroup, metadata: Metadata, now_ms: int) -> dict[UUID, frozenset[int]]:
    """What is subscribed to and neither begun nor, of late, asked for."""
    missing: dict[UUID, frozenset[int]] = {}
    for name in sorted(group.subscribed_topics):
        topic = metadata.topics.get(name)
        if topic is None:
            continue
        known = group.state_topics.initialized.get(topic.topic_id)
        wanted = frozenset(
            index
            for index in range(len(topic.partitions))
            if (known is None or index not in known.partitions)
            and group.initialize_deadlines_ms.get((topic.topic_id, index), now_ms) <= now_ms
        )
        if wanted:
            missing[topic.topic_id] = wanted
    return missing


def _forget_deleted_topics(groups: Groups, group: ShareGroup, outcome: Outcome) -> None:
    """What is noted of a topic goes when the topic has gone."""
    known = groups.metadata.topics_by_id
    topics = group.state_topics
    if all(topic_id in known for topic_id in (*topics.initializing, *topics.initialized, *topics.deleting)):
        return
    left = StateTopics(
        initializing={topic_id: topic for topic_id, topic in topics.initializing.items() if topic_id in known},
        initialized={topic_id: topic for topic_id, topic in topics.initialized.items() if topic_id in known},
        deleting={topic_id: name for topic_id, name in topics.deleting.items() if topic_id in known},
    )
    _note(groups, group, outcome, left)


# --- what the share coordinator answered


def begun(groups: Groups, group_id: str, partitions: Partitions, token: Token) -> Outcome:
    """The states of some partitions were begun: from now on members may read them."""
    group = require_share_group(groups, group_id)
    topics = group.state_topics
    initializing, initialized = dict(topics.initializing), dict(topics.initialized)
    for topic_id, indexes in partitions.items():
        done = frozenset(indexes)
        known = groups.metadata.topics_by_id.get(topic_id)
        if known is None:
            continue
        initializing[topic_id] = _without(initializing.get(topic_id), known.name, done)
        initialized[topic_id] = _with(initialized.get(topic_id), known.name, done)
        _forget_deadlines(group, topic_id, done)
    outcome = Outcome()
    _note(groups, group, outcome, replace(topics, initializing=initializing, initialized=initialized))
    raise_epoch(groups, group, outcome)
    return outcome.reply(token, None)


def not_begun(groups: Groups, group_id: str, partitions: Partitions, token: Token) -> Outcome:
    """The states of some partitions could not be begun: the next heartbeat asks again."""
    group = require_share_group(groups, group_id)
    topics = group.state_topics
    initializing = dict(topics.initializing)
    for topic_id, indexes in partitions.items():
        failed = frozenset(indexes)
        if topic_id in initializing:
            initializing[topic_id] = _without(initializing[topic_id], initializing[topic_id].name, failed)
        _forget_deadlines(group, topic_id, failed)
    outcome = Outcome()
    _note(groups, group, outcome, replace(topics, initializing=initializing))
    return outcome.reply(token, None)


# --- what administrators ask


def alter_offsets(groups: Groups, group_id: str, wanted: Mapping[str, Mapping[int, int]], token: Token) -> Outcome:
    """Set where an empty group, perhaps a new one, goes on; the new epoch shuts out whoever knows the old state."""
    known = groups.groups.get(group_id)
    if known is not None:
        require_share_group(groups, group_id).check_delete()
    start_offsets: dict[UUID, dict[int, int]] = {}
    errors: dict[tuple[str, int], KafkaError] = {}
    for name, offsets in wanted.items():
        topic = groups.metadata.topics.get(name)
        for index, offset in offsets.items():
            if topic is None or not 0 <= index < len(topic.partitions):
                errors[name, index] = KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
                )
            elif offset < 0:
                errors[name, index] = KafkaError(ErrorCode.INVALID_REQUEST, f"{offset} is no start offset.")
            else:
                start_offsets.setdefault(topic.topic_id, {})[index] = offset
    outcome = Outcome()
    group = _raised(groups, group_id, outcome) if start_offsets else None
    if group is not None:
        topics = group.state_topics
        initializing = dict(topics.initializing)
        for topic_id, offsets in start_offsets.items():
            name = groups.metadata.topics_by_id[topic_id].name
            initializing[topic_id] = _with(initializing.get(topic_id), name, frozenset(offsets))
        _note(groups, group, outcome, replace(topics, initializing=initializing))
    begin = StateBegin(state_epoch=0 if group is None else group.group_epoch, start_offsets=start_offsets)
    return outcome.reply(token, OffsetsAlteration(begin=begin, errors=errors))


def delete_offsets(groups: Groups, group_id: str, names: Iterable[str], token: Token) -> Outcome:
    """Note that an empty group forgets what it has read of some topics."""
    group = require_share_group(groups, group_id)
    group.check_delete()
    topics = group.state_topics
    initialized, deleting = dict(topics.initialized), dict(topics.deleting)
    partitions: dict[UUID, tuple[int, ...]] = {}
    errors: dict[str, KafkaError] = {}
    for name in names:
        topic = groups.metadata.topics.get(name)
        if topic is not None and topic.topic_id in initialized:
            partitions[topic.topic_id] = tuple(sorted(initialized.pop(topic.topic_id).partitions))
            deleting[topic.topic_id] = name
        elif topic is not None and topic.topic_id in deleting:
            partitions[topic.topic_id] = tuple(range(len(topic.partitions)))
        else:
            reason = "There is no offset information to delete." if topic else _UNKNOWN_TOPIC
            errors[name] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)
    outcome = Outcome()
    if partitions:
        _note(groups, group, outcome, replace(topics, initialized=initialized, deleting=deleting))
    return outcome.reply(token, OffsetsDeletion(partitions=partitions, errors=errors))


def offsets_deleted(groups: Groups, group_id: str, topic_ids: Iterable[UUID], token: Token) -> Outcome:
    """The share coordinator has forgotten all of some topics."""
    group = require_share_group(groups, group_id)
    gone = set(topic_ids)
    deleting = {topic_id: name for topic_id, name in group.state_topics.deleting.items() if topic_id not in gone}
    outcome = Outcome()
    _note(groups, group, outcome, replace(group.state_topics, deleting=deleting))
    return outcome.reply(token, None)


def initialized_topics(groups: Groups, group_id: str, token: Token) -> Outcome:
    """Tell which partitions of which topics a group reads or has read: ids and partitions by the topics' names.

    A group that is not there, or is of another kind, has read nothing.
    """
    group = groups.groups.get(group_id)
    begun = group.state_topics.initialized if isinstance(group, ShareGroup) else {}
    answer = {
        topic.name: (topic_id, tuple(sorted(topic.partitions)))
        for topic_id, topic in sorted(begun.items())
        if topic_id in groups.metadata.topics_by_id
    }
    return Outcome().reply(token, answer)


# --- parts


def require_share_group(groups: Groups, group_id: str) -> ShareGroup:
    """A share group that must be there."""
    group = groups.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ShareGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    return group


def raise_epoch(groups: Groups, group: ShareGroup, outcome: Outcome, metadata_hash: int | None = None) -> None:
    """Say that partitions have to be shared out anew."""
    value = ShareGroupMetadataValue(
        epoch=group.group_epoch + 1, metadata_hash=group.metadata_hash if metadata_hash is None else metadata_hash
    )
    groups.emit(outcome, ShareGroupMetadataKey(group_id=group.group_id), value)


def _raised(groups: Groups, group_id: str, outcome: Outcome) -> ShareGroup:
    """The group with a new epoch, made if need be."""
    known = groups.groups.get(group_id)
    raise_epoch(groups, known if isinstance(known, ShareGroup) else ShareGroup(group_id), outcome)
    return require_share_group(groups, group_id)


def _note(groups: Groups, group: ShareGroup, outcome: Outcome, topics: StateTopics) -> None:
    groups.emit(outcome, ShareGroupStatePartitionMetadataKey(group_id=group.group_id), state_topics_value(topics))


def _with(known: TopicState | None, name: str, indexes: frozenset[int]) -> TopicState:
    return TopicState(name=name, partitions=indexes if known is None else known.partitions | indexes)


def _without(known: TopicState | None, name: str, indexes: frozenset[int]) -> TopicState:
    return TopicState(name=name, partitions=frozenset() if known is None else known.partitions - indexes)


def _forget_deadlines(group: ShareGroup, topic_id: UUID, indexes: Iterable[int]) -> None:
    for index in indexes:
        group.initialize_deadlines_ms.pop((topic_id, index), None)
