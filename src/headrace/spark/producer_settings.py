"""How records are sent: the `kafka.` properties of a producer that the sink goes by, checked before anything is sent.

Names and defaults are those of Kafka's producer, but for the size of a batch: a task has all its records at once, so
that there is nothing to linger for, and large batches are cheaper for everybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.client.fault import BadOption
from headrace.records.compression import CODECS

if TYPE_CHECKING:
    from headrace.spark.option_table import SinkOptions

ALL_REPLICAS = -1
BATCH_BYTES = 512 * 1024
IN_FLIGHT_MAX = 5
"""As many batches of a producer as a broker remembers: beyond that one that comes again would not be known."""
TRANSACTION_TIMEOUT_MS = 15 * 60_000
"""What brokers allow unless they are told otherwise."""

_ACKS = {"all": ALL_REPLICAS, "-1": ALL_REPLICAS, "1": 1}
_DEFAULT_PARTITIONERS = frozenset({"", "org.apache.kafka.clients.producer.internals.defaultpartitioner"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """What a producer goes by."""

    acks: int = ALL_REPLICAS
    is_idempotent: bool = True
    codec: int = 0
    batch_bytes: int = BATCH_BYTES
    request_bytes: int = 4 * 1024 * 1024
    in_flight_max: int = IN_FLIGHT_MAX
    request_timeout_ms: int = 30_000
    patience_s: float = 120.0
    """How long nothing may be accepted before we give up (`delivery.timeout.ms`)."""
    topic_patience_s: float = 60.0
    """How long a topic that is being created is waited for (`max.block.ms`)."""
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    is_timeout_given: bool = False
    """Whether the timeout is the user's word; otherwise a broker that allows less is given less."""


def producer_settings(options: SinkOptions) -> ProducerSettings:
    """The producer's side of the sink's options."""
    given = options.properties
    if "transactional.id" in given:
        raise BadOption("kafka.transactional.id cannot be set", "Say exactlyOnce=true and transactionalIdPrefix.")
    if given.get("partitioner.class", "").lower() not in _DEFAULT_PARTITIONERS:
        raise BadOption("kafka.partitioner.class cannot be set", "Give the partition in a column named partition.")
    acks, is_idempotent = _guarantees(given, exactly_once=options.exactly_once)
    return ProducerSettings(
        acks=acks,
        is_idempotent=is_idempotent,
        codec=_codec(given.get("compression.type", "none")),
        batch_bytes=_number(given, "batch.size", BATCH_BYTES, low=1),
        request_bytes=_number(given, "max.request.size", 4 * 1024 * 1024, low=1),
        in_flight_max=_number(given, "max.in.flight.requests.per.connection", IN_FLIGHT_MAX, low=1, high=IN_FLIGHT_MAX),
        request_timeout_ms=_number(given, "request.timeout.ms", 30_000, low=1),
        patience_s=_number(given, "delivery.timeout.ms", 120_000, low=1) / 1000,
        topic_patience_s=_number(given, "max.block.ms", 60_000, low=1) / 1000,
        transaction_timeout_ms=_number(given, "transaction.timeout.ms", TRANSACTION_TIMEOUT_MS, low=1),
        is_timeout_given="transaction.timeout.ms" in given,
    )


def _guarantees(given: Mapping[str, str], *, exactly_once: bool) -> tuple[int, bool]:
    """Who has to have a record before it counts as written, and whether repetitions are recognised."""
    word = given.get("acks", "all").strip().lower()
    if word == "0":
        raise BadOption(
            "kafka.acks=0 cannot be used", "A batch is done when its records are written, which somebody has to say."
        )
    if word not in _ACKS:
        raise BadOption(f"kafka.acks={word} is unknown", "Use all or 1.")
    acks = _ACKS[word]
    wish = given.get("enable.idempotence", "").strip().lower()
    if wish not in {"", "true", "false"}:
        raise BadOption(f"kafka.enable.idempotence={wish} is neither true nor false")
    if acks != ALL_REPLICAS and (wish == "true" or exactly_once):
        raise BadOption(f"kafka.acks={word} forgets records when a leader dies", "Leave it at all.")
    if exactly_once and wish == "false":
        raise BadOption("exactlyOnce=true cannot do with kafka.enable.idempotence=false", "Leave it out.")
    return acks, acks == ALL_REPLICAS and wish != "false"


def _codec(name: str) -> int:
    word = name.strip().lower()
    if word not in CODECS:
        raise BadOption(f"kafka.compression.type={name} is unknown", f"Use one of {', '.join(CODECS)}.")
    return CODECS[word]


def _number(given: Mapping[str, str], name: str, default: int, *, low: int, high: int = 2**31 - 1) -> int:
    text = given.get(name, str(default)).strip()
    if not text.isdecimal() or not low <= int(text) <= high:
        raise BadOption(f"kafka.{name}={text} is not a number from {low} to {high}")
    return int(text)
