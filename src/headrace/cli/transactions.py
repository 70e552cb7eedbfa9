"""kafka-transactions: look at transactions and the producers in partitions, and end those that hang."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headrace.cli.columns import tabbed
from headrace.cli.group_queries import for_each
from headrace.cli.java_order import bucket_order, hash_order, partition_order, result_order
from headrace.cli.java_words import sentence_of
from headrace.cli.session import Failure, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values
from headrace.cli.transaction_queries import (
    Abort,
    abort,
    describe_producers,
    describe_transaction,
    force_terminate,
    list_transactions,
)
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headrace.cli.session import Session
    from headrace.wire.messages.describe_producers import ProducerState
    from headrace.wire.messages.describe_transactions import TransactionState

    Place = tuple[str, int]
    Open = tuple[Place, ProducerState]

TOOL = Tool(
    name="kafka-transactions",
    summary=(
        "This tool is used to analyze the transactional state of producers in the cluster. "
        "It can be used to detect and recover from hanging transactions.\n"
        "Commands: list, describe, describe-producers, abort, find-hanging, force-terminate"
    ),
    options=(
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option(name="duration-filter", argument="ms", help="list: only transactions that run longer than this."),
        Option(name="transactional-id-pattern", argument="regex", help="list: only transactional ids that match."),
        Option(name="transactional-id", argument="id", help="describe, force-terminate: whose transaction."),
        Option(name="transactionalId", argument="id", help="", is_hidden=True),
        Option(name="topic", argument="topic", help="describe-producers, abort, find-hanging: the topic."),
        Option(name="partition", argument="number", help="describe-producers, abort, find-hanging: the partition."),
        Option(name="broker-id", argument="id", help="describe-producers, find-hanging: the broker to ask."),
        Option(
            name="max-transaction-timeout",
            argument="minutes",
            default="15",
            help="find-hanging: only transactions whose producer has been silent for longer.",
        ),
        Option(name="start-offset", argument="offset", help="abort: where the transaction starts."),
        Option(name="producer-id", argument="id", help="abort, for brokers before 3.0: the producer."),
        Option(name="producer-epoch", argument="epoch", help="abort, for brokers before 3.0: its epoch."),
        Option(name="coordinator-epoch", argument="epoch", help="abort, for brokers before 3.0: the coordinator's."),
    ),
    examples=(
        ("Which transactions there are", "--bootstrap-server localhost:9092 list"),
        ("What hangs in a topic", "--bootstrap-server localhost:9092 find-hanging --topic trucks"),
        (
            "End a transaction that hangs",
            "--bootstrap-server localhost:9092 abort --topic trucks --partition 0 --start-offset 42",
        ),
    ),
)

REQUIRED = {
    "list": (),
    "describe": ("transactional-id",),
    "describe-producers": ("topic", "partition"),
    "abort": ("topic", "partition"),
    "find-hanging": (),
    "force-terminate": ("transactional-id",),
}
"""By command; Kafka spells the last one forceTerminateTransaction."""
ALIASES = {"forceTerminateTransaction": "force-terminate", "forceterminatetransaction": "force-terminate"}

ERROR = "kafka-transactions.sh: error: "
_AT_ONCE = 500
_NONE, _DURATION = "None", "Duration(min)"
_MINUTE_MS = 60_000
_NUMBERS = (
    "duration-filter", "partition", "broker-id", "max-transaction-timeout",
    "start-offset", "producer-id", "producer-epoch", "coordinator-epoch",
)  # fmt: skip

LIST_HEADING = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
DESCRIBE_HEADING = (
    "CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState", "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions",
)  # fmt: skip
PRODUCERS_HEADING = (
    "ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp",
    "CurrentTransactionStartOffset",
)  # fmt: skip
HANGING_HEADING = (
    "Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp",
    _DURATION,
)  # fmt: skip


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool; -v asks for the version here, as it does in Kafka's."""
    typed = ["--version" if word == "-v" else word for word in arguments]
    return run_tool(TOOL, typed, program, _run, check=_check)


def _check(values: Values) -> None:
    if not values.words:
        raise UsageError(f"{ERROR}too few arguments")
    name, *rest = values.words
    command = ALIASES.get(name, name)
    if command not in REQUIRED:
        known = ", ".join(f"'{command}'" for command in REQUIRED)
        raise UsageError(f"{ERROR}invalid choice:  '{name}' (choose from {known})")
    if rest:
        raise UsageError(f"{ERROR}unrecognized arguments: '{' '.join(rest)}'")
    if values.has("transactionalId"):
        values.given.setdefault("transactional-id", values.given["transactionalId"])
    for option in REQUIRED[command]:
        if not values.has(option):
            raise UsageError(f"{ERROR}argument --{option} is required")
    for option in _NUMBERS:
        values.number(option)


async def _run(session: Session) -> int:
    name = session.values.words[0]
    await COMMANDS[ALIASES.get(name, name)](session)
    return 0


@contextmanager
def _told(what: str, remedy: str = "") -> Iterator[None]:
    """Word an error of the broker as Kafka's tool does."""
    try:
        yield
    except KafkaError as error:
        advice = remedy or _REMEDIES.get(error.code, "")
        raise Failure(
            f"{what}: {sentence_of(error)}. Enable debug logging for additional detail.", remedy=advice
        ) from error


_REMEDIES = {
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "Is it right? `list` shows the transactional ids there are.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Is the name right? kafka-topics --list shows the topics there are.",
}


def _print(session: Session, heading: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    for line in tabbed([heading, *rows]):
        session.report.line(line)
    names = ["durationMinutes" if name == _DURATION else name[0].lower() + name[1:] for name in heading]
    session.report.data(
        [{name: None if value == _NONE else value for name, value in zip(names, row, strict=True)} for row in rows]
    )


# --- looking


async def _list(session: Session) -> None:
    duration_ms = session.values.number("duration-filter")
    with _told("Failed to list transactions"):
        found = await list_transactions(
            session.cluster,
            longer_than_ms=-1 if duration_ms is None else duration_ms,
            pattern=session.values.get("transactional-id-pattern"),
        )
    rows = [[one.transactional_id, one.coordinator_id, one.producer_id, one.state] for one in found]
    _print(session, LIST_HEADING, rows)


async def _describe(session: Session) -> None:
    transactional_id = session.values.require("transactional-id")
    with _told(f"Failed to describe transaction state of transactional-id `{transactional_id}`"):
        coordinator_id, state = await describe_transaction(session.cluster, transactional_id)
    started_ms = state.transaction_start_time_ms
    row = [
        coordinator_id,
        transactional_id,
        state.producer_id,
        state.producer_epoch,
        state.transaction_state,
        state.transaction_timeout_ms,
        _NONE if started_ms < 0 else started_ms,
        _NONE if started_ms < 0 else _now_ms() - started_ms,
        ",".join(f"{topic}-{index}" for topic, index in partition_order(_places(state))),
    ]
    _print(session, DESCRIBE_HEADING, [row])


def _places(state: TransactionState) -> list[Place]:
    return [(topic.topic, index) for topic in state.topics for index in topic.partitions]


async def _describe_producers(session: Session) -> None:
    place, broker_id = _place(session.values), session.values.number("broker-id")
    where = "leader" if broker_id is None else f"broker {broker_id}"
    with _told(f"Failed to describe producers for partition {place[0]}-{place[1]} on {where}"):
        found = await describe_producers(session.cluster, [place], broker_id=broker_id)
    rows = [
        [
            one.producer_id,
            one.producer_epoch,
            max(one.coordinator_epoch, -1),
            one.last_sequence,
            one.last_timestamp,
            _NONE if one.current_txn_start_offset < 0 else one.current_txn_start_offset,
        ]
        for one in found[place]
    ]
    _print(session, PRODUCERS_HEADING, rows)


def _place(values: Values) -> Place:
    return values.require("topic"), values.number("partition") or 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


# --- ending


async def _abort(session: Session) -> None:
    values = session.values
    start_offset, producer_id = values.number("start-offset"), values.number("producer-id")
    if start_offset is not None:
        wanted = await _found_at(session, _place(values), start_offset)
    elif producer_id is not None:
        wanted = Abort(
            place=_place(values),
            producer_id=producer_id,
            producer_epoch=_needed(values, "producer-epoch"),
            coordinator_epoch=max(_needed(values, "coordinator-epoch"), 0),
        )
    else:
        raise Failure(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or "
            "with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    with _told(f"Failed to abort transaction {wanted}"):
        await abort(session.cluster, wanted)
    session.report.data({"aborted": {"topic": wanted.place[0], "partition": wanted.place[1]}})


def _needed(values: Values, name: str) -> int:
    number = values.number(name)
    if number is None:
        raise Failure(f"Missing required argument --{name}")
    return number


async def _found_at(session: Session, place: Place, start_offset: int) -> Abort:
    """The open transaction that starts at an offset."""
    with _told(f"Failed to validate producer state for partition {place[0]}-{place[1]}"):
        found = await describe_producers(session.cluster, [place])
    one = next((one for one in found[place] if one.current_txn_start_offset == start_offset >= 0), None)
    if one is None:
        raise Failure(
            f"Could not find any open transactions starting at offset {start_offset} on partition "
            f"{place[0]}-{place[1]}",
            remedy="`describe-producers` shows where the open ones start.",
        )
    return Abort(
        place=place,
        producer_id=one.producer_id,
        producer_epoch=one.producer_epoch,
        coordinator_epoch=max(one.coordinator_epoch, 0),
    )


async def _force_terminate(session: Session) -> None:
    transactional_id = session.values.require("transactional-id")
    with _told(f"Failed to force terminate transactionalId `{transactional_id}`"):
        await force_terminate(session.cluster, transactional_id)
    session.report.data({"terminated": transactional_id})


# --- searching


async def _find_hanging(session: Session) -> None:
    values = session.values
    if not values.has("topic") and not values.has("broker-id"):
        raise Failure(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if values.has("partition") and not values.has("topic"):
        raise Failure("The --partition argument requires --topic to be provided")
    limit_ms = (values.number("max-transaction-timeout") or 0) * _MINUTE_MS
    candidates = await _open_for_longer(session, await _scope(session), limit_ms)
    hanging = await _unknown_to_coordinators(session, candidates)
    now_ms = _now_ms()
    rows = [
        [
            *place,
            one.producer_id,
            one.producer_epoch,
            max(one.coordinator_epoch, -1),
            one.current_txn_start_offset,
            one.last_timestamp,
            (now_ms - one.last_timestamp) // _MINUTE_MS,
        ]
        for place, one in hanging
    ]
    _print(session, HANGING_HEADING, rows)
    if rows:
        print("`abort` with the topic, the partition and the start offset ends one of them.", file=sys.stderr)


async def _scope(session: Session) -> list[Place]:
    """The partitions to search."""
    values = session.values
    if values.has("partition"):
        return [_place(values)]
    topic, broker_id = values.get("topic"), values.number("broker-id")
    metadata = await session.cluster.metadata(None if topic is None else [topic])
    with _told(f"Failed to describe {len(metadata.topics)} topics"):
        for one in metadata.topics:
            if one.error_code:
                raise KafkaError(ErrorCode(one.error_code), "")
    by_name = {one.name or "": one.partitions for one in metadata.topics}
    return [
        (name, partition.partition_index)
        for name in hash_order(by_name, table=1)
        for partition in sorted(by_name[name], key=lambda one: int(one.partition_index))
        if broker_id is None or broker_id in partition.replica_nodes
    ]


async def _open_for_longer(session: Session, places: Sequence[Place], limit_ms: int) -> list[Open]:
    """The transactions that are open and whose producer wrote last longer ago than the limit."""
    broker_id, found = session.values.number("broker-id"), []
    for start in range(0, len(places), _AT_ONCE):
        batch = places[start : start + _AT_ONCE]
        where = "Optional.empty" if broker_id is None else f"Optional[{broker_id}]"
        with _told(f"Failed to describe producers for {len(batch)} partitions on broker {where}"):
            producers = await describe_producers(session.cluster, batch, broker_id=broker_id)
        now_ms = _now_ms()
        found += [
            (place, one)
            for place in result_order(batch)
            for one in producers.get(place, ())
            if one.current_txn_start_offset >= 0 and now_ms - one.last_timestamp > limit_ms
        ]
    return found


async def _unknown_to_coordinators(session: Session, candidates: Sequence[Open]) -> list[Open]:
    """Those that no coordinator will ever end, in the order Kafka's tool shows them."""
    if not candidates:
        return []
    producer_ids = {one.producer_id for _, one in candidates}
    with _told(f"Failed to list transactions for {len(producer_ids)} producers"):
        listed = await list_transactions(session.cluster, producer_ids=sorted(producer_ids))
    names = {one.producer_id: one.transactional_id for one in listed}
    with _told(f"Failed to describe {len(names)} transactions"):
        known: dict[str, Any] = await for_each(names.values(), lambda name: _known_places(session, name))
    hanging = [(place, one) for place, one in candidates if place not in known.get(names.get(one.producer_id, ""), ())]
    hashed = [((producer_id ^ producer_id >> 32) & 0xFFFFFFFF, producer_id) for producer_id in producer_ids]
    order = {producer_id: at for at, (_, producer_id) in enumerate(bucket_order(hashed))}
    return sorted(hanging, key=lambda pair: order[pair[1].producer_id])


async def _known_places(session: Session, transactional_id: str) -> set[Place]:
    """The partitions in a transaction according to its coordinator."""
    try:
        _, state = await describe_transaction(session.cluster, transactional_id)
    except KafkaError as error:
        if error.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return set()
        raise
    return set(_places(state))


COMMANDS = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "abort": _abort,
    "find-hanging": _find_hanging,
    "force-terminate": _force_terminate,
}
