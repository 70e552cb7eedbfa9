"""The way to a cluster for code that waits for its answers: connections, leaders and coordinators, each looked up once.

A task runs in a process that has no event loop and will run more tasks: `links_to` keeps what was found for the next
one. What may pass by itself (a broker that restarts, a leader that moves) is tried again by `persist`, for as long as
the caller has patience.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.client.blocking_channel import BlockingChannel
from headrace.client.cluster import FIND_COORDINATOR, GROUP, METADATA, RETRIABLE, TRANSACTION
from headrace.client.fault import ClientFault, ConnectionEnded, NoBroker, TimedOut
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

if TYPE_CHECKING:
    from headrace.client.options import ConnectionOptions
    from headrace.wire.messages.metadata import MetadataResponse

__all__ = ["GROUP", "TRANSACTION", "Links", "links_to", "persist"]

_BACKOFF_FIRST_S, _BACKOFF_MAX_S = 0.005, 0.5
_CLUSTERS_MAX = 16
_SEVERAL_KEYS_FIRST = 4
PASSING = RETRIABLE | {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNSTABLE_OFFSET_COMMIT}
"""Errors that pass by themselves, those of transactions that are just being completed among them."""
_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})

Result = TypeVar("Result")


class Links:
    """Connections to the brokers of one cluster; for one thread."""

    def __init__(self, options: ConnectionOptions) -> None:
        self.options = options
        self._brokers: dict[int, tuple[str, int]] = {}
        self._channels: dict[tuple[str, int], BlockingChannel] = {}
        self._lanes: dict[int, BlockingChannel] = {}
        self._coordinators: dict[tuple[int, str], int] = {}

    def close(self) -> None:
        """Hang up everywhere."""
        for channel in (*self._channels.values(), *self._lanes.values()):
            channel.close()
        self._channels.clear()
        self._lanes.clear()

    # --- who is where

    def metadata(self, topics: Collection[str], *, create: bool = False) -> MetadataResponse:
        """The brokers and these topics, from whoever answers."""
        asked = tuple(MetadataRequestTopic(name=name) for name in topics)
        answer: MetadataResponse = self._ask(
            self._anyone(), METADATA, MetadataRequest(topics=asked, allow_auto_topic_creation=create)
        )
        self._brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        return answer

    def coordinator_of(self, kind: int, key: str) -> int:
        """The broker that coordinates a group or a transactional id."""
        known = self._coordinators.get((kind, key))
        if known is not None:
            return known
        address = self._anyone()
        version = self._channels[address].version_of(FIND_COORDINATOR)
        if version >= _SEVERAL_KEYS_FIRST:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
            (found,) = self._ask(address, FIND_COORDINATOR, request).coordinators
        else:
            found = self._ask(address, FIND_COORDINATOR, FindCoordinatorRequest(key=key, key_type=kind))
        if found.error_code:
            raise KafkaError(ErrorCode(found.error_code), found.error_message or "There is no coordinator yet.")
        self._brokers[found.node_id] = (found.host, found.port)
        self._coordinators[kind, key] = found.node_id
        return int(found.node_id)

    def forget_coordinators(self) -> None:
        """Look anew who coordinates what."""
        self._coordinators.clear()

    # --- asking

    def ask_coordinator(self, kind: int, key: str, api_key: int, message: Any, *, at_most: int) -> Any:
        """Ask whoever coordinates `key`, in no version above `at_most`."""
        address = self._address_of(self.coordinator_of(kind, key))
        return self._ask(address, api_key, message, at_most=at_most)

    def ask_anyone(self, api_key: int, message: Any, *, at_most: int) -> Any:
        """Ask whoever answers."""
        return self._ask(self._anyone(), api_key, message, at_most=at_most)

    def lane_to(self, node_id: int) -> BlockingChannel:
        """A connection for requests that are sent ahead of their answers; `drop_lane` when something goes wrong."""
        if node_id not in self._lanes:
            self._lanes[node_id] = BlockingChannel(*self._address_of(node_id), self.options)
        return self._lanes[node_id]

    def drop_lane(self, node_id: int) -> None:
        """Hang up on a broker: what is on its way will not be read."""
        lane = self._lanes.pop(node_id, None)
        if lane is not None:
            lane.close()

    def clear_lanes(self) -> None:
        """Hang up where somebody left answers unread."""
        for node_id in [node_id for node_id, lane in self._lanes.items() if not lane.is_idle]:
            self.drop_lane(node_id)

    def _address_of(self, node_id: int) -> tuple[str, int]:
        if node_id not in self._brokers:
            self.metadata(())
        if node_id not in self._brokers:
            raise NoBroker(f"There is no broker {node_id} in this cluster", f"Known are: {sorted(self._brokers)}.")
        return self._brokers[node_id]

    def _anyone(self) -> tuple[str, int]:
        """Where somebody answers, an open connection first."""
        fault: ClientFault | None = None
        for address in dict.fromkeys((*self._channels, *self.options.bootstrap, *self._brokers.values())):
            try:
                self._channel_at(address)
            except (NoBroker, ConnectionEnded, TimedOut) as problem:
                fault = fault or problem
            else:
                return address
        assert fault is not None, "there is at least one address to try"
        raise fault

    def _channel_at(self, address: tuple[str, int]) -> BlockingChannel:
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = BlockingChannel(*address, self.options)
        return channel

    def _ask(self, address: tuple[str, int], api_key: int, message: Any, *, at_most: int | None = None) -> Any:
        channel = self._channel_at(address)
        try:
            return channel.ask(api_key, message, version=channel.version_of(api_key, at_most=at_most))
        except BaseException:
            # An answer that was not read would be taken for that of the next question.
            self._hang_up(address)
            raise

    def _hang_up(self, address: tuple[str, int]) -> None:
        channel = self._channels.pop(address, None)
        if channel is not None:
            channel.close()


def persist(
    links: Links,
    attempt: Callable[[], Result],
    *,
    patience_s: float,
    passing: Collection[ErrorCode] = PASSING,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Result:
    """Repeat an attempt while it fails for a reason that passes, looking anew each time who is responsible."""
    deadline = clock() + patience_s
    pause_s = _BACKOFF_FIRST_S
    while True:
        try:
            return attempt()
        except KafkaError as error:
            if error.code not in passing or clock() + pause_s > deadline:
                raise
            if error.code in _MOVED:
                links.forget_coordinators()
        except (ConnectionEnded, TimedOut, NoBroker):
            if clock() + pause_s > deadline:
                raise
            links.forget_coordinators()
        pause(pause_s)
        pause_s = min(2 * pause_s, _BACKOFF_MAX_S)


_KNOWN: dict[tuple[int, ConnectionOptions], Links] = {}


def links_to(options: ConnectionOptions) -> Links:
    """The links of this process to a cluster; a process that was forked makes its own."""
    key = (os.getpid(), options)
    if key not in _KNOWN:
        while len(_KNOWN) >= _CLUSTERS_MAX:
            _KNOWN.pop(next(iter(_KNOWN))).close()
        _KNOWN[key] = Links(options)
    return _KNOWN[key]


@atexit.register
def hang_up() -> None:
    """Close what this process opened, when it ends; what it has from the one it was forked from is that one's."""
    for key in [key for key in _KNOWN if key[0] == os.getpid()]:
        _KNOWN.pop(key).close()
