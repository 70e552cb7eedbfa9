"""Writes `headrace/wire/messages/` and `headrace/wire/api_table.py` from the installed `kio` package.

kio holds one class per message and version, generated from Apache Kafka's own schemas. Here these are merged into one
schema text per API (see `headrace.wire.schema` for its form) and one version-free class per struct beside it.
`metadata_records.txt` belongs to no API and is written by hand, as its classes are.

    python tools/generate_messages.py            write the files
    python tools/generate_messages.py --check    say which files differ, exit 1 if any does
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from datetime import timedelta
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any

from kio.schema.index import PayloadEntityType, api_key_map, schema_name_map
from kio.serial._introspect import classify_field, get_field_tag
from kio.static.constants import EntityType

from headrace.wire.schema import NO_VERSIONS, VERSION_MAX, Field, Message, Versions

WIRE = Path(__file__).parent.parent / "src" / "headrace" / "wire"

TYPES = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}
"""kio's own types for what is a number on the wire."""

NULL_DEFAULTS = {
    ("ListPartitionReassignmentsRequest", "topics"),
    ("ConsumerGroupHeartbeatRequest", "topic_partitions"),
    ("StreamsGroupHeartbeatRequest", "active_tasks"),
    ("StreamsGroupHeartbeatRequest", "standby_tasks"),
    ("StreamsGroupHeartbeatRequest", "warmup_tasks"),
    ("StreamsGroupHeartbeatRequest", "client_tags"),
    ("StreamsGroupHeartbeatRequest", "task_offsets"),
    ("StreamsGroupHeartbeatRequest", "task_end_offsets"),
    ("StreamsGroupHeartbeatResponse", "status"),
    ("StreamsGroupHeartbeatResponse", "active_tasks"),
    ("StreamsGroupHeartbeatResponse", "standby_tasks"),
    ("StreamsGroupHeartbeatResponse", "warmup_tasks"),
    ("StreamsGroupHeartbeatResponse", "partitions_by_user_endpoint"),
    ("Topology", "subtopologies"),
}
"""Arrays of structs that Kafka defaults to null: kio forgets that."""

PYTHON_TYPES = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "records": "bytes | memoryview",
    "uuid": "UUID",
}
EMPTY_VALUES = {"bool": "False", "float64": "0.0", "string": '""', "bytes": 'b""', "records": 'b""', "uuid": "ZERO_ID"}

Shapes = dict[str, dict[int, list[Field]]]
"""A message's structs by name and version, the message itself first; each field as that one version has it."""


def read_api(name: str) -> tuple[Message, Message]:
    """Request and response of one API, merged over kio's versions."""
    request = merge_message(name, EntityType.request)
    response = merge_message(name, EntityType.response)
    return tell_apart(request, response)


def merge_message(name: str, kind: PayloadEntityType) -> Message:
    """One message over all versions kio knows of it."""
    classes = {version: load_class(kinds[kind]) for version, kinds in sorted(schema_name_map[name].items())}
    shapes: Shapes = {}
    for version, cls in classes.items():
        gather_struct(cls, version, shapes)
    flexible = [version for version, cls in classes.items() if cls.__flexible__]
    last = max(classes)
    newest = classes[last]
    return Message(
        name=newest.__name__,
        key=int(newest.__api_key__),
        versions=Versions(min(classes), last),
        flexible=Versions(flexible[0], VERSION_MAX) if flexible else NO_VERSIONS,
        structs={struct: tuple(merge_fields(shape, last)) for struct, shape in shapes.items()},
    )


def load_class(path: str) -> Any:
    """A class from kio's `module:Class`."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def gather_struct(cls: Any, version: int, shapes: Shapes) -> None:
    """Note the fields of a kio class and of the classes in it."""
    versions = shapes.setdefault(cls.__name__, {})
    if version in versions:
        return
    versions[version] = [read_field(cls.__name__, field, version) for field in fields(cls)]
    for field in fields(cls):
        inner = classify_field(field).type_
        if hasattr(inner, "__flexible__"):
            gather_struct(inner, version, shapes)


def read_field(owner: str, field: Any, version: int) -> Field:
    """A kio field as the wire has it, in this one version."""
    kind = classify_field(field)
    kafka_type = field.metadata.get("kafka_type") or kind.type_.__name__
    is_time = kafka_type.startswith(("timedelta", "datetime"))
    # kio writes a zero UUID as None and a missing time as None; on the wire there is no such null.
    nullable = isinstance(field.type, UnionType) and kafka_type != "uuid" and not is_time
    if kind.is_array:
        nullable = isinstance(field.type, UnionType)
    default = read_default(field, is_time=is_time)
    if nullable and (owner, field.name) in NULL_DEFAULTS:
        default = None
    only = Versions(version, version)
    return Field(
        name=field.name.rstrip("_") + "_ms" * is_time,
        type=TYPES.get(kafka_type, kafka_type),
        is_array=kind.is_array,
        versions=only,
        nullable=only if nullable else NO_VERSIONS,
        tag=get_field_tag(field),
        default=None if default is MISSING else default,
        has_default=default is not MISSING,
    )


def read_default(field: Any, *, is_time: bool) -> Any:
    """The default as a plain value; MISSING where it is the empty value of the type anyway."""
    default = field.default
    if default == () or hasattr(default, "__flexible__"):
        assert default == () or default == type(default)(), f"{field.name} has a default of its own"
        return MISSING
    if isinstance(default, Enum):
        default = default.value
    if isinstance(default, timedelta):
        return default // timedelta(milliseconds=1)
    if default is None and field.metadata.get("kafka_type") == "uuid" and not classify_field(field).is_array:
        return MISSING
    if default is None and is_time:
        return -1
    return MISSING if default is not None and not default else default


def merge_fields(shape: dict[int, list[Field]], last: int) -> Iterator[Field]:
    """One list of fields over all versions, in an order every version agrees with."""
    order: list[str] = []
    for version_fields in shape.values():
        position = 0
        for field in version_fields:
            if field.name not in order:
                order.insert(position, field.name)
            position = order.index(field.name) + 1
    for version, version_fields in shape.items():
        names = [field.name for field in version_fields]
        assert names == [name for name in order if name in names], f"version {version} disagrees on {order}"
    for name in order:
        yield merge_field([field for each in shape.values() for field in each if field.name == name], last)


def merge_field(each_version: list[Field], last: int) -> Field:
    """One field over the versions that carry it; only its nullability may change with them."""
    same = {field._replace(versions=NO_VERSIONS, nullable=NO_VERSIONS) for field in each_version}
    assert len(same) == 1, f"{each_version[0].name} changes its type or default"
    return each_version[0]._replace(
        versions=span((field.versions for field in each_version), last),
        nullable=span((field.nullable for field in each_version if field.nullable != NO_VERSIONS), last),
    )


def span(singles: Iterable[Versions], last: int) -> Versions:
    """Single versions as one run, open ended if it reaches the last."""
    numbers = [single.first for single in singles]
    if not numbers:
        return NO_VERSIONS
    assert numbers == list(range(numbers[0], numbers[-1] + 1)), "versions with a hole"
    return Versions(numbers[0], VERSION_MAX if numbers[-1] == last else numbers[-1])


def tell_apart(request: Message, response: Message) -> tuple[Message, Message]:
    """Structs of the same name share a class if they are alike; otherwise each takes its message's side as a prefix."""
    shared = request.structs.keys() & response.structs.keys()
    unlike = {name for name in shared if shape_of(request, name) != shape_of(response, name)}
    return rename(request, unlike, "Request"), rename(response, unlike, "Response")


def shape_of(message: Message, name: str) -> list[Any]:
    """All of a struct that its class depends on."""
    return [
        (
            field._replace(versions=NO_VERSIONS, tag=None, nullable=field.nullable._replace(first=0)),
            shape_of(message, field.type) if field.is_struct else None,
        )
        for field in message.structs[name]
    ]


def rename(message: Message, names: set[str], prefix: str) -> Message:
    """The message with `prefix` before some of its structs' names."""
    return message._replace(
        structs={
            prefix * (name in names) + name: tuple(
                field._replace(type=prefix * (field.type in names) + field.type) for field in struct_fields
            )
            for name, struct_fields in message.structs.items()
        }
    )


def render_versions(versions: Versions) -> str:
    """Versions as the schema text spells them."""
    if versions == NO_VERSIONS:
        return "none"
    if versions.last == VERSION_MAX:
        return f"{versions.first}+"
    return f"{versions.first}" if versions.first == versions.last else f"{versions.first}-{versions.last}"


def render_text(messages: Iterable[Message]) -> str:
    """The schema text of one API."""
    lines = ["# Generated by tools/generate_messages.py from kio; do not edit."]
    for message in messages:
        head = f"message {message.name} key {message.key} versions {render_versions(message.versions)}"
        lines += ["", f"{head} flexible {render_versions(message.flexible)}"]
        for name, struct_fields in message.structs.items():
            if name != message.name:
                lines += ["", f"struct {name}"]
            lines += render_fields(struct_fields)
    return "\n".join(lines) + "\n"


def render_fields(struct_fields: tuple[Field, ...]) -> list[str]:
    """The field lines of one struct, in columns."""
    rows = []
    for field in struct_fields:
        options = f"null {render_versions(field.nullable)} " if field.nullable != NO_VERSIONS else ""
        options += f"tag {field.tag} " if field.tag is not None else ""
        options += f"= {render_text_default(field)}" if field.has_default else ""
        rows.append((field.name, "[]" * field.is_array + field.type, render_versions(field.versions), options))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return [
        "    " + "  ".join([*(row[column].ljust(widths[column]) for column in range(3)), row[3]]).rstrip()
        for row in rows
    ]


def render_text_default(field: Field) -> str:
    """A default as the schema text spells it."""
    if field.default is None:
        return "null"
    if isinstance(field.default, bool):
        return str(field.default).lower()
    return f'"{field.default}"' if isinstance(field.default, str) else str(field.default)


def render_module(title: str, messages: Iterable[Message]) -> str:
    """The Python module with one class per struct, structs before what holds them."""
    classes: dict[str, str] = {}
    for message in messages:
        for name in reversed(message.structs):
            render_class(message, name, classes)
    body = "\n\n".join(classes.values())
    imports = ["from uuid import UUID", ""] * ("UUID" in body) + ["from msgspec import Struct"]
    imports += ["", "from headrace.model.ids import ZERO_ID"] * ("ZERO_ID" in body)
    head = f'"""{title}; generated by tools/generate_messages.py, do not edit."""'
    return "\n".join([head, "", *imports, "", "", body])


def render_class(message: Message, name: str, classes: dict[str, str]) -> None:
    """One class and, before it, the classes of its fields."""
    for field in message.structs[name]:
        if field.is_struct and field.type not in classes:
            render_class(message, field.type, classes)
    if name in classes:
        return
    versions = render_versions(message.versions)
    about = f"{name}, versions {versions}." if name == message.name else f"Part of {message.name}."
    lines = [f"class {name}(Struct, frozen=True, kw_only=True, gc=False):", f'    """{about}"""', ""]
    lines += [
        f"    {field.name}: {render_type(field)} = {render_default(field)}" for field in message.structs[name]
    ] or [""]
    classes[name] = "\n".join(lines).rstrip() + "\n"


def render_type(field: Field) -> str:
    """A field's type annotation."""
    name = field.type if field.is_struct else PYTHON_TYPES.get(field.type, "int")
    if field.is_array:
        name = f"tuple[{name}, ...]"
    return name + " | None" * (field.nullable != NO_VERSIONS)


def render_default(field: Field) -> str:
    """A field's default: what the schema says, else the empty value of its type."""
    if field.has_default:
        return f'"{field.default}"' if isinstance(field.default, str) else repr(field.default)
    if field.is_array:
        return "()"
    if field.type == "records" and field.nullable != NO_VERSIONS:
        return "None"
    return f"{field.type}()" if field.is_struct else EMPTY_VALUES.get(field.type, "0")


def render_table(rows: Iterable[tuple[str, Message]]) -> str:
    """The API table as a Python module."""
    lines = [
        '"""Every API: key, name, module, first and last version, first flexible version; generated, do not edit."""',
        "",
        "API_TABLE = (",
    ]
    for module, request in rows:
        name = request.name.removesuffix("Request")
        versions, flexible = request.versions, request.flexible
        lines.append(f'    ({request.key}, "{name}", "{module}", {versions.first}, {versions.last}, {flexible.first}),')
    return "\n".join([*lines, ")"]) + "\n"


def generate() -> dict[Path, str]:
    """Every generated file, by path."""
    files: dict[Path, str] = {}
    rows = []
    for module in api_key_map.values():
        messages = read_api(module)
        request, response = messages
        assert request.versions == response.versions
        assert request.flexible == response.flexible
        name = request.name.removesuffix("Request")
        assert response.name == f"{name}Response"
        files[WIRE / "messages" / f"{module}.txt"] = render_text(messages)
        files[WIRE / "messages" / f"{module}.py"] = render_module(f"{name} (API key {request.key})", messages)
        rows.append((module, request))
    files[WIRE / "api_table.py"] = render_table(rows)
    return files


def main() -> int:
    """Write or check the generated files."""
    parser = argparse.ArgumentParser(description="Generate headrace.wire.messages from kio.")
    parser.add_argument("--check", action="store_true", help="only say which files differ")
    check = parser.parse_args().check
    files = generate()
    stale = [path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        print(path.relative_to(WIRE))
        if not check:
            path.write_text(files[path], encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
