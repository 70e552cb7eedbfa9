"""A topic looked up before a tool hands it to librdkafka, which would wait for one that can never be there."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from headrace.cli.session import Failure
from headrace.model.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.cli.session import Session

MAX_BLOCK = "max.block.ms"
_MAX_BLOCK_MS = 60_000
_PAUSE_S = 0.1
_GRACE_S = 1.0
"""How long a topic that is being made may take before anything is said."""
_AGAIN_S = 5.0
_REMEDIES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
        "The cluster does not make it by itself. Make it with: kafka-topics --create --topic {}"
    ),
    ErrorCode.INVALID_REPLICATION_FACTOR: (
        "The cluster has fewer brokers than default.replication.factor asks for. "
        "Make it with: kafka-topics --create --replication-factor 1 --topic {}"
    ),
    ErrorCode.LEADER_NOT_AVAILABLE: "It has no leader yet; look at it with: kafka-topics --describe --topic {}",
}
_HOPELESS = {
    ErrorCode.INVALID_TOPIC_EXCEPTION: "Topic names have letters, digits, dots, dashes and underscores, at most 249.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Ask for an ACL, or check the credentials.",
}


async def look_up(session: Session, topic: str) -> int:
    """How many partitions the topic has, 0 where it is not there yet; brokers that may create it have been asked to.

    Failure where it can never be there, or where nobody answers.
    """
    code, partitions = await _ask(session, topic)
    return 0 if code else partitions


async def _ask(session: Session, topic: str) -> tuple[ErrorCode, int]:
    with session.waiting():
        (found,) = (await session.cluster.metadata([topic], create=True)).topics
    code = ErrorCode(found.error_code)
    if code in _HOPELESS:
        raise Failure(f"The topic '{topic}' cannot be used: {code.name}", remedy=_HOPELESS[code])
    return code, len(found.partitions)


async def await_topic(session: Session, topic: str, properties: Mapping[str, str]) -> None:
    """Wait until there is a topic to send to, and say meanwhile why there is none.

    Failure after the time that a producer may block: librdkafka would keep the records for long, and in silence.
    """
    limit_ms = _limit_ms(properties)
    clock = asyncio.get_running_loop().time
    started = clock()
    say_at = started + _GRACE_S
    while (code := (await _ask(session, topic))[0]) is not ErrorCode.NONE:
        remedy = _REMEDIES.get(code, "").format(topic)
        now = clock()
        if now - started >= limit_ms / 1000:
            problem = f"Topic {topic} not present in metadata after {limit_ms} ms: {code.name}"
            raise Failure(problem, remedy=remedy)
        if now >= say_at:
            print(f"Warning: The topic '{topic}' cannot be written to: {code.name}. {remedy}", file=sys.stderr)
            say_at = now + _AGAIN_S
        await asyncio.sleep(_PAUSE_S)


def _limit_ms(properties: Mapping[str, str]) -> int:
    text = properties.get(MAX_BLOCK, str(_MAX_BLOCK_MS))
    try:
        return int(text)
    except ValueError:
        raise Failure(f"{MAX_BLOCK}={text} is not a number.", remedy="Give milliseconds.") from None
