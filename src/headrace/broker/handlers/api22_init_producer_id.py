"""InitProducerId, key 22.

Versions: 0-5 (6 is unstable in Kafka: two-phase commit, KIP-939).
Behaviour: gives an idempotent producer an id nobody has had, at epoch 0; a producer that comes back with its id and
epoch (KIP-360) gets a fresh id too, which is what Kafka does where no transactional id is given.
Deviations: a transactional id is answered with COORDINATOR_NOT_AVAILABLE until transactions are served.
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


async def handle(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Give out a producer id."""
    if request.transactional_id is not None:
        code = ErrorCode.INVALID_REQUEST if not request.transactional_id else ErrorCode.COORDINATOR_NOT_AVAILABLE
        return InitProducerIdResponse(error_code=int(code), producer_id=-1, producer_epoch=-1)
    try:
        producer_id = await call.broker.producer_ids.next()
    except KafkaError as error:
        return InitProducerIdResponse(error_code=int(error.code), producer_id=-1, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


API = Api(key=22, low=0, high=5, handle=handle)
