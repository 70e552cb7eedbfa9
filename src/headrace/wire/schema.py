"""What a message is made of, read from the small text that stands beside its class.

One text holds the messages of one API (or one family of records). It is line oriented:

    message MetadataRequest key 3 versions 0-13 flexible 9+
        topics    []MetadataRequestTopic  0+   null 1+
        allowed   bool                    4+   = true

    struct MetadataRequestTopic
        name      string                  0+   null 10+
        cluster   string                  12+  tag 0 = null

A `struct` belongs to the message above it. A field line is: name, type (`[]` before it for an array), the versions
that carry it, then optionally the versions that allow null, a tag (KIP-482), and a default. A field without a default
has the empty value of its type. `#` starts a comment line.
"""

from pkgutil import get_data
from typing import NamedTuple

FIXED_SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
"""Types that always take the same number of bytes."""

SIZED_TYPES = frozenset({"string", "bytes", "records"})
"""Types that say their length first."""

PRIMITIVES = SIZED_TYPES | FIXED_SIZES.keys()

VERSION_MAX = 32767


class Versions(NamedTuple):
    """An unbroken run of versions, both ends included."""

    first: int
    last: int

    def cover(self, version: int) -> bool:
        """Whether `version` is one of these."""
        return self.first <= version <= self.last


NO_VERSIONS = Versions(VERSION_MAX, -1)


class Field(NamedTuple):
    """One field of a message or struct, over all its versions."""

    name: str
    type: str
    is_array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    default: bool | int | float | str | None
    """None means null where null is allowed; otherwise the text gave none and the empty value of the type is meant."""
    has_default: bool

    @property
    def is_struct(self) -> bool:
        """Whether the type is a struct of the same message rather than a primitive."""
        return self.type not in PRIMITIVES


class Message(NamedTuple):
    """One message with all its structs; the first struct is the message itself."""

    name: str
    key: int
    versions: Versions
    flexible: Versions
    structs: dict[str, tuple[Field, ...]]


def load_messages(module: str) -> tuple[Message, ...]:
    """The messages described by `messages/<module>.txt`."""
    text = get_data("headrace.wire.messages", f"{module}.txt")
    assert text is not None, f"{module}.txt is not part of this installation"
    return parse_schema(text.decode())


def parse_schema(text: str) -> tuple[Message, ...]:
    """The messages a schema text describes; ValueError names the line that is none."""
    messages: list[Message] = []
    fields: list[Field] = []
    heads: list[tuple[Message, str, list[Field]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            if line[0] == " ":
                fields.append(_parse_field(words))
                continue
            fields = []
            if words[0] == "message":
                messages.append(_parse_message(words))
            heads.append((messages[-1], words[1], fields))
        except (ValueError, IndexError) as error:
            raise ValueError(f"line {number} is no schema: {line!r}") from error
    for message, name, gathered in heads:
        message.structs[name] = tuple(gathered)
    return tuple(messages)


def _parse_message(words: list[str]) -> Message:
    _, name, key_word, key, versions_word, versions, flexible_word, flexible = words
    if (key_word, versions_word, flexible_word) != ("key", "versions", "flexible"):
        raise ValueError(words)
    return Message(name, int(key), parse_versions(versions), parse_versions(flexible), {})


def _parse_field(words: list[str]) -> Field:
    name, kind, versions, *rest = words
    nullable, tag, default, has_default = NO_VERSIONS, None, "null", False
    options = iter(rest)
    for option in options:
        value = next(options, "")
        if option == "null":
            nullable = parse_versions(value)
        elif option == "tag":
            tag = int(value)
        elif option == "=":
            default, has_default = value, True
        else:
            raise ValueError(option)
    return Field(
        name=name,
        type=kind.removeprefix("[]"),
        is_array=kind.startswith("[]"),
        versions=parse_versions(versions),
        nullable=nullable,
        tag=tag,
        default=_parse_default(default),
        has_default=has_default,
    )


def _parse_default(word: str) -> bool | int | float | str | None:
    named: dict[str, bool | None] = {"null": None, "true": True, "false": False}
    if word in named:
        return named[word]
    if word.startswith('"'):
        return word.strip('"')
    return float(word) if "." in word else int(word)


def parse_versions(word: str) -> Versions:
    """`3`, `0-5`, `4+` or `none` as versions."""
    if word == "none":
        return NO_VERSIONS
    if word.endswith("+"):
        return Versions(int(word[:-1]), VERSION_MAX)
    first, _, last = word.partition("-")
    return Versions(int(first), int(last or first))
