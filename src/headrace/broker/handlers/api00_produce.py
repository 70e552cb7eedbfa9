"""Produce, key 0.

Versions: 3-13 served, advertised from 0: librdkafka before 2.11.1 turns compression off where 0 is missing (KIP-896
keeps Kafka doing the same); 0-2 end the connection.
Behaviour: every partition of a request stands for itself. acks=all is answered when the high watermark has passed the
batch, which means flushed unless the topic opted out, on every replica that is in sync; if that takes longer than the
request allows it is REQUEST_TIMED_OUT. It is refused while fewer replicas are in sync than `min.insync.replicas` says.
acks=1 is answered when the batch is written; acks=0 never, and an error then ends the connection, as that is the only
way left to tell. The first batch of a transaction on a partition waits until the transaction's coordinator has
confirmed it, and those of its producer behind it wait too; from version 12 on the partition joins the transaction that
way. Who asks a broker that does not lead is told who does.
Deviations: at most 100 records of a batch are named as bad, and none where only the batch's header was looked at: a
timestamp of the future in a large or compressed batch, on a topic that needs no look at every record. A transactional
batch in a request without transactional id is refused by itself, not with the whole request. For half a minute after a
change of leader, or after a write was refused for want of replicas, a gap in a producer's sequence is
NOT_ENOUGH_REPLICAS: what was refused comes again, and librdkafka could double records of other partitions if it were
told that its sequence is out of order.
KIPs: 98 idempotence and transactions, 110 zstd (v7), 467 error messages and bad records (v8), 516 topic ids (v13), 890
verified transactions (v11, v12), 951 leader hints (v10).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from headrace.broker.api import Api, Call
from headrace.broker.coordinators.verification import verifications_of
from headrace.broker.fetcher import endpoints_of, leader_hint
from headrace.model.errors import ErrorCode, KafkaError
from headrace.net.reply import Buffers, CloseConnection, PendingReply
from headrace.records.batch import TRANSACTIONAL
from headrace.records.compression import ZSTD
from headrace.records.produced import RecordsRejected
from headrace.wire.produce import FLEXIBLE_FIRST, encode_one_appended, encode_produce_response, parse_produce

if TYPE_CHECKING:
    from headrace.broker.lane import Done
    from headrace.broker.partition import Appended, Partition
    from headrace.records.batch import BatchHeader
    from headrace.wire.header import RequestHeader
    from headrace.wire.produce import ProduceCommand, RecordErrors

ZSTD_FIRST = 7
"""Consumers of that time cannot read it, so producers of that time must not write it (KIP-110)."""

HINTS_FIRST = 10
"""Clients of this version on are told who leads instead (KIP-951)."""
NOT_LED = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
TIMEOUT_MS_MAX = 24 * 3600 * 1000

Endpoints = Sequence[tuple[int, str, int, str | None]]

Row = tuple[int, int, int, int, int, str | None]
"""partition, error code, base offset, append time, log start offset, error message."""

Rows = list[tuple[str | UUID, Row | None]]
"""Topics and what became of a partition of theirs, in the order of the request; None where that is not known yet."""

Submit = Callable[["Partition", memoryview, "BatchHeader", "Done"], None]
"""Takes a batch that must wait, and says when it is appended or refused."""

PARTITIONS_WITH_RECORD_ERRORS_MAX = 100
"""How many partitions of one answer name their bad records, so that an answer is not much larger than its request."""


class _Answer:
    """The answer to a produce request in which something was refused or has to wait, filled in as things settle."""

    __slots__ = ("_has_moved", "_timeout_ms", "_timer", "_waiting", "call", "missing", "record_errors", "reply", "rows")

    def __init__(self, call: Call, timeout_ms: int, rows: Rows) -> None:
        self.call = call
        self._timeout_ms = timeout_ms
        self.rows = rows
        self.missing = 0
        self.reply: PendingReply | None = None
        self.record_errors: RecordErrors | None = None
        self._has_moved = False
        """Whether some partition is led by another broker."""
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: dict[int, int] | None = None
        """Places whose batches wait for other replicas, with the partitions' numbers."""

    def buffers(self) -> Buffers:
        """The framed response, in which everything has settled."""
        header = self.call.header
        leaders, endpoints = self._hints() if self._has_moved and header.api_version >= HINTS_FIRST else (None, ())
        return (
            encode_produce_response(
                header.api_version,
                header.correlation_id,
                _by_topic(self.rows),
                leaders=leaders,
                endpoints=endpoints,
                record_errors=self.record_errors,
            ),
        )

    def _hints(self) -> tuple[dict[tuple[str | UUID, int], tuple[int, int]] | None, Endpoints]:
        """Who leads the partitions that are not led here, and where they are (KIP-951)."""
        moved = [(topic, row[0]) for topic, row in self.rows if row is not None and row[1] == NOT_LED]
        nodes: set[int] = set()
        leaders = {key: hint for key in moved if (hint := leader_hint(self.call, *key, nodes)) is not None}
        return leaders, endpoints_of(self.call, nodes)

    def refusal(self, topic: str | UUID, index: int, error: KafkaError) -> Row:
        """The row that says why a partition's batch was not appended; its bad records are kept beside it."""
        self.call.broker.partitions.traffics.failed_produces += 1
        if isinstance(error, RecordsRejected):
            named = self.record_errors or {}
            if len(named) < PARTITIONS_WITH_RECORD_ERRORS_MAX:
                self.record_errors = {**named, (topic, index): error.record_errors}
        if error.code == NOT_LED:
            self._has_moved = True
        return (index, int(error.code), -1, -1, -1, error.message or None)

    def limit(self, position: int, index: int) -> None:
        """A batch waits for other replicas; they have as long as the request allows."""
        if self._waiting is None:
            self._waiting = {}
            wait_s = max(0, min(self._timeout_ms, TIMEOUT_MS_MAX)) / 1000
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._expire)
        self._waiting[position] = index

    def _expire(self) -> None:
        """Replicas took too long: what is still waited for may or may not be kept."""
        for position, index in (self._waiting or {}).items():
            self.settle(position, (index, int(ErrorCode.REQUEST_TIMED_OUT), -1, -1, -1, None))

    def settle(self, position: int, row: Row) -> None:
        """One partition that had to wait is answered; the last one sends the reply."""
        if self.rows[position][1] is not None:
            return  # It was told that the time is up.
        self.rows[position] = (self.rows[position][0], row)
        self.missing -= 1
        if self.missing == 0:
            if self._timer is not None:
                self._timer.cancel()
            if self.reply is not None:
                self.reply.send(self.buffers())


def _by_topic(rows: Rows) -> Sequence[tuple[str | UUID, Sequence[Row]]]:
    """Partitions grouped by topic as they came."""
    topics: list[tuple[str | UUID, list[Row]]] = []
    last: str | UUID | None = None
    for topic, row in rows:
        assert row is not None, "all partitions have been answered"
        if topic is last or topic == last:
            topics[-1][1].append(row)
        else:
            topics.append((topic, [row]))
            last = topic
    return topics


def _row(partition: Partition, appended: Appended) -> Row:
    base_offset, append_time_ms, _ = appended
    return (partition.index, 0, base_offset, append_time_ms, partition.log.log_start_offset, None)


def handle(call: Call, frame: memoryview, position: int) -> Buffers | PendingReply:
    """Append each partition's batch and answer when the promised safety is reached."""
    version = call.header.api_version
    command = parse_produce(frame, position, version)
    acks = command.acks
    broker = call.broker
    find_topic = broker.partitions.of
    now_ms = broker.clock()
    rows: Rows = []
    answer: _Answer | None = None
    last: str | UUID | None = None
    held: Mapping[int, Partition] = {}
    for topic, index, start, end in command.partitions:
        if topic is not last:
            last, held = topic, find_topic(topic) or {}
        try:
            if not -1 <= acks <= 1:
                raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, "acks must be -1, 0 or 1.")
            partition = held.get(index)
            if partition is None:
                raise broker.partitions.missing(topic, index)
            if start == end:
                raise KafkaError(ErrorCode.INVALID_RECORD, "The partition's records are empty.")
            batch = frame[start:end]
            header = partition.check(batch, now_ms, acks)
            if version < ZSTD_FIRST and header.codec == ZSTD:
                raise KafkaError(
                    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                    f"Produce {version} does not know zstd; use {ZSTD_FIRST} or later.",
                )
            submit = _first_to(call, command, partition, header)
            if submit is not None:
                answer = answer or _Answer(call, command.timeout_ms, rows)
                _queue(submit, answer, partition, batch, header, acks)
                rows.append((topic, None))
                continue
            appended = partition.append(batch, header, now_ms)
        except KafkaError as error:
            answer = answer or _Answer(call, command.timeout_ms, rows)
            rows.append((topic, answer.refusal(topic, index, error)))
            continue
        if acks == -1 and (partition.log.high_watermark < appended.end_offset or partition.replicated is not None):
            answer = answer or _Answer(call, command.timeout_ms, rows)
            rows.append((topic, None))
            answer.missing += 1
            _await_safety(answer, len(rows) - 1, partition, appended)
        else:
            rows.append((topic, _row(partition, appended)))
    return _finish(call.header, acks, rows, answer)


def _first_to(call: Call, command: ProduceCommand, partition: Partition, header: BatchHeader) -> Submit | None:
    """Who takes a batch that must wait: for its coordinator's word, or for a thread; None if it need not."""
    if header[5] & TRANSACTIONAL:
        verifications, version = verifications_of(call.broker), call.header.api_version
        if verifications.must_wait(partition, header, version):
            return partial(verifications.submit, transactional_id=command.transactional_id, version=version)
    return partition.lane.submit if partition.must_queue(header) else None


def _finish(header: RequestHeader, acks: int, rows: Rows, answer: _Answer | None) -> Buffers | PendingReply:
    if answer is None:
        return (_all_appended(header, rows),) if acks else ()
    if acks == 0:
        failed = [row for _, row in answer.rows if row is not None and row[1]]
        if failed:
            raise CloseConnection(_unanswerable(failed[0][1]))
        return ()
    if answer.missing == 0:
        return answer.buffers()
    answer.reply = PendingReply()
    return answer.reply


def _all_appended(header: RequestHeader, rows: Rows) -> bytes:
    """The framed response where nothing was refused and nothing has to wait."""
    _, version, correlation_id, _, _ = header
    topic, row = rows[0] if len(rows) == 1 else ("", None)
    if row is not None and version >= FLEXIBLE_FIRST:
        return encode_one_appended(version, correlation_id, topic, row)
    return encode_produce_response(version, correlation_id, _by_topic(rows))


def _unanswerable(code: int) -> str:
    return f"a produce with acks=0 failed with {ErrorCode(code).name}"


def _await_safety(answer: _Answer, place: int, partition: Partition, appended: Appended) -> None:
    def safe(error: KafkaError | None) -> None:
        error = error or partition.outcome(appended.end_offset)
        if error is None:
            answer.settle(place, _row(partition, appended))
        else:
            answer.settle(place, answer.refusal(answer.rows[place][0], partition.index, error))

    if partition.replicated is not None:
        answer.limit(place, partition.index)
    partition.when_safe(appended.end_offset, safe)


def _queue(
    submit: Submit, answer: _Answer, partition: Partition, batch: memoryview, header: BatchHeader, acks: int
) -> None:
    place = len(answer.rows)

    def done(result: Appended | KafkaError) -> None:
        if isinstance(result, KafkaError):
            answer.settle(place, answer.refusal(answer.rows[place][0], partition.index, result))
            if acks == 0:
                answer.call.connection.close(_unanswerable(result.code))
        elif acks == -1:
            _await_safety(answer, place, partition, result)
        else:
            answer.settle(place, _row(partition, result))

    submit(partition, batch, header, done)
    answer.missing += 1


API = Api(key=0, low=3, high=13, advertised_low=0, handle=handle, raw=True)
