import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.spark.table import HEADERS, BadSchema, check_schema, default_schema
from headrace.spark.task import wanted_columns


def schema(**columns):
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def test_default_columns():
    """Are the connector's columns there, in its order, headers only if they are asked for?"""
    names = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]

    assert names == default_schema("binary", include_headers=False).fieldNames()
    assert [*names, "headers"] == default_schema("binary", include_headers=True).fieldNames()
    assert StringType() == default_schema("string", include_headers=False)["value"].dataType
    with pytest.raises(BadSchema, match="valueFormat=json needs to know the fields"):
        default_schema("json", include_headers=False)


def test_good_schemas():
    """Is every column taken in the types it has?"""
    check_schema(schema(key=StringType(), value=BinaryType(), offset=LongType(), timestamp=TimestampType()), "binary")
    check_schema(schema(headers=HEADERS, partition=IntegerType(), timestampType=IntegerType()), "string")
    check_schema(schema(truck=StringType(), value=schema(lat=DoubleType()), _error=StringType()), "json")
    check_schema(schema(headers=ArrayType(HEADERS.elementType, containsNull=False)), "binary")


@pytest.mark.parametrize(
    ("column", "value_format", "sentence"),
    [
        ({"truck": StringType()}, "binary", "Column 'truck' is none of key, value"),
        ({"offset": IntegerType()}, "binary", "Column 'offset' cannot be int. It is bigint; cast it after reading."),
        ({"value": schema(lat=DoubleType())}, "binary", "Column 'value' cannot be struct<lat:double>"),
        ({"headers": StringType()}, "json", "Column 'headers' cannot be string"),
        ({"Offset": LongType()}, "binary", "Column 'Offset' is none of"),
    ],
)
def test_bad_schemas(column, value_format, sentence):
    """Is a column that cannot be read refused by its name?"""
    with pytest.raises(BadSchema, match=sentence):
        check_schema(schema(**column), value_format)


def test_what_is_read_of_a_record():
    """Is no more read than the columns need?"""
    assert frozenset() == wanted_columns(["topic", "partition"], "binary")
    assert {"offset"} == wanted_columns(["offset", "topic"], "json")
    assert {"value", "key"} == wanted_columns(["truck", "key"], "json")
