"""BrokerHeartbeat, key 63.

Versions: 0-2.
Behaviour: a broker says that it lives, how far it has taken over the metadata, and whether it wants to be fenced or to
stop; it hears whether it has caught up, is fenced, may stop. One that is silent for `broker.session.timeout.ms` is
fenced: others lead what it led.
Deviations: cordoned log dirs (v2) are not looked at.
KIPs: 631, 858 log dirs that fail (v1).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.cores.controller import Heartbeat
from headrace.model.errors import KafkaError
from headrace.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


async def handle(call: Call, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    """Take note of a broker's heartbeat."""
    beat = Heartbeat(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        metadata_offset=request.current_metadata_offset,
        wants_fence=request.want_fence,
        wants_shutdown=request.want_shut_down,
        offline_log_dirs=request.offline_log_dirs,
    )
    try:
        call.broker.controller.lookout.heard(request.broker_id, call.connection)
        reply = await call.broker.controller.heartbeat(beat)
    except KafkaError as error:
        return _refused(request, error)
    return BrokerHeartbeatResponse(
        is_caught_up=reply.is_caught_up, is_fenced=reply.is_fenced, should_shut_down=reply.should_shut_down
    )


def _refused(_: BrokerHeartbeatRequest, error: KafkaError) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(error_code=int(error.code))


API = Api(key=63, low=0, high=2, handle=handle, controller=True, refuse=_refused)
