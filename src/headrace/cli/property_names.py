"""Names of properties that a reader or a formatter is given: one it does not know is said, with the nearest it does."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def tell_unknown(given: Iterable[str], known: Iterable[str], *, prefixes: Sequence[str] = ()) -> None:
    """Say on standard error which names nothing comes of; as in Kafka's tools, the rest counts."""
    names = list(known)
    for name in given:
        if name in names or name.startswith(tuple(prefixes)):
            continue
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known are: {', '.join(names)}."
        print(f"Warning: {name} is not a known property{hint}", file=sys.stderr)
