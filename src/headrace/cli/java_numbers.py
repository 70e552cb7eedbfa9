"""Numbers and dates as Java's format strings print them."""

from __future__ import annotations

import math
from datetime import datetime

_LETTERS = {"y": "%Y", "M": "%m", "d": "%d", "H": "%H", "m": "%M", "s": "%S"}


def fixed(number: float, digits: int) -> str:
    """A number with so many digits behind the point; Java writes NaN and Infinity out."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return f"{number:.{digits}f}"


def ratio(part: float, whole: float) -> float:
    """A quotient as Java computes it: something by nothing is infinite, nothing by nothing is not a number."""
    if whole:
        return part / whole
    return math.nan if not part else math.copysign(math.inf, part)


def java_date(timestamp_ms: int, pattern: str) -> str:
    """A local date by the letters of Java's SimpleDateFormat that people use: y M d H m s S, and text in quotes."""
    moment = datetime.fromtimestamp(timestamp_ms / 1000).astimezone()
    found, position = "", 0
    while position < len(pattern):
        letter = pattern[position]
        if letter == "'":
            end = pattern.find("'", position + 1)
            end = len(pattern) if end < 0 else end
            found += pattern[position + 1 : end] or "'"
            position = end + 1
            continue
        width = len(pattern[position:]) - len(pattern[position:].lstrip(letter))
        found += _part(letter, width, moment, timestamp_ms)
        position += width
    return found


def _part(letter: str, width: int, moment: datetime, timestamp_ms: int) -> str:
    if letter == "S":
        return f"{timestamp_ms % 1000:0{width}d}"
    if letter not in _LETTERS:
        return letter * width
    text = moment.strftime(_LETTERS[letter])
    if letter == "y":
        return text[-2:] if width == 2 else text.rjust(width, "0")
    return text.lstrip("0").rjust(width, "0") if width != len(text) else text
