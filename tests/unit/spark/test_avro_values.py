"""Avro as typed columns: what is good, what is bad, and what a schema may not be."""

import io
import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest

from headrace.client.fault import BadOption
from headrace.records.build import NewRecord, build_batch
from headrace.spark.decoder import decode
from headrace.spark.values import value_reader

AVRO = {
    "type": "record",
    "name": "Trip",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "n", "type": ["null", "long"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["CAR", "TRUCK"]}},
        {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
        {"name": "path", "type": {"type": "array", "items": {"type": "record", "name": "P", "fields": [
            {"name": "x", "type": "double"}]}}},
    ],
}  # fmt: skip
ROW = {
    "id": "T-1",
    "n": 5,
    "at": datetime(2026, 11, 15, 20, 0, tzinfo=UTC),
    "day": date(2026, 11, 15),
    "price": Decimal("1.25"),
    "kind": "TRUCK",
    "uuid": "b1b2b3b4-0000-4000-8000-000000000001",
    "tags": {"a": 1},
    "path": [{"x": 1.5}],
}
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("price", pa.decimal128(9, 2)),
        ("kind", pa.string()),
        ("uuid", pa.string()),
        ("tags", pa.map_(pa.string(), pa.int32())),
        ("path", pa.list_(pa.struct([("x", pa.float64())]))),
        ("_corrupt_record", pa.string()),
        ("_error", pa.string()),
    ]
)
FOUND = ROW | {"tags": [("a", 1)], "_corrupt_record": None, "_error": None}


def encoded(row, avro=AVRO):
    """A row in Avro's binary form."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(avro), row)
    return out.getvalue()


def read(values, schema=SCHEMA, avro=AVRO, **options):
    """What values become, row by row."""
    records = [NewRecord(0, None, value) for value in values]
    cells = decode(build_batch(records), start=0, stop=2**62, wanted=frozenset({"value"})).values
    columns = value_reader("avro", schema, {"avroSchema": json.dumps(avro), **options}).read(cells)
    batch = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
    batch.validate(full=True)
    return batch.to_pylist()


def test_good_values():
    """Are all kinds of fields read, and is a tombstone a row of nulls without an error?"""
    assert [FOUND, dict.fromkeys(SCHEMA.names), FOUND] == read([encoded(ROW), None, encoded(ROW)])


def test_some_fields():
    """Are fields left out that nobody asked for, also inside others?"""
    schema = pa.schema([("n", pa.int64()), ("path", pa.list_(pa.struct([])))])

    assert [{"n": None, "path": [{}]}] == read([encoded(ROW | {"n": None})], schema)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("bad", [b"", encoded(ROW)[:-1], encoded(ROW) + b"\x00", b"\xff" * 30, b"\x02\xff\x00"])
def test_bad_values(place, bad):
    """Does a value that is not of the schema give nulls and a reason in its own row, and nothing elsewhere?"""
    values = [encoded(ROW)] * 2
    values.insert(place, bad)

    found = read(values)

    fault = found.pop(place)
    assert [FOUND, FOUND] == found
    assert fault["_error"].startswith("The value is not Avro of this schema: ")
    assert bad.decode("utf-8", "replace") == fault["_corrupt_record"]
    assert all(fault[name] is None for name in ROW)


def test_values_that_do_not_fit():
    """Is a record bad that is good Avro and does not fit a column, and are its neighbours not?"""
    schema = pa.schema([("n", pa.int8()), ("id", pa.string()), ("_error", pa.string())])

    found = read([encoded(ROW), encoded(ROW | {"n": 1000}), encoded(ROW)], schema)

    assert [5, None, 5] == [row["n"] for row in found]
    assert ["T-1", None, "T-1"] == [row["id"] for row in found]
    assert "does not fit the columns" in found[1]["_error"]


def test_damaged_values():
    """Whatever becomes of the bytes: is there a row for each value, and the good one beside it intact?"""
    chance = random.Random(3)
    good = encoded(ROW)
    values = []
    for _ in range(3000):
        harmed = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            harmed[chance.randrange(len(harmed))] = chance.randrange(256)
        values += [good, bytes(harmed)]

    found = read(values)

    assert [FOUND] * 3000 == found[::2]
    assert len(values) == len(found)
    assert 500 < sum(row["_error"] is not None for row in found)


def test_confluent_framing():
    """Is the number of a schema in front of the record skipped, and missed where it is not there?"""
    framed = b"\x00\x00\x00\x00\x07" + encoded(ROW)

    found = read([framed, encoded(ROW), framed[:3]], avroFraming="confluent")

    assert FOUND == found[0]
    assert all("does not begin with a zero byte" in row["_error"] for row in found[1:])


@pytest.mark.parametrize(
    ("avro", "sentence"),
    [
        (None, "needs a schema"),
        ("{", "is not JSON"),
        ('"strin"', "is not an Avro schema"),
        ('{"type": "record"}', "is not an Avro schema"),
        ('{"type": "record", "name": "R", "fields": 5}', "is not an Avro schema"),
        ('"string"', "not the schema of a record"),
        ("[]", "not the schema of a record"),
        ('{"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]}', "R contains itself"),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "r", "type": {"type": "array", "items": "null"}}]}',
            "take no bytes",
        ),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}', "id is no field"),
    ],
)
def test_schemas_that_cannot_be(avro, sentence):
    """Is a schema that is none, that costs too much, or that lacks a column refused in words?"""
    with pytest.raises(BadOption, match=sentence):
        value_reader("avro", SCHEMA, {} if avro is None else {"avroSchema": avro})


def test_unknown_framing():
    """Is a framing that does not exist refused, with those that do?"""
    with pytest.raises(BadOption, match="none, confluent"):
        value_reader("avro", SCHEMA, {"avroSchema": json.dumps(AVRO), "avroFraming": "apicurio"})
