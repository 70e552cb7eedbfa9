"""Fetch, key 1.

Versions: 4-18.
Behaviour: whole batches, the first containing the asked offset; a first batch larger than the limits is returned all
the same, so that nobody gets stuck (KIP-74). Parks until `min_bytes` are readable or `max_wait_ms` is over.
Incremental sessions (KIP-227), leader epochs (KIP-320), diverging epochs (KIP-595), topic ids from v13 (KIP-516).
A follower's fetch reads up to the log end and says how far the follower is; only registered brokers are taken for
followers. A consumer that names its rack may be sent to a follower there, which serves what it knows to be committed
(KIP-392); one that asks the wrong broker is told the right one (v16, KIP-951).
Deviations: a follower that waits hears of a moved high watermark after 20 ms, Kafka's only when its wait is over.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.broker.fetcher import Fetch
from headrace.broker.replica_reads import ReplicaFetch
from headrace.cores.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, CachedPartition
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.fetch import FetchCommand, encode_fetch_response, parse_fetch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from headrace.net.reply import Buffers, PendingReply
    from headrace.wire.fetch import FetchPartition


def handle(call: Call, frame: memoryview, position: int) -> Buffers | PendingReply:
    """Serve a fetch, with or without a session."""
    command = parse_fetch(frame, position, call.header.api_version)
    kind: type[Fetch] = Fetch
    if command.replica_id >= 0:
        if command.replica_id not in call.broker.metadata.brokers:
            return _refuse_stranger(call, command.replica_id)
        kind = ReplicaFetch
    sessions = call.broker.fetch_sessions
    now_ms = call.broker.clock()
    if command.session_epoch == FINAL_EPOCH:
        sessions.close(command.session_id)
        return kind(call, command, _asked_once(command), None, full=True).start()
    if command.session_epoch == INITIAL_EPOCH:
        sessions.close(command.session_id)
        fresh = sessions.open(_asked(command), session_id=call.broker.random_session_id(), now_ms=now_ms)
        if fresh is None:
            return kind(call, command, _asked_once(command), None, full=True).start()
        return kind(call, command, list(fresh.partitions.values()), fresh, full=True).start()
    session = sessions.resume(command.session_id, command.session_epoch, now_ms)
    if isinstance(session, ErrorCode):
        return _refuse(call, session)
    if command.topics or command.forgotten:
        session.update(_asked(command), ((topic, index) for topic, indexes in command.forgotten for index in indexes))
    return kind(call, command, list(session.partitions.values()), session, full=False).start()


def _refuse_stranger(call: Call, replica_id: int) -> Buffers:
    error = KafkaError(
        ErrorCode.NOT_LEADER_OR_FOLLOWER, f"A client fetches as broker {replica_id}, and there is no such broker."
    )
    call.broker.refusals.tell(
        "replica_refused", f"replica={replica_id} peer={call.connection.peer[0]}", error, level=logging.WARNING
    )
    return _refuse(call, error.code)


def _asked(command: FetchCommand) -> Iterator[tuple[str | UUID, int, FetchPartition]]:
    for topic, partitions in command.topics:
        for asked in partitions:
            yield topic, asked.partition, asked


def _asked_once(command: FetchCommand) -> list[CachedPartition[FetchPartition]]:
    return [CachedPartition(topic, index, asked) for topic, index, asked in _asked(command)]


def _refuse(call: Call, code: ErrorCode) -> Buffers:
    header = call.header
    return encode_fetch_response(
        header.api_version, header.correlation_id, throttle_ms=0, error_code=int(code), session_id=0, topics=[]
    )


API = Api(key=1, low=4, high=18, handle=handle, raw=True)
