"""Columns as record batches of just the schema that Spark declared."""

import datetime as dt

import pyarrow as pa
import pytest

from headrace.client.fault import BadOption
from headrace.records.batch import seal
from headrace.records.build import NewRecord, build_batch
from headrace.spark.arrow import to_arrow
from headrace.spark.decoder import decode
from headrace.spark.row_schema import CONNECTOR_COLUMNS, wanted_columns
from headrace.spark.values import value_reader

SPARK_HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
        ("headers", SPARK_HEADERS),
    ]
)
RECORDS = [
    NewRecord(1_700_000_000_123, b"key", b"value", [("h", b"1"), ("h", None)]),
    NewRecord(-1, None, None),
    NewRecord(0, b"", "größe".encode()),
]


def read(schema, records=RECORDS, value_format="binary", **options):
    """The records as a record batch of a schema."""
    columns = decode(
        memoryview(build_batch(records, base_offset=40)), start=0, stop=2**62, wanted=wanted_columns(schema)
    )
    batch = to_arrow(columns, schema, "trips", 3, value_reader(value_format, schema, options))
    batch.validate(full=True)
    return batch


def test_all_columns():
    """Has each of the connector's columns what it should have, in just the type that was declared?"""
    batch = read(SCHEMA)

    moments = [
        dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, dt.UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, dt.UTC),
        dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    ]
    assert batch.schema.equals(SCHEMA)
    assert {
        "key": [b"key", None, b""],
        "value": [b"value", None, "größe".encode()],
        "topic": ["trips"] * 3,
        "partition": [3] * 3,
        "offset": [40, 41, 42],
        "timestamp": moments,
        "timestampType": [0] * 3,
        "headers": [[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None, None],
    } == batch.to_pydict()


@pytest.mark.parametrize("name", SCHEMA.names)
def test_single_columns(name):
    """Is a column the same when it is the only one?"""
    schema = pa.schema([SCHEMA.field(name)])

    assert read(SCHEMA).column(name).equals(read(schema).column(name))


def test_only_what_is_needed_is_decoded():
    """Are topic and partition known without decoding, and is the value decoded for its fields?"""
    assert frozenset() == wanted_columns(pa.schema([SCHEMA.field("topic"), SCHEMA.field("partition")]))
    assert {"value", "offset"} == wanted_columns(pa.schema([("speed", pa.float64()), ("offset", pa.int64())]))
    assert set(CONNECTOR_COLUMNS) - {"topic", "partition"} == wanted_columns(SCHEMA)


def test_text():
    """Are key and value text if asked for, with replacement characters for what is not UTF-8?"""
    records = [NewRecord(0, b"a\xff", "größe".encode()), NewRecord(0, None, b"\xc3")]

    batch = read(pa.schema([("key", pa.string()), ("value", pa.string())]), records, "string")

    assert {"key": ["a\ufffd", None], "value": ["größe", "\ufffd"]} == batch.to_pydict()


def test_header_names_that_are_no_text():
    """Is the name of a header that is not UTF-8 replaced rather than passed on broken?"""
    records = [NewRecord(0, None, None, [("q" * 3, b"")])]
    batch = bytes(build_batch(records)).replace(b"qqq", b"q\xffq")
    harmed = bytearray(batch)
    seal(harmed)
    schema = pa.schema([SCHEMA.field("headers")])
    columns = decode(harmed, start=0, stop=9, wanted=frozenset({"headers"}))

    found = to_arrow(columns, schema, "t", 0, value_reader("binary", schema))

    assert [[{"key": "q\ufffdq", "value": b""}]] == found.column(0).to_pylist()


def test_timestamps_beyond_microseconds():
    """Are timestamps that microseconds cannot hold taken to the nearest that they can?"""
    schema = pa.schema([SCHEMA.field("timestamp")])

    batch = read(schema, [NewRecord(2**62)])

    assert [(2**63 - 1) // 1000 * 1000] == batch.column(0).cast(pa.int64()).to_pylist()


def test_other_types_spark_may_ask_for():
    """Are timestamps without a zone and large strings given where they are declared?"""
    schema = pa.schema(
        [
            ("timestamp", pa.timestamp("us")),
            ("key", pa.large_binary()),
            ("value", pa.large_string()),
            ("topic", pa.large_string()),
        ]
    )

    assert schema == read(schema).schema


def test_no_records():
    """Does nothing give an empty batch of the right schema?"""
    columns = decode(b"", start=0, stop=9, wanted=wanted_columns(SCHEMA))

    batch = to_arrow(columns, SCHEMA, "t", 0, value_reader("binary", SCHEMA))

    batch.validate(full=True)
    assert (0, SCHEMA) == (batch.num_rows, batch.schema)


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        (pa.field("offset", pa.int32()), "The column offset is declared as int32. It is of type BIGINT."),
        (pa.field("value", pa.int64()), "The column value is declared as int64. It is of type BINARY or STRING."),
        (pa.field("headers", pa.list_(pa.string())), "The column headers is declared as list<item: string>. It is"),
        (pa.field("key", pa.binary(), nullable=False), "The column key is declared NOT NULL."),
        (pa.field("speed", pa.float64()), "The column speed is none of the source's. Fields of the value need"),
        (pa.field("value", pa.struct([("a", pa.int64())])), "The column value is none of the source's."),
    ],
)
def test_columns_that_cannot_be(field, sentence):
    """Is a column that the source cannot give refused in words?"""
    with pytest.raises(BadOption) as fault:
        value_reader("binary", pa.schema([field]))

    assert str(fault.value).startswith(sentence)


def test_columns_twice():
    """Is a schema with a name twice refused?"""
    with pytest.raises(BadOption, match="stands twice"):
        value_reader("binary", pa.schema([("key", pa.binary()), ("key", pa.binary())]))
