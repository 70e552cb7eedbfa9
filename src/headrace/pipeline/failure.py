"""Why a query failed, in one sentence, out of what Spark says in a hundred lines."""

from __future__ import annotations

import re

_PYTHON = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*): (.+)$", re.MULTILINE)
_CODE = re.compile(r"\[[A-Z][A-Z0-9_.]+\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
_ROUND = re.compile(r"^Query \[id = [^]]*\] terminated with exception:\s*")
_CALL = re.compile(r"^An error occurred while calling \S+\n: [\w.$]+: ")
_POSITION = re.compile(r"line (\d+),? pos(?:ition)? \d+")
_ABSENCE = ("NoBroker", "TimedOut", "ConnectionEnded")
_OURS = re.compile(r"headrace\.[\w.]+\.([A-Za-z_]\w*): (.+)")
_BUSY = "Python worker failed to connect back"
"""Spark gives a Python process ten seconds to start, and has no setting for it."""
_LENGTH_MAX = 500


def sentence_of(text: str) -> str:
    """What went wrong: our own words if a part of Headrace failed, else Python's last word, else Spark's first."""
    ours = _OURS.findall(text)
    if ours:
        return _sentence(ours[-1][1])
    start = text.rfind("Traceback (most recent call last)")
    found = _PYTHON.findall(_before_java(text[start:])) if start >= 0 else []
    if found:
        name, message = found[-1]
        return _sentence(f"{name}: {message}")
    first = _ROUND.sub("", _CODE.sub("", _CALL.sub("", text.strip())))
    return _sentence(_STATE.sub("", first).strip().split("\n", 1)[0])


def is_absence(text: str) -> bool:
    """Whether a query failed because no broker answered: then waiting helps."""
    ours = _OURS.findall(text)
    return bool(ours) and ours[-1][0] in _ABSENCE


def is_passing(text: str) -> bool:
    """Whether a query failed for a reason that passes: no broker, or a machine too busy to start Python in time."""
    return is_absence(text) or _BUSY in text


def sql_line(text: str) -> int:
    """The line of a statement that Spark complains about, counted from 1."""
    found = _POSITION.search(text)
    return int(found[1]) if found else 1


def _before_java(text: str) -> str:
    """A Python traceback without the Java frames below it."""
    return re.split(r"\n\s+at [\w$.]+\(|\n\tat ", text, maxsplit=1)[0]


def _sentence(text: str) -> str:
    text = " ".join(_STATE.sub("", text).split())
    if len(text) > _LENGTH_MAX:
        text = text[: _LENGTH_MAX - 1] + "…"
    return text if text.endswith((".", "!", "?", "…")) else text + "."
