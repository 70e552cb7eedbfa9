"""What the log says when its own bytes cannot be right."""

from typing import NamedTuple

from headrace.model.errors import StorageFault


class CorruptLog(StorageFault):
    """Bytes on the disk that the log cannot have written so; nothing is dropped, the log does not open."""


class Finding(NamedTuple):
    """Harm that recovery met, for the owner to say aloud: what was flushed stays as it is, the rest is cut."""

    path: str
    position: int
    offset: int
    reason: str
