"""What a value that does not fit may be instead, said from the type it should have had.

msgspec names the place of a misfit, and an expression or no values at all; people want to know what to write. A type
with a pattern says its forms in words: `Meta(pattern=..., extra=forms("earliest", "an offset"))`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import inspect

_PLACE: Final = re.compile(r" - at `\$\.?([^`]+)`\Z")
_INDEX: Final = re.compile(r"\[(?:\.\.\.|[0-9]+)\]")
_FORMS: Final = "forms"

_type_info = functools.cache(inspect.type_info)


def forms(*words: str) -> dict[str, Any]:
    """What a pattern lets pass, in words."""
    return {_FORMS: words}


def misfit(fault: msgspec.ValidationError, kind: Any) -> str:
    """What is wrong with a value that should have been of a type, without a full stop."""
    place = _PLACE.search(str(fault))
    if place is None:
        return str(fault)
    found = list(_at(place[1], _type_info(kind)))
    words = [_words(one) for one in found]
    if not words or not all(words):
        # Something made of parts; what msgspec says is about its parts.
        return str(fault)
    return f"{place[1]} must be {_listed(word for some in words for word in some)}"


def _at(path: str, kind: inspect.Type) -> Iterator[inspect.Type]:
    """The types that a value at a path may have; none of them is a union, or null."""
    if isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _at(path, one)
    elif isinstance(kind, inspect.Metadata) and (path or not (kind.extra or {}).get(_FORMS)):
        yield from _at(path, kind.type)
    elif not path:
        if not isinstance(kind, inspect.NoneType):
            yield kind
    elif isinstance(kind, inspect.StructType):
        yield from _in_fields(path.removeprefix("."), kind)
    elif index := _INDEX.match(path):
        for one in _items(kind):
            yield from _at(path[index.end() :], one)


def _in_fields(path: str, kind: inspect.StructType) -> Iterator[inspect.Type]:
    for field in kind.fields:
        rest = path.removeprefix(field.encode_name)
        # Names may have dots themselves, so a path cannot be cut at them.
        if rest != path and rest[:1] in {"", ".", "["}:
            yield from _at(rest, field.type)


def _items(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    if isinstance(kind, inspect.DictType):
        return (kind.value_type,)
    if isinstance(kind, inspect.ListType | inspect.VarTupleType | inspect.SetType):
        return (kind.item_type,)
    return ()


def _words(kind: inspect.Type) -> tuple[str, ...]:
    """The values of a simple type; nothing for others."""
    match kind:
        case inspect.Metadata(extra=dict(extra)):
            return tuple(extra[_FORMS])
        case inspect.LiteralType(values=values):
            return tuple(map(str, values))
        case inspect.BoolType():
            return ("true", "false")
        case inspect.IntType(ge=low, le=high):
            return (f"a whole number{_span(low, high)}",)
        case inspect.FloatType(ge=low, le=high):
            return (f"a number{_span(low, high)}",)
        case inspect.StrType(pattern=None, min_length=low, max_length=high):
            return ("a string" if low is high is None else f"a string with a length{_span(low, high)}",)
        case _:
            return ()


def _span(low: float | None, high: float | None) -> str:
    if low is None:
        return "" if high is None else f" up to {high}"
    return f" from {low} on" if high is None else f" from {low} to {high}"


def _listed(words: Iterable[str]) -> str:
    *first, last = dict.fromkeys(words)
    return f"{', '.join(first)} or {last}" if first else last
