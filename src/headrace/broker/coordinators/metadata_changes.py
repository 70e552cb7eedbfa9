"""What the group coordinator is told when topics come, grow or go."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headrace.cores.groups.consumer import metadata_changed
from headrace.cores.groups.offsets import forget_topics

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from headrace.broker.coordinators.coordinator import Coordinator
    from headrace.cores.groups.shard import Groups


def tell_groups(
    groups: Coordinator[Groups], *, changed: Collection[str], deleted: Collection[tuple[str, UUID]]
) -> None:
    """Have groups forget the offsets of deleted topics, and those that read what changed assign anew."""
    names = {*changed, *(name for name, _ in deleted)}
    for shard in groups.shards if names else ():
        if deleted:
            shard.act(partial(forget_topics, shard.core, deleted))
        shard.act(partial(metadata_changed, shard.core, names))
