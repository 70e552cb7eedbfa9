"""One reader per broker for all streams: the tail of every partition that somebody follows, fetched and decoded once.

The hub knows who leads what (it looks every few seconds, and at once when a broker says it is not so any more), keeps
one long fetch open to every leader, and wakes who follows the partitions that got something. It decides nothing about
streams: one that is behind a tail, or whose partition is gone, finds out when it reads for itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeVar
from uuid import UUID

from headrace.client.cluster import Cluster
from headrace.client.fault import ClientFault
from headrace.client.fetching import FetchedPartition, Fetcher
from headrace.client.records import TopicPartition
from headrace.gateway.streams.event import Event
from headrace.gateway.streams.tail import Tail
from headrace.model.errors import HeadraceError, KafkaError
from headrace.settings.gateway import GatewayConfig

logger = logging.getLogger(__name__)

Kind = TypeVar("Kind")

_WAIT_MS: Final = 100
"""How long a fetch waits for records; a partition that is followed anew has to wait for the one under way."""
_FETCH_BYTES: Final = 1024 * 1024
_PARTITION_BYTES: Final = 128 * 1024
_GATHER_S: Final = 0.01
"""A record that comes right behind others waits so long, so that a fetch brings more than a handful."""
_TURN: Final = 50
"""How many are served before others have a turn; what was put on their connections leaves then, too."""
_KEEP_S: Final = 10.0
_PAUSE_S: Final = 0.1
_MISSED_PAUSE_S: Final = 0.3
_MISSES_MAX: Final = 3
"""How often in a row a topic may not be known before it is gone: a broker that just came up may know too little."""


class Follower(Protocol):
    """Somebody who wants to know."""

    key: bytes | None
    """The only key it wants, if it wants one."""
    passes: Callable[[Any], bool] | None
    """What a record must pass, if it wants not all; those with the same filter have the same function."""

    def wake(self, place: TopicPartition, base: int) -> None:
        """Something came; what lies before `base` was there to be taken before, or is not what it wants."""

    def serve(self, now_s: float) -> None:
        """That was all for now: hand it over."""

    def grow(self, topic: str, partitions: Iterable[int]) -> None:
        """These are the partitions of a topic now."""

    def lose(self, topic: str) -> None:
        """A topic is gone."""


class Topic(NamedTuple):
    """A topic as metadata shows it."""

    topic_id: UUID
    leaders: Mapping[int, int]
    """The leader of each partition, -1 if it has none now."""


class _Audience:
    """Who follows one partition."""

    __slots__ = ("all", "by_filter", "by_key", "tail")

    def __init__(self, tail: Tail) -> None:
        self.tail = tail
        self.all: set[Follower] = set()
        self.by_key: dict[bytes, set[Follower]] = {}
        self.by_filter: dict[Callable[[Any], bool], set[Follower]] = {}

    def add(self, one: Follower) -> None:
        if one.key is not None:
            self.by_key.setdefault(one.key, set()).add(one)
        elif one.passes is not None:
            self.by_filter.setdefault(one.passes, set()).add(one)
        else:
            self.all.add(one)

    def remove(self, one: Follower) -> None:
        self.all.discard(one)
        if one.key is not None:
            _remove(self.by_key, one.key, one)
        elif one.passes is not None:
            _remove(self.by_filter, one.passes, one)

    def __bool__(self) -> bool:
        return bool(self.all or self.by_key or self.by_filter)

    def everybody(self) -> set[Follower]:
        return self.all.union(*self.by_key.values(), *self.by_filter.values())

    def concerned(self, events: list[Event]) -> Iterator[Follower]:
        """Who may want one of these, or more than one."""
        yield from self.all
        if self.by_key:
            for key in self.by_key.keys() & {event.record.key for event in events}:
                yield from self.by_key[key]
        for passes, followers in self.by_filter.items():
            if any(map(passes, events)):
                yield from followers


def _remove(groups: dict[Kind, set[Follower]], kind: Kind, one: Follower) -> None:
    if kind in groups:
        groups[kind].discard(one)
        if not groups[kind]:
            del groups[kind]


class Hub:
    """The readers and what they read; `start` it, and `close` it at the end."""

    def __init__(self, cluster: Cluster, waiting: Cluster, config: GatewayConfig) -> None:
        """The hub asks the one, and waits for records at the other, which is its own."""
        self._cluster = cluster
        self._fetcher = Fetcher(waiting)
        self._look_s: float = config["stream.metadata.ms"] / 1000
        self._tail_bytes = config["stream.tail.bytes"]
        self._audiences: dict[TopicPartition, _Audience] = {}
        self._topics: dict[str, Topic] = {}
        self._followed: dict[str, set[Follower]] = {}
        self._misses: dict[str, int] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self._readers: dict[int, tuple[asyncio.Task[None], asyncio.Event]] = {}
        self._look = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Read no more."""
        tasks = [task for task, _ in self._readers.values()] + ([self._watch] if self._watch else [])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._readers.clear()
        self._watch = None

    # --- what streams ask

    def enter(self, follower: Follower, topics: Mapping[str, Topic]) -> None:
        """Somebody will follow partitions of these topics, and wants to hear of new ones."""
        for name, topic in topics.items():
            known = self._topics.get(name)
            if known is not None and known.topic_id != topic.topic_id:
                self._lose(name)
            self._followed.setdefault(name, set()).add(follower)
            self._learn(name, topic)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._keep_watch())

    def leave(self, follower: Follower, topics: Iterable[str], places: Iterable[TopicPartition]) -> None:
        """Somebody is gone."""
        for place in places:
            self.unfollow(follower, place)
        for name in topics:
            here = self._followed.get(name)
            if here is not None:
                here.discard(follower)
                if not here:
                    del self._followed[name]
                    self._topics.pop(name, None)
                    self._misses.pop(name, None)

    def follow(self, follower: Follower, place: TopicPartition, offset: int) -> bool:
        """Follow a partition from an offset on; False if that lies before its tail, and must be read first."""
        audience = self._audiences.get(place)
        if audience is None:
            audience = self._audiences[place] = _Audience(Tail(offset, self._tail_bytes))
            self._stir(self._leaders.get(place))
        elif offset < audience.tail.start:
            return False
        audience.add(follower)
        return True

    def unfollow(self, follower: Follower, place: TopicPartition) -> None:
        """Follow no more; a tail that nobody follows is let go."""
        audience = self._audiences.get(place)
        if audience is not None:
            audience.remove(follower)
            if not audience:
                del self._audiences[place]

    def tail(self, place: TopicPartition) -> Tail | None:
        """What is kept of a partition."""
        audience = self._audiences.get(place)
        return None if audience is None else audience.tail

    def leader(self, place: TopicPartition) -> int | None:
        """The broker to read from, if it is known."""
        return self._leaders.get(place)

    def doubt(self, places: Iterable[TopicPartition]) -> None:
        """What is known of these led nowhere: look again, now."""
        for place in places:
            self._leaders.pop(place, None)
        self._look.set()

    # --- who leads what

    async def look_up(self, names: Iterable[str]) -> dict[str, Topic]:
        """Topics as they are now, those that are not there left out."""
        answer = await self._cluster.metadata(sorted(names))
        return {
            one.name or "": Topic(one.topic_id, {part.partition_index: part.leader_id for part in one.partitions})
            for one in answer.topics
            if not one.error_code
        }

    def _learn(self, name: str, topic: Topic) -> None:
        self._topics[name] = topic
        self._misses.pop(name, None)
        for number, leader in topic.leaders.items():
            place = TopicPartition(name, number)
            if leader < 0:
                self._leaders.pop(place, None)
                self._look.set()
            elif self._leaders.get(place) != leader:
                self._leaders[place] = leader
                self._stir(leader)

    async def _keep_watch(self) -> None:
        """Look again every few seconds, and sooner if something is amiss."""
        pause_s = self._look_s
        while True:
            try:
                async with asyncio.timeout(pause_s):
                    await self._look.wait()
                # Many ask at once when a broker goes.
                await asyncio.sleep(_PAUSE_S)
            except TimeoutError:
                pass
            self._look.clear()
            self._expire()
            self._revive()
            try:
                pause_s = await self._look_again()
            except (ClientFault, KafkaError) as fault:
                logger.info("stream_metadata_failed reason=%s", fault)
                pause_s = _MISSED_PAUSE_S

    async def _look_again(self) -> float:
        if not self._followed:
            return self._look_s
        found = await self.look_up(self._followed)
        pause_s = self._look_s
        for name in list(self._followed):
            topic, known = found.get(name), self._topics.get(name)
            if topic is None:
                self._misses[name] = self._misses.get(name, 0) + 1
                pause_s = _MISSED_PAUSE_S
            if self._misses.get(name, 0) >= _MISSES_MAX or (topic and known and topic.topic_id != known.topic_id):
                self._lose(name)
            elif topic is not None:
                self._learn(name, topic)
                if known is None or len(known.leaders) != len(topic.leaders):
                    for follower in list(self._followed[name]):
                        follower.grow(name, topic.leaders)
                if any(leader < 0 for leader in topic.leaders.values()):
                    pause_s = _MISSED_PAUSE_S
        return pause_s

    def _lose(self, name: str) -> None:
        for follower in list(self._followed.get(name, ())):
            follower.lose(name)

    def _expire(self) -> None:
        before_s = asyncio.get_running_loop().time() - _KEEP_S
        for audience in self._audiences.values():
            audience.tail.expire(before_s)

    # --- reading

    def _stir(self, leader: int | None) -> None:
        """There is something for a reader to do."""
        if leader is None:
            self._look.set()
            return
        if leader not in self._readers:
            news = asyncio.Event()
            self._readers[leader] = (asyncio.create_task(self._read(leader, news)), news)
        self._readers[leader][1].set()

    def _revive(self) -> None:
        """A reader that made a mistake must not leave everybody waiting."""
        for leader, (task, _) in list(self._readers.items()):
            if task.done():
                logger.error("stream_reader_failed leader=%s", leader, exc_info=task.exception())
                del self._readers[leader]
                self._stir(leader)

    async def _read(self, leader: int, news: asyncio.Event) -> None:
        while True:
            wanted = {
                place: audience.tail.end
                for place, audience in self._audiences.items()
                if self._leaders.get(place) == leader
            }
            if not wanted:
                news.clear()
                await news.wait()
                continue
            try:
                answers = await self._fetcher.fetch_from(
                    leader, wanted, max_wait_ms=_WAIT_MS, max_bytes=_FETCH_BYTES, partition_bytes=_PARTITION_BYTES
                )
            except HeadraceError as fault:
                logger.info("stream_fetch_failed leader=%s reason=%s", leader, fault)
                self.doubt(wanted)
                await asyncio.sleep(_PAUSE_S)
                continue
            refused = [place for place, one in answers.items() if isinstance(one, KafkaError)]
            woken: set[Follower] = set()
            for place, one in answers.items():
                if isinstance(one, FetchedPartition):
                    woken.update(self._take_in(place, wanted[place], one))
            if refused:
                woken |= self._give_up(refused)
            await _serve(woken)
            await asyncio.sleep(_PAUSE_S if refused else _GATHER_S)

    def _take_in(self, place: TopicPartition, asked: int, answer: FetchedPartition) -> Iterable[Follower]:
        """Keep what came; who has been woken for it."""
        audience = self._audiences.get(place)
        # Somebody may have left, and somebody else begun elsewhere, while we waited.
        if audience is None or audience.tail.end != asked or answer.position == asked:
            return ()
        events = [Event(record) for record in answer.records]
        audience.tail.add(events, answer.position, asyncio.get_running_loop().time())
        return _wake(audience.concerned(events), place, asked)

    def _give_up(self, places: Iterable[TopicPartition]) -> set[Follower]:
        """Whoever follows these finds out by itself why they cannot be read: lost to retention, moved, or gone."""
        woken: set[Follower] = set()
        for place in places:
            audience = self._audiences.pop(place, None)
            if audience is not None:
                woken |= _wake(audience.everybody(), place, audience.tail.end)
        self.doubt(places)
        return woken


def _wake(followers: Iterable[Follower], place: TopicPartition, base: int) -> set[Follower]:
    woken = set(followers)
    for one in woken:
        one.wake(place, base)
    return woken


async def _serve(woken: Iterable[Follower]) -> None:
    """Have everybody hand over what came, from all partitions at once; a thousand take too long for one turn."""
    loop = asyncio.get_running_loop()
    now_s = loop.time()
    for number, follower in enumerate(woken, 1):
        follower.serve(now_s)
        if number % _TURN == 0:
            await asyncio.sleep(0)
            now_s = loop.time()
