"""Requests that are the active controller's to answer, handed on to it whole in an Envelope (58, KIP-590).

While there is no controller, or it is lost before it answers, the broker tries again: clients need not know that the
controller moved. A try that a controller may have carried out without an answer makes the next one a second try; what
its answer means is in `second_try.py`.
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import TYPE_CHECKING, Any

from headrace.broker.control import BACKOFF_S, refuse_if_broken
from headrace.broker.controller import NotController
from headrace.broker.dispatch import answer_here, frame, refused
from headrace.broker.second_try import remember
from headrace.model.errors import ErrorCode, KafkaError
from headrace.net.link import LinkBroken, NotSent
from headrace.net.reply import in_memory
from headrace.wire.codec import decode_response
from headrace.wire.header import parse_response_header
from headrace.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

if TYPE_CHECKING:
    from headrace.broker.api import Api, Call
    from headrace.broker.broker import Broker
    from headrace.net.reply import Buffers

ENVELOPE, ENVELOPE_VERSION = 58, 0

ANONYMOUS = b"\x00\x00\x05User\x0aANONYMOUS\x00\x00"
"""Who asks, in the form of Kafka's own principals: version 0, the type, the name, no token, no tagged fields."""

_TIMED_OUT = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "The request timed out.")


class Forwarding:
    """One broker's way of handing requests on."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def patience_s(self) -> float:
        """How long a request is tried: a client of Kafka's gives up a little later by default."""
        timeout_ms: int = self._broker.config["request.timeout.ms"]
        return timeout_ms / 1000

    async def answer(self, call: Call, api: Api, message: Any, request: bytes) -> Buffers:
        """The framed response of the active controller, whichever node that is while the request's patience lasts."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.patience_s
        before = remember(api.key, message, self._broker.metadata)
        was_tried = False
        while (left_s := deadline - loop.time()) > 0:
            try:
                refuse_if_broken(self._broker)
                answer = await self._try(call, api, message, request, left_s)
            except NotSent:
                await asyncio.sleep(BACKOFF_S)
            except (NotController, LinkBroken):
                was_tried = True
                await asyncio.sleep(BACKOFF_S)
            except KafkaError as error:
                return frame(call.header, refused(api, message, error))
            else:
                if before is None or not was_tried:
                    return answer
                return frame(call.header, await before.settle(call, _read(call, answer)))
        return frame(call.header, refused(api, message, _TIMED_OUT))

    async def _try(self, call: Call, api: Api, message: Any, request: bytes, timeout_s: float) -> Buffers:
        if self._broker.quorum.is_active:
            return frame(call.header, await answer_here(call, api, message))
        response = await self._forward(call, request, timeout_s)
        return (len(response).to_bytes(4, "big"), response)

    async def _forward(self, call: Call, request: bytes, timeout_s: float) -> bytes:
        """The response of another node, header and all; NotController if it does not decide either."""
        envelope = EnvelopeRequest(
            request_data=request, request_principal=ANONYMOUS, client_host_address=_address(call.connection.peer[0])
        )
        link = self._broker.control.link("forwarding")
        answer = await link.ask(ENVELOPE, ENVELOPE_VERSION, envelope, timeout_s=timeout_s)
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            raise NotController("The active controller has moved.")
        return _content(answer)


def _read(call: Call, answer: Buffers) -> Any:
    """The message in a framed response."""
    header, view = call.header, memoryview(b"".join(map(in_memory, answer)))[4:]
    _, body = parse_response_header(header.api_key, header.api_version, view)
    return decode_response(header.api_key, header.api_version, view, body)


def _content(answer: EnvelopeResponse) -> bytes:
    if answer.error_code or answer.response_data is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The active controller could not read the request.")
    return bytes(answer.response_data)


def _address(host: str) -> bytes:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).packed
    except ValueError:
        return bytes(4)
