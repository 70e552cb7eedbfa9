"""Taking a request apart: the body within its limit and its time, query and path against what the route says."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.gateway.misfit import misfit
from headrace.gateway.problem import Problem, bad_request, unprocessable
from headrace.gateway.route import JSON, Call, NotANumber, Route, path_values

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection, Request

    from headrace.gateway.services import Services


async def read_call(route: Route, request: Request, services: Services) -> Call:
    """The request as its route wants it; Problem if it does not fit."""
    gives = choose_media(route.gives, request.headers.get("accept", ""))
    try:
        path = path_values(request.path_params)
    except NotANumber as fault:
        raise Problem(404, 404, str(fault)) from None
    query = read_query(route, request) if route.query is not None else None
    media, body = JSON, None
    if route.body is not None:
        media = content_type(route, request)
        if not route.reads_body_itself:
            raw = await read_body(request, services)
            body = None if route.body_optional and not raw else read_json(raw, route.body)
    return Call(services=services, request=request, path=path, query=query, body=body, media=media, gives=gives)


def choose_media(offered: tuple[str, ...], accept: str) -> str:
    """The first of what is offered that the client accepts; Problem(406) if that is none."""
    wishes = [wish.partition(";")[0].strip().lower() for wish in accept.split(",") if wish.strip()]
    if not wishes:
        return offered[0]
    for wish in wishes:
        for one in offered:
            if wish in {"*/*", one, f"{one.partition('/')[0]}/*"}:
                return one
    raise Problem(406, 406, f"This can be given as {', '.join(offered)}, and not as {accept[:200]}.")


def content_type(route: Route, request: Request) -> str:
    """What the body claims to be; Problem(415) if the route does not take that.

    A body must say what it is: what browsers send without asking (text/plain, forms) is not taken, so that no page of
    another site can write here.
    """
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in route.accepts:
        shown = f"not {given[:100]}" if given else "the request says nothing"
        raise Problem(415, 415, f"The Content-Type here is one of {', '.join(route.accepts)}; {shown}.")
    return given


async def read_body(request: Request, services: Services) -> bytes:
    """The whole body; Problem if it is too large or too slow."""
    limit = services.config["request.max.bytes"]
    too_large = Problem(413, 413, f"A request's body may have {limit} bytes (request.max.bytes).")
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared[:20]) > limit:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(services.config["request.timeout.ms"] / 1000):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise too_large
    except TimeoutError:
        raise Problem(408, 408, "The request's body did not arrive in time (request.timeout.ms).") from None
    return bytes(body)


def read_json(body: bytes, kind: Any) -> Any:
    """A body of JSON as the type it shall have; Problem says where it is not so."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as fault:
        raise unprocessable(f"The body is not what belongs here: {misfit(fault, kind)}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise bad_request(f"The body is not JSON: {fault}.") from None


@functools.cache
def _names(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The parameters a query may have; finding them out takes longer than most requests."""
    return frozenset(field.encode_name for field in msgspec.structs.fields(kind))


def read_query(route: Route, request: HTTPConnection) -> Any:
    """The query's parameters; an unknown one is named, because it would be missed."""
    kind = route.query
    assert kind is not None
    known = _names(kind)
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            shown = ", ".join(sorted(known)) or "none"
            raise bad_request(f"There is no query parameter '{name[:100]}' here; known are: {shown}.")
        if name in given:
            raise bad_request(f"The query parameter '{name}' is there twice.")
        given[name] = value
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as fault:
        raise bad_request(f"The query is not right: {misfit(fault, kind)}.") from None
