"""The columns a reader may ask for: those of Spark's Kafka connector, and in a typed format the value's fields."""

import pyarrow as pa

from headrace.client.fault import BadOption

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

_TEXT_OR_BYTES = (pa.binary(), pa.string(), pa.large_binary(), pa.large_string())
_MOMENTS = (pa.timestamp("us", tz="UTC"), pa.timestamp("us"))
CONNECTOR_COLUMNS: dict[str, tuple[str, tuple[pa.DataType, ...]]] = {
    "key": ("BINARY or STRING", _TEXT_OR_BYTES),
    "value": ("BINARY or STRING", _TEXT_OR_BYTES),
    "topic": ("STRING", (pa.string(), pa.large_string())),
    "partition": ("INT", (pa.int32(),)),
    "offset": ("BIGINT", (pa.int64(),)),
    "timestamp": ("TIMESTAMP", _MOMENTS),
    "timestampType": ("INT", (pa.int32(),)),
    "headers": ("ARRAY<STRUCT<key: STRING, value: BINARY>>", (HEADERS,)),
}
"""The connector's columns: the type they have in Spark's words, and those of Arrow it may come as."""

ALWAYS_THERE = frozenset({"topic", "partition", "offset", "timestamp", "timestampType"})
"""Columns that are never null, so that they may be declared NOT NULL."""


def wanted_columns(schema: pa.Schema) -> frozenset[str]:
    """What must be decoded of each record to fill this schema."""
    names = frozenset(schema.names)
    wanted = names & {"key", "value", "offset", "timestamp", "timestampType", "headers"}
    return wanted | {"value"} if names - CONNECTOR_COLUMNS.keys() else wanted


def is_value_struct(field: pa.Field) -> bool:
    """Whether a column is the value as a whole, with its fields inside."""
    return bool(field.name == "value" and pa.types.is_struct(field.type))


def value_fields(schema: pa.Schema) -> list[pa.Field]:
    """The columns that are not the connector's: fields of the value."""
    return [field for field in schema if field.name not in CONNECTOR_COLUMNS]


def check_connector_columns(schema: pa.Schema) -> None:
    """BadOption if a column with one of the connector's names is of another type, or is asked for twice."""
    if len(set(schema.names)) != len(schema.names):
        raise BadOption("A column stands twice in the schema", f"The columns are {', '.join(schema.names)}.")
    for field in schema:
        if field.name in CONNECTOR_COLUMNS and not is_value_struct(field):
            words, allowed = CONNECTOR_COLUMNS[field.name]
            if not any(_is_alike(field.type, data_type) for data_type in allowed):
                raise BadOption(f"The column {field.name} is declared as {field.type}", f"It is of type {words}.")
        if not field.nullable and field.name not in ALWAYS_THERE:
            raise BadOption(f"The column {field.name} is declared NOT NULL", "It can be null; leave NOT NULL out.")


def _is_alike(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether two types hold the same, whatever the parts of a list are called."""
    if pa.types.is_list(left) and pa.types.is_list(right):
        return _is_alike(left.value_type, right.value_type)
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        return [(part.name, part.type) for part in left] == [(part.name, part.type) for part in right]
    return bool(left == right)
