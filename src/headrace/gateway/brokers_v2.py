"""The brokers in the shape of REST v2."""

from __future__ import annotations

from msgspec import Struct

from headrace.gateway.formats import V2
from headrace.gateway.route import Call, Route


class BrokerList(Struct, frozen=True):
    """The ids of all brokers."""

    brokers: list[int]


async def _list(call: Call) -> BrokerList:
    description = await call.services.admin.describe_cluster()
    return BrokerList(sorted(one.node_id for one in description.brokers))


ROUTES = (
    Route(
        method="GET",
        path="/brokers",
        handle=_list,
        tag="v2",
        summary="The ids of all brokers",
        answer=BrokerList,
        gives=V2,
    ),
)
