"""Keeping the share state topic short: what later snapshots say again is dropped from the front of its log.

The topic is not compacted, as an update only tells what changed. So now and then everything that is known is written
once more as snapshots, and the log then starts where they do.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from headrace.model.errors import KafkaError

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.broker.coordinators.shard import Shard
    from headrace.cores.share_state import ShareStates

logger = logging.getLogger(__name__)

RECORDS_PER_STATE = 100
"""A log with fewer records for each share partition than this is left alone."""
SNAPSHOTS_PER_WRITE = 50


async def prune(broker: Broker) -> None:
    """Shorten the logs of the share coordinator's partitions that have grown long."""
    for shard in tuple(broker.share_state.shards):
        log = shard.partition.log
        if log.log_end_offset - log.log_start_offset > RECORDS_PER_STATE * (1 + len(shard.core.states)):
            try:
                await prune_shard(shard)
            except KafkaError as error:
                logger.warning("share_state_not_pruned partition=%d reason=%s", shard.index, error)


async def prune_shard(shard: Shard[ShareStates]) -> None:
    """Write all that is known once more, and let the log start there."""
    start_offset = shard.partition.log.log_end_offset
    known = tuple(shard.core.states)
    # Also without any: the answer says that everything up to here is safe, and so may be dropped.
    for first in range(0, len(known) or 1, SNAPSHOTS_PER_WRITE):
        await shard.ask(partial(shard.core.snapshot, known[first : first + SNAPSHOTS_PER_WRITE]))
    shard.partition.delete_before(start_offset, lambda error: None)
