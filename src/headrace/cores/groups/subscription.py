"""Which topics a consumer group reads, and whether something about them has changed.

A group notes a hash of the topics it reads, as they were when its epoch was last raised: ids, partitions and the racks
of their replicas. When the hash is another one, partitions have to be shared out anew.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.cores.metadata import Metadata, Topic

NO_TOPICS_HASH = 0
"""The hash of a group that reads no topic that exists; Kafka's number for it too."""


def topic_ids(names: Iterable[str], metadata: Metadata) -> frozenset[UUID]:
    """The topics that exist, by id."""
    topics = metadata.topics
    return frozenset(topics[name].topic_id for name in names if name in topics)


def metadata_hash(names: Iterable[str], metadata: Metadata) -> int:
    """Something that changes with the topics of these names, as a signed 64-bit number.

    Kafka takes another hash function; a coordinator that finds a hash of the other kind raises the epoch once.
    """
    known = sorted(name for name in set(names) if name in metadata.topics)
    if not known:
        return NO_TOPICS_HASH
    digest = blake2b(digest_size=8)
    racks = {broker_id: broker.rack for broker_id, broker in metadata.brokers.items() if broker.rack is not None}
    for name in known:
        digest.update(_seen(metadata.topics[name], racks))
    return int.from_bytes(digest.digest(), "big", signed=True)


def _seen(topic: Topic, racks: dict[int, str]) -> bytes:
    """What assigning a topic depends on."""
    of_partitions = [
        sorted(racks[replica] for replica in partition.replicas if replica in racks)
        for partition in (topic.partitions if racks else ())
    ]
    return repr((topic.topic_id.int, topic.name, len(topic.partitions), of_partitions)).encode()
