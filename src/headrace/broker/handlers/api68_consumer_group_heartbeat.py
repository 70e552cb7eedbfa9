"""ConsumerGroupHeartbeat, key 68.

Versions: 0-1, all.
Behaviour: a member of a consumer group joins (epoch 0), lives, changes its mind, gives up and gets partitions, and
leaves (-1, or -2 for a static member that will be back). Subscriptions by expression are RE2's and matched on the
server. A classic group of consumers becomes a consumer group when its first such member joins.
Deviations: expressions are matched within the heartbeat, so that the first answer has the topics, and again whenever
topics come or go; Kafka does it in the background. Target assignments that had to wait are made by a timer, too.
The hash of the topics in the group's record is not Kafka's: a coordinator that takes over from the other kind raises
the group epoch once. A member that waits for partitions, because others have yet to give them up or the target is not
made yet, is asked to come back after a fifth of the heartbeat interval.
KIPs: 848, 1082 ids made by the member (v1), 1251 assignment epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.broker.coordinators.shard import responded
from headrace.cores.groups.consumer import heartbeat
from headrace.cores.groups.consumer_commands import ConsumerHeartbeat, ConsumerHeartbeatAnswer
from headrace.cores.groups.consumer_member import JOINING_EPOCH
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.ids import encode_uuid
from headrace.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from uuid import UUID

OWN_MEMBER_ID_FIRST = 1
"""From this version on members make their ids themselves."""

PROTOCOL = "consumer"


def handle(
    call: Call, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
    """Serve a member of a consumer group; at once where nothing has to be waited for."""
    try:
        if PROTOCOL not in call.broker.config["group.coordinator.rebalance.protocols"]:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The consumer group protocol is not enabled.")
        command = _command(call, request)
        shard = call.broker.groups.shard_for(request.group_id)
        reply = shard.begin(lambda token, now_ms: heartbeat(shard.core, command, token, now_ms))
    except KafkaError as error:
        return _response(error)
    return responded(reply, _response)


def _command(call: Call, request: ConsumerGroupHeartbeatRequest) -> ConsumerHeartbeat:
    member_id = request.member_id
    if not member_id and call.version < OWN_MEMBER_ID_FIRST and request.member_epoch == JOINING_EPOCH:
        member_id = encode_uuid(call.broker.new_uuid())
    return ConsumerHeartbeat(
        group_id=request.group_id,
        member_id=member_id,
        member_epoch=request.member_epoch,
        client_id=call.header.client_id or "",
        client_host=f"/{call.connection.peer[0]}",
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=request.subscribed_topic_names,
        regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=None if request.topic_partitions is None else _owned(request.topic_partitions),
    )


def _owned(topics: tuple[TopicPartitions, ...]) -> dict[UUID, set[int]]:
    """What a member owns, by topic; one that is named twice counts as a whole."""
    owned: dict[UUID, set[int]] = {}
    for topic in topics:
        owned.setdefault(topic.topic_id, set()).update(topic.partitions)
    return owned


def _response(answer: ConsumerHeartbeatAnswer | KafkaError) -> ConsumerGroupHeartbeatResponse:
    if isinstance(answer, KafkaError):
        return ConsumerGroupHeartbeatResponse(error_code=int(answer.code), error_message=answer.message or None)
    assignment = None
    if answer.assignment is not None:
        assignment = Assignment(
            topic_partitions=tuple(
                TopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in answer.assignment.items()
            )
        )
    return ConsumerGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=assignment,
    )


API = Api(key=68, low=0, high=1, handle=handle)
