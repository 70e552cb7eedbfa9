"""A word for people who wait: said on standard error when an answer takes longer than they expect."""

from __future__ import annotations

import asyncio
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SLOW_S = 2.0
_AGAIN_S = 5.0


@contextmanager
def patience(what: str) -> Iterator[None]:
    """Say what is waited for when it takes more than two seconds, and again every few seconds."""
    task = asyncio.ensure_future(_say(what))
    try:
        yield
    finally:
        task.cancel()


async def _say(what: str) -> None:
    waited_s = _SLOW_S
    await asyncio.sleep(_SLOW_S)
    while True:
        print(f"Headrace: {what} ({waited_s:.0f} s)", file=sys.stderr, flush=True)
        await asyncio.sleep(_AGAIN_S)
        waited_s += _AGAIN_S
