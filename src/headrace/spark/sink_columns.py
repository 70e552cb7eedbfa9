"""What may be written: the columns a sink takes, checked by name and type before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.client.fault import ClientFault

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_TEXT_OR_BYTES = ("string", "binary")
_HEADERS = ("array<struct<key:string,value:binary>>",)
TYPES: Mapping[str, Sequence[str]] = {
    "key": _TEXT_OR_BYTES,
    "value": _TEXT_OR_BYTES,
    "headers": _HEADERS,
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}
"""The columns that are written, and the types each may have."""
READ_ONLY = frozenset({"offset", "timestamptype"})
"""Columns of the source that mean nothing to the sink: what was read can be written as it is."""


class BadColumns(ClientFault):
    """Rows that cannot be written, because of their columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkColumns:
    """Where each column that is written stands in a row; -1 if it is not there."""

    key: int = -1
    value: int = -1
    headers: int = -1
    topic: int = -1
    partition: int = -1
    timestamp: int = -1


def sink_columns(schema: StructType, *, topic: str) -> SinkColumns:
    """The columns of `schema`; with a `topic` given by option that of each row does not count."""
    places: dict[str, int] = {}
    for place, field in enumerate(schema.fields):
        name = field.name.lower()
        if name in READ_ONLY:
            continue
        if name not in TYPES:
            raise BadColumns(
                f"Column {field.name} cannot be written",
                "A record has key, value, headers, topic, partition and timestamp: put the others into the value, "
                "for instance with to_json(struct(*)).",
            )
        found = field.dataType.simpleString()
        if found not in TYPES[name]:
            raise BadColumns(f"Column {field.name} is {found}", f"It has to be {' or '.join(TYPES[name])}: cast it.")
        places[name] = place
    if "value" not in places:
        raise BadColumns("There is no column named value", "Every record has a value: select one as value.")
    if topic:
        places.pop("topic", None)
    elif "topic" not in places:
        raise BadColumns("Nothing says which topic to write to", "Set the option topic, or give a column of that name.")
    return SinkColumns(**places)
