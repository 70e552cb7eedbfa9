"""UpdateFeatures, key 57.

Versions: 0-2.
Behaviour: changes the levels of features, all or none; a level must be one that every broker and controller supports.
A level goes down only where the caller says that it may. `validate_only` does everything but the change (v1).
Deviations: `kraft.version` is that of the quorum's voters and cannot be changed yet.
KIPs: 584, 778 downgrades and validation (v1), 1022 one error for all (v2).
"""

from __future__ import annotations

from functools import partial

from headrace.broker.api import Api, Call
from headrace.broker.features import KRAFT_VERSION
from headrace.cores.controller import FeatureUpdate, UpgradeType, update_features
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_UPGRADE_TYPES_FIRST = 1
_RESULTS_LAST = 1


async def handle(call: Call, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Change levels."""
    controller = call.broker.controller
    command = partial(
        update_features,
        wanted=[_update(one, call.version) for one in request.feature_updates],
        controller=controller.this_controller,
        validate_only=request.validate_only,
        policy=controller.policy,
    )
    try:
        if any(one.feature == KRAFT_VERSION for one in request.feature_updates):
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"{KRAFT_VERSION} cannot be changed yet.")
        refusal = await controller.run(command)
    except KafkaError as error:
        refusal = error
    if refusal is not None:
        message = f"The update failed for all features since the following feature had an error: {refusal.message}"
        return _refused(request, KafkaError(refusal.code, message))
    results = (
        tuple(UpdatableFeatureResult(feature=one.feature, error_message="") for one in request.feature_updates)
        if call.version <= _RESULTS_LAST
        else ()
    )
    return UpdateFeaturesResponse(error_message=None, results=results)


def _update(one: FeatureUpdateKey, version: int) -> FeatureUpdate:
    kind = one.upgrade_type
    if version < _UPGRADE_TYPES_FIRST:
        kind = UpgradeType.SAFE_DOWNGRADE if one.allow_downgrade else UpgradeType.UPGRADE
    return FeatureUpdate(name=one.feature, level=one.max_version_level, upgrade_type=kind)


def _refused(_: UpdateFeaturesRequest, error: KafkaError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=int(error.code), error_message=error.message or None)


API = Api(key=57, low=0, high=2, handle=handle, controller=True, refuse=_refused)
