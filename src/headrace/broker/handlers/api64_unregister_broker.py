"""UnregisterBroker, key 64.

Versions: 0.
Behaviour: takes a broker out of the cluster's list, for one that will not come back; it stays a replica of what it held
until that is reassigned. One that lives is taken out too, and must be restarted to come back, as in Kafka.
KIPs: 631.
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.model.errors import KafkaError
from headrace.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def handle(call: Call, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Take a broker out."""
    try:
        await call.broker.controller.unregister(request.broker_id)
    except KafkaError as error:
        return _refused(request, error)
    return UnregisterBrokerResponse(error_message=None)


def _refused(_: UnregisterBrokerRequest, error: KafkaError) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=int(error.code), error_message=error.message or None)


API = Api(key=64, low=0, high=0, handle=handle, controller=True, refuse=_refused)
