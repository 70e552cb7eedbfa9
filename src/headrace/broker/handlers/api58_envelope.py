"""Envelope, key 58.

Versions: 0.
Behaviour: a broker hands on the request of a client that only the active controller can answer, header and all; the
answer inside is the one the client is given. A node that is not the active controller says NOT_CONTROLLER, and the
broker looks for the one that is. What is not to be handed on, or cannot be read, is INVALID_REQUEST.
Deviations: the principal is not looked at, as everybody may do everything.
KIPs: 590.
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.controller import NotController
from headrace.broker.dispatch import answer_here
from headrace.model.errors import ErrorCode, KafkaError, MalformedRequest
from headrace.wire.codec import decode_request, encode_response
from headrace.wire.header import parse_request_header, response_header
from headrace.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse


async def handle(call: Call, request: EnvelopeRequest) -> EnvelopeResponse:
    """Answer what is inside."""
    broker = call.broker
    if not broker.quorum.is_active:
        return _refused(request, KafkaError(ErrorCode.NOT_CONTROLLER))
    view = memoryview(request.request_data)
    try:
        header = parse_request_header(view)
        api = broker.apis.get(header.api_key)
        if api is None or not api.is_forwarded or not api.low <= header.api_version <= api.high:
            return _refused(request, KafkaError(ErrorCode.INVALID_REQUEST))
        message = decode_request(header.api_key, header.api_version, view, header.body)
    except MalformedRequest:
        return _refused(request, KafkaError(ErrorCode.INVALID_REQUEST))
    try:
        answer = await answer_here(Call(broker, call.connection, header), api, message)
    except NotController:
        return _refused(request, KafkaError(ErrorCode.NOT_CONTROLLER))
    head = response_header(header.api_key, header.api_version, header.correlation_id)
    return EnvelopeResponse(response_data=head + encode_response(header.api_key, header.api_version, answer))


def _refused(_: EnvelopeRequest, error: KafkaError) -> EnvelopeResponse:
    return EnvelopeResponse(error_code=int(error.code))


API = Api(key=58, low=0, high=0, handle=handle, controller=True)
