"""A topic looked up before a tool hands it to librdkafka, which would wait for one that can never be there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.session import Failure
from headrace.model.errors import ErrorCode

if TYPE_CHECKING:
    from headrace.cli.session import Session

_HOPELESS = {
    ErrorCode.INVALID_TOPIC_EXCEPTION: "Topic names have letters, digits, dots, dashes and underscores, at most 249.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Ask for an ACL, or check the credentials.",
}


async def look_up(session: Session, topic: str) -> int:
    """How many partitions the topic has, 0 where it is not there yet; brokers that may create it have been asked to.

    Failure where it can never be there, or where nobody answers.
    """
    (found,) = (await session.cluster.metadata([topic], create=True)).topics
    if found.error_code in _HOPELESS:
        code = ErrorCode(found.error_code)
        raise Failure(f"The topic '{topic}' cannot be used: {code.name}", remedy=_HOPELESS[code])
    return 0 if found.error_code else len(found.partitions)
