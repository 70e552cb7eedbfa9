"""What the gateway says of itself: the OpenAPI document, and whether it lives."""

from __future__ import annotations

from typing import Any

from headrace.gateway.route import Call, Route


async def _openapi(call: Call) -> Any:
    return call.request.app.state.openapi


async def _healthy(_: Call) -> dict[str, str]:
    return {"status": "ok"}


async def _ready(call: Call) -> dict[str, Any]:
    description = await call.services.admin.describe_cluster()
    return {"status": "ok", "cluster_id": description.cluster_id, "brokers": len(description.brokers)}


ROUTES = (
    Route(
        method="GET",
        path="/openapi",
        handle=_openapi,
        tag="gateway",
        summary="This description, as OpenAPI 3.1",
        answer=dict[str, Any],
    ),
    Route(
        method="GET",
        path="/healthy",
        handle=_healthy,
        tag="gateway",
        summary="Whether the gateway lives",
        answer=dict[str, str],
    ),
    Route(
        method="GET",
        path="/ready",
        handle=_ready,
        tag="gateway",
        summary="Whether the cluster answers",
        answer=dict[str, Any],
        problems=(503, 504),
    ),
)
