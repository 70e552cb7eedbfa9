"""ShareFetch, key 78.

Versions: 1-2.
Behaviour: hands out records of share partitions to a member, as raw batches of the log with the ranges of offsets that
the member has now; takes acknowledgements along, which are written down before the answer. Epoch 0 opens a session (an
old one of the member ends), -1 ends it and frees what the member has, others go on with it. Waits for `min_bytes` as
Fetch does. A renewal of locks (v2) fetches nothing.
Deviations: each request looks at whole runs of offsets, so acquired ranges may be larger than a batch of the log. What
is said of a partition's records may cut them into 10,000 runs of one fate; more is refused as INVALID_REQUEST.
KIPs: 932, 1206 strict record limit (v2), 1222 renewing locks (v2).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

from headrace.broker.api import Api, Call
from headrace.broker.fetcher import endpoints_of, leader_hint
from headrace.broker.share_acknowledging import acknowledge
from headrace.broker.share_fetcher import WAIT_MS_MAX, Found, ShareFetch, ShareFetchCommand
from headrace.broker.share_service import require_share_groups
from headrace.broker.share_sessions import FINAL_EPOCH, INITIAL_EPOCH
from headrace.broker.share_settings import share_limits
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.share_fetch import (
    AcknowledgementBatch,
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

if TYPE_CHECKING:
    from headrace.broker.share_partition_leader import SharePartitionLeader
    from headrace.broker.share_sessions import ShareSession

TopicPartition = tuple[UUID, int]
RECORD_LIMIT_MODE = 1


async def handle(call: Call, request: ShareFetchRequest) -> ShareFetchResponse:
    """Acknowledge, then hand out."""
    said = _said(request)
    try:
        require_share_groups(call.broker)
        _check(request, said)
        session = await _session(call, request)
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            # A client that is refused asks again at once; let it wait as if there were nothing to read.
            await call.broker.share.pause(min(max(request.max_wait_ms, 0), WAIT_MS_MAX) / 1000)
        return ShareFetchResponse(error_code=int(error.code), error_message=error.message)
    service = call.broker.share
    group_id, member_id = session.key
    acknowledging = acknowledge(service, group_id, member_id, said, may_renew=request.is_renew_ack)
    if request.share_session_epoch == FINAL_EPOCH:
        acknowledged = await acknowledging
        await service.close_session(session)
        found: dict[TopicPartition, Found] = {}
    elif request.is_renew_ack:
        acknowledged, found = await acknowledging, {}
    else:
        acknowledged, found = await asyncio.gather(acknowledging, _fetch(call, request, session))
        session.served_last(partition for partition, one in found.items() if one.acquired)
    if request.share_session_epoch == INITIAL_EPOCH:
        found = {partition: found.get(partition, Found()) for partition in session.partitions}
    leaders: set[int] = set()
    return ShareFetchResponse(
        acquisition_lock_timeout_ms=share_limits(call.broker, group_id).lock_duration_ms,
        responses=_responses(call, acknowledged, found, leaders),
        node_endpoints=tuple(
            NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in endpoints_of(call, leaders)
        ),
    )


def _said(request: ShareFetchRequest) -> dict[TopicPartition, tuple[AcknowledgementBatch, ...]]:
    return {
        (topic.topic_id, partition.partition_index): partition.acknowledgement_batches
        for topic in request.topics
        for partition in topic.partitions
        if partition.acknowledgement_batches
    }


def _check(request: ShareFetchRequest, said: dict[TopicPartition, tuple[AcknowledgementBatch, ...]]) -> None:
    problem = None
    if not request.group_id:
        problem = "Invalid group id in the request."
    elif not request.member_id:
        problem = "Invalid member id in the request."
    elif request.is_renew_ack and (
        request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms
    ):
        problem = "A request that renews locks must have max bytes, min bytes, max records and max wait 0."
    elif request.share_session_epoch == INITIAL_EPOCH and said:
        problem = "The first request of a share session cannot acknowledge anything."
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, problem)


async def _session(call: Call, request: ShareFetchRequest) -> ShareSession:
    """The session that the request opens or goes on with, with the partitions it adds and forgets."""
    service = call.broker.share
    key = (request.group_id or "", request.member_id or "")
    if request.share_session_epoch == INITIAL_EPOCH:
        old = service.sessions.find(key)
        if old is not None:
            service.sessions.close(old)
        session = service.open_session(*key, call.connection)
    else:
        session = service.sessions.resume(key, request.share_session_epoch)
    if request.share_session_epoch != FINAL_EPOCH:
        session.update(
            ((topic.topic_id, one.partition_index) for topic in request.topics for one in topic.partitions),
            ((topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions),
        )
    return session


async def _fetch(call: Call, request: ShareFetchRequest, session: ShareSession) -> dict[TopicPartition, Found]:
    """Read what the session follows; errors are told at once, with what there is besides."""
    group_id, member_id = session.key
    service = call.broker.share
    leaders: list[SharePartitionLeader] = []
    errors: dict[TopicPartition, Found] = {}
    for topic_id, index in tuple(session.partitions):
        try:
            leaders.append(await service.partitions.lead((group_id, topic_id, index)))
        except KafkaError as error:
            errors[topic_id, index] = Found(error)
    command = ShareFetchCommand(
        group_id=group_id,
        member_id=member_id,
        max_wait_ms=0 if errors else request.max_wait_ms,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        max_records=request.max_records,
        batch_size=request.batch_size,
        strict=request.share_acquire_mode == RECORD_LIMIT_MODE,
    )
    found = await ShareFetch(call.broker, call.connection, command, leaders).run()
    return {**found, **errors}


def _responses(
    call: Call,
    acknowledged: dict[TopicPartition, KafkaError | None],
    found: dict[TopicPartition, Found],
    leaders: set[int],
) -> tuple[ShareFetchableTopicResponse, ...]:
    """What came of each partition; brokers that lead some that were asked for here are noted in `leaders`."""
    topics: dict[UUID, list[PartitionData]] = {}
    for topic_id, index in {**acknowledged, **found}:
        refused = acknowledged.get((topic_id, index))
        one = found.get((topic_id, index), Found())
        data = PartitionData(
            partition_index=index,
            error_code=0 if one.error is None else int(one.error.code),
            error_message=None if one.error is None else one.error.message,
            acknowledge_error_code=0 if refused is None else int(refused.code),
            acknowledge_error_message=None if refused is None else refused.message,
            current_leader=_leader(call, topic_id, index, (one.error, refused), leaders),
            records=one.records,
            acquired_records=tuple(
                AcquiredRecords(
                    first_offset=run.first_offset, last_offset=run.last_offset, delivery_count=run.delivery_count
                )
                for run in one.acquired
            ),
        )
        topics.setdefault(topic_id, []).append(data)
    return tuple(
        ShareFetchableTopicResponse(topic_id=topic_id, partitions=tuple(partitions))
        for topic_id, partitions in topics.items()
    )


def _leader(
    call: Call, topic_id: UUID, index: int, errors: tuple[KafkaError | None, ...], leaders: set[int]
) -> LeaderIdAndEpoch:
    """Who leads a partition, for a member that asked the wrong broker."""
    if not any(error is not None and error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER for error in errors):
        return LeaderIdAndEpoch()
    hint = leader_hint(call, topic_id, index, leaders)
    return LeaderIdAndEpoch() if hint is None else LeaderIdAndEpoch(leader_id=hint[0], leader_epoch=hint[1])


API = Api(key=78, low=1, high=2, handle=handle)
