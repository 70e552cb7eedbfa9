"""JSON as typed columns: what is good, what is bad, and that one record never changes another."""

import base64
import datetime as dt
import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.records.build import NewRecord, build_batch
from headrace.spark import json_values
from headrace.spark.decoder import decode
from headrace.spark.json_values import JsonReader
from headrace.spark.values import value_reader

MOMENT = pa.timestamp("us", tz="UTC")
FAULTS = [("_corrupt_record", pa.string()), ("_error", pa.string())]
FLAT = pa.schema(
    [("n", pa.int64()), ("x", pa.float64()), ("s", pa.string()), ("b", pa.bool_()), ("t", MOMENT), *FAULTS]
)
NESTED = pa.schema(
    [
        ("n", pa.int64()),
        ("s", pa.string()),
        ("list", pa.list_(pa.field("element", pa.int32()))),
        ("inner", pa.struct([("x", pa.float64()), ("day", pa.date32()), ("deep", pa.list_(pa.list_(pa.string())))])),
        *FAULTS,
    ]
)
WITH_MAP = pa.schema([("n", pa.int64()), ("s", pa.string()), ("m", pa.map_(pa.string(), pa.float64())), *FAULTS])
SCHEMAS = {"flat": FLAT, "nested": NESTED, "map": WITH_MAP}
GOOD = b'{"n":1,"s":"good"}'

BAD = {
    "empty": b"",
    "spaces": b" \n",
    "not JSON": b"hello",
    "half": b'{"n":1',
    "the other half": b',"s":"x"}',
    "open string": b'{"s":"}',
    "closes it": b'{","n":2}',
    "two objects": b"{}{}",
    "two rows and a null": b'{"n":1} null {"n":2}',
    "behind": b'{"n":1} x',
    "array": b"[1,2]",
    "array of objects": b'[{"n":1}]',
    "number": b"3",
    "string": b'"x"',
    "null": b"null",
    "true": b"true",
    "wrong type": b'{"n":"1"}',
    "fraction": b'{"n":1.5}',
    "exponent": b'{"n":1e2}',
    "too large": b'{"n":9223372036854775808}',
    "much too large": b'{"n":' + b"9" * 5000 + b"}",
    "boolean": b'{"n":true}',
    "object": b'{"n":{}}',
    "not UTF-8": b'{"s":"\xff"}',
    "not UTF-8 where nobody looks": b'{"z":"\xc3"}',
    "overlong UTF-8": b'{"z":"\xc0\x80"}',
    "surrogate in UTF-8": b'{"z":"\xed\xa0\x80"}',
    "half a surrogate": b'{"s":"\\ud800"}',
    "control character": b'{"s":"\x01"}',
    "bad escape": b'{"s":"\\x"}',
    "leading zero": b'{"n":01}',
    "plus": b'{"n":+1}',
    "trailing comma": b'{"n":1,}',
    "no colon": b'{"n" 1}',
    "bare key": b"{n:1}",
    "single quotes": b"{'n':1}",
    "comment": b'{"n":1/**/}',
    "deep": b'{"z":' + b"[" * 600 + b"]" * 600 + b"}",
    "very deep": b'{"z":' + b"[" * 100_000,
    "byte order mark": b'\xef\xbb\xbf{"n":1}',
    "nul": b'{"n":1}\x00',
    "bad literal": b'{"z":nul}',
    "unknown is broken": b'{"z":[1,}',
    "unknown is crossed": b'{"z":[{]}}',
}

FINE = {
    "empty object": (b"{}", {}),
    "spaces around": (b' \t\r\n{ "n" : 1 , "s" : "x" } \n', {"n": 1, "s": "x"}),
    "null field": (b'{"n":null,"s":"x"}', {"s": "x"}),
    "unknown fields": (b'{"z":1,"n":2,"y":{"n":[{"n":3}]},"w":[],"v":{},"u":"}{"}', {"n": 2}),
    "the last of two": (b'{"n":1,"n":2}', {"n": 2}),
    "null takes it away": (b'{"n":1,"n":null}', {}),
    "unknown twice": (b'{"z":1,"z":"x"}', {}),
    "escapes": (
        b'{"s":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\ud83d\\ude9a"}',
        {"s": '"\\/\b\f\n\r\täü🚚'.replace("ü", "")},
    ),
    "UTF-8": ('{"s":"größe 🚚"}'.encode(), {"s": "größe 🚚"}),
    "escaped key": (b'{"\\u006e":5}', {"n": 5}),
    "number as text": (b'{"s":1.10}', {"s": "1.10"}),
    "boolean as text": (b'{"s":true}', {"s": "true"}),
    "object as text": (b'{"s": {"a" : [1, null, "\\u00e4"]}}', {"s": '{"a":[1,null,"ä"]}'}),
    "greatest": (b'{"n":9223372036854775807}', {"n": 2**63 - 1}),
    "least": (b'{"n":-9223372036854775808}', {"n": -(2**63)}),
    "minus zero": (b'{"n":-0}', {"n": 0}),
    "half a surrogate where nobody looks": (b'{"z":"\\udc00","n":1}', {"n": 1}),
    "huge where nobody looks": (b'{"z":1e999,"n":1}', {"n": 1}),
    "many digits where nobody looks": (b'{"z":' + b"9" * 5000 + b',"n":1}', {"n": 1}),
    "not a number where nobody looks": (b'{"z":[NaN,-Infinity,Inf],"n":1}', {"n": 1}),
    "deep but not too deep": (b'{"z":' + b"[" * 450 + b"]" * 450 + b',"n":1}', {"n": 1}),
    "many brackets": (b'{"z":[' + b"[],{}," * 600 + b'1],"n":1}', {"n": 1}),
    "brackets in a string": (b'{"s":"' + b"[{" * 600 + b'"}', {"s": "[{" * 600}),
}


def read(schema, values):
    """What values become, row by row."""
    records = [NewRecord(0, None, value) for value in values]
    cells = decode(build_batch(records), start=0, stop=2**62, wanted=frozenset({"value"})).values
    columns = value_reader("json", schema).read(cells)
    batch = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
    batch.validate(full=True)
    return batch.to_pylist()


def row(schema, **fields):
    """A row with nulls in all other fields."""
    return dict.fromkeys(schema.names) | fields


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("place", ["first", "middle", "last", "alone"])
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_bad_values(schema, place, bad):
    """Does a bad value give nulls, its text and a reason in its own row, wherever it stands, and nothing elsewhere?"""
    before = {"first": 0, "middle": 40, "last": 80, "alone": 0}[place]
    after = {"first": 80, "middle": 40, "last": 0, "alone": 0}[place]

    found = read(schema, [GOOD] * before + [bad] + [GOOD] * after)

    assert [row(schema, n=1, s="good")] * before == found[:before]
    assert [row(schema, n=1, s="good")] * after == found[before + 1 :]
    fault = found[before]
    assert row(schema, _corrupt_record=bad.decode("utf-8", "replace"), _error=fault["_error"]) == fault
    assert fault["_error"].startswith("The ")
    assert fault["_error"].endswith(".")


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize(("value", "fields"), FINE.values(), ids=FINE)
def test_good_values(schema, value, fields):
    """Is a value that is unusual but good read, and its neighbours too?"""
    found = read(schema, [GOOD, value, None, GOOD])

    good = row(schema, n=1, s="good")
    assert [good, row(schema, **fields), row(schema), good] == found


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_all_kinds_at_once(schema):
    """Does every row stay in its place among bad values, tombstones and odd ones?"""
    values = [GOOD, None] * 50
    for number, value in enumerate([*BAD.values(), *(value for value, _ in FINE.values())]):
        values.insert(number * 2, value)

    found = read(schema, values)

    assert [read(schema, [value])[0] for value in values] == found


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_more_than_a_block(schema, monkeypatch):
    """Do rows stay in their places when values are parsed in several blocks, some of them cut up?"""
    monkeypatch.setattr(json_values, "BLOCK_BYTES", 1000)
    values = [b'{"n":%d}' % number if number % 150 else b"{" for number in range(2000)]

    found = read(schema, values)

    assert [number if number % 150 else None for number in range(2000)] == [cells["n"] for cells in found]


def test_nothing_at_all():
    """Are there no rows for no values, and only null rows for only tombstones?"""
    for schema in SCHEMAS.values():
        assert [row(schema)] * 3 == read(schema, [None] * 3)


TYPES = {
    "tinyint": (pa.int8(), b"-128", -128),
    "smallint": (pa.int16(), b"32767", 32767),
    "int": (pa.int32(), b"-2147483648", -(2**31)),
    "bigint": (pa.int64(), b"123456789012345678", 123456789012345678),
    "float": (pa.float32(), b"0.5", 0.5),
    "double": (pa.float64(), b"-1.25", -1.25),
    "double of a whole number": (pa.float64(), b"12", 12.0),
    "double with an exponent": (pa.float64(), b"1.5E-7", 1.5e-7),
    "double of many digits": (pa.float64(), b"52.370215999999999", 52.370216),
    "double of very many digits": (pa.float64(), b"0." + b"3" * 60, 0.3333333333333333),
    "double of a large number": (pa.float64(), b"123456789012345678901234567890", 123456789012345678901234567890.0),
    "smallest double": (pa.float64(), b"5e-324", 5e-324),
    "infinite double": (pa.float64(), b"Infinity", math.inf),
    "infinite double in words": (pa.float64(), b'"-INF"', -math.inf),
    "boolean": (pa.bool_(), b"true", True),
    "string": (pa.string(), b'"x"', "x"),
    "decimal": (pa.decimal128(10, 2), b"1.5", Decimal("1.50")),
    "decimal in quotes": (pa.decimal128(10, 2), b'"1.5"', Decimal("1.50")),
    "decimal rounded": (pa.decimal128(10, 2), b"1.005", Decimal("1.01")),
    "decimal of 38 digits": (pa.decimal128(38, 0), b"9" * 38, Decimal("9" * 38)),
    "binary": (pa.binary(), b'"' + base64.b64encode(b"\x00\xff") + b'"', b"\x00\xff"),
    "date": (pa.date32(), b'"2024-02-29"', dt.date(2024, 2, 29)),
    "date of a timestamp": (pa.date32(), b'"2024-02-29T23:00:00-05:00"', dt.date(2024, 2, 29)),
    "local timestamp": (pa.timestamp("us"), b'"2024-02-29 23:00"', dt.datetime(2024, 2, 29, 23)),  # noqa: DTZ001
    "seconds": (MOMENT, b"86400", dt.datetime(1970, 1, 2, tzinfo=dt.UTC)),
    "array": (pa.list_(pa.int64()), b"[1,null]", [1, None]),
    "struct": (pa.struct([("a", pa.int8())]), b'{"a":1,"z":2}', {"a": 1}),
    "map": (pa.map_(pa.string(), pa.int64()), b'{"a":1,"b":null}', [("a", 1), ("b", None)]),
    "void": (pa.null(), b"5", None),
    "structs in a list": (
        pa.list_(pa.struct([("at", MOMENT), ("raw", pa.binary())])),
        b'[{"at":"2024-01-01","raw":"AA=="},null,{}]',
        [{"at": dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "raw": b"\x00"}, None, {"at": None, "raw": None}],
    ),
}


@pytest.mark.parametrize(("data_type", "text", "expected"), TYPES.values(), ids=TYPES)
def test_types(data_type, text, expected):
    """Is each type read, alone in a batch and with company that has to be read one by one?"""
    schema = pa.schema([("a", data_type), ("_error", pa.string())])
    value = b'{"a":' + text + b"}"

    assert {"a": expected, "_error": None} == read(schema, [value])[0]
    assert [expected, None, None] == [cells["a"] for cells in read(schema, [value, b"x", b'{"a":null}'])]


MISFITS = [
    (pa.int8(), b"128"),
    (pa.int32(), b"2147483648"),
    (pa.float64(), b"1e400"),
    (pa.float64(), b"1" + b"0" * 400),
    (pa.float64(), b'"1.5"'),
    (pa.bool_(), b"1"),
    (pa.bool_(), b'"true"'),
    (pa.decimal128(4, 2), b"100"),
    (pa.decimal128(4, 2), b"1e999999"),
    (pa.decimal128(4, 2), b"NaN"),
    (pa.decimal128(4, 2), b'"1_0"'),
    (pa.binary(), b'"?"'),
    (pa.date32(), b'"2023-02-29"'),
    (pa.date32(), b"19000"),
    (MOMENT, b'"yesterday"'),
    (MOMENT, b"1.5"),
    (pa.timestamp("us"), b'"2024-02-29T23:00:00Z"'),
    (pa.timestamp("us"), b"5"),
    (pa.list_(pa.int64()), b"1"),
    (pa.list_(pa.int64()), b'["1"]'),
    (pa.struct([("a", pa.int64())]), b"[]"),
    (pa.map_(pa.string(), pa.int64()), b'{"a":"1"}'),
]


@pytest.mark.parametrize(("data_type", "text"), MISFITS)
def test_misfits(data_type, text):
    """Does a field that does not fit its type make its whole record bad, and name the field?"""
    schema = pa.schema([("good", pa.int64()), ("a", data_type), ("_error", pa.string())])

    found = read(schema, [b'{"good":1,"a":' + text + b"}", b'{"good":2}'])

    assert (None, None) == (found[0]["good"], found[0]["a"])
    assert found[0]["_error"].startswith("The field a is ")
    assert {"good": 2, "a": None, "_error": None} == found[1]


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
scalars |= st.sampled_from(["2024-01-01", "2024-01-01T00:00:00Z", "NaN", 10**18, 10**19, 2**53 + 1, 1e22, 1e23])
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("nxsbt"), inner), max_leaves=6
)
texts = st.builds(
    lambda found, ascii_only, spaced: json.dumps(
        found, ensure_ascii=ascii_only, separators=(", ", " : ") if spaced else (",", ":")
    ).encode("utf-8", "replace"),
    st.dictionaries(st.sampled_from([*"nxsbt", "list", "inner", "m", "z"]), documents, max_size=4) | documents,
    st.booleans(),
    st.booleans(),
)
harmed = st.builds(
    lambda text, at, byte: text[: at % (len(text) + 1)] + bytes([byte]) + text[at % (len(text) + 1) + 1 :],
    texts,
    st.integers(0, 200),
    st.sampled_from(b'{}[]",:0-.eE\\u nN\x00\x80\xff'),
)


def same(left, right):
    """Whether rows are equal where NaN is equal to itself."""
    return repr(left) == repr(right)


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@settings(max_examples=100, deadline=None)
@given(values=st.lists(st.none() | texts | harmed, max_size=8))
@example(values=[b'{"s":"}', b'{","n":2}', b"{}{}"])
@example(values=[b'{"x":-NaN}', b'{"x":1e309}', b'{"x":4.35,"n":-0}'])
def test_any_values(schema, values):
    """Whatever the values: is each row what its value gives read alone, the careful way?"""
    found = read(schema, values) if values else []
    careful = JsonReader(schema, "_corrupt_record")
    careful._flat_parser = careful._block_parser = None
    for value, cells in zip(values, found, strict=True):
        records = [NewRecord(0, None, value)]
        alone = decode(build_batch(records), start=0, stop=1, wanted=frozenset({"value"})).values
        columns = careful.read(alone)
        assert same({name: columns[name][0].as_py() for name in schema.names}, cells)


@settings(max_examples=150, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False) | st.decimals(allow_nan=False, allow_infinity=False))
def test_doubles_are_exact(number):
    """Is every number the double nearest to its text?"""
    text = str(number) if not isinstance(number, float) else repr(number)
    schema = pa.schema([("x", pa.float64())])
    expected = float(text)

    (found,) = read(schema, [b'{"x":' + text.lower().replace("e+", "e").encode() + b"}"])

    assert same(None if math.isinf(expected) else expected, found["x"])
