"""TxnOffsetCommit, key 28.

Versions: 0-5; 5 is spoken by producers of transaction version 2.
Behaviour: a group's offsets that count when the producer's transaction commits. The first ones of a transaction are
confirmed by its coordinator; from version 5 on the group's partition joins the transaction that way. A group with
members takes them only from its own (v3). Topics that are not there are refused one by one.
Deviations: none known.
KIPs: 98, 320 leader epochs (v2), 447 group metadata (v3), 890 verified transactions (v4, v5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.broker.coordinators.verification import Question, confirm, partition_error
from headrace.cores.groups.offsets import CommitCommand, NewOffset, commit_in_transaction
from headrace.model.errors import ErrorCode, KafkaError
from headrace.records.batch import MAGIC, NO_SEQUENCE, NO_TIMESTAMP, TRANSACTIONAL, BatchHeader
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from headrace.broker.coordinators.shard import Shard
    from headrace.cores.groups.shard import Groups
    from headrace.cores.outcome import Outcome, Token
    from headrace.cores.producers import Verification

LOADING_FIRST = 2
ABORTABLE_FIRST = 4
ADDS_FIRST = 5
"""The versions since which clients know these answers, and since which the partition is added for them."""

_CODES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    # The transaction's coordinator cannot be asked just now; that is no reason to look for another one of the group.
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.OPERATION_NOT_ATTEMPTED: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
"""What a partition says, as a coordinator says it."""

Place = tuple[str, int]


async def handle(call: Call, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Commit what can be committed, and answer each partition."""
    codes = _unknown(call, request)
    offsets = [
        NewOffset(
            topic=topic.name,
            partition=partition.partition_index,
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=partition.committed_metadata or "",
        )
        for topic in request.topics
        for partition in topic.partitions
        if (topic.name, partition.partition_index) not in codes
    ]
    if offsets:
        codes |= await _committed(call, request, offsets)
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=int(codes[topic.name, partition.partition_index]),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _unknown(call: Call, request: TxnOffsetCommitRequest) -> dict[Place, ErrorCode]:
    """The partitions that are not there."""
    topics = call.broker.metadata.topics
    return {
        (topic.name, partition.partition_index): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for topic in request.topics
        for partition in topic.partitions
        if topic.name not in topics or not 0 <= partition.partition_index < len(topics[topic.name].partitions)
    }


async def _committed(call: Call, request: TxnOffsetCommitRequest, offsets: list[NewOffset]) -> dict[Place, ErrorCode]:
    places = [(offset.topic, offset.partition) for offset in offsets]
    try:
        errors: tuple[ErrorCode, ...] = await _commit(call, request, tuple(offsets))
    except KafkaError as error:
        code = _CODES.get(error.code, error.code)
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and call.version < LOADING_FIRST:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return dict.fromkeys(places, code)
    return dict(zip(places, errors, strict=True))


async def _commit(call: Call, request: TxnOffsetCommitRequest, offsets: tuple[NewOffset, ...]) -> tuple[ErrorCode, ...]:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is empty.")
    shard: Shard[Groups] = call.broker.groups.shard_for(request.group_id)
    command = CommitCommand(
        group_id=request.group_id,
        offsets=offsets,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation_id=request.generation_id,
    )
    header = _header(request)
    guard = await _confirmed(call, request, shard, header)

    def step(token: Token, now_ms: int) -> Outcome:
        # The partition must not refuse what the core has taken in, so it is asked first.
        shard.partition.check_verified(header, guard)
        shard.partition.producers.check(header)
        return commit_in_transaction(
            shard.core,
            command,
            token,
            now_ms,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
        )

    errors: tuple[ErrorCode, ...] = await shard.ask(step)
    return errors


async def _confirmed(
    call: Call, request: TxnOffsetCommitRequest, shard: Shard[Groups], header: BatchHeader
) -> Verification | None:
    """What to append with, once the transaction's coordinator has confirmed; None if it is open there already."""
    if not shard.partition.must_verify(header):
        return None
    adds = call.version >= ADDS_FIRST
    if not adds and not call.broker.config["transaction.partition.verification.enable"]:
        return shard.partition.start_verification(header, epoch_bumps=False)
    try:
        return await confirm(call.broker, Question(request.transactional_id, shard.partition, header, adds))
    except KafkaError as error:
        raise partition_error(error, knows_abortable=call.version >= ABORTABLE_FIRST) from error


def _header(request: TxnOffsetCommitRequest) -> BatchHeader:
    """What the partition needs to know of the batch that the offsets will be."""
    return BatchHeader(
        base_offset=0,
        batch_length=0,
        leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=TRANSACTIONAL,
        last_offset_delta=0,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=NO_TIMESTAMP,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        base_sequence=NO_SEQUENCE,
        record_count=0,
    )


API = Api(key=28, low=0, high=5, handle=handle)
