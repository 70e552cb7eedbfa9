"""How the console consumers print a record: Kafka's formatters, a template of one's own, or an envelope."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

from headrace.cli.deserializers import deserializer
from headrace.cli.envelope import TIMESTAMP_TYPES, to_document
from headrace.cli.tool import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Format = Callable[["Shown"], bytes]
    Part = Callable[["Shown"], bytes]


class Shown(Protocol):
    """A record as confluent-kafka hands it out."""

    def topic(self) -> str:
        """The topic's name."""

    def partition(self) -> int:
        """The partition's number."""

    def offset(self) -> int:
        """The record's offset."""

    def timestamp(self) -> tuple[int, int]:
        """The kind of the timestamp (0: there is none), and the timestamp."""

    def key(self) -> bytes | None:
        """The key."""

    def value(self) -> bytes | None:
        """The value."""

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        """The headers in order."""

    def leader_epoch(self) -> int | None:
        """The epoch of the leader that wrote it, where that is known."""

    def delivery_count(self) -> int | None:
        """How often it was handed to a member of a share group."""


NULL = "null"
NOT_PRESENT = "NOT_PRESENT"


# --- Kafka's default formatter


def default_format(properties: Mapping[str, str]) -> Format:
    """Kafka's DefaultMessageFormatter: the parts that are asked for, with a separator between them."""
    line_end = properties.get("line.separator", "\n").encode()
    null = properties.get("null.literal", NULL).encode()
    value = _content("value", "value.deserializer", properties, null)
    parts = [make(properties, null) for name, make in _PARTS.items() if _is_on(properties, f"print.{name}")]
    if _is_on(properties, "print.value", default="true"):
        parts.append(value)
    if parts == [value] and "value.deserializer" not in properties:
        return lambda record: (null if (found := record.value()) is None else found) + line_end
    between = properties.get("key.separator", "\t").encode()
    return lambda record: between.join([part(record) for part in parts]) + line_end if parts else b""


def _is_on(properties: Mapping[str, str], name: str, default: str = "false") -> bool:
    return properties.get(name, default).strip().lower() == "true"


def _timestamp(*_: object) -> Part:
    def show(record: Shown) -> bytes:
        kind, timestamp = record.timestamp()
        return f"{TIMESTAMP_TYPES[kind]}:{timestamp}".encode() if kind else b"NO_TIMESTAMP"

    return show


def _headers(properties: Mapping[str, str], null: bytes) -> Part:
    between = properties.get("headers.separator", ",").encode()
    read = deserializer(properties.get("headers.deserializer"))

    def show(record: Shown) -> bytes:
        headers = record.headers()
        if not headers:
            return b"NO_HEADERS"
        return between.join(
            [name.encode() + b":" + (null if value is None else read(value)) for name, value in headers]
        )

    return show


def _content(name: str, setting: str, properties: Mapping[str, str], null: bytes) -> Part:
    read = deserializer(properties.get(setting))

    def show(record: Shown) -> bytes:
        found = getattr(record, name)()
        return null if found is None else read(found)

    return show


def _number(label: str, name: str) -> Callable[[Mapping[str, str], bytes], Part]:
    def make(*_: object) -> Part:
        def show(record: Shown) -> bytes:
            number = getattr(record, name)()
            return f"{label}:{NOT_PRESENT if number is None else number}".encode()

        return show

    return make


_PARTS: dict[str, Callable[[Mapping[str, str], bytes], Part]] = {
    "timestamp": _timestamp,
    "partition": _number("Partition", "partition"),
    "offset": _number("Offset", "offset"),
    "delivery": _number("Delivery", "delivery_count"),
    "epoch": _number("Epoch", "leader_epoch"),
    "headers": _headers,
    "key": lambda properties, null: _content("key", "key.deserializer", properties, null),
}
"""The parts before the value, in the order they are printed."""
DESERIALIZERS = ("key.deserializer", "value.deserializer", "headers.deserializer")
PROPERTIES = (
    *(f"print.{name}" for name in (*_PARTS, "value")),
    "key.separator",
    "line.separator",
    "headers.separator",
    "null.literal",
    *DESERIALIZERS,
)
"""What the default formatter makes something of."""


# --- Kafka's other formatters


def _no_format(_: Mapping[str, str]) -> Format:
    return lambda _: b""


def _logging_format(properties: Mapping[str, str]) -> Format:
    """Kafka's LoggingMessageFormatter: as the default, and a line in the log, which is standard error here."""
    shown = default_format(properties)

    def show(record: Shown) -> bytes:
        kind, timestamp = record.timestamp()
        key, value = record.key(), record.value()
        words = f"{TIMESTAMP_TYPES[kind]}:{timestamp}, " if kind else ""
        words += "key:null " if key is None else f"key:{key.decode(errors='replace')}, "
        words += f"value:{NULL if value is None else value.decode(errors='replace')}"
        print(words, file=sys.stderr)
        return shown(record)

    return show


def _coordinator_format(name: str) -> Callable[[Mapping[str, str]], Format]:
    def make(_: Mapping[str, str]) -> Format:
        from headrace.cli.coordinator_format import coordinator_format

        return coordinator_format(name)

    return make


FORMATTERS: dict[str, Callable[[Mapping[str, str]], Format]] = {
    "DefaultMessageFormatter": default_format,
    "LoggingMessageFormatter": _logging_format,
    "NoOpMessageFormatter": _no_format,
    "OffsetsMessageFormatter": _coordinator_format("OffsetsMessageFormatter"),
    "GroupMetadataMessageFormatter": _coordinator_format("GroupMetadataMessageFormatter"),
    "TransactionLogMessageFormatter": _coordinator_format("TransactionLogMessageFormatter"),
    "ShareGroupMessageFormatter": _coordinator_format("ShareGroupMessageFormatter"),
    "ShareGroupStateMessageFormatter": _coordinator_format("ShareGroupStateMessageFormatter"),
}
"""Kafka's formatters by the last part of their class names, which have moved between packages."""


def named_format(class_name: str, properties: Mapping[str, str]) -> Format:
    """The formatter of a Java class name; UsageError where it is none of Kafka's."""
    make = FORMATTERS.get(class_name.replace("$", ".").rsplit(".", 1)[-1])
    if make is None:
        raise UsageError(f"{class_name} is not a formatter of Kafka's; known are: {', '.join(FORMATTERS)}")
    return make(properties)


# --- a template of one's own

_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


def template_format(template: str, properties: Mapping[str, str]) -> Format:
    """Records as in `%t %p %o %k %v` with escapes for line ends; UsageError for a letter without a meaning."""
    null = properties.get("null.literal", NULL).encode()
    fields = _fields(properties, null)
    parts: list[bytes | Part] = []
    characters = iter(template)
    for character in characters:
        if character == "\\":
            letter = next(characters, "\\")
            parts.append(_ESCAPES.get(letter, f"\\{letter}".encode()))
        elif character == "%":
            letter = next(characters, "")
            if letter != "%" and letter not in fields:
                raise UsageError(f"--format: %{letter} means nothing; known are: %{' %'.join(fields)} %%")
            parts.append(b"%" if letter == "%" else fields[letter])
        else:
            parts.append(character.encode())
    return lambda record: b"".join([part if isinstance(part, bytes) else part(record) for part in parts])


def _fields(properties: Mapping[str, str], null: bytes) -> dict[str, Part]:
    key = _content("key", "key.deserializer", properties, null)
    value = _content("value", "value.deserializer", properties, null)
    headers = _headers(properties, null)

    def plain(name: str) -> Part:
        return lambda record: str(getattr(record, name)()).encode()

    def size(name: str) -> Part:
        return lambda record: str(-1 if (found := getattr(record, name)()) is None else len(found)).encode()

    return {
        "t": plain("topic"),
        "p": plain("partition"),
        "o": plain("offset"),
        "k": key,
        "v": value,
        "s": value,
        "h": lambda record: headers(record) if record.headers() else b"",
        "T": lambda record: str(record.timestamp()[1]).encode(),
        "K": size("key"),
        "S": size("value"),
    }


# --- for programs


def document_format(kind: str) -> Format:
    """One document per record: a line of JSON, or a document of a YAML stream."""
    if kind == "json":
        import msgspec

        encode = msgspec.json.Encoder().encode
        return lambda record: encode(to_document(record)) + b"\n"
    from headrace.cli.report import to_yaml

    return lambda record: b"---\n" + to_yaml(to_document(record)).encode()
