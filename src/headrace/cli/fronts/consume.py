"""`headrace consume`: kafka-console-consumer in fewer words; on a terminal a record's place and key stand before it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from headrace.cli.colours import CYAN, DIM, wants_colour
from headrace.cli.fronts.front import Front, Verb, one_word, run_front

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN = f"\033[{DIM}m%p:%o\033[0m \033[{CYAN}m%k\033[0m %v\\n"
"""How a record looks on a terminal: partition and offset, key, value."""
_OWN_FORMATS = ("--format", "--formatter", "--formatter-property", "--formatter-config", "--property", "--output", "-f")

FRONT = Front(
    name="consume",
    tool="kafka-console-consumer",
    summary="Read records: values alone where a program reads them, with place and key on a terminal.",
    verbs={"": Verb(usage="TOPIC", help="read what comes", translate=one_word([], "--topic", "the topic"))},
    short={
        "b": "bootstrap-server",
        "f": "format",
        "g": "group",
        "n": "max-messages",
        "p": "partition",
        "l": "last",
        "e": "exit-at-end",
        "o": "output",
    },
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    chosen = any(word.partition("=")[0] in (*_OWN_FORMATS, "-o") for word in arguments)
    shown = ["--format", SHOWN] if wants_colour(sys.stdout) and not chosen else []
    return run_front(FRONT, [*arguments, *shown])
