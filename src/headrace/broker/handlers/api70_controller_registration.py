"""ControllerRegistration, key 70.

Versions: 0.
Behaviour: a controller tells the active one where it is and which levels of features it supports, once per process.
KIPs: 919.
"""

from __future__ import annotations

from functools import partial

from headrace.broker.api import Api, Call
from headrace.cores.controller import register_controller
from headrace.model.errors import KafkaError
from headrace.model.metadata_records import ControllerEndpoint, ControllerFeature, RegisterControllerRecord
from headrace.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


async def handle(call: Call, request: ControllerRegistrationRequest) -> ControllerRegistrationResponse:
    """Note where a controller is."""
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=request.zk_migration_ready,
        end_points=tuple(
            ControllerEndpoint(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
            for one in request.listeners
        ),
        features=tuple(
            ControllerFeature(
                name=one.name,
                min_supported_version=one.min_supported_version,
                max_supported_version=one.max_supported_version,
            )
            for one in request.features
        ),
    )
    try:
        await call.broker.controller.run(partial(register_controller, wanted=record))
    except KafkaError as error:
        return _refused(request, error)
    return ControllerRegistrationResponse(error_message=None)


def _refused(_: ControllerRegistrationRequest, error: KafkaError) -> ControllerRegistrationResponse:
    return ControllerRegistrationResponse(error_code=int(error.code), error_message=error.message or None)


API = Api(key=70, low=0, high=0, handle=handle, controller=True, refuse=_refused)
