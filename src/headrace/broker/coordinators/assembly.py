"""The coordinators of a broker, each put together from its topic, its records and its core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.broker.coordinators.coordinator import Coordinator
from headrace.broker.coordinators.topics import OFFSETS, SHARE_STATE, TRANSACTIONS
from headrace.cores.outcome import Outcome
from headrace.wire.coordinator_records import GROUP_RECORDS, SHARE_STATE_RECORDS, TRANSACTION_RECORDS

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


class _Nothing:
    """INTEGRATION PLACEHOLDER until the core is there."""

    def __init__(self, *_: Any) -> None:
        pass

    def replay(self, key: Any, value: Any, producer_id: int = -1) -> None: ...

    def replay_end(self, producer_id: int, *, commit: bool) -> None: ...

    def loaded(self, now_ms: int) -> Outcome:
        return Outcome()

    def on_timer(self, key: Any, now_ms: int) -> Outcome:
        return Outcome()


def group_coordinator(broker: Broker) -> Coordinator[Any]:
    """Groups and their offsets."""
    try:
        from headrace.cores.groups.limits import limits_from
        from headrace.cores.groups.shard import Groups
    except ImportError:
        return Coordinator(broker, OFFSETS, GROUP_RECORDS, _Nothing)
    return Coordinator(
        broker, OFFSETS, GROUP_RECORDS, lambda: Groups(broker.metadata, lambda: limits_from(broker.config))
    )


def transaction_coordinator(broker: Broker) -> Coordinator[Any]:
    """Transactions."""
    return Coordinator(broker, TRANSACTIONS, TRANSACTION_RECORDS, _Nothing)


def share_state_coordinator(broker: Broker) -> Coordinator[Any]:
    """The delivery state of share groups' partitions."""
    return Coordinator(broker, SHARE_STATE, SHARE_STATE_RECORDS, _Nothing)
