"""DescribeTransactions, key 65.

Versions: 0.
Behaviour: the state of single transactional ids: their producer, their timeout, and while a transaction is open or
being ended its partitions and its start.
Deviations: none known.
KIPs: 664.
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import groupby
from operator import itemgetter

from headrace.broker.api import Api, Call
from headrace.cores.transactions.listing import describe
from headrace.cores.transactions.transaction import Transaction
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


async def handle(call: Call, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    """Describe each id."""
    states = await asyncio.gather(*(_state(call, each) for each in request.transactional_ids))
    return DescribeTransactionsResponse(transaction_states=tuple(states))


async def _state(call: Call, transactional_id: str) -> TransactionState:
    try:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty.")
        shard = call.broker.transactions.shard_for(transactional_id)
        found: Transaction = await shard.look(partial(describe, shard.core, transactional_id))
    except KafkaError as error:
        return TransactionState(error_code=int(error.code), transactional_id=transactional_id)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.title,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=tuple(
            TopicData(topic=topic, partitions=tuple(index for _, index in places))
            for topic, places in groupby(sorted(found.partitions), key=itemgetter(0))
        ),
    )


API = Api(key=65, low=0, high=0, handle=handle)
