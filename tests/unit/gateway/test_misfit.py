"""What is said of a value that does not fit its type."""

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta, Struct, inspect

from headrace.gateway.misfit import forms, misfit
from headrace.gateway.route_table import ROUTES

Place = Annotated[str, Meta(pattern="^(first|[0-9]+)$", extra=forms("first", "a number"))]


class Inner(Struct):
    """Something inside."""

    kind: Literal["a", "b", "c"] = "a"
    place: Place | None = None


class Outer(Struct, forbid_unknown_fields=True):
    """Something with everything in it."""

    inner: Inner | None = None
    several: list[Inner] = []
    named: dict[str, Inner] = {}
    place: Annotated[Place, Meta(description="Where.")] = "first"
    flag: bool | Literal["true", "false"] = True
    dotted: Literal["x"] = msgspec.field(name="inner.kind.dotted", default="x")
    count: Annotated[int, Meta(ge=1, le=9)] | None = None
    least: Annotated[int, Meta(ge=1)] = 1
    share: Annotated[float, Meta(le=1.5)] = 0.5
    text: Annotated[str, Meta(max_length=3)] | int = ""
    other: Annotated[str, Meta(pattern="^x$")] = "x"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"inner": {"kind": "z"}}, "inner.kind must be a, b or c"),
        ({"inner": {"place": "z"}}, "inner.place must be first or a number"),
        ({"several": [{}, {"kind": "z"}]}, "several[1].kind must be a, b or c"),
        ({"named": {"n": {"kind": "z"}}}, "named[...].kind must be a, b or c"),
        ({"place": "z"}, "place must be first or a number"),
        ({"place": 5}, "place must be first or a number"),
        ({"flag": "z"}, "flag must be true or false"),
        ({"inner.kind.dotted": "z"}, "inner.kind.dotted must be x"),
        ({"count": "z"}, "count must be a whole number from 1 to 9"),
        ({"count": 10}, "count must be a whole number from 1 to 9"),
        ({"least": 0}, "least must be a whole number from 1 on"),
        ({"share": 2.0}, "share must be a number up to 1.5"),
        ({"text": "long"}, "text must be a string with a length up to 3 or a whole number"),
    ],
)
def test_what_it_must_be(value, expected):
    """Is what may stand at a place said from the type there, however deep it lies?"""
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(value, Outer)

    assert expected == misfit(caught.value, Outer)


@pytest.mark.parametrize("value", [[], {"zzz": 1}, {"inner": 5}, {"several": {}}, {"other": "z"}])
def test_the_rest_is_said_as_it_is(value):
    """Is a misfit that is not of a simple type, or has no words, told as it came?"""
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(value, Outer)

    assert str(caught.value) == misfit(caught.value, Outer)


def wordless(kind, seen):
    """The patterns below a type that have no words."""
    if isinstance(kind, inspect.StrType):
        return [kind.pattern] if kind.pattern else []
    if isinstance(kind, inspect.Metadata):
        return [] if "forms" in (kind.extra or {}) else wordless(kind.type, seen)
    if isinstance(kind, inspect.StructType):
        if kind.cls in seen:
            return []
        seen.add(kind.cls)
        below = [field.type for field in kind.fields]
    elif isinstance(kind, inspect.UnionType):
        below = list(kind.types)
    else:
        below = [getattr(kind, name) for name in ("item_type", "key_type", "value_type") if hasattr(kind, name)]
    return [pattern for one in below for pattern in wordless(one, seen)]


def test_every_pattern_has_words():
    """Does every pattern that a query or a body must match say in words what it lets pass?"""
    kinds = [kind for route in ROUTES for kind in (route.query, route.body) if kind is not None]

    assert len(kinds) > 20
    assert [] == [pattern for kind in kinds for pattern in wordless(inspect.type_info(kind), set())]
