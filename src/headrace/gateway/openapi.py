"""The OpenAPI 3.1 document, made from the routes and the types they name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from headrace import __version__
from headrace.gateway.openapi_example import example_of
from headrace.gateway.route import NUMBER_MAX, PATH_NUMBERS, Route

if TYPE_CHECKING:
    from collections.abc import Iterable

_BRACES = re.compile(r"{(\w+)(?::\w+)?}")
_ALWAYS = (400, 404, 405, 406, 408, 421, 431, 500, 501, 503, 504)
_WITH_BODY = (413, 415, 422)
_REASONS = {
    200: "It was only looked at, as was asked",
    400: "The request makes no sense",
    403: "Not permitted",
    404: "It is not there",
    405: "Another method is known here",
    406: "It cannot be given in that form",
    408: "The request did not arrive in time",
    409: "It is in another state",
    413: "Too large",
    415: "Another content type is taken here",
    421: "The gateway is not known by that name",
    422: "It can be read, and is not what belongs there",
    429: "Too many",
    431: "The request's head is too large",
    500: "The cluster or the gateway failed",
    501: "This cluster does not have it",
    503: "The cluster cannot be reached, or too much is under way",
    504: "The cluster did not answer in time",
}
_DESCRIPTION = """\
Topics, records, groups and streams of a Kafka cluster over HTTP.

Every refusal is `{"error_code": …, "message": …}`: the code is the status, or the status and two more digits, the
message is a sentence. The gateway asks nobody who they are; it listens on the loopback address unless told otherwise.
"""
_PATH: dict[str, tuple[str, Any]] = {
    "cluster_id": ("The cluster's id, as GET /v3/clusters tells it.", "Rk5pWl2vTbGk0000000001"),
    "broker_id": ("A broker's id.", 1),
    "topic_name": ("A topic's name.", "trucks"),
    "topic": ("A topic's name.", "trucks"),
    "topics": ("Topics' names, with commas between them.", "trucks"),
    "partition_id": ("A partition's number.", 0),
    "partition": ("A partition's number.", 0),
    "name": ("A setting's name.", "retention.ms"),
    "consumer_group_id": ("A group's name; a slash in it is written %2F.", "panel"),
    "consumer_id": ("A member's id.", "rdkafka-0b2f6a52-7a43-4d0e-b1cd-3a3b7f9d6f10"),
    "transactional_id": ("A transactional id; a slash in it is written %2F.", "mover-1"),
    "group": ("A group's name.", "panel"),
    "instance": ("A consumer instance's name.", "panel-1"),
}
"""What stands in paths; a word that is not here is shown without a sentence."""
_QUERY = {
    "async": "Answer at once, and not only when the records are stored.",
    "timeout": "How long to wait for records, in ms.",
    "max_bytes": "How many bytes of records at most.",
    "format": "How keys and values are shown.",
    "topic": "Of which topic.",
    "partition": "Of which partition.",
}
"""What parameters of queries mean wherever they stand, if their type does not say more."""
_TAGS = {
    "v2": "Topics and records in the shapes of REST v2.",
    "v2 consumers": "Consumer instances in the shapes of REST v2.",
    "stream": "Records that flow until the client has enough.",
    "v3 cluster": "The cluster and its brokers.",
    "v3 settings": "Settings of topics and brokers.",
    "v3 topics": "Topics.",
    "v3 partitions": "Partitions, where they lie and where they begin and end.",
    "v3 records": "Producing, one by one, in batches, or as a stream.",
    "v3 groups": "Consumer groups, their members, lag and offsets.",
    "v3 transactions": "Transactional ids, what they have open, and ending what hangs.",
    "gateway": "What the gateway says of itself.",
}


class ErrorMessage(msgspec.Struct, frozen=True):
    """What every refusal says."""

    error_code: int
    message: str


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """The whole document."""
    listed = list(routes)
    types = [kind for route in listed for kind in (route.query, route.body, route.answer) if kind is not None]
    schemas, components = msgspec.json.schema_components(
        [*types, ErrorMessage], ref_template="#/components/schemas/{name}"
    )
    writer = _Writer(dict(zip(map(repr, types), schemas, strict=False)), components)
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        path = _BRACES.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = writer.operation(route)
    queries = {repr(route.query) for route in listed if route.query is not None}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headrace gateway",
            "version": __version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": tag, "description": _TAGS.get(tag, "")} for tag in dict.fromkeys(one.tag for one in listed)],
        "paths": paths,
        "components": {"schemas": writer.used(queries), "responses": _refusals()},
    }


def _refusals() -> dict[str, Any]:
    """What every operation may answer instead, by status."""
    return {
        _answer_name(status): {
            "description": reason,
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/ErrorMessage"},
                    "example": {"error_code": status, "message": f"{reason}."},
                }
            },
        }
        for status, reason in _REASONS.items()
        if status >= 400
    }


def _answer_name(status: int) -> str:
    return f"Status{status}"


class _Writer:
    """Writes operations; knows every type's schema."""

    def __init__(self, by_type: dict[str, Any], components: dict[str, Any]) -> None:
        self._by_type = by_type
        self._components = components

    def used(self, queries: set[str]) -> dict[str, Any]:
        """The schemas that are referred to; a query's is spelt out where it is used."""
        own = {self._by_type[query].get("$ref", "").rpartition("/")[2] for query in queries}
        return {name: schema for name, schema in sorted(self._components.items()) if name not in own}

    def operation(self, route: Route) -> dict[str, Any]:
        """One method of one path."""
        operation: dict[str, Any] = {
            "tags": [route.tag],
            "summary": route.summary,
            "operationId": _operation_id(route),
            "parameters": [*_path_parameters(route), *self._query_parameters(route)],
            "responses": self._answers(route),
        }
        if route.detail:
            operation["description"] = route.detail
        if route.body is not None:
            schema = self._by_type[repr(route.body)]
            example = example_of(schema, self._components) if route.example is None else route.example
            operation["requestBody"] = {
                "required": not route.body_optional,
                "content": {media: {"schema": schema, "example": example} for media in route.accepts},
            }
        return operation

    def _answers(self, route: Route) -> dict[str, Any]:
        status = 204 if route.answer is None and route.status == 200 else route.status
        answers: dict[str, Any] = {str(status): self._answer(route, route.summary)}
        if route.may_give_nothing:
            answers["204"] = {"description": "Done"}
        for status in route.statuses:
            answers[str(status)] = self._answer(route, _REASONS[status])
        problems = {*_ALWAYS, *route.problems, *(_WITH_BODY if route.body is not None else ())}
        for status in sorted(problems):
            answers[str(status)] = {"$ref": f"#/components/responses/{_answer_name(status)}"}
        return answers

    def _answer(self, route: Route, description: str) -> dict[str, Any]:
        if route.answer is None:
            return {"description": "Done"}
        schema = self._by_type[repr(route.answer)]
        content = {"schema": schema, "example": example_of(schema, self._components)}
        return {"description": description, "content": dict.fromkeys(route.gives, content)}

    def _query_parameters(self, route: Route) -> list[dict[str, Any]]:
        if route.query is None:
            return []
        schema = self._by_type[repr(route.query)]
        schema = self._components[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        required = set(schema.get("required", ()))
        return [
            {
                "name": name,
                "in": "query",
                "required": name in required,
                "schema": _of_query(one),
                "description": _sentence(name, one),
            }
            for name, one in schema["properties"].items()
        ]


def _sentence(name: str, schema: dict[str, Any]) -> str:
    """What a parameter means, as its type says it, or as its name always means."""
    said = (one.get("description") for one in (schema, *schema.get("anyOf", ())))
    return next((sentence for sentence in said if sentence), _QUERY.get(name, ""))


def _of_query(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter's schema: what is not given is not null, it is absent."""
    kept = {key: value for key, value in schema.items() if key != "description"}
    if kept.get("default", 0) is None:
        del kept["default"]
    choices = kept.pop("anyOf", None)
    if choices is None:
        return kept
    real = [one for one in choices if one.get("type") != "null"]
    return kept | real[0] if len(real) == 1 else kept | {"anyOf": real}


def _operation_id(route: Route) -> str:
    words = re.findall(r"\w+", route.path)
    return "_".join([route.method.lower(), *words]) or "root"


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    number = {"type": "integer", "minimum": 0, "maximum": NUMBER_MAX}
    parameters = []
    for name in _BRACES.findall(route.path):
        schema = number if name in PATH_NUMBERS else {"type": "string", "minLength": 1}
        sentence, example = _PATH.get(name, ("", None))
        parameter = {"name": name, "in": "path", "required": True, "schema": schema, "description": sentence}
        parameters.append(parameter if example is None else parameter | {"example": example})
    return parameters
