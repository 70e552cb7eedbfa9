"""What the group coordinator is told when topics come, grow or go."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from headrace.broker.coordinators.coordinator import Coordinator
    from headrace.cores.groups.shard import Groups
    from headrace.cores.outcome import Outcome


def tell_groups(
    groups: Coordinator[Groups], *, changed: Collection[str], deleted: Collection[tuple[str, UUID]]
) -> None:
    """Have groups forget the offsets of deleted topics, and those that read what changed assign anew."""
    names = {*changed, *(name for name, _ in deleted)}
    shards = list(groups.held) if names else []
    if not shards:
        return
    # Where there is a shard they are there; a broker that coordinates nothing need not have them.
    from headrace.cores.groups.consumer import metadata_changed  # noqa: PLC0415
    from headrace.cores.groups.offsets import forget_topics  # noqa: PLC0415

    def forget(core: Groups, now_ms: int) -> Outcome:
        return forget_topics(core, deleted, now_ms)

    def assign(core: Groups, now_ms: int) -> Outcome:
        return metadata_changed(core, names, now_ms)

    for shard in shards:
        if deleted:
            shard.act_once_loaded(forget)
        shard.act_once_loaded(assign)
