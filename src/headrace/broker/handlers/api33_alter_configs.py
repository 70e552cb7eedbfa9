"""AlterConfigs, key 33.

Versions: 0-2.
Behaviour: makes what is sent the whole set of a topic's, broker's or group's own settings: what is not sent returns to
its default. Each resource is changed wholly or not at all. Deprecated since KIP-339 for the races it invites, still
sent by older clients. `validate_only` does everything but the change.
Deviations: settings of client metrics are refused.
KIPs: 133, 226 dynamic broker settings, 848 groups.
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.config_resources import Alteration, alter_resources, refused_resources
from headrace.model.errors import KafkaError
from headrace.settings.alter import Change, Operation
from headrace.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace the settings of each resource."""
    wanted = [
        Alteration(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            changes=[Change(config.name, Operation.SET, config.value) for config in resource.configs],
            whole=True,
        )
        for resource in request.resources
    ]
    responses = await alter_resources(
        call.broker, wanted, validate_only=request.validate_only, answer=AlterConfigsResourceResponse
    )
    return AlterConfigsResponse(responses=responses)


def _refused(request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=refused_resources(request.resources, error, answer=AlterConfigsResourceResponse)
    )


API = Api(key=33, low=0, high=2, handle=handle, controller=True, refuse=_refused)
