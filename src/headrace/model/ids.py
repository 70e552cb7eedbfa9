"""Names and numbers with a meaning, each its own type."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NewType
from uuid import UUID

TopicName = NewType("TopicName", str)
TopicId = UUID
BrokerId = NewType("BrokerId", int)
PartitionIndex = NewType("PartitionIndex", int)
Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)
ProducerId = NewType("ProducerId", int)

ZERO_ID = UUID(int=0)
"""The topic id that means "no topic id"."""

_RESERVED_IDS_MAX = 100
"""Kafka keeps the first hundred ids for itself; a random id is never one of them."""

_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}\Z")


def topic_name_fault(name: str) -> str | None:
    """Why `name` cannot name a topic, or None if it can; checked before any path is built from it."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in {".", ".."}:
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > 249:
        return f"Topic name is invalid: the length of '{name[:249]}' is longer than the max allowed length 249"
    if not _LEGAL_TOPIC.match(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def encode_uuid(value: UUID) -> str:
    """A UUID as Kafka prints it: 22 characters of URL-safe base64."""
    return urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def decode_uuid(text: str) -> UUID:
    """The UUID behind Kafka's 22 characters; ValueError if it is not one."""
    raw = urlsafe_b64decode(text + "==")
    if len(raw) != 16:
        raise ValueError(f"'{text}' is not a 22-character base64 UUID")
    return UUID(bytes=raw)


def usable_uuid(value: UUID) -> bool:
    """Whether a random id may be used: not reserved, and not mistakable for a command-line flag."""
    return value.int > _RESERVED_IDS_MAX and not encode_uuid(value).startswith("-")
