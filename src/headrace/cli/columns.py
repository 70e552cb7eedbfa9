"""Tables whose columns are as wide as Kafka's tools make them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Width = Callable[[int], int]
    """How wide a column is, given the longest text in it."""


def least(width: int) -> Width:
    """A column that grows with what is in it."""
    return lambda longest: max(width, longest)


def fixed(width: int) -> Width:
    """A column that does not grow: a longer text pushes the rest of its row aside."""
    return lambda _: width


BARE = fixed(0)
"""A column without padding."""


def columns(rows: Sequence[Sequence[object]], widths: Sequence[Width]) -> list[str]:
    """The rows as lines, each text to the left of its column, columns separated by a blank."""
    texts = [["-" if value is None else str(value) for value in row] for row in rows]
    spaces = [width(max(len(row[place]) for row in texts)) for place, width in enumerate(widths)]
    return [" ".join(f"{text:<{space}}" for text, space in zip(row, spaces, strict=True)) for row in texts]


def tabbed(rows: Sequence[Sequence[object]]) -> list[str]:
    """The rows as lines in Kafka's other style: every column as wide as its longest text, a tab after each."""
    texts = [[str(value) for value in row] for row in rows]
    spaces = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return ["".join(f"{text:<{space}}\t" for text, space in zip(row, spaces, strict=True)) for row in texts]
