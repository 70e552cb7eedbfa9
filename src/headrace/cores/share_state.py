"""The share coordinator of one partition of `__share_group_state`: what has become of which records (KIP-932).

A share partition's leader writes here what it decided before it tells a consumer, and reads it back when it takes over.
The first record of a share partition is a snapshot; updates follow, and after so many of them a new snapshot, so that
only little has to be read again and what lies before can be dropped.
Epochs keep the past out: a leader of an older leader epoch or of a state that was since set anew is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from headrace.cores.outcome import Outcome
from headrace.cores.share_state_batches import combine
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import encode_uuid
from headrace.model.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    StateBatch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from headrace.cores.metadata import Metadata
    from headrace.cores.outcome import TimerKey, Token

NO_EPOCH = -1
NO_OFFSET = -1
NO_COUNT = -1
NO_STATE_EPOCH = 0
NO_LEADER_EPOCH = 0
"""What is told of a share partition that has no state yet."""

OFFSET_MAX = 2**63 - 1
"""No record has it, as the offset behind it could not be told."""

DELIVERY_STATES = frozenset({0, 1, 2, 4})
"""Available, acquired, acknowledged and archived."""

SharePartitionId = tuple[str, "UUID", int]
"""Group, topic and partition."""


def coordinator_key(partition: SharePartitionId) -> str:
    """The name by which a share partition finds its coordinator."""
    group_id, topic_id, index = partition
    return f"{group_id}:{encode_uuid(topic_id)}:{index}"


class ShareState(Struct, frozen=True, kw_only=True):
    """What is known of one share partition."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_timestamp: int
    write_timestamp: int
    batches: tuple[StateBatch, ...]
    update_count: int
    """Updates since the snapshot."""


class Initialize(Struct, frozen=True, kw_only=True):
    """Begin the state of a share partition, or set it anew."""

    partition: SharePartitionId
    state_epoch: int
    start_offset: int


class Write(Struct, frozen=True, kw_only=True):
    """What changed, as the leader of the share partition says; -1 leaves an epoch unchecked or the offset as it is."""

    partition: SharePartitionId
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class ShareStates:
    """The core of one shard of the share coordinator."""

    __slots__ = ("_metadata", "_updates_per_snapshot", "states")

    def __init__(self, metadata: Metadata, updates_per_snapshot: Callable[[], int]) -> None:
        self._metadata = metadata
        self._updates_per_snapshot = updates_per_snapshot
        self.states: dict[SharePartitionId, ShareState] = {}

    # --- steps

    def initialize(self, command: Initialize, token: Token, now_ms: int) -> Outcome:
        """Give a share partition its first state, or a new one under a state epoch that is not older."""
        self._check_partition(command.partition)
        known = self.states.get(command.partition)
        if known is not None and command.state_epoch != NO_EPOCH and command.state_epoch < known.state_epoch:
            raise KafkaError(
                ErrorCode.FENCED_STATE_EPOCH, "The state epoch of the request is older than the known one."
            )
        _check_offset(command.start_offset)
        outcome = Outcome()
        value = ShareSnapshotValue(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=max(command.state_epoch, NO_STATE_EPOCH),
            leader_epoch=NO_LEADER_EPOCH,
            start_offset=command.start_offset,
            # Behind an offset that somebody chose nothing has been delivered yet; without one nobody can tell.
            delivery_complete_count=-1 if command.start_offset == NO_OFFSET else 0,
            create_timestamp=now_ms,
            write_timestamp=now_ms,
        )
        self._emit(outcome, _snapshot_key(command.partition), value)
        return outcome.reply(token, None)

    def read(self, partition: SharePartitionId, leader_epoch: int, token: Token, now_ms: int) -> Outcome:
        """Tell a leader what it takes over; from then on the leaders before it are refused."""
        known = self._require(partition, "Read operation on uninitialized share partition not allowed.")
        _check_leader_epoch(known, leader_epoch)
        self._check_partition(partition)
        outcome = Outcome()
        if leader_epoch not in {NO_EPOCH, known.leader_epoch}:
            command = Write(
                partition=partition,
                state_epoch=known.state_epoch,
                leader_epoch=leader_epoch,
                start_offset=known.start_offset,
                delivery_complete_count=known.delivery_complete_count,
                batches=(),
            )
            self._record(outcome, known, command, now_ms)
        return outcome.reply(token, self.states[partition])

    def read_summary(self, partition: SharePartitionId, token: Token) -> Outcome:
        """Tell where a share partition stands, None if it never began."""
        self._check_partition(partition)
        return Outcome().reply(token, self.states.get(partition))

    def write(self, command: Write, token: Token, now_ms: int) -> Outcome:
        """Take down what a leader decided."""
        known = self._require(command.partition, "Write operation on uninitialized share partition not allowed.")
        _check_leader_epoch(known, command.leader_epoch)
        if command.state_epoch != NO_EPOCH and command.state_epoch < known.state_epoch:
            raise KafkaError(
                ErrorCode.FENCED_STATE_EPOCH, "The state epoch of the request is older than the known one."
            )
        self._check_partition(command.partition)
        _check_offset(command.start_offset)
        for batch in command.batches:
            if (
                not 0 <= batch.first_offset <= batch.last_offset < OFFSET_MAX
                or batch.delivery_state not in DELIVERY_STATES
                or batch.delivery_count < 0
            ):
                raise KafkaError(ErrorCode.INVALID_REQUEST, "A state batch makes no sense.")
        outcome = Outcome()
        self._record(outcome, known, command, now_ms)
        return outcome.reply(token, None)

    def delete(self, partition: SharePartitionId, token: Token) -> Outcome:
        """Forget a share partition; one that is not there is forgotten already."""
        self._check_partition(partition)
        outcome = Outcome()
        if partition in self.states:
            self._emit(outcome, _snapshot_key(partition), None)
        return outcome.reply(token, None)

    def snapshot(self, partitions: Iterable[SharePartitionId], token: Token, now_ms: int) -> Outcome:
        """Write some share partitions down again as they are, and forget those of topics that are gone.

        When this is answered for all there are, nothing that was written before is needed any more.
        """
        outcome = Outcome()
        for partition in partitions:
            known = self.states.get(partition)
            if known is None:
                continue
            is_gone = partition[1] not in self._metadata.topics_by_id
            self._emit(outcome, _snapshot_key(partition), None if is_gone else _snapshot_of(known, now_ms))
        return outcome.reply(token, None)

    # --- the log

    def replay(self, key: Any, value: Any, producer_id: int = -1) -> None:
        """Take in one record."""
        self._REPLAY[type(key)](self, key, value)

    def replay_end(self, producer_id: int, *, commit: bool) -> None:
        """Nothing here is written in transactions."""

    def loaded(self, now_ms: int) -> Outcome:
        """The log has been read."""
        return Outcome()

    def on_timer(self, key: TimerKey, now_ms: int) -> Outcome:
        """No timers are set here."""
        return Outcome()

    def hard_state(self) -> dict[SharePartitionId, ShareState]:
        """All that is a function of the log."""
        return dict(self.states)

    def _replay_snapshot(self, key: ShareSnapshotKey, value: ShareSnapshotValue | None) -> None:
        partition = (key.group_id, key.topic_id, key.partition)
        if value is None:
            self.states.pop(partition, None)
            return
        self.states[partition] = ShareState(
            snapshot_epoch=value.snapshot_epoch,
            state_epoch=value.state_epoch,
            leader_epoch=value.leader_epoch,
            start_offset=value.start_offset,
            delivery_complete_count=value.delivery_complete_count,
            create_timestamp=value.create_timestamp,
            write_timestamp=value.write_timestamp,
            batches=value.state_batches,
            update_count=0,
        )

    def _replay_update(self, key: ShareUpdateKey, value: ShareUpdateValue | None) -> None:
        known = self.states.get((key.group_id, key.topic_id, key.partition))
        if known is None or value is None:
            # Its snapshot was forgotten, or the start of the log has moved behind it: a later snapshot says all.
            return
        start_offset = known.start_offset if value.start_offset == NO_OFFSET else value.start_offset
        self.states[key.group_id, key.topic_id, key.partition] = replace(
            known,
            leader_epoch=known.leader_epoch if value.leader_epoch == NO_EPOCH else value.leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=value.delivery_complete_count,
            batches=combine(known.batches, value.state_batches, start_offset),
            update_count=known.update_count + 1,
        )

    _REPLAY: ClassVar[dict[type, Callable[..., None]]] = {
        ShareSnapshotKey: _replay_snapshot,
        ShareUpdateKey: _replay_update,
    }

    def _emit(self, outcome: Outcome, key: Any, value: Any) -> None:
        self.replay(key, value)
        outcome.records.append((key, value))

    def _record(self, outcome: Outcome, known: ShareState, command: Write, now_ms: int) -> None:
        """Put a change into an update, or into a snapshot when there have been enough updates."""
        if known.update_count < self._updates_per_snapshot():
            group_id, topic_id, partition = command.partition
            update = ShareUpdateValue(
                snapshot_epoch=known.snapshot_epoch,
                leader_epoch=command.leader_epoch,
                start_offset=command.start_offset,
                delivery_complete_count=command.delivery_complete_count,
                state_batches=combine((), command.batches, command.start_offset),
            )
            self._emit(outcome, ShareUpdateKey(group_id=group_id, topic_id=topic_id, partition=partition), update)
            return
        start_offset = known.start_offset if command.start_offset == NO_OFFSET else command.start_offset
        changed = replace(
            known,
            leader_epoch=known.leader_epoch if command.leader_epoch == NO_EPOCH else command.leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=command.delivery_complete_count,
            create_timestamp=now_ms,
            batches=combine(known.batches, command.batches, start_offset),
        )
        self._emit(outcome, _snapshot_key(command.partition), _snapshot_of(changed, now_ms))

    # --- checks

    def _require(self, partition: SharePartitionId, complaint: str) -> ShareState:
        if partition[2] < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")
        known = self.states.get(partition)
        if known is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, complaint)
        return known

    def _check_partition(self, partition: SharePartitionId) -> None:
        _, topic_id, index = partition
        if index < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")
        topic = self._metadata.topics_by_id.get(topic_id)
        if topic is None or index >= len(topic.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")


def _check_leader_epoch(known: ShareState, leader_epoch: int) -> None:
    if leader_epoch != NO_EPOCH and leader_epoch < known.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, "The leader epoch of the request is older than the known one.")


def _check_offset(offset: int) -> None:
    if offset < NO_OFFSET:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{offset} is no start offset.")


def _snapshot_key(partition: SharePartitionId) -> ShareSnapshotKey:
    group_id, topic_id, index = partition
    return ShareSnapshotKey(group_id=group_id, topic_id=topic_id, partition=index)


def _snapshot_of(state: ShareState, now_ms: int) -> ShareSnapshotValue:
    return ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch + 1,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.create_timestamp,
        write_timestamp=now_ms,
        state_batches=state.batches,
    )
