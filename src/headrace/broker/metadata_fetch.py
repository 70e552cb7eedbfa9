"""Fetch (1) of the metadata log, as replicas of the quorum send it to the leader's controller listener.

All that comes to a controller's listener is for the quorum. The answer waits for news as long as the replica allows,
and carries batches as they lie in the log, committed or not.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headrace.broker.dispatch import frame
from headrace.broker.quorum_calls import ask_quorum, is_of_cluster
from headrace.coordination.quorum.fetch_messages import fetch_request_from_wire, fetch_response_to_wire
from headrace.model.errors import ErrorCode
from headrace.net.reply import PendingReply
from headrace.wire.codec import decode_request
from headrace.wire.messages.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from headrace.broker.api import Call

FETCH = 1
logger = logging.getLogger(__name__)


def fetch_metadata(call: Call, view: memoryview, position: int) -> PendingReply:
    """Serve a fetch of the metadata log; a raw handler like that of the Fetch API."""
    # The view is good only as long as this call, the request is not.
    request = decode_request(FETCH, call.version, view, position)
    reply = PendingReply()
    call.broker.spawn(_finish(call, request, reply))
    return reply


async def _finish(call: Call, request: FetchRequest, reply: PendingReply) -> None:
    try:
        reply.send(frame(call.header, await answer_fetch(call, request)))
    except asyncio.CancelledError:
        raise
    except Exception:
        logger.exception("metadata_fetch_failed client=%s", call.header.client_id)
        call.connection.close("an internal error; the server log has it")


async def answer_fetch(call: Call, request: FetchRequest) -> FetchResponse:
    """What the quorum answers."""
    if not is_of_cluster(call, request.cluster_id):
        return _refused(ErrorCode.INCONSISTENT_CLUSTER_ID)
    question = fetch_request_from_wire(request, call.version)
    return await ask_quorum(call, question, fetch_response_to_wire, _refused)


def _refused(code: ErrorCode) -> FetchResponse:
    return FetchResponse(error_code=int(code))
