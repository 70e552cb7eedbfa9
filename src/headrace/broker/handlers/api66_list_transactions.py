"""ListTransactions, key 66.

Versions: 0-2.
Behaviour: the transactional ids coordinated here, by state, producer id, how long their transaction has been open and a
pattern that matches the whole id; filters that name no state are told back.
Deviations: a pattern of more than 10 000 characters is refused.
KIPs: 664, 994 duration (v1), 1152 pattern (v2).
"""

from __future__ import annotations

from functools import partial

from headrace.broker.api import Api, Call
from headrace.cores.transactions.listing import TransactionFilter, id_pattern, list_transactions
from headrace.cores.transactions.state import BY_TITLE
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)


async def handle(call: Call, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """List what fits."""
    if call.broker.transactions.is_loading:
        return ListTransactionsResponse(error_code=int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    try:
        states = await _listed(call, _filter(request))
    except KafkaError as error:
        return ListTransactionsResponse(error_code=int(error.code))
    return ListTransactionsResponse(
        unknown_state_filters=tuple(title for title in request.state_filters if title not in BY_TITLE),
        transaction_states=tuple(states),
    )


def _filter(request: ListTransactionsRequest) -> TransactionFilter:
    pattern = request.transactional_id_pattern
    return TransactionFilter(
        states=frozenset(BY_TITLE[title] for title in request.state_filters if title in BY_TITLE)
        if request.state_filters
        else None,
        producer_ids=frozenset(request.producer_id_filters),
        longer_than_ms=request.duration_filter,
        matches_id=id_pattern(pattern) if pattern else None,
    )


async def _listed(call: Call, wanted: TransactionFilter) -> list[TransactionState]:
    found: list[TransactionState] = []
    for shard in list(call.broker.transactions.shards):
        found += [
            TransactionState(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                transaction_state=each.state.title,
            )
            for each in await shard.look(partial(list_transactions, shard.core, wanted))
        ]
    return found


API = Api(key=66, low=0, high=2, handle=handle)
