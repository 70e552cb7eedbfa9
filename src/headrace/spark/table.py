"""The columns of the data source: those of Spark's Kafka connector, and which schemas a user may ask for.

Spark asks for no columns of its own accord: the schema the user gives is what is read. With a value format that has
fields, every column that is not one of the connector's is a field of the value.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.client.fault import ClientFault

FORMATS_WITH_FIELDS = frozenset({"json", "avro"})
HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

_TYPES: Mapping[str, tuple[DataType, ...]] = {
    "key": (BinaryType(), StringType()),
    "value": (BinaryType(), StringType()),
    "topic": (StringType(),),
    "partition": (IntegerType(),),
    "offset": (LongType(),),
    "timestamp": (TimestampType(),),
    "timestampType": (IntegerType(),),
    "headers": (HEADERS,),
}
CONNECTOR_COLUMNS = frozenset(_TYPES)


class BadSchema(ClientFault):
    """A column that cannot be read as it is asked for."""


def default_schema(value_format: str, *, include_headers: bool) -> StructType:
    """What is read unless the user says otherwise."""
    if value_format in FORMATS_WITH_FIELDS:
        raise BadSchema(
            f"valueFormat={value_format} needs to know the fields of the value",
            'Name them with .schema("truck_id STRING, speed_kmh DOUBLE, offset BIGINT").',
        )
    chosen = {name: types[0] for name, types in _TYPES.items() if include_headers or name != "headers"}
    if value_format == "string":
        chosen["value"] = StringType()
    return StructType([StructField(name, kind) for name, kind in chosen.items()])


def check_schema(schema: StructType, value_format: str) -> None:
    """Refuse what cannot be read, before anything is."""
    for field in schema.fields:
        has_fields = value_format in FORMATS_WITH_FIELDS
        if field.name not in _TYPES:
            if not has_fields:
                raise BadSchema(
                    f"Column '{field.name}' is none of {', '.join(_TYPES)}",
                    "To read it as a field of the value, set valueFormat=json (or avro).",
                )
            continue
        if field.name == "value" and has_fields and isinstance(field.dataType, StructType):
            continue
        if not any(_is_like(field.dataType, kind) for kind in _TYPES[field.name]):
            allowed = " or ".join(kind.simpleString() for kind in _TYPES[field.name])
            raise BadSchema(
                f"Column '{field.name}' cannot be {field.dataType.simpleString()}",
                f"It is {allowed}; cast it after reading.",
            )


def _is_like(asked: DataType, kind: DataType) -> bool:
    """Whether two types are one, whatever they say about nulls."""
    return asked.simpleString() == kind.simpleString()
