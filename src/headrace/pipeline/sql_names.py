"""The names a SELECT reads from, so that a transform need not list its inputs.

No parser: strings and comments are taken out, then the words after FROM, JOIN and commas between tables are looked at.
Names with a dot, table functions, and names that WITH defines are somebody else's.
"""

from __future__ import annotations

import re

_NOISE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_WORD = re.compile(r"`[^`]*`|[A-Za-z_]\w*|\d[\w.]*|[(),.;]|\S")
_OPENING = {"from", "join"}
_NO_ALIAS = {
    *("where", "group", "order", "having", "limit", "union", "intersect", "except", "minus", "on", "using", "window"),
    *("join", "inner", "left", "right", "full", "cross", "semi", "anti", "natural", "lateral", "select", "qualify"),
    *("tablesample", "pivot", "unpivot", "sort", "cluster", "distribute"),
}
_FUNCTIONS_WITH_FROM = {"extract", "trim", "overlay", "substring", "position"}


def table_names(sql: str) -> list[str]:
    """The plain table names a statement reads, each once, in their order."""
    words = [word.strip("`") if word[0] == "`" else word for word in _WORD.findall(_NOISE.sub(" ", sql))]
    lower = [word.lower() for word in words]
    defined = {
        lower[at]
        for at in range(len(words) - 2)
        if lower[at + 1] == "as" and lower[at + 2] == "(" and _is_name(words[at])
    }
    found: dict[str, None] = {}
    for at, word in enumerate(lower):
        if word in _OPENING and not _is_argument(lower, at):
            for name in _names_after(words, at + 1):
                if name.lower() not in defined:
                    found.setdefault(name)
    return list(found)


def _is_name(word: str) -> bool:
    return bool(re.match(r"[A-Za-z_][\w-]*\Z", word))


def _is_argument(lower: list[str], at: int) -> bool:
    """Whether this FROM stands inside of extract(day FROM ts), trim(... FROM ...) and their like."""
    if at and lower[at - 1] == "distinct":
        return True  # IS DISTINCT FROM compares two values.
    depth = 0
    for place in range(at - 1, -1, -1):
        if lower[place] == ")":
            depth += 1
        elif lower[place] == "(":
            if depth == 0:
                return place > 0 and lower[place - 1] in _FUNCTIONS_WITH_FROM
            depth -= 1
    return False


def _names_after(words: list[str], at: int) -> list[str]:
    """The tables of a list that begins here: `a`, `a x, b AS y`; stops at what is no plain name."""
    found = []
    while at < len(words) and _is_name(words[at]) and words[at].lower() not in _NO_ALIAS:
        name, at = words[at], at + 1
        following = words[at] if at < len(words) else ""
        if following not in {"(", "."}:
            found.append(name)
        else:
            break
        if following.lower() == "as":
            at += 2
        elif _is_name(following) and following.lower() not in _NO_ALIAS:
            at += 1
        if at >= len(words) or words[at] != ",":
            break
        at += 1
    return found
