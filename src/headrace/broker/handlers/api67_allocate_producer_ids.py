"""AllocateProducerIds, key 67.

Versions: 0.
Behaviour: gives a broker a block of producer ids that nobody has had.
KIPs: 730.
"""

from __future__ import annotations

from functools import partial

from headrace.broker.api import Api, Call
from headrace.cores.controller import allocate_producer_ids
from headrace.model.errors import KafkaError
from headrace.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


async def handle(call: Call, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    """Give out a block."""
    command = partial(allocate_producer_ids, broker_id=request.broker_id, broker_epoch=request.broker_epoch)
    try:
        block = await call.broker.controller.run(command)
    except KafkaError as error:
        return _refused(request, error)
    return AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block))


def _refused(_: AllocateProducerIdsRequest, error: KafkaError) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=int(error.code))


API = Api(key=67, low=0, high=0, handle=handle, controller=True, refuse=_refused)
