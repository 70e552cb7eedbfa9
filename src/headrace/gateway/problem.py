"""What goes wrong, as HTTP tells it: a status, the conventional number, and a sentence.

The numbers are those of the REST proxies people know: the status, or the status and two more digits.
"""

from __future__ import annotations

from typing import Any

from headrace.client.cluster import RETRIABLE
from headrace.client.fault import BadOption, ClientFault, NoBroker, NotAuthenticated, NotServed, TimedOut
from headrace.model.errors import ErrorCode, HeadraceError, KafkaError

TOPIC_NOT_FOUND = 40401
PARTITION_NOT_FOUND = 40402
INSTANCE_NOT_FOUND = 40403
GROUP_NOT_FOUND = 40404
CLUSTER_NOT_FOUND = 40405
BROKER_NOT_FOUND = 40406
TRANSACTION_NOT_FOUND = 40407
FORMAT_MISMATCH = 40601
ALREADY_SUBSCRIBED = 40901
INSTANCE_EXISTS = 40902
ILLEGAL_STATE = 40903
RECORD_TOO_LARGE = 41301
CONVERSION = 42203
KAFKA_ERROR, KAFKA_RETRIABLE = 50002, 50003


TOPIC_NAME = "1 to 249 letters (a to z, A to Z), digits, '.', '_' and '-'"
"""What a topic may be called."""


class Problem(Exception):
    """An answer that is not the one wanted."""

    def __init__(self, status: int, code: int, message: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers or {}

    def body(self) -> dict[str, Any]:
        """As it is sent."""
        return {"error_code": self.code, "message": self.message}


def bad_request(message: str) -> Problem:
    """What was asked makes no sense."""
    return Problem(400, 400, message)


def unprocessable(message: str, code: int = 422) -> Problem:
    """It can be read, and is not what belongs there."""
    return Problem(422, code, message)


_KAFKA: dict[ErrorCode, tuple[int, int]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (404, TOPIC_NOT_FOUND),
    ErrorCode.UNKNOWN_TOPIC_ID: (404, TOPIC_NOT_FOUND),
    ErrorCode.GROUP_ID_NOT_FOUND: (404, GROUP_NOT_FOUND),
    ErrorCode.BROKER_ID_NOT_REGISTERED: (404, BROKER_NOT_FOUND),
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: (404, TRANSACTION_NOT_FOUND),
    ErrorCode.OFFSET_OUT_OF_RANGE: (400, 40003),
    ErrorCode.INVALID_TOPIC_EXCEPTION: (400, 40002),
    ErrorCode.TOPIC_ALREADY_EXISTS: (400, 40002),
    ErrorCode.INVALID_PARTITIONS: (400, 40002),
    ErrorCode.INVALID_REPLICATION_FACTOR: (400, 40002),
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: (400, 40002),
    ErrorCode.INVALID_CONFIG: (400, 40002),
    ErrorCode.INVALID_REQUEST: (400, 40002),
    ErrorCode.INVALID_GROUP_ID: (400, 40002),
    ErrorCode.INVALID_TIMESTAMP: (400, 40002),
    ErrorCode.INVALID_RECORD: (400, 40002),
    ErrorCode.POLICY_VIOLATION: (400, 40002),
    ErrorCode.NON_EMPTY_GROUP: (409, ILLEGAL_STATE),
    ErrorCode.REBALANCE_IN_PROGRESS: (409, ILLEGAL_STATE),
    ErrorCode.ILLEGAL_GENERATION: (409, ILLEGAL_STATE),
    ErrorCode.UNKNOWN_MEMBER_ID: (409, ILLEGAL_STATE),
    ErrorCode.MESSAGE_TOO_LARGE: (413, RECORD_TOO_LARGE),
    ErrorCode.RECORD_LIST_TOO_LARGE: (413, RECORD_TOO_LARGE),
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (409, ILLEGAL_STATE),
    ErrorCode.REASSIGNMENT_IN_PROGRESS: (409, 40904),
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: (429, 42901),
    ErrorCode.SECURITY_DISABLED: (501, 50101),
    ErrorCode.UNSUPPORTED_VERSION: (501, 50101),
    ErrorCode.TOPIC_DELETION_DISABLED: (403, 40301),
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (403, 40301),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (403, 40301),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (403, 40301),
    ErrorCode.REQUEST_TIMED_OUT: (504, 50401),
}
_FAULTS: tuple[tuple[type[HeadraceError], int, int], ...] = (
    (NoBroker, 503, 50301),
    (NotAuthenticated, 503, 50302),
    (TimedOut, 504, 50401),
    (NotServed, 501, 50101),
    (BadOption, 400, 40002),
    (ClientFault, 503, 50301),
)


_SENTENCES = {
    ErrorCode.INVALID_RECORD: (
        "The cluster refuses the record; a compacted topic takes none without a key, and a topic may bound timestamps."
    ),
    ErrorCode.MESSAGE_TOO_LARGE: (
        "The record is too large for the topic (max.message.bytes), or for the gateway's producer "
        "(client.max.request.size)."
    ),
}


def no_topic_name(name: str) -> str:
    """A sentence on a name that no topic can have."""
    return f"'{name[:100]}' cannot be the name of a topic: that has {TOPIC_NAME}, and is not '.' or '..'."


def _sentence(error: KafkaError) -> str:
    if error.code is ErrorCode.INVALID_TOPIC_EXCEPTION and error.message.endswith(f": {error.code.name}"):
        # The cluster said nothing but the code, and the client what it asked for.
        return no_topic_name(error.message.removesuffix(f": {error.code.name}"))
    said = _SENTENCES.get(error.code) or error.message or error.code.name
    return said if said.endswith((".", "!", "?")) else f"{said}."


def problem_of(error: Exception) -> Problem | None:
    """What to answer when this was raised; None if it is a mistake of ours."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, KafkaError):
        status, code = _KAFKA.get(error.code) or (
            (503, KAFKA_RETRIABLE) if error.code in RETRIABLE else (500, KAFKA_ERROR)
        )
        return Problem(status, code, _sentence(error))
    for kind, status, code in _FAULTS:
        if isinstance(error, kind):
            return Problem(status, code, str(error))
    return None
