"""What is there before hostile requests about groups and transactions come, and the requests of its members."""

import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import msgspec

from headrace.model.errors import ErrorCode
from headrace.records.build import NewRecord, build_batch
from headrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from headrace.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from wire_client import WireClient

SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x04mine\xff\xff\xff\xff"
"""Version 0, one topic ("mine", which there is not), no user data."""
SESSION_MS = 120_000
READY_S = 30.0
LOADING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
CLASSIC_VERSIONS = {"JoinGroup": 9, "SyncGroup": 5}
CONSUMER_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What is there before the hostile requests come: a topic, a group of each kind, and a producer."""

    topic: str
    topic_id: UUID
    classic: str
    classic_member: str
    generation: int
    consumer: str
    consumer_member: str
    epoch: int
    transactional_id: str
    producer_id: int
    producer_epoch: int


def set_the_scene(client: WireClient, topic: str) -> Scene:
    """Make what the cases are about; the topic is there."""
    for kind in (0, 1):  # asking for a coordinator makes its topic
        ask_until_ready(client, "FindCoordinator", 4, FindCoordinatorRequest(key_type=kind, coordinator_keys=(topic,)))
    classic, consumer = f"classic-{topic}", f"consumer-{topic}"
    member, generation = join_classic(client, classic)
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id=consumer,
        member_id=str(uuid4()),
        rebalance_timeout_ms=SESSION_MS,
        subscribed_topic_names=(topic,),
        topic_partitions=(),
    )
    joined = ask_until_ready(client, "ConsumerGroupHeartbeat", CONSUMER_VERSION, heartbeat)
    assert joined.error_code == 0, joined
    transactional_id = f"transactional-{topic}"
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    for _ in range(2):  # the second time the epoch is 1, so that there is an older one
        producer = ask_until_ready(client, "InitProducerId", 5, request)
        assert producer.error_code == 0, producer
    return Scene(
        topic=topic,
        topic_id=client.describe_topic(topic).topic_id,
        classic=classic,
        classic_member=member,
        generation=generation,
        consumer=consumer,
        consumer_member=heartbeat.member_id,
        epoch=joined.member_epoch,
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
    )


def ask_until_ready(client: WireClient, api: str, version: int, request: Any) -> Any:
    """Ask again as long as the broker says that its coordinator is about to be there."""
    end = time.monotonic() + READY_S
    while codes_of(answer := client.ask(api, version, request)) & LOADING:
        assert time.monotonic() < end, f"the coordinator does not get ready: {answer}"
    return answer


def join_classic(client: WireClient, group: str) -> tuple[str, int]:
    """A classic group with one member that is stable: the member and the generation."""
    request = joining(group)
    named = ask_until_ready(client, "JoinGroup", CLASSIC_VERSIONS["JoinGroup"], request)
    assert named.error_code == ErrorCode.MEMBER_ID_REQUIRED, named
    request = msgspec.structs.replace(request, member_id=named.member_id)
    joined = client.ask("JoinGroup", CLASSIC_VERSIONS["JoinGroup"], request)
    assert joined.error_code == 0, joined
    assigned = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=(SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"\x00\x00"),),
    )
    assert client.ask("SyncGroup", CLASSIC_VERSIONS["SyncGroup"], assigned).error_code == 0
    return joined.member_id, joined.generation_id


def joining(group: str, **more: Any) -> JoinGroupRequest:
    """A request to join a classic group."""
    settled = {
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": SESSION_MS,
        "protocol_type": "consumer",
        "protocols": (JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
    }
    return JoinGroupRequest(group_id=group, **(settled | more))


def codes_of(answer: Any) -> set[ErrorCode]:
    """Every error code anywhere in an answer, but for those that say that nothing was wrong."""
    found: set[ErrorCode] = set()
    for name in answer.__struct_fields__ if isinstance(answer, msgspec.Struct) else ():
        value = getattr(answer, name)
        if name.endswith("error_code"):
            found.add(ErrorCode(value))
        elif isinstance(value, msgspec.Struct):
            found |= codes_of(value)
        elif isinstance(value, tuple):
            found = found.union(*map(codes_of, value))
    return found - {ErrorCode.NONE}


def commit(group: str, *, topic: str, partition: int = 0, metadata: str = "", **more: Any) -> OffsetCommitRequest:
    """A commit of one offset."""
    asked = OffsetCommitRequestPartition(partition_index=partition, committed_offset=1, committed_metadata=metadata)
    return OffsetCommitRequest(
        group_id=group, topics=(OffsetCommitRequestTopic(name=topic, partitions=(asked,)),), **more
    )


def classic_commit(scene: Scene, **more: Any) -> OffsetCommitRequest:
    """A commit of the classic group's member."""
    settled = {
        "topic": scene.topic,
        "member_id": scene.classic_member,
        "generation_id_or_member_epoch": scene.generation,
    }
    return commit(scene.classic, **(settled | more))


def beat(scene: Scene, **more: Any) -> ConsumerGroupHeartbeatRequest:
    """A heartbeat of the consumer group's member."""
    settled = {"group_id": scene.consumer, "member_id": scene.consumer_member, "member_epoch": scene.epoch}
    return ConsumerGroupHeartbeatRequest(**(settled | more))


def newcomer(scene: Scene, **more: Any) -> ConsumerGroupHeartbeatRequest:
    """A first heartbeat of a member that does not get in."""
    settled = {
        "member_id": "newcomer",
        "member_epoch": 0,
        "rebalance_timeout_ms": SESSION_MS,
        "subscribed_topic_names": (scene.topic,),
        "topic_partitions": (),
    }
    return beat(scene, **(settled | more))


def sync(scene: Scene, **more: Any) -> SyncGroupRequest:
    """A SyncGroup of the classic group's member."""
    settled = {
        "generation_id": scene.generation,
        "member_id": scene.classic_member,
        "protocol_type": "consumer",
        "protocol_name": "range",
    }
    return SyncGroupRequest(group_id=scene.classic, **(settled | more))


def add_partitions(scene: Scene, *, topic: str = "", partition: int = 0, **more: Any) -> AddPartitionsToTxnRequest:
    """A partition for the producer's transaction."""
    settled = {
        "v3_and_below_transactional_id": scene.transactional_id,
        "v3_and_below_producer_id": scene.producer_id,
        "v3_and_below_producer_epoch": scene.producer_epoch,
        "v3_and_below_topics": (AddPartitionsToTxnTopic(name=topic or scene.topic, partitions=(partition,)),),
    }
    return AddPartitionsToTxnRequest(**(settled | more))


def of_producer(kind: Any, scene: Scene, **more: Any) -> Any:
    """A request of the producer, whatever it asks."""
    settled = {
        "transactional_id": scene.transactional_id,
        "producer_id": scene.producer_id,
        "producer_epoch": scene.producer_epoch,
    }
    return kind(**(settled | more))


def txn_commit(scene: Scene, **more: Any) -> TxnOffsetCommitRequest:
    """Offsets of the classic group's member in the producer's transaction."""
    asked = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    settled = {
        "group_id": scene.classic,
        "member_id": scene.classic_member,
        "generation_id": scene.generation,
        "topics": (TxnOffsetCommitRequestTopic(name=scene.topic, partitions=(asked,)),),
    }
    return of_producer(TxnOffsetCommitRequest, scene, **(settled | more))


def offset_delete(group: str, topic: str) -> OffsetDeleteRequest:
    """Forget one offset."""
    asked = OffsetDeleteRequestTopic(name=topic, partitions=(OffsetDeleteRequestPartition(partition_index=0),))
    return OffsetDeleteRequest(group_id=group, topics=(asked,))


def fetch_offsets(group: str, topic: str, **more: Any) -> OffsetFetchRequest:
    """A group's offset of one partition."""
    asked = OffsetFetchRequestTopics(name=topic, partition_indexes=(0,))
    return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=(asked,), **more),))


def marker(scene: Scene, topic: str, **more: Any) -> WriteTxnMarkersRequest:
    """A marker that no coordinator of ours has sent."""
    asked = WritableTxnMarkerTopic(name=topic, partition_indexes=(0,))
    settled = {"producer_id": scene.producer_id, "producer_epoch": scene.producer_epoch, "topics": (asked,)}
    return WriteTxnMarkersRequest(markers=(WritableTxnMarker(**(settled | more)),))


def write(scene: Scene, epoch: int) -> ProduceRequest:
    """A batch that says that it belongs to the producer's transaction."""
    batch = build_batch(
        [NewRecord(1, None, b"zombie", ())],
        producer_id=scene.producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )
    data = TopicProduceData(name=scene.topic, partition_data=(PartitionProduceData(index=0, records=bytes(batch)),))
    return ProduceRequest(transactional_id=scene.transactional_id, acks=-1, timeout_ms=1_000, topic_data=(data,))
