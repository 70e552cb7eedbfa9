"""Reads that wait for records, each on connections of its own: on a shared one, the others would wait with it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from headrace.client.cluster import Cluster
from headrace.client.fetching import Fetcher
from headrace.gateway.problem import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from headrace.client.options import ConnectionOptions


class WaitingReads:
    """A bounded number of fetchers; their connections are used again."""

    def __init__(self, options: ConnectionOptions, *, most: int) -> None:
        self._options = options
        self._most = most
        self._free: list[Cluster] = []
        self._busy = 0

    @asynccontextmanager
    async def fetcher(self) -> AsyncIterator[Fetcher]:
        """A fetcher that nobody else uses meanwhile; Problem(429) if all are taken."""
        if self._busy >= self._most:
            raise Problem(
                429,
                429,
                f"{self._most} reads wait for records already (reads.waiting.max).",
                headers={"retry-after": "1"},
            )
        self._busy += 1
        cluster = self._free.pop() if self._free else Cluster(self._options)
        try:
            yield Fetcher(cluster)
        except BaseException:
            # Its broker may still be about to answer.
            await cluster.close()
            raise
        else:
            self._free.append(cluster)
        finally:
            self._busy -= 1

    async def close(self) -> None:
        """Hang up."""
        free, self._free = self._free, []
        for cluster in free:
            await cluster.close()
