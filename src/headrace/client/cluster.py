"""A cluster as a client sees it: who leads what, who coordinates whom, and a connection to each when it is needed.

A request goes to any broker, to a named one, to a partition's leader or to a coordinator. What may pass by itself (a
broker that restarts, a leader that moves) is tried again until the deadline; what will not is raised at once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, TypeVar

from headrace.client.channel import Channel, open_channel
from headrace.client.fault import ClientFault, ConnectionEnded, NoBroker, TimedOut
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from headrace.client.options import ConnectionOptions
    from headrace.wire.messages.metadata import MetadataResponse

METADATA, FIND_COORDINATOR = 3, 10
GROUP, TRANSACTION, SHARE = 0, 1, 2
_SEVERAL_KEYS_FIRST = 4
_BACKOFF_FIRST_S, _BACKOFF_MAX_S = 0.05, 1.0

RETRIABLE = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)
"""Errors that pass by themselves, or once we have looked again who is responsible."""

Result = TypeVar("Result")


class Cluster:
    """The way to a cluster; use it as an asynchronous context manager."""

    def __init__(self, options: ConnectionOptions) -> None:
        self.options = options
        self._brokers: dict[int, tuple[str, int]] = {}
        self._channels: dict[tuple[str, int], Channel] = {}
        self._opening: dict[tuple[str, int], asyncio.Lock] = {}
        self._coordinators: dict[tuple[int, str], int] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Hang up everywhere."""
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.close()

    # --- asking

    async def ask(self, api_key: int, message: Any, *, node_id: int | None = None, version: int | None = None) -> Any:
        """Ask any broker, or a named one."""
        channel = await (self.any_channel() if node_id is None else self.channel_to(node_id))
        return await channel.ask(api_key, message, version=version)

    async def ask_coordinator(
        self, kind: int, key: str, api_key: int, message: Any, *, version: int | None = None
    ) -> Any:
        """Ask whoever coordinates a group (or transactional id, or share partition)."""
        return await self.ask(api_key, message, node_id=await self.coordinator_of(kind, key), version=version)

    async def persist(self, attempt: Callable[[], Awaitable[Result]], *, timeout_s: float | None = None) -> Result:
        """Repeat an attempt while it fails for a reason that passes, looking anew each time who is responsible."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (timeout_s or self.options.request_timeout_s)
        pause_s = _BACKOFF_FIRST_S
        while True:
            try:
                return await attempt()
            except KafkaError as error:
                if error.code not in RETRIABLE or loop.time() + pause_s > deadline:
                    raise
            except (ConnectionEnded, TimedOut):
                if loop.time() + pause_s > deadline:
                    raise
            self._coordinators.clear()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _BACKOFF_MAX_S)

    # --- who is where

    async def metadata(self, topics: Iterable[str] | None = None, *, create: bool = False) -> MetadataResponse:
        """The brokers and some topics, or all of them."""
        asked = None if topics is None else tuple(MetadataRequestTopic(name=name) for name in topics)
        answer: MetadataResponse = await self.ask(
            METADATA, MetadataRequest(topics=asked, allow_auto_topic_creation=create)
        )
        self._brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        return answer

    async def brokers(self) -> Sequence[int]:
        """The ids of all brokers."""
        if not self._brokers:
            await self.metadata(())
        return sorted(self._brokers)

    def address_of(self, node_id: int) -> tuple[str, int]:
        """Host and port of a broker that was met before."""
        return self._brokers[node_id]

    async def coordinator_of(self, kind: int, key: str) -> int:
        """The broker that coordinates `key`."""
        known = self._coordinators.get((kind, key))
        if known is not None:
            return known
        channel = await self.any_channel()
        version = channel.version_of(FIND_COORDINATOR)
        if version >= _SEVERAL_KEYS_FIRST:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
            (found,) = (await channel.ask(FIND_COORDINATOR, request, version=version)).coordinators
        else:
            found = await channel.ask(FIND_COORDINATOR, FindCoordinatorRequest(key=key, key_type=kind), version=version)
        if found.error_code:
            raise KafkaError(ErrorCode(found.error_code), found.error_message or "")
        self._brokers[found.node_id] = (found.host, found.port)
        self._coordinators[kind, key] = int(found.node_id)
        return int(found.node_id)

    # --- connections

    async def channel_to(self, node_id: int) -> Channel:
        """A connection to one broker."""
        if node_id not in self._brokers:
            await self.metadata(())
        address = self._brokers.get(node_id)
        if address is None:
            raise NoBroker(f"There is no broker {node_id} in this cluster", f"Known are: {sorted(self._brokers)}.")
        return await self._channel_at(address)

    async def any_channel(self) -> Channel:
        """A connection to whoever answers, an open one first."""
        for channel in self._channels.values():
            if not channel.is_closed:
                return channel
        fault: ClientFault | None = None
        for address in dict.fromkeys((*self.options.bootstrap, *self._brokers.values())):
            try:
                return await self._channel_at(address)
            except NoBroker as problem:
                fault = fault or problem
        assert fault is not None, "there is at least one address to try"
        raise fault

    async def _channel_at(self, address: tuple[str, int]) -> Channel:
        async with self._opening.setdefault(address, asyncio.Lock()):
            channel = self._channels.get(address)
            if channel is None or channel.is_closed:
                self._channels[address] = channel = await open_channel(*address, self.options)
            return channel
