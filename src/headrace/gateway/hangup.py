"""Clients that hang up while they are made to wait: nothing more is done for them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.gateway.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from starlette.requests import Request

Result = TypeVar("Result")


async def unless_hung_up(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Do something that takes long, and give it up when the client does; for requests whose body has been read."""
    doing = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({doing, gone}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
    finally:
        gone.cancel()
        doing.cancel()
        await asyncio.wait({doing, gone})
    raise Problem(408, 408, "The client hung up.")


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
