"""AddOffsetsToTxn, key 25.

Versions: 0-4.
Behaviour: a producer's transaction takes in the partition of `__consumer_offsets` that holds a group's offsets, before
TxnOffsetCommit writes there.
Deviations: none known.
KIPs: 98, 588 PRODUCER_FENCED (v2), 890 TRANSACTION_ABORTABLE (v4).
"""

from __future__ import annotations

from functools import partial

from headrace.broker.api import Api, Call
from headrace.cores.transactions.partitions import TransactionPartitions, add_partitions
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FENCED_FIRST = 2
"""Older clients know only INVALID_PRODUCER_EPOCH for it."""


async def handle(call: Call, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    """Take in the group's partition."""
    try:
        await _add(call, request)
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.PRODUCER_FENCED and call.version < FENCED_FIRST:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return AddOffsetsToTxnResponse(error_code=int(code))
    return AddOffsetsToTxnResponse()


async def _add(call: Call, request: AddOffsetsToTxnRequest) -> None:
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty.")
    groups = call.broker.groups
    command = TransactionPartitions(
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        partitions=frozenset({(groups.topic, groups.partition_for(request.group_id))}),
    )
    shard = call.broker.transactions.shard_for(request.transactional_id)
    await shard.ask(partial(add_partitions, shard.core, command))


API = Api(key=25, low=0, high=4, handle=handle)
