"""Which topics consumers on the classic protocol read: the one thing the coordinator reads in what they tell.

To the coordinator a member's metadata is opaque; Connect and others put their own in. Where the protocol type is
"consumer" it begins with a version and the topics, whatever follows in later versions.
"""

from __future__ import annotations

from struct import error as StructError  # noqa: N812 - a class, named like one
from struct import unpack_from
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

CONSUMER_PROTOCOL_TYPE = "consumer"

_VERSION_BYTES = 2
_COUNT_BYTES = 4
_LENGTH_BYTES = 2


def topics_of(metadata: bytes) -> frozenset[str] | None:
    """The topics in one consumer's subscription; None if it cannot be read."""
    topics = []
    position = _VERSION_BYTES + _COUNT_BYTES
    try:
        (count,) = unpack_from(">i", metadata, _VERSION_BYTES)
        for _ in range(count):
            (length,) = unpack_from(">h", metadata, position)
            position += _LENGTH_BYTES
            if length < 0 or position + length > len(metadata):
                return None
            topics.append(metadata[position : position + length].decode())
            position += length
    except (StructError, UnicodeDecodeError):
        return None
    return frozenset(topics) if count >= 0 else None


def subscribed_topics(metadatas: Iterable[bytes]) -> frozenset[str] | None:
    """All topics that some consumer reads; None if one of them does not say it in a form we know."""
    topics: set[str] = set()
    for metadata in metadatas:
        of_one = topics_of(metadata)
        if of_one is None:
            return None
        topics |= of_one
    return frozenset(topics)
