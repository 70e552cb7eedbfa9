"""InitProducerId, key 22.

Versions: 0-5 (6 is unstable in Kafka: two-phase commit, KIP-939).
Behaviour: gives an idempotent producer an id nobody has had, at epoch 0; a producer that comes back with its id and
epoch gets a fresh id too, which is what Kafka does where no transactional id is given. With a transactional id the
producer gets that id's next epoch, and whoever had it before is fenced; an open transaction is aborted first, while
the producer hears CONCURRENT_TRANSACTIONS.
Deviations: a producer that says it had an epoch which is neither the current nor the one before does not make an open
transaction abort; it is fenced at once.
KIPs: 98, 360 (v3), 588 PRODUCER_FENCED (v4), 890 TRANSACTION_ABORTABLE (v5).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.coordinators.transactions import identity_after
from headrace.cores.transactions.initialization import InitProducerId, init_producer_id
from headrace.cores.transactions.transaction import NO_EPOCH, NO_PRODUCER_ID, ProducerIdentity
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FENCED_FIRST = 4
"""Older clients know only INVALID_PRODUCER_EPOCH for it."""


async def handle(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Give out an identity."""
    try:
        identity = await _identity(call, request)
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.PRODUCER_FENCED and call.version < FENCED_FIRST:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return InitProducerIdResponse(error_code=int(code), producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)
    return InitProducerIdResponse(producer_id=identity.producer_id, producer_epoch=identity.producer_epoch)


async def _identity(call: Call, request: InitProducerIdRequest) -> ProducerIdentity:
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A producer id and its epoch come together.")
    broker = call.broker
    if request.transactional_id is None:
        return ProducerIdentity(await broker.producer_ids.next(), 0)
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty.")
    command = InitProducerId(
        transactional_id=request.transactional_id,
        timeout_ms=request.transaction_timeout_ms,
        expected=None
        if request.producer_id == NO_PRODUCER_ID
        else ProducerIdentity(request.producer_id, request.producer_epoch),
    )
    shard = broker.transactions.shard_for(request.transactional_id)
    return await identity_after(broker, shard, init_producer_id, command)


API = Api(key=22, low=0, high=5, handle=handle)
