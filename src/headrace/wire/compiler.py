"""From a message's schema at one version to two Python functions: one that reads it, one that writes it.

Both are made as source text and compiled once, on first use. The text is what one would write by hand: neighbouring
fields of fixed size are one `struct` call, everything else is one line per field that calls `primitives`. What nearly
every message has is written out where it stands, since a call costs more than the work: counts below 128, empty
strings, no tagged fields, elements that are nothing but fixed fields. To see it, print `reader_source(message,
version)`.

Names in the made text: `v_…` are field values, `read_…`/`write_…` are either primitives or the message's own structs.
"""

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any

from msgspec import Struct

from headrace.wire import primitives
from headrace.wire.primitives import Budget, Buffer
from headrace.wire.schema import FIXED_SIZES, Field, Message

Reader = Callable[[Buffer, int, Budget], tuple[Any, int]]
Writer = Callable[[bytearray, Any], None]
Classes = Mapping[str, type[Struct]]

_CODES = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""Each fixed type as `struct` spells it."""

_UUID_BYTES = ".int.to_bytes(16, 'big')"
"""What `UUID.bytes` does, without the call of a property."""

_NO_TAGS = "x"
"""Behind fixed fields, the byte that says that no tagged fields follow: `struct` writes it as zero."""

_VALUE = re.compile(r"\bv_")
_INDENT = "    "


def compile_reader(message: Message, version: int, classes: Classes) -> Reader:
    """The function that reads `message` at `version` into `classes`."""
    namespace = _namespace(message, version, "unpack_from")
    namespace.update(classes)
    namespace.update({f"default_{name}": cls() for name, cls in classes.items()})
    return _compile(reader_source(message, version), f"read_{message.name}", version, namespace)  # type: ignore[no-any-return]


def compile_writer(message: Message, version: int, classes: Classes) -> Writer:
    """The function that writes `message` at `version` from `classes`."""
    namespace = _namespace(message, version, "pack")
    namespace.update({f"default_{name}": cls() for name, cls in classes.items()})
    return _compile(writer_source(message, version), f"write_{message.name}", version, namespace)  # type: ignore[no-any-return]


def _compile(source: str, entry: str, version: int, namespace: dict[str, Any]) -> Any:
    exec(compile(source, f"<{entry} v{version}>", "exec"), namespace)  # noqa: S102 - our own schema, never a peer's text
    return namespace[entry]


def _namespace(message: Message, version: int, method: str) -> dict[str, Any]:
    """The primitives, and the `struct` calls this version needs, under the names the made text uses."""
    names: dict[str, Any] = {**vars(primitives), "struct": struct}
    for fields in message.structs.values():
        present = _present(fields, version)
        for group in [*_groups(_untagged(present)), *([field] for field in _tagged(present))]:
            if _is_fixed(group[0]):
                for codes in (_codes(group), _codes(group) + _NO_TAGS * (method == "pack")):
                    names[_call_name(codes)] = getattr(struct.Struct(">" + codes), method)
    return names


def _present(fields: tuple[Field, ...], version: int) -> list[Field]:
    return [field for field in fields if field.versions.cover(version)]


def _untagged(fields: list[Field]) -> list[Field]:
    return [field for field in fields if field.tag is None]


def _tagged(fields: list[Field]) -> list[Field]:
    return sorted((field for field in fields if field.tag is not None), key=lambda field: field.tag or 0)


def _is_fixed(field: Field) -> bool:
    return field.type in FIXED_SIZES and not field.is_array


def _groups(fields: list[Field]) -> Iterator[list[Field]]:
    """Runs of fixed fields together, every other field alone."""
    for fixed, run in groupby(fields, _is_fixed):
        if fixed:
            yield list(run)
        else:
            yield from ([field] for field in run)


def _codes(group: list[Field]) -> str:
    return "".join(_CODES[field.type] for field in group)


def _call_name(codes: str) -> str:
    return "fixed_" + codes.replace("?", "t").replace("16s", "u")


def _used_structs(message: Message, version: int) -> list[str]:
    """The structs this version reaches from the message, leaves first."""
    ordered: list[str] = []

    def visit(name: str) -> None:
        for field in _present(message.structs[name], version):
            if field.is_struct and field.type not in ordered:
                visit(field.type)
        ordered.append(name)

    visit(message.name)
    return ordered


def _primitive(verb: str, kind: str, *, flexible: bool, nullable: bool) -> str:
    """The name of the primitive, e.g. read_compact_nullable_string."""
    return f"{verb}_{'compact_' * flexible}{'nullable_' * nullable}{kind}"


def _size_min(message: Message, field: Field, version: int, *, element: bool = False) -> int:
    """The fewest bytes a value can take: what bounds an array's count before anything is built."""
    flexible = message.flexible.cover(version)
    if field.is_array and not element:
        return 1 if flexible else 4
    if field.type in FIXED_SIZES:
        return FIXED_SIZES[field.type]
    if field.is_struct:
        if field.nullable.cover(version) and not field.is_array:
            return 1
        inner = _untagged(_present(message.structs[field.type], version))
        return sum(_size_min(message, each, version) for each in inner) + flexible
    if flexible:
        return 1
    return 2 if field.type == "string" else 4


def reader_source(message: Message, version: int) -> str:
    """The text of the functions that read `message` at `version`."""
    lines: list[str] = []
    for name in _used_structs(message, version):
        lines += [f"def read_{name}(view, at, budget):"]
        lines += [_INDENT + line for line in _struct_reader(message, name, version)]
    return "\n".join(lines)


def _struct_reader(message: Message, name: str, version: int) -> Iterator[str]:
    fields = _present(message.structs[name], version)
    for group in _groups(_untagged(fields)):
        yield from _group_reader(message, group, version)
    if message.flexible.cover(version):
        yield from _tags_reader(message, name, _tagged(fields), version)
    values = ", ".join(f"{field.name}=v_{field.name}" for field in fields)
    yield f"return {name}({values}), at"


def _group_reader(message: Message, group: list[Field], version: int) -> Iterator[str]:
    if not _is_fixed(group[0]):
        yield from _field_reader(message, group[0], version)
        return
    targets = "".join(f"v_{field.name}, " for field in group)
    yield f"{targets}= {_call_name(_codes(group))}(view, at)"
    yield f"at += {sum(FIXED_SIZES[field.type] for field in group)}"
    for field in group:
        if field.type == "uuid":
            yield f"v_{field.name} = uuid_of(v_{field.name})"


def _field_reader(message: Message, field: Field, version: int) -> Iterator[str]:
    flexible, nullable = message.flexible.cover(version), field.nullable.cover(version)
    if field.is_array:
        yield from _array_reader(message, field, version)
    elif not field.is_struct:
        primitive = _primitive("read", field.type, flexible=flexible, nullable=nullable)
        empty = '("", at + 1) if view[at] == 1 else ' * (flexible and field.type == "string")
        yield f"v_{field.name}, at = {empty}{primitive}(view, at)"
    elif nullable:
        # KIP-893: one byte before a nullable struct, negative for null; in a tagged field it is 0 for null.
        yield "absent = view[at] > 127" if field.tag is None else "absent = not view[at]"
        yield "at += 1"
        yield f"v_{field.name}, at = (None, at) if absent else read_{field.type}(view, at, budget)"
    else:
        yield f"v_{field.name}, at = read_{field.type}(view, at, budget)"


def _array_reader(message: Message, field: Field, version: int) -> Iterator[str]:
    flexible, nullable = message.flexible.cover(version), field.nullable.cover(version)
    counter = _primitive("read", "count", flexible=flexible, nullable=nullable)
    numbers = field.type in FIXED_SIZES and field.type != "uuid"
    budget = "budget.numbers" if numbers else "budget"
    yield f"count, at = {counter}(view, at, {budget}, {_size_min(message, field, version, element=True)})"
    if numbers:
        body = [
            f"v_{field.name} = struct.unpack_from('>%d{_CODES[field.type]}' % count, view, at)",
            f"at += count * {FIXED_SIZES[field.type]}",
        ]
    else:
        body = [
            "items = []",
            "for _ in range(count):",
            *(_INDENT + line for line in _element_reader(message, field, version)),
            f"v_{field.name} = tuple(items)",
        ]
    if nullable:
        yield "if count < 0:"
        yield f"{_INDENT}v_{field.name} = None"
        yield "else:"
        body = [_INDENT + line for line in body]
    yield from body


def _element_reader(message: Message, field: Field, version: int) -> Iterator[str]:
    if field.is_struct and _is_leaf(message.structs[field.type], version):
        *lines, returned = _struct_reader(message, field.type, version)
        # Names of their own: the struct around it may have fields of the same names.
        yield from (_VALUE.sub("e_", line) for line in lines)
        made = _VALUE.sub("e_", returned).removeprefix("return ").removesuffix(", at")
        yield f"items.append({made})"
        return
    if field.is_struct:
        read = f"read_{field.type}(view, at, budget)"
    elif field.type == "uuid":
        read = "read_uuid(view, at)"
    else:
        primitive = _primitive("read", field.type, flexible=message.flexible.cover(version), nullable=False)
        read = f"{primitive}(view, at)"
    yield f"item, at = {read}"
    yield "items.append(item)"


def _is_leaf(fields: tuple[Field, ...], version: int) -> bool:
    """Whether a struct is so simple that an array of it is read without a call for each."""
    return all(field.tag is None and not field.is_array and not field.is_struct for field in _present(fields, version))


def _tags_reader(message: Message, struct_name: str, tagged: list[Field], version: int) -> Iterator[str]:
    if not tagged:
        yield "at = skip_tags(view, at, budget) if view[at] else at + 1"
        return
    for field in tagged:
        yield f"v_{field.name} = default_{struct_name}.{field.name}"
    yield "tags, at = read_uvarint(view, at)"
    yield "budget.take_tags(tags)"
    yield "tag = -1"
    yield "for _ in range(tags):"
    yield f"{_INDENT}tag, at, end = read_tag(view, at, tag)"
    for position, field in enumerate(tagged):
        yield f"{_INDENT}{'elif' if position else 'if'} tag == {field.tag}:"
        yield from (_INDENT * 2 + line for line in _group_reader(message, [field], version))
    yield f"{_INDENT}else:"
    yield f"{_INDENT * 2}at = end"
    yield f"{_INDENT}if at != end:"
    yield f"{_INDENT * 2}raise MalformedRequest(f'tag {{tag}} is not as long as it says')"


def writer_source(message: Message, version: int) -> str:
    """The text of the functions that write `message` at `version`."""
    lines: list[str] = []
    for name in _used_structs(message, version):
        lines += [f"def write_{name}(out, message):"]
        body = list(_struct_writer(message, name, version)) or ["pass"]
        lines += [_INDENT + line for line in body]
    return "\n".join(lines)


def _struct_writer(message: Message, name: str, version: int) -> Iterator[str]:
    fields = _present(message.structs[name], version)
    groups = list(_groups(_untagged(fields)))
    if message.flexible.cover(version) and not _tagged(fields) and groups and _is_fixed(groups[-1][0]):
        for group in groups[:-1]:
            yield from _group_writer(message, group, version, "out")
        yield f"out += {_fixed_writer(groups[-1], 'message', _NO_TAGS)}"
        return
    for group in groups:
        yield from _group_writer(message, group, version, "out")
    if message.flexible.cover(version):
        yield from _tags_writer(message, name, _tagged(fields), version)


def _group_writer(message: Message, group: list[Field], version: int, out: str) -> Iterator[str]:
    if _is_fixed(group[0]):
        yield f"{out} += {_fixed_writer(group, 'message')}"
    else:
        yield from _field_writer(message, group[0], version, out)


def _fixed_writer(group: list[Field], owner: str, more: str = "") -> str:
    """The bytes of neighbouring fixed fields."""
    values = [f"{owner}.{field.name}{_UUID_BYTES * (field.type == 'uuid')}" for field in group]
    if _codes(group) + more == _CODES["uuid"]:
        return values[0]
    return f"{_call_name(_codes(group) + more)}({', '.join(values)})"


def _field_writer(message: Message, field: Field, version: int, out: str) -> Iterator[str]:
    flexible, nullable = message.flexible.cover(version), field.nullable.cover(version)
    if field.is_array:
        yield from _array_writer(message, field, version, out)
    elif not field.is_struct:
        kind = "string" if field.type == "string" else "bytes"
        empty = f'{out}.append(1) if message.{field.name} == "" else ' * (flexible and kind == "string")
        yield f"{empty}{_primitive('write', kind, flexible=flexible, nullable=nullable)}({out}, message.{field.name})"
    elif nullable:
        yield f"if message.{field.name} is None:"
        yield f"{_INDENT}{out}.append({255 if field.tag is None else 0})"
        yield "else:"
        yield f"{_INDENT}{out}.append(1)"
        yield f"{_INDENT}write_{field.type}({out}, message.{field.name})"
    else:
        yield f"write_{field.type}({out}, message.{field.name})"


def _array_writer(message: Message, field: Field, version: int, out: str) -> Iterator[str]:
    flexible, nullable = message.flexible.cover(version), field.nullable.cover(version)
    yield f"items = message.{field.name}"
    if nullable:
        yield "if items is None:"
        yield f"{_INDENT}{_primitive('write', 'count', flexible=flexible, nullable=False)}({out}, -1)"
        yield f"{_INDENT}items = ()"
        yield "else:"
        yield from (_INDENT + line for line in _count_writer(out, flexible=flexible))
    else:
        yield from _count_writer(out, flexible=flexible)
    if field.type in FIXED_SIZES and field.type != "uuid":
        yield f"{out} += struct.pack('>%d{_CODES[field.type]}' % len(items), *items)"
    else:
        yield "for item in items:"
        yield f"{_INDENT}{_element_writer(message, field, version, out)}"


def _count_writer(out: str, *, flexible: bool) -> Iterator[str]:
    if not flexible:
        yield f"write_count({out}, len(items))"
        return
    yield "count = len(items) + 1"
    yield f"{out}.append(count) if count < 128 else write_uvarint({out}, count)"


def _element_writer(message: Message, field: Field, version: int, out: str) -> str:
    flexible = message.flexible.cover(version)
    if field.is_struct:
        fields = _present(message.structs[field.type], version)
        if fields and all(_is_fixed(each) and each.tag is None for each in fields):
            return f"{out} += {_fixed_writer(fields, 'item', _NO_TAGS * flexible)}"
        return f"write_{field.type}({out}, item)"
    if field.type == "uuid":
        return f"{out} += item{_UUID_BYTES}"
    kind = "string" if field.type == "string" else "bytes"
    return f"{_primitive('write', kind, flexible=flexible, nullable=False)}({out}, item)"


def _tags_writer(message: Message, struct_name: str, tagged: list[Field], version: int) -> Iterator[str]:
    if not tagged:
        yield "out.append(0)"
        return
    if len(tagged) == 1 and _is_fixed(tagged[0]):
        yield from _fixed_tag_writer(struct_name, tagged[0])
        return
    yield "tags = []"
    for field in tagged:
        yield f"if message.{field.name} != default_{struct_name}.{field.name}:"
        yield f"{_INDENT}value = bytearray()"
        yield from (_INDENT + line for line in _group_writer(message, [field], version, "value"))
        yield f"{_INDENT}tags.append(({field.tag}, value))"
    yield "write_tags(out, tags) if tags else out.append(0)"


def _fixed_tag_writer(struct_name: str, field: Field) -> Iterator[str]:
    """The only tagged field, whose size is known: all before its value is known too."""
    head = bytearray(b"\1")
    primitives.write_uvarint(head, field.tag or 0)
    primitives.write_uvarint(head, FIXED_SIZES[field.type])
    same = ".int" * (field.type == "uuid")
    yield f"if message.{field.name}{same} == default_{struct_name}.{field.name}{same}:"
    yield f"{_INDENT}out.append(0)"
    yield "else:"
    yield f"{_INDENT}out += {bytes(head)!r}"
    yield f"{_INDENT}out += {_fixed_writer([field], 'message')}"
