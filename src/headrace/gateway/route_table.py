"""All that is served: one list of routes, and what cannot be said in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.gateway import (
    brokers_v2,
    consumers_v2,
    description,
    docs_page,
    metrics,
    places_v2,
    produce_v2,
    stateless,
    topics_v2,
    v3_acls,
    v3_clusters,
    v3_configs,
    v3_groups,
    v3_lags,
    v3_offsets,
    v3_partitions,
    v3_quorum,
    v3_records,
    v3_topics,
    v3_transactions,
)
from headrace.gateway.streams import http_stream, websocket_stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.routing import BaseRoute

    from headrace.gateway.route import Route
    from headrace.gateway.services import Services

ROUTES: tuple[Route, ...] = (
    *topics_v2.ROUTES,
    *brokers_v2.ROUTES,
    *produce_v2.ROUTES,
    *stateless.ROUTES,
    *consumers_v2.ROUTES,
    *places_v2.ROUTES,
    *v3_clusters.ROUTES,
    *v3_acls.ROUTES,
    *v3_quorum.ROUTES,
    *v3_configs.ROUTES,
    *v3_topics.ROUTES,
    *v3_partitions.ROUTES,
    *v3_records.ROUTES,
    *v3_groups.ROUTES,
    *v3_lags.ROUTES,
    *v3_offsets.ROUTES,
    *v3_transactions.ROUTES,
    *http_stream.ROUTES,
    *description.ROUTES,
    *metrics.ROUTES,
)
"""In the order in which they are tried."""
EXTRAS: tuple[Callable[[Services], list[BaseRoute]], ...] = (docs_page.routes, websocket_stream.routes)
"""What makes Starlette's own routes: WebSockets, mounted files."""
