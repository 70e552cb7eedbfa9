"""Numbers and dates as Java prints them."""

import math
import struct
from datetime import datetime

import pytest

from headrace.cli.deserializers import DESERIALIZERS, NotDeserialized, deserializer
from headrace.cli.java_numbers import fixed, java_date, ratio
from headrace.cli.tool import UsageError


def test_quotients():
    """Is division by nothing what Java says it is, rather than an error?"""
    assert [fixed(ratio(*pair), 4) for pair in ((1, 3), (0, 0), (5, 0), (-5, 0))] == [
        "0.3333",
        "NaN",
        "Infinity",
        "-Infinity",
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd HH:mm:ss:SSS", "2024-01-02 03:04:05:006"),
        ("yy/M/d H:m:s", "24/1/2 3:4:5"),
        ("HH'h'mm", "03h04"),
        ("SSSS", "0006"),
    ],
)
def test_dates(pattern, expected):
    """Are the letters of Java's date patterns replaced, each in its width?"""
    moment = datetime(2024, 1, 2, 3, 4, 5, 6000).astimezone()

    assert java_date(round(moment.timestamp() * 1000), pattern) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0.0, b"0.0"),
        (-1.5, b"-1.5"),
        (100.0, b"100.0"),
        (1234567.0, b"1234567.0"),
        (1e7, b"1.0E7"),
        (0.001, b"0.001"),
        (0.00099, b"9.9E-4"),
        (1.25e-10, b"1.25E-10"),
        (123456789012.5, b"1.234567890125E11"),
        (math.inf, b"Infinity"),
        (math.nan, b"NaN"),
    ],
)
def test_doubles(number, expected):
    """Is a number of 64 bits printed as Java prints it?"""
    assert DESERIALIZERS["DoubleDeserializer"](struct.pack(">d", number)) == expected


def test_floats_are_short():
    """Has a number of 32 bits no more digits than it needs?"""
    read = DESERIALIZERS["FloatDeserializer"]

    assert [read(struct.pack(">f", number)) for number in (0.1, 3.4028235e38, 16777216)] == [
        b"0.1",
        b"3.4028235E38",
        b"1.6777216E7",
    ]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("org.apache.kafka.common.serialization.IntegerDeserializer", b"\xff\xff\xff\xfe", b"-2"),
        ("ShortDeserializer", b"\x00\x07", b"7"),
        ("BooleanDeserializer", b"\x01", b"true"),
        ("StringDeserializer", b"\xffa", "�a".encode()),
        (None, b"\xff", b"\xff"),
    ],
)
def test_types(name, data, expected):
    """Are bytes of a type printed as that type's value?"""
    assert deserializer(name)(data) == expected


def test_wrong_bytes_and_unknown_types():
    """Are bytes of another length refused, and types nobody knows?"""
    with pytest.raises(NotDeserialized, match="Size of data received by LongDeserializer is not 8"):
        deserializer("LongDeserializer")(b"null")
    with pytest.raises(UsageError, match="AvroDeserializer"):
        deserializer("io.example.AvroDeserializer")
