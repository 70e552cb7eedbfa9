"""The three forms of a stream: what goes over the wire for a record, a position, a sign of life and an end."""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec

from headrace.gateway.streams.event import Event

SSE: Final = "text/event-stream"
NDJSON: Final = "application/x-ndjson"
JSON: Final = "application/json"

_ENCODER: Final = msgspec.json.Encoder()


class Form(Protocol):
    """Makes bytes of what a stream has to say; each piece stands for itself."""

    def hello(self, retry_ms: int, position: str) -> bytes:
        """What comes first, so that a client cut off before the first record can go on, too."""

    def record(self, event: Event, position: str) -> bytes:
        """A record; the position is empty where it need not be told."""

    def alive(self, position: str) -> bytes:
        """Nothing new; the position, if there is one to tell."""

    def notice(self, name: str, facts: dict[str, Any]) -> bytes:
        """Something a program should know: a reset of an offset."""

    def error(self, code: int, message: str) -> bytes:
        """Why it ends, if it ends badly."""

    def end(self, reason: str, position: str) -> bytes:
        """Why it ends, if it ends well."""


class ServerSentEvents:
    """For EventSource, which takes `id` back as Last-Event-ID."""

    def __init__(self, envelope: str) -> None:
        self._envelope = envelope
        self._name = f"sse {envelope}"

    def hello(self, retry_ms: int, position: str) -> bytes:
        """A comment, so that `onopen` fires at once; how soon to come again, and with which id."""
        return b":ok\n\nretry: %d\n" % retry_ms + (f"id: {position}\n".encode() if position else b"") + b"\n"

    def _data(self, event: Event) -> bytes:
        return b"data: " + event.envelope(self._envelope) + b"\n\n"

    def record(self, event: Event, position: str) -> bytes:
        """An event of the type `message`, which is the one without a name."""
        data = event.in_form(self._name, self._data)
        return b"event: message\nid: " + position.encode() + b"\n" + data if position else b"event: message\n" + data

    def alive(self, position: str) -> bytes:
        """A comment; an id without data moves Last-Event-ID and fires nothing."""
        return b": keep-alive\n" + (f"id: {position}\n".encode() if position else b"") + b"\n"

    def notice(self, name: str, facts: dict[str, Any]) -> bytes:
        """An event of its own type."""
        return b"event: %s\ndata: %s\n\n" % (name.encode(), _ENCODER.encode(facts))

    def error(self, code: int, message: str) -> bytes:
        """An event of the type `error`."""
        return self.notice("error", {"error_code": code, "message": message})

    def end(self, reason: str, position: str) -> bytes:
        """An event of the type `end`, on which a page closes its EventSource."""
        facts = _ENCODER.encode({"reason": reason})
        return b"event: end\n" + (f"id: {position}\n".encode() if position else b"") + b"data: " + facts + b"\n\n"


class Lines:
    """One JSON document per line; an empty line is a sign of life."""

    def __init__(self, envelope: str) -> None:
        self._envelope = envelope
        self._name = f"line {envelope}"

    def hello(self, retry_ms: int, position: str) -> bytes:
        """Nothing; the head of the answer is sent all the same."""
        return b""

    def _line(self, event: Event) -> bytes:
        return event.envelope(self._envelope) + b"\n"

    def record(self, event: Event, position: str) -> bytes:
        """A line; topic, partition and offset are in the envelope `record`."""
        return event.in_form(self._name, self._line)

    def alive(self, position: str) -> bytes:
        """An empty line."""
        return b"\n"

    def notice(self, name: str, facts: dict[str, Any]) -> bytes:
        """A line under the notice's name."""
        return _ENCODER.encode({name: facts}) + b"\n"

    def error(self, code: int, message: str) -> bytes:
        """The last line."""
        return _ENCODER.encode({"error_code": code, "message": message}) + b"\n"

    def end(self, reason: str, position: str) -> bytes:
        """Nothing: the answer ends."""
        return b""


class Messages:
    """One WebSocket message per record, whose `id` is what is acknowledged."""

    def __init__(self, envelope: str) -> None:
        self._envelope = envelope

    def hello(self, retry_ms: int, position: str) -> bytes:
        """The position and nothing else."""
        return self.alive(position)

    def record(self, event: Event, position: str) -> bytes:
        """The record with its id before all else; a value alone has none."""
        shown = event.envelope(self._envelope)
        if self._envelope == "value" or not position:
            return shown
        return b'{"id":' + _ENCODER.encode(position) + b"," + shown[1:]

    def alive(self, position: str) -> bytes:
        """The position and nothing else."""
        return _ENCODER.encode({"id": position}) if position else b""

    def notice(self, name: str, facts: dict[str, Any]) -> bytes:
        """A message under the notice's name."""
        return _ENCODER.encode({name: facts})

    def error(self, code: int, message: str) -> bytes:
        """The last message."""
        return _ENCODER.encode({"error_code": code, "message": message})

    def end(self, reason: str, position: str) -> bytes:
        """The last message, before the connection is closed with 1000."""
        return _ENCODER.encode({"end": reason, **({"id": position} if position else {})})
