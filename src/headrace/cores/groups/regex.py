"""Subscriptions by regular expression, which the server resolves (KIP-848).

The dialect is RE2's, as in Kafka: it matches in linear time and bounded memory, so that an expression of a stranger
cannot hold up the coordinator. A topic counts if the expression matches its whole name.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import re2  # type: ignore[import-untyped]

from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable

MEMORY_MAX = 1 << 20
"""Bytes that one expression may take, with what RE2 learns while it matches; one that needs more is refused."""

COMPILED_MAX = 128
"""How many compiled expressions are kept, each of `MEMORY_MAX` at worst; they usually take kilobytes."""

MATCHES_MAX = 100_000
"""How many answers are remembered, about 25 MB: when one topic of thousands comes, only that one is matched."""

PATTERN_LENGTH_MAX = 10_000
"""The longest expression; Kafka has no limit of its own. It is kept in a record's key and compiled."""


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_MAX
    return options


_OPTIONS = _options()


def check_regex(regex: str) -> None:
    """KafkaError unless this is a regular expression."""
    if len(regex) > PATTERN_LENGTH_MAX:
        raise _invalid(regex[:100] + "…", f"it is longer than {PATTERN_LENGTH_MAX} characters")
    try:
        _compiled(regex)
    except re2.error as error:
        reason = error.args[0] if error.args else "it cannot be parsed"
        raise _invalid(regex, reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from error


def matching_topics(regex: str, topics: Iterable[str]) -> frozenset[str]:
    """The topics that an expression matches; none if it is not an expression, as another version may have taken it."""
    try:
        _compiled(regex)
    except re2.error:
        return frozenset()
    return frozenset(topic for topic in topics if _is_match(regex, topic))


@lru_cache(maxsize=MATCHES_MAX)
def _is_match(regex: str, topic: str) -> bool:
    return _compiled(regex).fullmatch(topic.encode()) is not None


@lru_cache(maxsize=COMPILED_MAX)
def _compiled(regex: str) -> Any:
    """The expression for names as UTF-8, which spares RE2 to count characters."""
    return re2.compile(regex.encode(), _OPTIONS)


def _invalid(regex: str, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {reason}.",
    )
