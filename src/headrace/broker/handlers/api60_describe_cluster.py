"""DescribeCluster, key 60.

Versions: 0-2.
Behaviour: the cluster's id, its brokers with the addresses of the listener the client came through, and for the
controller the broker that is asked, which hands on what it does not decide itself.
On a controller's listener it tells the controllers instead, for tools that are given --bootstrap-controller; whoever
asks for the one at the other is told so (MISMATCHED_ENDPOINT_TYPE).
Brokers that are fenced are told where that is asked for.
KIPs: 700, 919 endpoint types (v1), 1073 fenced brokers (v2).
"""

from __future__ import annotations

from headrace.broker.api import Api, Call
from headrace.broker.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED
from headrace.model.errors import ErrorCode
from headrace.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2
_TYPE_NAMES = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}


def handle(call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Describe the brokers, or at a controller's listener the controllers."""
    broker = call.broker
    listener = call.connection.listener_name
    served = CONTROLLERS if listener in broker.config.controller_listener_names else BROKERS
    if request.endpoint_type not in _TYPE_NAMES:
        return _refused(call, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    if request.endpoint_type != served:
        return _refused(
            call,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            f"The request was sent to an endpoint of type {_TYPE_NAMES[served]}, "
            f"but we wanted an endpoint of type {_TYPE_NAMES[request.endpoint_type]}",
        )
    nodes = (
        broker.cluster.controllers(listener)
        if served == CONTROLLERS
        else broker.cluster.brokers(listener, with_fenced=request.include_fenced_brokers)
    )
    return DescribeClusterResponse(
        endpoint_type=served,
        cluster_id=broker.cluster_id,
        controller_id=broker.quorum.leader_id if served == CONTROLLERS else broker.cluster.controller_id,
        brokers=tuple(
            DescribeClusterBroker(
                broker_id=one.node_id, host=one.host, port=one.port, rack=one.rack, is_fenced=one.is_fenced
            )
            for one in nodes
        ),
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _refused(call: Call, code: ErrorCode, message: str) -> DescribeClusterResponse:
    # Version 0 knows nothing of endpoint types.
    return DescribeClusterResponse(
        error_code=int(code if call.version > 0 else ErrorCode.INVALID_REQUEST), error_message=message
    )


API = Api(key=60, low=0, high=2, handle=handle, controller=True)
