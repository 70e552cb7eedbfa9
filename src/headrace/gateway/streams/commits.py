"""What a stream commits to its group: what was sent, or what its client acknowledged; at most once a second.

HTTP does not say when a client has read something. What was sent counts once it has left for a second and the client is
still there, so that one that goes away gets again what it may not have seen: at least once. Over a WebSocket the client
says itself what it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from headrace.client.cluster import RETRIABLE
from headrace.client.fault import ClientFault
from headrace.client.records import TopicPartition
from headrace.gateway.problem import Problem, problem_of
from headrace.gateway.streams.start import GROUP_BUSY
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.client.async_admin import AsyncKafkaAdmin

_INTERVAL_S: Final = 1.0
_TAKEN: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS})


class Commits:
    """The commits of one stream."""

    def __init__(self, admin: AsyncKafkaAdmin, group: str, fail: Callable[[Problem], None]) -> None:
        self._admin = admin
        self._group = group
        self._fail = fail
        self._committed: dict[TopicPartition, int] = {}
        self._settled: dict[TopicPartition, int] = {}
        self._sent: dict[TopicPartition, int] = {}
        self._task = asyncio.create_task(self._run())

    def sent(self, positions: Mapping[TopicPartition, int]) -> None:
        """So much was handed to the client; it counts a while later."""
        self._sent = dict(positions)

    def acknowledged(self, positions: Mapping[TopicPartition, int]) -> None:
        """The client has so much."""
        for place, offset in positions.items():
            if offset > self._settled.get(place, -1):
                self._settled[place] = offset

    async def close(self, *, all_arrived: bool) -> None:
        """The last commit: of all that was sent, if the stream ended well."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if all_arrived:
            self._settled |= self._sent
        await self._commit()

    async def _run(self) -> None:
        while True:
            before = dict(self._sent)
            await asyncio.sleep(_INTERVAL_S)
            self._settled |= before
            await self._commit()

    async def _commit(self) -> None:
        due = {place: offset for place, offset in self._settled.items() if self._committed.get(place) != offset}
        if not due:
            return
        try:
            await self._admin.alter_group_offsets(self._group, due)
            self._committed |= due
        except KafkaError as error:
            if error.code in _TAKEN:
                sentence = f"Group '{self._group}' has members now, which commit for themselves."
                self._fail(Problem(409, GROUP_BUSY, sentence))
            elif error.code not in RETRIABLE and (problem := problem_of(error)) is not None:
                self._fail(problem)
        except ClientFault:
            # A cluster that cannot be reached is asked again; what was not committed comes again.
            return
