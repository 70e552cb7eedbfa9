"""What is wrong with a regular expression, in the words of the library Kafka's tools use for it."""

from __future__ import annotations

_WORDS = {
    "invalid escape sequence": "invalid escape sequence",
    "invalid character class range": "invalid character class range",
    "invalid character class": "invalid character class",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""By the words of RE2 itself."""


def fault_of(regex: str) -> str | None:
    """Why this is no regular expression of RE2, or None if it is one."""
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(regex, options=options)
    except re2.error as error:
        told = error.args[0]
        text = told.decode() if isinstance(told, bytes) else str(told)
        return next((ours for theirs, ours in _WORDS.items() if text.startswith(theirs)), text)
    return None
