"""AddPartitionsToTxn, key 24.

Versions: 0-5; from 4 on brokers ask for several transactions at once, and may only want to know (KIP-890).
Behaviour: a producer's transaction takes in partitions before anything is written to them; the first one opens it. If
one partition of a transaction cannot be taken, none is: the others are answered OPERATION_NOT_ATTEMPTED.
Deviations: none known.
KIPs: 98, 588 PRODUCER_FENCED (v2), 890 (v4, v5).
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.cores.metadata import INTERNAL_TOPICS
from headrace.cores.transactions.partitions import TransactionPartitions, add_partitions, verify_partitions
from headrace.cores.transactions.transaction import BUMPS_EPOCH
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from headrace.cores.transactions.partitions import Verdicts

BROKERS_FIRST = 4
FENCED_FIRST = 2
"""Older clients know only INVALID_PRODUCER_EPOCH for it."""


async def handle(call: Call, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    """Answer each transaction; all of them are on their way at once."""
    if call.version >= BROKERS_FIRST:
        results = await asyncio.gather(*(_transaction(call, each) for each in request.transactions))
        return AddPartitionsToTxnResponse(results_by_transaction=tuple(results))
    asked = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=(await _transaction(call, asked)).topic_results)


async def _transaction(call: Call, asked: AddPartitionsToTxnTransaction) -> AddPartitionsToTxnResult:
    verdicts = _refused(call, asked.topics)
    if not verdicts:
        try:
            verdicts = await _taken(call, asked)
        except KafkaError as error:
            code = error.code
            if code is ErrorCode.PRODUCER_FENCED and call.version < FENCED_FIRST:
                code = ErrorCode.INVALID_PRODUCER_EPOCH
            verdicts = {(topic.name, index): code for topic in asked.topics for index in topic.partitions}
    return AddPartitionsToTxnResult(
        transactional_id=asked.transactional_id,
        topic_results=tuple(
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=int(verdicts[topic.name, index])
                    )
                    for index in topic.partitions
                ),
            )
            for topic in asked.topics
        ),
    )


def _refused(call: Call, topics: tuple[AddPartitionsToTxnTopic, ...]) -> Verdicts:
    """What is wrong with single partitions; empty if nothing is."""
    verdicts: Verdicts = {}
    for topic in topics:
        known = call.broker.metadata.topics.get(topic.name)
        for index in topic.partitions:
            code = ErrorCode.OPERATION_NOT_ATTEMPTED
            if call.version < BROKERS_FIRST and topic.name in INTERNAL_TOPICS:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif known is None or not 0 <= index < len(known.partitions):
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            verdicts[topic.name, index] = code
    return verdicts if any(code is not ErrorCode.OPERATION_NOT_ATTEMPTED for code in verdicts.values()) else {}


async def _taken(call: Call, asked: AddPartitionsToTxnTransaction) -> Verdicts:
    if not asked.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty.")
    places = frozenset((topic.name, index) for topic in asked.topics for index in topic.partitions)
    if not places:
        return {}
    command = TransactionPartitions(
        transactional_id=asked.transactional_id,
        producer_id=asked.producer_id,
        producer_epoch=asked.producer_epoch,
        partitions=places,
        transaction_version=BUMPS_EPOCH if call.version >= BROKERS_FIRST else 0,
    )
    shard = call.broker.transactions.shard_for(asked.transactional_id)
    if asked.verify_only:
        verdicts: Verdicts = await shard.look(partial(verify_partitions, shard.core, command))
        return verdicts
    await shard.ask(partial(add_partitions, shard.core, command))
    return dict.fromkeys(places, ErrorCode.NONE)


API = Api(key=24, low=0, high=5, handle=handle)
