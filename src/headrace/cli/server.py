"""`headrace server`: the three things done to a server, under short names.

    headrace server start [-daemon] [server.properties] [--override property=value]*
    headrace server stop [--node-id N] [--process-role ROLE]
    headrace server format ...        as kafka-storage format

Unlike Kafka's script, `start` knows where the sample configuration is, and `stop` waits until the server is gone.
"""

import sys
from collections.abc import Sequence

from headrace.cli import server_start, server_stop, storage
from headrace.cli.layout import sample_config

USAGE = "Usage: headrace server start|stop|format ..."


def main(arguments: Sequence[str], program: str) -> int:
    """Start, stop or format."""
    match list(arguments):
        case ["start", *rest]:
            return server_start.main(_with_config(rest), "headrace server start")
        case ["stop", *rest]:
            return server_stop.main(rest, "headrace server stop", wait=True)
        case ["format", *rest]:
            return storage.main(["format", *rest], "headrace server")
        case _:
            print(USAGE, file=sys.stderr)
            return 1


def _with_config(arguments: list[str]) -> list[str]:
    """Put the sample configuration where Kafka expects a file name, if the person gave none."""
    flags = arguments[:1] if arguments[:1] == ["-daemon"] else []
    rest = arguments[len(flags) :]
    if rest and not rest[0].startswith("--override"):
        return arguments
    return [*flags, str(sample_config("server.properties")), *rest]
