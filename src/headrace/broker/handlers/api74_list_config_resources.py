"""ListConfigResources, key 74.

Versions: 0-1.
Behaviour: names of the things that have settings: topics, brokers and their loggers, groups that were given some;
without a type all of them. v0 is the older ListClientMetricsResources, which asks for client metrics only, and of these
there are none.
KIPs: 714 (v0), 1142 (v1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.broker.config_resources import ResourceType
from headrace.model.errors import ErrorCode
from headrace.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.broker.broker import Broker


def handle(call: Call, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """List the resources of the types that are asked for."""
    if call.version == 0:
        return ListConfigResourcesResponse()
    kinds = set(request.resource_types) or set(ResourceType)
    if not kinds <= set(ResourceType):
        return ListConfigResourcesResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION))
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in sorted(kinds)
            for name in _names(call.broker, kind)
        )
    )


def _names(broker: Broker, kind: int) -> Iterable[str]:
    match kind:
        case ResourceType.TOPIC:
            return sorted(broker.metadata.topics)
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return map(str, broker.live_brokers)
        case ResourceType.GROUP:
            return sorted(broker.metadata.config_resources(kind))
        case _:
            return ()


API = Api(key=74, low=0, high=1, handle=handle)
