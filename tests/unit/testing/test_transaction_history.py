"""The checker of exactly-once histories: it must find each broken promise, and nothing where none is broken."""

import pytest

from headrace.testing.transaction_history import Ending, Output, Transaction, check

PLACES = [("a", 0), ("a", 1), ("b", 0)]
INPUTS = [(0, 0), (0, 1), (1, 0)]


def began(name: str, *inputs: tuple[int, int], ending: Ending = Ending.COMMITTED) -> Transaction:
    """A transaction that began with these inputs."""
    return Transaction(name, frozenset(inputs), ending)


def written(name: str, *inputs: tuple[int, int], places=PLACES) -> list[Output]:
    """What it left in the places."""
    return [Output(place, offset, name, source) for place in places for offset, source in enumerate(inputs)]


def names(transactions, outputs) -> list[str]:
    """The names of what is found."""
    return [violation.name for violation in check(INPUTS, transactions, outputs, places=PLACES)]


FIRST, SECOND = began("w.1", (0, 0), (0, 1)), began("w.2", (1, 0))
ALL = [*written("w.1", (0, 0), (0, 1)), *written("w.2", (1, 0))]


def test_sound_history():
    """Is nothing found where every input is there once, through a commit, or one nobody was told of?"""
    open_end = began("v.1", (1, 0), ending=Ending.UNKNOWN)

    assert names([FIRST, SECOND], ALL) == []
    assert names([FIRST, open_end, SECOND], ALL) == []
    assert names([FIRST, began("w.2", (1, 0), ending=Ending.UNKNOWN)], ALL) == []
    assert names([FIRST, began("v.1", (1, 0), ending=Ending.ABORTED), SECOND], ALL) == []


BROKEN = {
    "an input without output": ([FIRST], written("w.1", (0, 0), (0, 1)), ["lost-input"] * 3),
    "an input twice": (
        [FIRST, SECOND, began("v.1", (1, 0))],
        [*ALL, *written("v.1", (1, 0))],
        ["duplicate"] * 3,
    ),
    "aborted and read": (
        [FIRST, began("w.2", (1, 0), ending=Ending.ABORTED)],
        ALL,
        ["G1a"] * 3,
    ),
    "committed and gone": ([FIRST, SECOND, began("v.1", (1, 0))], ALL, ["lost-commit"]),
    "in two places of three": (
        [FIRST, SECOND],
        [*written("w.1", (0, 0), (0, 1)), *written("w.2", (1, 0), places=PLACES[:2])],
        ["lost-input", "torn"],
    ),
    "half of it": (
        [FIRST, SECOND],
        [*written("w.1", (0, 0)), *written("w.2", (1, 0))],
        ["lost-input"] * 3 + ["torn"] * 3,
    ),
    "by nobody": ([FIRST, SECOND], [*ALL, Output(("a", 0), 9, "x.1", (7, 7))], ["phantom"]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_promises(name):
    """Is each broken promise called by its name?"""
    transactions, outputs, expected = BROKEN[name]

    assert names(transactions, outputs) == expected
