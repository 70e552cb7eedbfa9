"""Options Kafka has dropped and people still type: they work, and one line says what they are called now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from headrace.cli.tool import Option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.cli.tool import Values

BROKER_LIST = Option(name="broker-list", argument="host:port,...", help="", is_hidden=True)
FROM_BEGINING = Option(name="from-begining", help="", is_hidden=True)
WHITELIST = Option(name="whitelist", argument="regex", help="", is_hidden=True)
NEW_CONSUMER = Option(name="new-consumer", help="", is_hidden=True)


def adopt(values: Values, names: Mapping[str, str]) -> None:
    """Read each old name as its new one; an empty new name means that the option has nothing to say any more."""
    for old, new in names.items():
        if old not in values.given:
            continue
        if new:
            values.given.setdefault(new, values.given[old])
            print(f"--{old} is called --{new} now.", file=sys.stderr)
