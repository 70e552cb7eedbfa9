"""Access rules as kafka-acls knows them: the protocol's numbers, Kafka's words for them, how rules are shown."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.model.acl_words import (
    CLUSTER,
    DELEGATION_TOKEN,
    GROUP,
    OPERATIONS,
    PATTERNS,
    PERMISSIONS,
    RESOURCES,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
)
from headrace.model.errors import HeadraceError

CLUSTER_NAME = "kafka-cluster"

SPECIFIC = (3, 4)
UNKNOWN = 0
NUMBERS = {name.replace("_", "").lower(): number for number, name in OPERATIONS.items()}

SUPPORTED = {
    TOPIC: "READ WRITE CREATE DELETE ALTER DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS",
    GROUP: "READ DESCRIBE DELETE DESCRIBE_CONFIGS ALTER_CONFIGS",
    CLUSTER: "CREATE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE ALTER DESCRIBE",
    TRANSACTIONAL_ID: "DESCRIBE WRITE TWO_PHASE_COMMIT",
    DELEGATION_TOKEN: "DESCRIBE",
    USER: "CREATE_TOKENS DESCRIBE_TOKENS",
}
"""What can be allowed on a resource; ALL is always possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Resources: of a kind, by name or by the beginning of their name."""

    kind: int
    name: str
    pattern_type: int

    def __str__(self) -> str:
        shown = next(name for name, number in PATTERNS.items() if number == self.pattern_type)
        return f"(resourceType={RESOURCES.get(self.kind, 'UNKNOWN')}, name={self.name}, patternType={shown})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Who may do what, or must not."""

    principal: str
    host: str
    operation: int
    permission: int

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={OPERATIONS.get(self.operation, 'UNKNOWN')}, "
            f"permissionType={PERMISSIONS.get(self.permission, 'UNKNOWN')})"
        )

    def document(self) -> dict[str, str]:
        """The rule for programs."""
        return {
            "principal": self.principal,
            "host": self.host,
            "operation": OPERATIONS.get(self.operation, "UNKNOWN"),
            "permission": PERMISSIONS.get(self.permission, "UNKNOWN"),
        }


def operation(text: str) -> int:
    """The number of an operation in any of Kafka's spellings; UNKNOWN if it is none."""
    return NUMBERS.get(text.strip().replace("_", "").lower(), UNKNOWN)


def principal(text: str) -> str:
    """A principal, which is a kind and a name."""
    kind, sign, name = text.strip().partition(":")
    if not sign or not kind or not name:
        raise HeadraceError(f"expected a string in format principalType:principalName but got {text.strip()}")
    return f"{kind}:{name}"


def supported(kind: int) -> list[int]:
    """The operations a resource knows."""
    return [2, *(NUMBERS[name.replace("_", "").lower()] for name in SUPPORTED[kind].split())]
