"""The settings that the transaction coordinator decides by, taken anew for each step so that changes apply at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

TRANSACTION_VERSION = "transaction.version"


class Settings(Protocol):
    """What has settings by name: the broker's config."""

    def __getitem__(self, name: str, /) -> Any: ...


class TransactionLimits(Struct, frozen=True, kw_only=True):
    """What transactions are held to; the defaults are Kafka's."""

    timeout_ms_max: int = 900_000
    id_expiration_ms: int = 604_800_000
    abort_interval_ms: int = 10_000
    removal_interval_ms: int = 3_600_000
    transaction_version: int = 2
    """The cluster's, for what the coordinator ends by itself; producers say their own."""


def limits_from(settings: Settings, features: Mapping[str, int]) -> TransactionLimits:
    """Read the limits out of the broker's settings and the cluster's finalized features."""
    return TransactionLimits(
        timeout_ms_max=settings["transaction.max.timeout.ms"],
        id_expiration_ms=settings["transactional.id.expiration.ms"],
        abort_interval_ms=settings["transaction.abort.timed.out.transaction.cleanup.interval.ms"],
        removal_interval_ms=settings["transaction.remove.expired.transaction.cleanup.interval.ms"],
        transaction_version=features.get(TRANSACTION_VERSION, 0),
    )
