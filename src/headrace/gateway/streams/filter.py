"""The filter language: a small question about one record, answered by closures. Nothing of it is run as Python.

    value.speed_kmh > 90 and key == "t-1"
    headers.source in ["gps", "can"] or not exists(value.driver)
    value.stops[0].city startswith "Ber" and topic matches "^trucks"

    or        and ("or" and)*
    and       not ("and" not)*
    not       "not" not | comparison
    comparison  operand [("==" | "!=" | "<" | "<=" | ">" | ">=" | "contains" | "startswith" | "endswith") operand
              | ["not"] "in" list | "matches" string]
    operand   literal | path | "exists" "(" path ")" | "(" or ")"
    path      root ("." name | "[" literal "]")*
    root      "key" | "value" | "headers" | "topic" | "partition" | "offset" | "timestamp"

What is missing is null and never an error. Values of two types are never equal, and neither is less than the other;
`!=` is the contrary of `==`, so that `value.x != null` asks what it says. A record passes where the whole is true.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

import re2  # type: ignore[import-untyped]

from headrace.gateway.streams.tokens import BadFilter, Token, number_of, string_of, tokenize

DEPTH_MAX: Final = 40
_PATTERN_BYTES_MAX: Final = 1024 * 1024
_NOTHING: Final = object()


class Subject(Protocol):
    """What a filter looks at."""

    @property
    def fields(self) -> dict[str, Any]:
        """By the names a path begins with."""


Question = Callable[[Subject], Any]
Test = Callable[[Any, Any], bool]


def parse_filter(text: str) -> Callable[[Subject], bool]:
    """A filter as a function; BadFilter says what is wrong and where."""
    parser = _Parser(tokenize(text))
    question = parser.alternatives(0)
    parser.expect_end()

    def ask(subject: Subject) -> bool:
        try:
            return question(subject) is True
        except RecursionError:
            # Two values were compared that are as deep as JSON may be.
            return False

    return ask


# --- what comparisons mean


def _kind(value: Any) -> type:
    return float if type(value) is int else type(value)


def _equal(left: Any, right: Any) -> bool:
    return _kind(left) is _kind(right) and bool(left == right)


def _ordered(left: Any, right: Any) -> bool:
    kind = _kind(left)
    return kind is _kind(right) and kind in {float, str}


def _contains(left: Any, right: Any) -> bool:
    if isinstance(left, str):
        return isinstance(right, str) and right in left
    if isinstance(left, list):
        return any(_equal(one, right) for one in left)
    return isinstance(left, dict) and isinstance(right, str) and right in left


_TESTS: Final[dict[str, Test]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": lambda left, right: _ordered(left, right) and left < right,
    "<=": lambda left, right: _ordered(left, right) and left <= right,
    ">": lambda left, right: _ordered(left, right) and left > right,
    ">=": lambda left, right: _ordered(left, right) and left >= right,
    "contains": _contains,
    "startswith": lambda left, right: isinstance(left, str) and isinstance(right, str) and left.startswith(right),
    "endswith": lambda left, right: isinstance(left, str) and isinstance(right, str) and left.endswith(right),
}
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
ROOTS: Final = ("key", "value", "headers", "topic", "partition", "offset", "timestamp")
"""What a path may begin with."""
_WORDS: Final = {"and", "or", "not", "in", "matches", "exists", "contains", "startswith", "endswith", *_CONSTANTS}


def _step(value: Any, step: Any) -> Any:
    """One part of a path: a field of an object or an element of a list, or nothing."""
    if isinstance(value, dict):
        return value.get(step, _NOTHING) if isinstance(step, str) else _NOTHING
    if isinstance(value, list) and isinstance(step, int):
        return value[step] if -len(value) <= step < len(value) else _NOTHING
    return _NOTHING


def _follow(root: str, steps: tuple[Any, ...], subject: Subject) -> Any:
    value = subject.fields.get(root, _NOTHING)
    for step in steps:
        value = _step(value, step)
    return value


def _look_up(root: str, steps: tuple[Any, ...], subject: Subject) -> Any:
    value = _follow(root, steps, subject)
    return None if value is _NOTHING else value


def _is_there(root: str, steps: tuple[Any, ...], subject: Subject) -> bool:
    value = _follow(root, steps, subject)
    # A key or value that a record does not have is null; a field that says null is there.
    return value is not _NOTHING and (value is not None or bool(steps))


# --- reading it


class _Parser:
    """Recursive descent over the tokens; every way down counts its depth."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._token
        self._next += token.kind != "end"
        return token

    def _takes(self, text: str) -> bool:
        if self._token.kind in {"name", "sign"} and self._token.text == text:
            self._next += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            raise BadFilter(self._token.column, f"expected '{text}', not {self._token.shown}")

    def expect_end(self) -> None:
        """Nothing may follow."""
        if self._token.kind != "end":
            raise BadFilter(self._token.column, f"expected 'and', 'or' or the end, not {self._token.shown}")

    def alternatives(self, depth: int) -> Question:
        """One or more parts of which one must be true."""
        parts = [self._conjunction(depth)]
        while self._takes("or"):
            parts.append(self._conjunction(depth))
        if len(parts) == 1:
            return parts[0]
        return lambda subject: any(part(subject) is True for part in parts)

    def _conjunction(self, depth: int) -> Question:
        parts = [self._negation(depth)]
        while self._takes("and"):
            parts.append(self._negation(depth))
        if len(parts) == 1:
            return parts[0]
        return lambda subject: all(part(subject) is True for part in parts)

    def _negation(self, depth: int) -> Question:
        if depth > DEPTH_MAX:
            raise BadFilter(self._token.column, f"a filter may be {DEPTH_MAX} levels deep")
        if self._takes("not"):
            part = self._negation(depth + 1)
            return lambda subject: part(subject) is not True
        return self._comparison(depth)

    def _comparison(self, depth: int) -> Question:
        left = self._operand(depth)
        token = self._token
        if token.kind in {"sign", "name"} and token.text in _TESTS:
            self._take()
            test, right = _TESTS[token.text], self._operand(depth)
            return lambda subject: test(left(subject), right(subject))
        if self._takes("matches"):
            return self._pattern(left)
        negated = self._takes("not")
        if negated or self._token.text == "in":
            self._expect("in")
            among = self._list()
            return lambda subject: any(_equal(left(subject), one) for one in among) is not negated
        return left

    def _pattern(self, left: Question) -> Question:
        token = self._take()
        if token.kind != "string":
            raise BadFilter(token.column, f"expected a string with a regular expression, not {token.shown}")
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _PATTERN_BYTES_MAX
        try:
            search = re2.compile(string_of(token), options=options).search
        except (re2.error, UnicodeError) as fault:
            said = fault.args[0] if fault.args else fault
            shown = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
            raise BadFilter(token.column, f"this is no regular expression: {shown}") from None
        return lambda subject: isinstance(text := left(subject), str) and search(_encodable(text)) is not None

    def _list(self) -> list[Any]:
        self._expect("[")
        items: list[Any] = []
        while not self._takes("]"):
            if items:
                self._expect(",")
            items.append(self._literal())
        return items

    def _literal(self) -> Any:
        token = self._take()
        if token.kind == "string":
            return string_of(token)
        if token.kind == "number":
            return number_of(token)
        if token.kind == "name" and token.text in _CONSTANTS:
            return _CONSTANTS[token.text]
        raise BadFilter(token.column, f"expected a number, a string, true, false or null, not {token.shown}")

    def _operand(self, depth: int) -> Question:
        token = self._token
        if self._takes("("):
            inside = self.alternatives(depth + 1)
            self._expect(")")
            return inside
        if self._takes("exists"):
            self._expect("(")
            place = self._path()
            self._expect(")")
            return partial(_is_there, *place)
        if token.kind == "name" and token.text not in _CONSTANTS:
            return partial(_look_up, *self._path())
        if token.kind in {"end", "sign"}:
            raise BadFilter(token.column, f"expected a field or a value, not {token.shown}")
        literal = self._literal()
        return lambda _: literal

    def _path(self) -> tuple[str, tuple[Any, ...]]:
        root = self._take()
        if root.kind != "name" or root.text not in ROOTS:
            # A name that begins nothing is most often a field of the value.
            hint = f" (perhaps value.{root.text[:40]})" if root.kind == "name" and root.text not in _WORDS else ""
            raise BadFilter(root.column, f"expected one of {', '.join(ROOTS)}, not {root.shown}{hint}")
        steps: list[Any] = []
        while True:
            if self._takes("."):
                token = self._take()
                if token.kind != "name":
                    raise BadFilter(token.column, f"expected the name of a field, not {token.shown}")
                steps.append(token.text)
            elif self._takes("["):
                steps.append(self._literal())
                self._expect("]")
            else:
                return root.text, tuple(steps)


def _encodable(text: str) -> str:
    """Without halves of pairs, which RE2 cannot be given."""
    return text.encode(errors="replace").decode()
