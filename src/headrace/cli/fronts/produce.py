"""`headrace produce`: kafka-console-producer in fewer words; records may stand on the command line."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from headrace.cli.fronts.front import Front, Verb, run_front
from headrace.cli.tool import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


def _translate(words: list[str]) -> list[str]:
    if not words:
        raise UsageError("the name of the topic is missing")
    topic, *records = words
    if records:
        text = "".join(f"{record}\n" for record in records)
        sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode(errors="surrogateescape")))
    return ["--topic", topic]


FRONT = Front(
    name="produce",
    tool="kafka-console-producer",
    summary="Send records: those on the command line, or else one per line of the input.",
    verbs={"": Verb(usage="TOPIC [RECORD]...", help="send to the topic", translate=_translate)},
    short={
        "b": "bootstrap-server",
        "k": "key",
        "H": "header",
        "p": "partition",
        "P": "command-property",
        "r": "reader-property",
        "z": "compression-codec",
    },
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    before = sys.stdin
    try:
        return run_front(FRONT, arguments)
    finally:
        sys.stdin = before
