"""What a client may do, as the bit set of KIP-430: with no authorizer everybody may do everything there is."""

from __future__ import annotations

from enum import IntEnum


class Operation(IntEnum):
    """Kafka's operations, by the number of their bit."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


def bit_set(*operations: Operation) -> int:
    """The operations as one number."""
    return sum(1 << operation for operation in operations)


NOT_ASKED = -(2**31)
"""Said where a request did not ask for the operations."""

CLUSTER_OPERATIONS = bit_set(
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)

TOPIC_OPERATIONS = bit_set(
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
