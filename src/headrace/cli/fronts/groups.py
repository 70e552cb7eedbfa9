"""`headrace groups`: kafka-consumer-groups in fewer words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.colours import BOLD, RED, YELLOW
from headrace.cli.fronts.front import Front, Verb, no_words, one_word, run_front
from headrace.cli.tool import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


def _reset(words: list[str]) -> list[str]:
    if not 1 <= len(words) <= 2:
        raise UsageError("write the name of the group, and that of the topic if only one is meant")
    topics = ["--topic", words[1]] if len(words) > 1 else ["--all-topics"]
    return ["--reset-offsets", "--group", words[0], *topics]


FRONT = Front(
    name="groups",
    tool="kafka-consumer-groups",
    summary="Consumer groups: list them, see how far they have read, send them elsewhere, delete them.",
    verbs={
        "": Verb(usage="", help="the names of all groups", translate=no_words(["--list"])),
        "list": Verb(usage="list", help="the same", translate=no_words(["--list"])),
        "describe": Verb(
            usage="describe NAME",
            help="how far it has read, partition by partition",
            translate=one_word(["--describe"], "--group", "the group"),
        ),
        "members": Verb(
            usage="members NAME",
            help="who is in it",
            translate=one_word(["--describe", "--members"], "--group", "the group"),
        ),
        "reset": Verb(
            usage="reset NAME [TOPIC] --to-earliest|--to-latest|--to-datetime T|... --dry-run|--execute",
            help="let it read from elsewhere",
            translate=_reset,
        ),
        "delete": Verb(usage="delete NAME", help="forget it", translate=one_word(["--delete"], "--group", "the group")),
    },
    short={"b": "bootstrap-server"},
    rules=(
        (r"^Error.*", RED),
        (r"^Warn.*", YELLOW),
        (r"^GROUP +[A-Z].*", BOLD),
        # The lag: the sixth column of a row of offsets, where it is not nothing.
        (r"(?<=\d) +[1-9]\d*(?= +\S+ +(?:/|-))", YELLOW),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    return run_front(FRONT, arguments)
