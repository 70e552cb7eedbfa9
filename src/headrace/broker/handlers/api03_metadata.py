"""Metadata, key 3.

Versions: 0-13.
Behaviour: brokers, topics, partitions and leaders, with the address of the listener the client came through. Topics
that are asked for by name and are missing are created where `auto.create.topics.enable` and the request allow it;
clients rely on that. A leader is told only once it serves: a producer sent there too early would lose its order.
In v0 an empty topic list means all topics, later a null list does. The controller is the broker that is asked: it
hands on what it does not decide itself.
KIPs: 516 topic ids (v10, by id from v12), 430 authorized operations (v8-10 cluster, v8+ topics), 1102 top-level error
(v13).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.broker.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from headrace.broker.auto_creation import create_missing
from headrace.cores.metadata import INTERNAL_TOPICS
from headrace.model.errors import ErrorCode
from headrace.model.ids import ZERO_ID, topic_name_fault
from headrace.model.metadata_records import NO_LEADER
from headrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from headrace.broker.broker import Broker
    from headrace.cores.metadata import PartitionState, Topic


_WITHOUT_IDS = (10, 11)
"""These can ask for an id, or for no name, and have no way to answer."""


def handle(call: Call, request: MetadataRequest) -> MetadataResponse | Awaitable[MetadataResponse]:
    """Describe what was asked for, creating topics first where that is wanted."""
    broker = call.broker
    if request.topics is None or (call.version == 0 and not request.topics):
        return _response(call, request, [_topic(broker, topic, request) for topic in broker.metadata.topics.values()])
    if call.version in _WITHOUT_IDS and any(t.name is None or t.topic_id != ZERO_ID for t in request.topics):
        return _response(call, request, [_misplaced(topic) for topic in request.topics])
    missing = [
        topic.name
        for topic in request.topics
        if topic.name and topic.topic_id == ZERO_ID and topic.name not in broker.metadata.topics
    ]
    if missing and request.allow_auto_topic_creation and broker.config["auto.create.topics.enable"]:
        return _create_then_answer(call, request, missing)
    return _response(call, request, [_asked(broker, topic, request) for topic in request.topics])


async def _create_then_answer(call: Call, request: MetadataRequest, missing: list[str]) -> MetadataResponse:
    errors = await create_missing(call.broker, missing)
    topics = [
        _failed(topic, errors[topic.name])
        if topic.name in errors and topic.name not in call.broker.metadata.topics
        else _asked(call.broker, topic, request)
        for topic in request.topics or ()
    ]
    return _response(call, request, topics)


def _asked(broker: Broker, asked: MetadataRequestTopic, request: MetadataRequest) -> MetadataResponseTopic:
    if asked.topic_id != ZERO_ID:
        topic = broker.metadata.topics_by_id.get(asked.topic_id)
        return _failed(asked, ErrorCode.UNKNOWN_TOPIC_ID) if topic is None else _topic(broker, topic, request)
    name = asked.name or ""
    topic = broker.metadata.topics.get(name)
    if topic is not None:
        return _topic(broker, topic, request)
    if topic_name_fault(name) is not None:
        return _failed(asked, ErrorCode.INVALID_TOPIC_EXCEPTION)
    return _failed(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _failed(asked: MetadataRequestTopic, code: ErrorCode) -> MetadataResponseTopic:
    by_id = asked.topic_id != ZERO_ID
    return MetadataResponseTopic(
        error_code=int(code), name=None if by_id else asked.name, topic_id=asked.topic_id, is_internal=False
    )


def _misplaced(asked: MetadataRequestTopic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=int(ErrorCode.INVALID_REQUEST), name=asked.name or "", topic_id=asked.topic_id, is_internal=False
    )


def _topic(broker: Broker, topic: Topic, request: MetadataRequest) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(_partition(broker, topic, state) for state in topic.partitions),
        topic_authorized_operations=TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED,
    )


def _partition(broker: Broker, topic: Topic, state: PartitionState) -> MetadataResponsePartition:
    ready = broker.cluster.leads(topic, state)
    return MetadataResponsePartition(
        error_code=int(ErrorCode.NONE if ready else ErrorCode.LEADER_NOT_AVAILABLE),
        partition_index=state.index,
        leader_id=state.leader if ready else NO_LEADER,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        offline_replicas=broker.cluster.offline_replicas(state),
    )


def _response(call: Call, request: MetadataRequest, topics: list[MetadataResponseTopic]) -> MetadataResponse:
    broker = call.broker
    return MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(node_id=one.node_id, host=one.host, port=one.port, rack=one.rack)
            for one in broker.cluster.brokers(call.connection.listener_name)
        ),
        cluster_id=broker.cluster_id,
        controller_id=broker.cluster.controller_id,
        topics=tuple(topics),
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


API = Api(key=3, low=0, high=13, handle=handle)
