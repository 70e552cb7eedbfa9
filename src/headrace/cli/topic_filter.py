"""Which topics a regular expression on the command line means, read as Kafka's tools read it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headrace.model.errors import HeadraceError

if TYPE_CHECKING:
    from collections.abc import Callable


def topic_filter(text: str) -> Callable[[str], bool]:
    """Whether a name matches as a whole; a comma means "or", blanks and outer quotes mean nothing."""
    bare = text.strip().replace(",", "|").replace(" ", "")
    bare = re.sub(r"[\"']+\Z", "", re.sub(r"\A[\"']+", "", bare))
    try:
        pattern = re.compile(bare)
    except re.error:
        raise HeadraceError(f"{text} is an invalid regex.") from None
    return lambda name: pattern.fullmatch(name) is not None
