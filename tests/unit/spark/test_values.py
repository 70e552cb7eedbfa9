"""Which reader values get, and where their fields go."""

import pyarrow as pa
import pytest

from headrace.client.fault import BadOption
from headrace.records.build import NewRecord, build_batch
from headrace.spark.decoder import decode
from headrace.spark.values import value_reader

FIELDS = pa.struct([("a", pa.int64()), ("_corrupt_record", pa.string())])


def cells(values):
    """Values as the decoder hands them on."""
    records = [NewRecord(0, None, value) for value in values]
    return decode(build_batch(records), start=0, stop=2**62, wanted=frozenset({"value"})).values


def rows(schema, values, **options):
    """What JSON values become."""
    columns = value_reader("json", schema, options).read(cells(values))
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema).to_pylist()


def test_plain_formats():
    """Do binary and string have no columns of their own?"""
    for value_format in ("binary", "string", "BINARY"):
        assert {} == value_reader(value_format, pa.schema([("value", pa.binary())])).read(cells([b"x"]))


def test_unknown_formats():
    """Is a format that does not exist refused, with those that do?"""
    with pytest.raises(BadOption, match=r"xml is unknown\. The formats are binary, string, json, avro"):
        value_reader("xml", pa.schema([]))


def test_fields_inside_the_value():
    """Does a `value` of type STRUCT hold the fields, null for a tombstone, and nulls for what cannot be read?"""
    found = rows(pa.schema([("value", FIELDS)]), [b'{"a":1}', None, b"x"])

    bad = {"a": None, "_corrupt_record": "x"}
    assert [{"value": {"a": 1, "_corrupt_record": None}}, {"value": None}, {"value": bad}] == found


def test_fields_both_ways():
    """May fields be columns and parts of the value at once, as long as their types agree?"""
    found = rows(pa.schema([("value", FIELDS), ("a", pa.int64()), ("_error", pa.string())]), [b'{"a":1}'])

    assert [{"value": {"a": 1, "_corrupt_record": None}, "a": 1, "_error": None}] == found
    with pytest.raises(BadOption, match="two types"):
        value_reader("json", pa.schema([("value", FIELDS), ("a", pa.string())]))


def test_the_name_of_the_corrupt_column():
    """Does the option decide which column holds what could not be read?"""
    schema = pa.schema([("a", pa.int64()), ("broken", pa.string())])

    assert [{"a": None, "broken": "x"}] == rows(schema, [b"x"], columnNameOfCorruptRecord="broken")
    assert [{"a": None, "broken": None}] == rows(schema, [b"x"])


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        (pa.field("a", pa.int64(), nullable=False), "declared NOT NULL"),
        (pa.field("_error", pa.int64()), "of type STRING"),
        (pa.field("a", pa.duration("us")), "cannot be read from JSON"),
        (pa.field("a", pa.list_(pa.time64("ns"))), "cannot be read from JSON"),
        (pa.field("a", pa.map_(pa.int64(), pa.int64())), "JSON has only strings for keys"),
        (pa.field("value", pa.struct([pa.field("a", pa.int64(), nullable=False)])), "declared NOT NULL"),
    ],
)
def test_fields_that_cannot_be(field, sentence):
    """Is a field that cannot be read refused before anything is?"""
    with pytest.raises(BadOption, match=sentence):
        value_reader("json", pa.schema([field]))


def test_only_faults():
    """Can the column for corrupt records be all that is asked for?"""
    found = rows(pa.schema([("_corrupt_record", pa.string())]), [b"{}", b"{", None])

    assert [None, "{", None] == [row["_corrupt_record"] for row in found]
