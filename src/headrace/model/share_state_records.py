"""The share state records of `__share_group_state`, in Kafka's names; `wire` knows how each looks in bytes."""

from __future__ import annotations

from uuid import UUID

from msgspec import Struct

from headrace.model.ids import ZERO_ID


class StateBatch(Struct, frozen=True, kw_only=True, gc=False):
    """A run of records in one delivery state."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


class ShareSnapshotKey(Struct, frozen=True, kw_only=True, gc=False):
    """A share group's partition, whole."""

    group_id: str = ""
    topic_id: UUID = ZERO_ID
    partition: int = 0


class ShareSnapshotValue(Struct, frozen=True, kw_only=True, gc=False):
    """The delivery state of a partition, whole."""

    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    create_timestamp: int = 0
    write_timestamp: int = 0
    state_batches: tuple[StateBatch, ...] = ()


class ShareUpdateKey(Struct, frozen=True, kw_only=True, gc=False):
    """A share group's partition, changed."""

    group_id: str = ""
    topic_id: UUID = ZERO_ID
    partition: int = 0


class ShareUpdateValue(Struct, frozen=True, kw_only=True, gc=False):
    """What changed in the delivery state of a partition since its snapshot."""

    snapshot_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: tuple[StateBatch, ...] = ()
