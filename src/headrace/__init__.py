"""Headrace: a distributed event streaming platform that speaks Apache Kafka's wire protocol.

The clients are imported when they are first asked for: a program that only wants the version pays for nothing else.
What type checkers see of them is in `__init__.pyi`.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

__all__ = (
    "AsyncKafkaAdmin",
    "AsyncKafkaConsumer",
    "AsyncKafkaProducer",
    "BadOption",
    "ClientFault",
    "Closed",
    "ConfigResource",
    "ConfigResourceType",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ErrorCode",
    "HeadraceError",
    "KafkaAdmin",
    "KafkaConsumer",
    "KafkaError",
    "KafkaProducer",
    "NewPartitions",
    "NewTopic",
    "NoBroker",
    "NotAuthenticated",
    "NotServed",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "RecordMetadata",
    "TimedOut",
    "TopicPartition",
    "UnknownOption",
    "__version__",
)

_HOMES = {
    "headrace.client.admin": ("KafkaAdmin",),
    "headrace.client.admin_values": ("ConfigResource", "ConfigResourceType", "NewPartitions", "NewTopic"),
    "headrace.client.async_admin": ("AsyncKafkaAdmin",),
    "headrace.client.async_consumer": ("AsyncKafkaConsumer",),
    "headrace.client.async_producer": ("AsyncKafkaProducer",),
    "headrace.client.consumer": ("KafkaConsumer",),
    "headrace.client.fault": (
        "BadOption",
        "ClientFault",
        "Closed",
        "NoBroker",
        "NotAuthenticated",
        "NotServed",
        "TimedOut",
        "UnknownOption",
    ),
    "headrace.client.listener": ("ConsumerRebalanceListener",),
    "headrace.client.producer": ("KafkaProducer",),
    "headrace.client.records": (
        "ConsumerRecord",
        "OffsetAndMetadata",
        "OffsetAndTimestamp",
        "RecordMetadata",
        "TopicPartition",
    ),
    "headrace.model.errors": ("ErrorCode", "HeadraceError", "KafkaError"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import what is asked for, the first time it is."""
    if name not in _HOME:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only for those who ask

    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """What there is."""
    return sorted({*globals(), *__all__})
