"""Serializers by name, as functions and as kafka-python's objects."""

from uuid import UUID

import kafka.serializer
import pytest

from headrace.client.fault import BadOption
from headrace.client.serializers import deserializer, serializer


class OldStyle:
    """kafka-python 2's interface."""

    def serialize(self, topic, value):
        return f"{topic}:{value}".encode()

    def deserialize(self, topic, raw):
        return raw.decode().upper()


@pytest.mark.parametrize(("name", "value", "raw"), [("json", {"a": [1]}, b'{"a":[1]}'), ("str", "é", "é".encode())])
def test_named(name, value, raw):
    """Do the named ones write and read what their name says?"""
    assert raw == serializer("value_serializer", name)("t", value)
    assert value == deserializer("value_deserializer", name)(raw)


@pytest.mark.parametrize("given", ["bytes", None])
def test_bytes_stay(given):
    """Are bytes left alone, without a function on the way?"""
    assert serializer("value_serializer", given) is None
    assert deserializer("value_deserializer", given) is None


def test_functions_and_objects():
    """Do functions and objects of kafka-python's interfaces, the old and the new, work?"""
    assert b"5" == serializer("x", lambda value: str(value).encode())("t", 5)
    assert b"t:5" == serializer("x", OldStyle())("t", 5)
    assert "ABC" == deserializer("x", OldStyle())(b"abc")
    assert b'{"a": 1}' == serializer("x", kafka.serializer.JsonSerializer())("t", {"a": 1})
    assert {"a": 1} == deserializer("x", kafka.serializer.JsonSerializer())(b'{"a": 1}')


def test_none_is_never_serialized():
    """Does None stay a tombstone with every kind of serializer?"""
    for given in ("json", "str", lambda value: value.encode(), OldStyle()):
        assert serializer("x", given)("t", None) is None


@pytest.mark.parametrize(
    ("java", "value", "raw"),
    [
        ("String", "é", "é".encode()),
        ("Short", -2, b"\xff\xfe"),
        ("Integer", 258, b"\0\0\1\2"),
        ("Long", 1, b"\0\0\0\0\0\0\0\1"),
        ("Float", 0.5, b"?\0\0\0"),
        ("Double", 0.5, b"?\xe0\0\0\0\0\0\0"),
        ("Boolean", True, b"\1"),
        ("UUID", UUID(int=7), b"00000000-0000-0000-0000-000000000007"),
    ],
)
def test_javas_classes(java, value, raw):
    """Do the classes of Kafka's Java clients, named as in a properties file, write and read as Java does?"""
    assert raw == serializer("x", f"org.apache.kafka.common.serialization.{java}Serializer")("t", value)
    assert value == deserializer("x", f"org.apache.kafka.common.serialization.{java}Deserializer")(raw)


def test_javas_classes_for_bytes():
    """Do Java's classes for bytes leave them alone, and is the wrong direction refused?"""
    assert serializer("x", "org.apache.kafka.common.serialization.ByteArraySerializer") is None
    with pytest.raises(BadOption, match=r"StringDeserializer' is no serializer"):
        serializer("x", "org.apache.kafka.common.serialization.StringDeserializer")


def test_unknown_name():
    """Is a name nobody knows refused with the nearest one?"""
    with pytest.raises(BadOption, match='Did you mean "json"'):
        serializer("value_serializer", "jsn")
    with pytest.raises(BadOption, match="value_deserializer=7"):
        deserializer("value_deserializer", 7)
