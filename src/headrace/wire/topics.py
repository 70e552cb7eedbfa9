"""How Produce and Fetch name a topic: by its name, and from version 13 of both on by its id (KIP-516)."""

from functools import lru_cache
from uuid import UUID

from headrace.wire.primitives import Buffer, read_compact_string, read_uuid, text_of, write_compact_string

Topic = str | UUID


def read_topic(view: Buffer, at: int, by_id: bool) -> tuple[Topic, int]:
    """A topic in a flexible version; the caller must look at the byte after it, which a name cut short lacks."""
    if by_id:
        return read_uuid(view, at)
    length = view[at]
    if 0 < length <= 0x7F:
        return text_of(bytes(view[at + 1 : at + length])), at + length
    return read_compact_string(view, at)


def topic_bytes(topic: Topic) -> bytes:
    """A topic as flexible versions write it: an id in 16 bytes, a name with its length."""
    return topic.bytes if isinstance(topic, UUID) else _name_bytes(topic)


@lru_cache(maxsize=4096)
def _name_bytes(name: str) -> bytes:
    out = bytearray()
    write_compact_string(out, name)
    return bytes(out)
