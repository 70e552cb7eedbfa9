"""IncrementalAlterConfigs, key 44.

Versions: 0-1.
Behaviour: sets or deletes single settings of a topic, broker or group, or adds words to and takes words from those that
are lists; the rest stays. Each resource is changed wholly or not at all. A broker without a name stands for all
brokers. Settings that need a restart are refused. `validate_only` does everything but the change.
Deviations: levels of loggers and settings of client metrics are refused.
KIPs: 339, 848 groups.
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.config_resources import Alteration, alter_resources, refused_resources
from headrace.model.errors import KafkaError
from headrace.settings.alter import Change
from headrace.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(call: Call, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    """Change some settings of each resource."""
    wanted = [
        Alteration(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            changes=[Change(config.name, config.config_operation, config.value) for config in resource.configs],
            whole=False,
        )
        for resource in request.resources
    ]
    responses = await alter_resources(
        call.broker, wanted, validate_only=request.validate_only, answer=AlterConfigsResourceResponse
    )
    return IncrementalAlterConfigsResponse(responses=responses)


def _refused(request: IncrementalAlterConfigsRequest, error: KafkaError) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=refused_resources(request.resources, error, answer=AlterConfigsResourceResponse)
    )


API = Api(key=44, low=0, high=1, handle=handle, controller=True, refuse=_refused)
