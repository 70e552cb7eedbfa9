"""The gateway as an ASGI application, made from its tables of routes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import Match
from starlette.routing import Route as StarletteRoute

from headrace.gateway.guard import Guard, problem_response
from headrace.gateway.metering import Metering
from headrace.gateway.openapi import document
from headrace.gateway.problem import Problem, problem_of
from headrace.gateway.reading import read_call
from headrace.gateway.route import Answer, Route, encode
from headrace.gateway.route_table import EXTRAS, ROUTES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from headrace.gateway.services import Services

logger = logging.getLogger(__name__)


def make_app(services: Services) -> Starlette:
    """Everything the gateway serves; the console is mounted on it by whoever has one."""
    config = services.config
    middleware = [Middleware(Metering, meters=services.meters), Middleware(Guard, config=config)]
    if config["access.control.allow.origin"]:
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(config["access.control.allow.origin"]),
                allow_methods=["GET", "POST", "PATCH", "PUT", "DELETE"],
                allow_headers=["*"],
            )
        )
    routes = [
        StarletteRoute(route.path, _endpoint(route, services), methods=[route.method], include_in_schema=False)
        for route in ROUTES
    ]
    app = Starlette(
        routes=[*routes, *(extra for extras in EXTRAS for extra in extras(services))],
        middleware=middleware,
        exception_handlers={HTTPException: _on_http_exception, Exception: _on_mistake},  # type: ignore[dict-item]
    )
    app.state.openapi = document(ROUTES)
    return app


def _endpoint(route: Route, services: Services) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            call = await read_call(route, request, services)
            answer = await route.handle(call)
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                raise
            return problem_response(problem)
        return answer if isinstance(answer, Response) else respond(route, answer, call.gives)

    return endpoint


def respond(route: Route, answer: Any, media: str) -> Response:
    """An answer as JSON, or none."""
    headers = {"cache-control": "no-store"}
    status = route.status
    if isinstance(answer, Answer):
        status, headers, answer = answer.status, headers | answer.headers, answer.body
    if answer is None:
        return Response(status_code=204 if status == 200 else status, headers=headers)
    return Response(encode(answer), status, headers, media)


async def _on_http_exception(request: Request, error: HTTPException) -> Response:
    """What Starlette itself refuses: an unknown path, a method that is not there."""
    headers = dict(error.headers or {})
    if error.status_code == 405:
        # Starlette names the methods of the first route with this path; each of our routes has one.
        headers["allow"] = ", ".join(sorted(_methods_at(request)))
    sentence = _SENTENCES.get(error.status_code, str(error.detail))
    return problem_response(Problem(error.status_code, error.status_code, sentence, headers=headers))


def _methods_at(request: Request) -> set[str]:
    found = [one for one in request.app.routes if one.matches(request.scope)[0] is not Match.NONE]
    return {method for one in found for method in getattr(one, "methods", None) or ()}


async def _on_mistake(request: Request, error: Exception) -> Response:
    logger.error("gateway_mistake method=%s path=%s", request.method, request.url.path, exc_info=error)
    return problem_response(Problem(500, 500, "The gateway made a mistake, which its log tells more about."))


_SENTENCES = {
    404: "There is nothing under this path; GET /openapi says what there is.",
    405: "This path does not know this method; GET /openapi says which it knows.",
}
