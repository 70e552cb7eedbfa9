"""Results of a tool: Kafka's text for people, one document for programs."""

from __future__ import annotations

import sys
from typing import Any

TEXT = "text"


class Report:
    """Where a tool puts its results.

    A tool says everything twice: as the lines Kafka's tool prints, and as the data behind them; one of the two is
    shown. The names in the data are in camel case, as in the JSON that Kafka's own tools print.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    @property
    def is_text(self) -> bool:
        """Whether a person reads the result, or a script made for Kafka's tool."""
        return self.kind == TEXT

    def line(self, text: str = "") -> None:
        """One line of Kafka's text."""
        if self.is_text:
            print(text)

    def note(self, text: str) -> None:
        """Something besides the result: never on standard output where a program reads it."""
        print(text, file=sys.stdout if self.is_text else sys.stderr)

    def data(self, document: Any) -> None:
        """The result for programs."""
        if self.kind == "json":
            import json

            print(json.dumps(document, ensure_ascii=False, indent=2, default=str))
        elif self.kind == "yaml":
            print(to_yaml(document), end="")


def camel_case(name: str) -> str:
    """A name of ours as it stands in a document: `silent_brokers` is `silentBrokers` there."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def to_yaml(document: Any, depth: int = 0) -> str:
    """Plain data as YAML; strings are written as JSON writes them, which every YAML reader understands."""
    pad = "  " * depth
    if isinstance(document, dict) and document:
        return "".join(f"{pad}{_scalar(str(key))}:{_below(value, depth)}" for key, value in document.items())
    if isinstance(document, (list, tuple)) and document:
        return "".join(f"{pad}-{_below(value, depth)}" for value in document)
    return f"{pad}{_scalar(document)}\n"


def _below(value: Any, depth: int) -> str:
    if isinstance(value, (dict, list, tuple)) and value:
        return "\n" + to_yaml(value, depth + 1)
    return f" {_scalar(value)}\n"


def _scalar(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, default=str)


def table(rows: list[list[str]], widths: list[int], gap: str = " ") -> list[str]:
    """Rows in columns at least so wide, as Kafka's tools pad them; the last column is padded too."""
    columns = [max(width, *(len(row[place]) for row in rows)) for place, width in enumerate(widths)]
    return [gap.join(f"{text:<{width}}" for text, width in zip(row, columns, strict=True)) for row in rows]
