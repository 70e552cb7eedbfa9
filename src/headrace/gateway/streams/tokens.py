"""A filter's text as tokens, each with the column it begins in."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

TEXT_MAX: Final = 4000

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+)
    |(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.]))
    |(?P<name>[^\W\d]\w*)
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<sign>==|!=|<=|>=|[<>()\[\],.])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "/": "/"}
_DIGITS_MAX: Final = 40


class BadFilter(ValueError):
    """A text that is no filter: what is wrong, and in which column."""

    def __init__(self, column: int, problem: str) -> None:
        super().__init__(f"at column {column}: {problem}")
        self.column = column


class Token(NamedTuple):
    """A word, a sign or a literal."""

    kind: str
    """name, number, string, sign or end."""
    text: str
    column: int

    @property
    def shown(self) -> str:
        """As a person would point at it."""
        return "the end" if self.kind == "end" else f"'{self.text[:40]}'"


def tokenize(text: str) -> list[Token]:
    """All tokens, and one more that stands for the end; BadFilter where nothing fits."""
    if len(text) > TEXT_MAX:
        raise BadFilter(TEXT_MAX + 1, f"a filter may have {TEXT_MAX} characters")
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            what = "a string that does not end" if text[at] in "\"'" else f"'{text[at]}' does not belong here"
            raise BadFilter(at + 1, what)
        if match.lastgroup != "blank":
            tokens.append(Token(str(match.lastgroup), match[0], at + 1))
        at = match.end()
    tokens.append(Token("end", "", len(text) + 1))
    return tokens


def string_of(token: Token) -> str:
    """What a string literal says."""

    def plain(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] == "u" and len(code) == 5:
            return chr(int(code[1:], 16))
        if code not in _ESCAPED:
            raise BadFilter(token.column + 1 + match.start(), f"'\\{code}' is no escape")
        return _ESCAPED[code]

    return _ESCAPE.sub(plain, token.text[1:-1])


def number_of(token: Token) -> float:
    """What a number says, as a whole one where it is whole."""
    if len(token.text) > _DIGITS_MAX:
        raise BadFilter(token.column, f"a number may have {_DIGITS_MAX} digits")
    return int(token.text) if token.text.lstrip("-").isdigit() else float(token.text)
