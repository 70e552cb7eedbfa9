"""BrokerRegistration, key 62.

Versions: 0-4.
Behaviour: a broker joins the cluster, or joins it again as another process: it gets an epoch, and is fenced until its
heartbeats say that it has caught up. A broker that did not stop cleanly is taken out of the in-sync replicas wherever
somebody else is left (v3).
Deviations: brokers of the ZooKeeper era (v1) are refused.
KIPs: 631, 858 log dirs (v2), 966 the epoch of a clean stop (v3).
"""

from __future__ import annotations

import logging

from headrace.broker.api import Api, Call
from headrace.cores.controller import Registration
from headrace.model.errors import KafkaError
from headrace.model.metadata_records import BrokerEndpoint
from headrace.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

_PREVIOUS_EPOCH_FIRST = 3


async def handle(call: Call, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
    """Let a broker in."""
    wanted = Registration(
        broker_id=request.broker_id,
        cluster_id=request.cluster_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            BrokerEndpoint(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
            for one in request.listeners
        ],
        features={one.name: (one.min_supported_version, one.max_supported_version) for one in request.features},
        rack=request.rack,
        log_dirs=request.log_dirs,
        previous_broker_epoch=request.previous_broker_epoch if call.version >= _PREVIOUS_EPOCH_FIRST else None,
        is_migrating_zk_broker=request.is_migrating_zk_broker,
    )
    try:
        return BrokerRegistrationResponse(broker_epoch=await call.broker.controller.register(wanted))
    except KafkaError as error:
        subject = f"broker={request.broker_id} peer={call.connection.peer[0]}"
        call.broker.refusals.tell("broker_refused", subject, error, level=logging.WARNING)
        return _refused(request, error)


def _refused(_: BrokerRegistrationRequest, error: KafkaError) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(error_code=int(error.code), broker_epoch=-1)


API = Api(key=62, low=0, high=4, handle=handle, controller=True, refuse=_refused)
