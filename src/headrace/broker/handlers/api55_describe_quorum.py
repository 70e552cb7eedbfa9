"""DescribeQuorum, key 55.

Versions: 0-2.
Behaviour: the leader of the quorum tells how far each voter and each observer is, and when it was last heard of. Other
nodes answer NOT_LEADER_OR_FOLLOWER for the partition, with no word of the leader, as in Kafka; another partition than
that of the metadata is UNKNOWN_TOPIC_OR_PARTITION.
KIPs: 595, 836 times (v1), 853 directories and nodes (v2).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.quorum_calls import quorum_of
from headrace.coordination.quorum.describe_messages import request_from_wire, response_to_wire, unknown_partitions
from headrace.coordination.quorum.wire_terms import PARTITION
from headrace.cores.metadata import METADATA_TOPIC
from headrace.cores.raft.messages import DescribeQuorumResponse as CoreResponse
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ResponsePartitionData,
    ResponseTopicData,
)


async def handle(call: Call, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Describe the quorum, if this node leads it."""
    question = request_from_wire(request)
    if question is None:
        return unknown_partitions(request)
    quorum = quorum_of(call)
    try:
        response = await quorum.handle(question)
    except KafkaError as error:
        return DescribeQuorumResponse(error_code=int(error.code), error_message=error.message)
    assert isinstance(response, CoreResponse)
    if response.error is not ErrorCode.NONE:
        return _refused(response.error)
    return response_to_wire(response, quorum.time_of_day)


def _refused(code: ErrorCode) -> DescribeQuorumResponse:
    partition = ResponsePartitionData(partition_index=PARTITION, error_code=int(code))
    return DescribeQuorumResponse(topics=(ResponseTopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),))


API = Api(key=55, low=0, high=2, handle=handle, controller=True)
