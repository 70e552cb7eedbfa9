"""EndTxn, key 26.

Versions: 0-5; 5 is spoken by producers of transaction version 2.
Behaviour: the transaction is decided when its record is safe, and then the producer is answered; the partitions get
their markers right after, and until all have them the next transaction hears CONCURRENT_TRANSACTIONS. From version 5 on
the producer goes on with the epoch that it is given back, so that an EndTxn which comes late or twice cannot decide a
later transaction.
Deviations: none known.
KIPs: 98, 588 PRODUCER_FENCED (v2), 890 TRANSACTION_ABORTABLE (v4), epochs (v5).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.coordinators.transactions import identity_after
from headrace.cores.transactions.ending import EndTransaction, end_transaction
from headrace.cores.transactions.transaction import BUMPS_EPOCH, NO_EPOCH, NO_PRODUCER_ID, ProducerIdentity
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

EPOCHS_FIRST = 5
FENCED_FIRST = 2
"""Older clients know only INVALID_PRODUCER_EPOCH for it."""


async def handle(call: Call, request: EndTxnRequest) -> EndTxnResponse:
    """Commit or abort."""
    try:
        identity = await _end(call, request)
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.PRODUCER_FENCED and call.version < FENCED_FIRST:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return EndTxnResponse(error_code=int(code), producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)
    return EndTxnResponse(producer_id=identity.producer_id, producer_epoch=identity.producer_epoch)


async def _end(call: Call, request: EndTxnRequest) -> ProducerIdentity:
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty.")
    command = EndTransaction(
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        commit=request.committed,
        transaction_version=BUMPS_EPOCH if call.version >= EPOCHS_FIRST else 0,
    )
    shard = call.broker.transactions.shard_for(request.transactional_id)
    return await identity_after(call.broker, shard, end_transaction, command)


API = Api(key=26, low=0, high=5, handle=handle)
