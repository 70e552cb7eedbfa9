"""ApiVersions, key 18.

Versions: 0-4; an unknown version is answered in form 0 with UNSUPPORTED_VERSION and our range (KIP-511).
Behaviour: tells every API a handler file declares, and the features of this cluster (KIP-584).
A client that names itself badly (v3+) gets INVALID_REQUEST.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.broker.features import SUPPORTED
from headrace.model.errors import ErrorCode
from headrace.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?\Z")


def _versions(apis: Iterable[Api]) -> tuple[ApiVersion, ...]:
    return tuple(
        ApiVersion(
            api_key=api.key,
            min_version=api.low if api.advertised_low is None else api.advertised_low,
            max_version=api.high,
        )
        for api in sorted(apis, key=lambda api: api.key)
    )


def unsupported(apis: Mapping[int, Api]) -> ApiVersionsResponse:
    """The answer to a version we do not know."""
    return ApiVersionsResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION), api_keys=_versions([apis[API.key]]))


def handle(call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """Tell what is served on this listener."""
    if call.version >= 3 and not (
        _SOFTWARE.match(request.client_software_name) and _SOFTWARE.match(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=int(ErrorCode.INVALID_REQUEST))
    broker = call.broker
    return ApiVersionsResponse(
        api_keys=_versions(broker.apis_for(call.connection.listener_name).values()),
        supported_features=tuple(
            SupportedFeatureKey(name=name, min_version=low, max_version=high) for name, (low, high) in SUPPORTED.items()
        ),
        finalized_features_epoch=broker.quorum.applied_offset,
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in broker.cluster.features.items()
        ),
    )


API = Api(key=18, low=0, high=4, handle=handle, controller=True)
