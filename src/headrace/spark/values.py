"""What is made of the values of records: plain bytes or text, or typed columns by the schema of the query.

A typed format is permissive: a value that cannot be read gives a row of nulls, its text in the column for corrupt
records (`_corrupt_record`, or as the option columnNameOfCorruptRecord says) and the reason in `_error`, where the
schema has those columns. A batch never fails for its values, and row i is always record i. A null value, a tombstone,
is a row of nulls without an error.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

import pyarrow as pa

from headrace.client.fault import BadOption
from headrace.spark.columns import Cells
from headrace.spark.row_schema import check_connector_columns, is_value_struct, value_fields

DEFAULT_CORRUPT_COLUMN = "_corrupt_record"


class ValueReader(Protocol):
    """Makes columns of values."""

    def read(self, values: Cells) -> Mapping[str, pa.Array]:
        """The columns this reader fills, by name, with as many rows as there are values."""


class PlainReader:
    """Values as they are: the connector's `value` column is all there is, and others make it."""

    def read(self, values: Cells) -> Mapping[str, pa.Array]:
        """Nothing of its own."""
        return {}


def value_reader(value_format: str, schema: pa.Schema, options: Mapping[str, str] | None = None) -> ValueReader:
    """The reader for a format and a query's schema; BadOption if the two, or its options, do not go together."""
    check_connector_columns(schema)
    make = _FORMATS.get(value_format.lower())
    if make is None:
        raise BadOption(f"The value format {value_format} is unknown", f"The formats are {', '.join(_FORMATS)}.")
    return make(schema, {name.lower(): text for name, text in (options or {}).items()})


def _plain_reader(schema: pa.Schema, options: Mapping[str, str]) -> ValueReader:
    strange = [field.name for field in schema if is_value_struct(field)] + [f.name for f in value_fields(schema)]
    if strange:
        raise BadOption(
            f"The column {strange[0]} is none of the source's", "Fields of the value need valueFormat json or avro."
        )
    return PlainReader()


def _json_reader(schema: pa.Schema, options: Mapping[str, str]) -> ValueReader:
    from headrace.spark.json_values import JsonReader  # noqa: PLC0415  (only who reads JSON loads its kernels)

    return JsonReader(schema, options.get("columnnameofcorruptrecord", DEFAULT_CORRUPT_COLUMN))


def _avro_reader(schema: pa.Schema, options: Mapping[str, str]) -> ValueReader:
    from headrace.spark.avro_values import AvroReader  # noqa: PLC0415  (fastavro is for those who need it)

    return AvroReader(
        schema,
        options.get("columnnameofcorruptrecord", DEFAULT_CORRUPT_COLUMN),
        options.get("avroschema"),
        options.get("avroframing", "none"),
    )


_FORMATS: dict[str, Callable[[pa.Schema, Mapping[str, str]], ValueReader]] = {
    "binary": _plain_reader,
    "string": _plain_reader,
    "json": _json_reader,
    "avro": _avro_reader,
}
