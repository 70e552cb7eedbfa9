"""Examples of shapes, put together from the examples that their fields have."""

from __future__ import annotations

from typing import Any

_OF_TYPE: dict[str, Any] = {"string": "text", "integer": 1, "number": 1.5, "boolean": False, "null": None}
_OF_FORMAT = {"date-time": "2026-01-31T12:00:00Z", "duration": "PT1H", "uuid": "6f1c0f0e-8d5a-4f0b-9c55-1f6d2d0c7b11"}
_DEPTH_MAX = 20


def example_of(schema: dict[str, Any], components: dict[str, Any], depth: int = 0) -> Any:
    """A value that fits a schema and makes sense to a reader."""
    if "$ref" in schema:
        return example_of(components[schema["$ref"].rpartition("/")[2]], components, depth + 1)
    if schema.get("examples"):
        return schema["examples"][0]
    if "enum" in schema:
        return schema["enum"][0]
    if "default" in schema:
        return schema["default"]
    if "anyOf" in schema or "oneOf" in schema:
        return example_of((schema.get("anyOf") or schema["oneOf"])[0], components, depth + 1)
    return _by_type(schema, components, depth)


def _by_type(schema: dict[str, Any], components: dict[str, Any], depth: int) -> Any:
    kind = schema.get("type", "")
    if kind == "object":
        properties = schema.get("properties", {})
        if depth > _DEPTH_MAX:
            return {}
        return {name: example_of(one, components, depth + 1) for name, one in properties.items()}
    if kind == "array":
        items = schema.get("items") or {}
        return [example_of(items, components, depth + 1)] if items and depth <= _DEPTH_MAX else []
    if schema.get("format") in _OF_FORMAT:
        return _OF_FORMAT[schema["format"]]
    return schema.get("minimum", _OF_TYPE.get(kind))
