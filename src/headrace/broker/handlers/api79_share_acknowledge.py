"""ShareAcknowledge, key 79.

Versions: 1-2.
Behaviour: a member accepts, releases or rejects records it has, or renews its locks (v2); each partition is answered
when what was said is written down. Goes on with the session that a ShareFetch opened; epoch -1 ends it.
Deviations: what is said of a partition's records may cut them into 10,000 runs of one fate; more is refused as
INVALID_REQUEST.
KIPs: 932, 1222 renewing locks (v2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from headrace.broker.api import Api, Call
from headrace.broker.fetcher import endpoints_of, leader_hint
from headrace.broker.share_acknowledging import acknowledge
from headrace.broker.share_service import require_share_groups
from headrace.broker.share_sessions import FINAL_EPOCH, INITIAL_EPOCH
from headrace.broker.share_settings import share_limits
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

if TYPE_CHECKING:
    from headrace.broker.share_sessions import ShareSession


async def handle(call: Call, request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse:
    """Take in what a member says of its records."""
    service = call.broker.share
    try:
        require_share_groups(call.broker)
        session = _session(call, request)
    except KafkaError as error:
        return ShareAcknowledgeResponse(error_code=int(error.code), error_message=error.message)
    group_id, member_id = session.key
    said = {
        (topic.topic_id, partition.partition_index): partition.acknowledgement_batches
        for topic in request.topics
        for partition in topic.partitions
    }
    results = await acknowledge(service, group_id, member_id, said, may_renew=request.is_renew_ack)
    if request.share_session_epoch == FINAL_EPOCH:
        await service.close_session(session)
    topics: dict[UUID, list[PartitionData]] = {}
    leaders: set[int] = set()
    for (topic_id, index), refused in results.items():
        data = PartitionData(
            partition_index=index,
            error_code=0 if refused is None else int(refused.code),
            error_message=None if refused is None else refused.message,
            current_leader=_leader(call, topic_id, index, refused, leaders),
        )
        topics.setdefault(topic_id, []).append(data)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=share_limits(call.broker, group_id).lock_duration_ms if request.is_renew_ack else 0,
        responses=tuple(
            ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in topics.items()
        ),
        node_endpoints=tuple(
            NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in endpoints_of(call, leaders)
        ),
    )


def _leader(call: Call, topic_id: UUID, index: int, refused: KafkaError | None, leaders: set[int]) -> LeaderIdAndEpoch:
    """Who leads a partition, for a member that asked the wrong broker; noted in `leaders`."""
    if refused is None or refused.code is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return LeaderIdAndEpoch()
    hint = leader_hint(call, topic_id, index, leaders)
    return LeaderIdAndEpoch() if hint is None else LeaderIdAndEpoch(leader_id=hint[0], leader_epoch=hint[1])


def _session(call: Call, request: ShareAcknowledgeRequest) -> ShareSession:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    if not request.member_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    if request.share_session_epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "An acknowledgement cannot open a share session.")
    return call.broker.share.sessions.resume((request.group_id, request.member_id), request.share_session_epoch)


API = Api(key=79, low=1, high=2, handle=handle)
