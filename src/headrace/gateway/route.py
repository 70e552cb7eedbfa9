"""One line of what the gateway serves, and one request for it, read and checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from starlette.requests import Request

    from headrace.gateway.services import Services

JSON = "application/json"
NDJSON = "application/x-ndjson"
V2_JSON = "application/vnd.kafka.v2+json"


class Call(Struct, frozen=True, kw_only=True):
    """A request that fits its route."""

    services: Services
    request: Request
    path: dict[str, Any]
    """What stands in the path's braces, numbers as numbers."""
    query: Any = None
    """The route's query parameters."""
    body: Any = None
    """The route's body."""
    media: str = JSON
    """The content type of the body, without parameters."""
    gives: str = JSON
    """The content type of the answer, of those the client accepts."""


class Answer(Struct, frozen=True):
    """What a handler gives that answers with another status than the route's, or with headers."""

    body: Any
    status: int
    headers: dict[str, str] = {}


Handler = Callable[[Call], Awaitable[Any]]


class Route(Struct, frozen=True, kw_only=True):
    """A method and a path, what comes in and what goes out.

    `query`, `body` and `answer` are types msgspec knows: requests are checked against them, and the OpenAPI document
    shows them with the docstrings and constraints they have.
    """

    method: str
    path: str
    handle: Handler
    tag: str
    summary: str
    detail: str = ""
    """What the summary has no room for."""
    query: type[Struct] | None = None
    body: Any = None
    example: Any = None
    """A body that makes sense; one made of the fields' own examples if there is none."""
    answer: Any = None
    status: int = 200
    statuses: tuple[int, ...] = ()
    """Others with the same answer; the handler says which with `Answer`."""
    problems: tuple[int, ...] = ()
    """The statuses it may answer with instead, besides those that every route has."""
    accepts: tuple[str, ...] = (JSON,)
    gives: tuple[str, ...] = (JSON,)
    body_optional: bool = False
    """Whether the body may be empty; it is None then."""
    may_give_nothing: bool = False
    """Whether the answer may also be 204, with nothing in it."""
    reads_body_itself: bool = False
    """Whether the handler takes the body as it comes; `body` only describes it then."""


PATH_NUMBERS = frozenset({"partition", "partition_id", "broker_id", "replica_id"})
"""What stands in a path and is a number."""

NUMBER_MAX = 2**31 - 1
SLASH = "\0"
"""What stands for a slash that belongs to a name (%2F), while the path is taken apart at the others."""


class NotANumber(ValueError):
    """A path has letters where a number belongs."""


def path_values(texts: dict[str, Any]) -> dict[str, Any]:
    """The path's parameters by their types; NotANumber names the one that is not."""
    values: dict[str, Any] = {}
    for name, text in texts.items():
        if name in PATH_NUMBERS:
            if not (isinstance(text, str) and text.isascii() and text.isdigit() and int(text[:11]) <= NUMBER_MAX):
                raise NotANumber(f"'{text}' is not the number of a {name.removesuffix('_id')}.")
            values[name] = int(text)
        else:
            values[name] = text.replace(SLASH, "/") if isinstance(text, str) else text
    return values


def encode(answer: Any) -> bytes:
    """An answer as JSON."""
    return _ENCODER.encode(answer)


_ENCODER = msgspec.json.Encoder()
