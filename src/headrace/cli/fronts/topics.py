"""`headrace topics`: kafka-topics in fewer words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.colours import BOLD, CYAN, DIM, RED, YELLOW
from headrace.cli.fronts.front import Front, Verb, no_words, one_word, run_front
from headrace.cli.tool import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


def _delete(words: list[str]) -> list[str]:
    if len(words) != 1:
        raise UsageError("write the name of one topic")
    # To the tool it is a regular expression; what is typed here is a name, and a dot in it is a dot.
    return ["--delete", "--topic", words[0].replace(".", "[.]")]


FRONT = Front(
    name="topics",
    tool="kafka-topics",
    summary="Topics: list them, make one, look at it, give it more partitions, delete it.",
    verbs={
        "": Verb(usage="", help="the names of all topics", translate=no_words(["--list"])),
        "list": Verb(usage="list", help="the same", translate=no_words(["--list"])),
        "create": Verb(
            usage="create NAME [-p PARTITIONS] [-r REPLICAS] [-c setting=value]...",
            help="make a topic",
            translate=one_word(["--create"], "--topic", "the topic"),
        ),
        "describe": Verb(
            usage="describe [NAME]",
            help="where the partitions are",
            translate=one_word(["--describe"], "--topic", "the topic", optional=True),
        ),
        "alter": Verb(
            usage="alter NAME -p PARTITIONS",
            help="give it more partitions",
            translate=one_word(["--alter"], "--topic", "the topic"),
            after=lambda words: f"Altered topic {words[0]}.",
        ),
        "delete": Verb(
            usage="delete NAME",
            help="delete it and its records",
            translate=_delete,
            after=lambda words: f"Deleted topic {words[0]}.",
        ),
    },
    short={"p": "partitions", "r": "replication-factor", "c": "config", "b": "bootstrap-server"},
    rules=(
        (r"Leader: none|^Error .*", RED),
        (r"^WARNING.*", YELLOW),
        (r"(?<=^Topic: )[^\t]+|(?<=^Created topic ).*(?=\.)", BOLD),
        (r"\b(?:Leader|Partition): -?\d+", CYAN),
        (r"\b[A-Z][A-Za-z]+:(?= )", DIM),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    return run_front(FRONT, arguments)
