"""The names of a log dir's directories, as Kafka gives them.

orders-0                                          a partition's log
orders-0.<32 hex digits>-future                   one that is being copied here from another log dir (KIP-113)
orders-0.<32 hex digits>-delete, …-stray          one on its way out, one that nobody claims
"""

import re
from hashlib import sha256

NAME_BYTES_MAX = 255
FUTURE = "-future"
_LOG = re.compile(r"[a-zA-Z0-9._-]{1,249}-(?:0|[1-9][0-9]{0,9})\Z")
_DELETED = re.compile(r".+\.[0-9a-f]{32}-delete\Z")
_FUTURE = re.compile(r"([a-zA-Z0-9._-]{1,249}-(?:0|[1-9][0-9]{0,9}))\.[0-9a-f]{32}-future\Z")


def is_log(directory: str) -> bool:
    """Whether a name is that of a partition's log."""
    return _LOG.match(directory) is not None and _DELETED.match(directory) is None


def is_deleted(directory: str) -> bool:
    """Whether a name is that of a log on its way out."""
    return _DELETED.match(directory) is not None


def is_future(directory: str) -> bool:
    """Whether a name is that of a log which is being copied."""
    return _FUTURE.match(directory) is not None


def log_name(directory: str) -> str:
    """The partition that a directory is of, whether its log is whole or being copied."""
    match = _FUTURE.match(directory)
    return directory if match is None else match[1]


def future_name(name: str) -> str:
    """The directory in which a partition's log is copied; longer than `NAME_BYTES_MAX`, it cannot be."""
    return f"{name}.{unique_mark(name, 0)}{FUTURE}"


def unique_mark(text: str, attempt: int) -> str:
    """Digits for a name: nothing here may be random, and nothing needs to, as the first that is free is as good."""
    return sha256(f"{text} {attempt}".encode()).hexdigest()[:32]
