"""The Avro schema that values were written with: read, and refused where a hostile value could make it costly."""

import json
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from headrace.client.fault import BadOption

_NAMED = ("record", "error", "enum", "fixed")
_WITHOUT = "Give the schema of the values as JSON in the option avroSchema."


def read_schema(text: str | None) -> dict[str, Any]:
    """The schema in a text, ready for fastavro; BadOption if it is none that a table can be made of."""
    if not text:
        raise BadOption("The value format avro needs a schema", _WITHOUT)
    try:
        written = json.loads(text)
        schema = fastavro.parse_schema(written)
    except json.JSONDecodeError as fault:
        raise BadOption(f"The option avroSchema is not JSON: {fault.msg} at character {fault.pos + 1}") from None
    except (SchemaParseException, UnknownType, KeyError, TypeError, ValueError, AttributeError) as fault:
        raise BadOption(f"The option avroSchema is not an Avro schema: {fault!r}") from None
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise BadOption("The option avroSchema is not the schema of a record", "Only records have fields for columns.")
    _check(written, (), {})
    return schema


def _check(schema: Any, inside: tuple[str, ...], named: dict[str, Any]) -> None:
    """BadOption for types that contain themselves, and for lists of what takes no bytes.

    A few bytes of the one would make fastavro call itself until the stack is full, of the other go on for ever.
    """
    if isinstance(schema, list):
        for branch in schema:
            _check(branch, inside, named)
        return
    if isinstance(schema, str):
        if schema in inside:
            raise BadOption(f"The Avro type {schema} contains itself", "Recursive types have no place in a table.")
        return
    kind = schema.get("type")
    if kind in _NAMED:
        names = (schema["name"], schema["name"].rpartition(".")[2])
        named.update(dict.fromkeys(names, schema))
        for field in schema.get("fields", ()):
            _check(field["type"], inside + names, named)
    elif kind in ("array", "map"):
        items = schema["items" if kind == "array" else "values"]
        if kind == "array" and _takes_no_bytes(items, named):
            raise BadOption("The Avro schema has an array of items that take no bytes", "Such an array has no end.")
        _check(items, inside, named)
    elif not isinstance(kind, str):
        _check(kind, inside, named)


def _takes_no_bytes(schema: Any, named: dict[str, Any]) -> bool:
    """Whether something of this type may be nothing at all."""
    if isinstance(schema, str):
        return schema == "null" or (schema in named and _takes_no_bytes(named[schema], named))
    if isinstance(schema, list):
        return False
    if schema.get("type") in ("record", "error"):
        return all(_takes_no_bytes(field["type"], named) for field in schema["fields"])
    if schema.get("type") == "fixed":
        return bool(schema["size"] == 0)
    return bool(schema.get("type") == "null")
