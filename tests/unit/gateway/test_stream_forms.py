"""What goes over the wire."""

import json

import pytest

from headrace.client.fetching import FetchedRecord
from headrace.gateway.streams.event import Event
from headrace.gateway.streams.form import Lines, Messages, ServerSentEvents


def event(value, *, key=b"k", headers=()):
    """A record of a value."""
    return Event(FetchedRecord("t", 1, 7, 1000, key, value, headers))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"a": 1.50}', {"value": {"a": 1.5}}),
        (b'{\n "a":\r\n "b c"\n}', {"value": {"a": "b c"}}),
        (b"null", {"value": None}),
        (None, {"value": None}),
        (b"", {"value": "", "value_format": "text"}),
        (b"plain", {"value": "plain", "value_format": "text"}),
        (b"line\nline", {"value": "line\nline", "value_format": "text"}),
        (b"data: x\n\nevent: y", {"value": "data: x\n\nevent: y", "value_format": "text"}),
        (b"\xff\x00", {"value": "/wA=", "value_format": "base64"}),
        (b'"\xff"', {"value": "Iv8i", "value_format": "base64"}),
        (b"[" * 5000, {"value": "[" * 5000, "value_format": "text"}),
        ("grüße".encode(), {"value": "grüße", "value_format": "text"}),
    ],
    ids=str,
)
def test_values(value, expected):
    """Is every value on one line, JSON as it is and anything else as what it is?"""
    line = event(value).envelope("record")

    assert b"\n" not in line
    assert b"\r" not in line
    shown = json.loads(line)
    assert expected == {name: shown[name] for name in ("value", "value_format") if name in shown}
    assert expected["value"] == json.loads(event(value).envelope("value"))


def test_keys_and_headers():
    """Are keys and headers text where they can be, and base64 where not?"""
    shown = json.loads(event(b"1", key=b"\xff", headers=(("a", b"x"), ("a", b"\xfe"), ("b", None))).envelope("record"))

    assert ("/w==", "base64") == (shown["key"], shown["key_format"])
    assert [
        {"name": "a", "value": "x"},
        {"name": "a", "value": "/g==", "value_format": "base64"},
        {"name": "b"},
    ] == shown["headers"]


def test_events():
    """Is a server-sent event what EventSource reads, with and without an id?"""
    form = ServerSentEvents("value")

    assert b"event: message\nid: t:1=8\ndata: 5\n\n" == form.record(event(b"5"), "t:1=8")
    assert b"event: message\ndata: 5\n\n" == form.record(event(b"5"), "")
    assert b":ok\n\nretry: 10\n\n" == form.hello(10, "")
    assert b":ok\n\nretry: 10\nid: t:1=8\n\n" == form.hello(10, "t:1=8")
    assert b": keep-alive\n\n" == form.alive("")
    assert b": keep-alive\nid: t:1=8\n\n" == form.alive("t:1=8")
    assert b'event: error\ndata: {"error_code":40401,"message":"Gone."}\n\n' == form.error(40401, "Gone.")
    assert b'event: end\nid: t:1=8\ndata: {"reason":"max"}\n\n' == form.end("max", "t:1=8")


def test_lines():
    """Is everything a line of its own?"""
    form = Lines("value")

    assert b"5\n" == form.record(event(b"5"), "t:1=8")
    assert (b"", b"\n", b"") == (form.hello(10, "t:1=8"), form.alive("t:1=8"), form.end("max", ""))
    assert b'{"error_code":1,"message":"m"}\n' == form.error(1, "m")


def test_messages():
    """Has a message its id before all else, where there is an envelope to hold it?"""
    shown = json.loads(Messages("record").record(event(b"5"), "t:1=8"))

    assert ("t:1=8", 5, 7) == (shown["id"], shown["value"], shown["offset"])
    assert b"5" == Messages("value").record(event(b"5"), "t:1=8")
    assert b'{"id":"t:1=8"}' == Messages("record").alive("t:1=8")


def test_encoded_once():
    """Do two streams of one form share the bytes?"""
    one = event(b"5")

    assert one.envelope("record") is one.envelope("record")
    assert one.fields is one.fields
