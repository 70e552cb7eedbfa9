"""One stream, whatever its form: takes from tails, reads for itself what is behind them, and hands it to its client.

The loop waits for two things only: for the client to take what it was given, and for news. Reading from the log goes on
beside it and holds at most stream.buffer.bytes; nothing is read ahead of a client that does not take.

News for a client that has taken everything need not wake the loop: the hub has the stream put them on the connection
then and there (`serve`), which costs about half. Whatever is not as simple as that is left to the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.client.fault import ClientFault
from headrace.client.fetching import FetchedPartition
from headrace.client.records import TopicPartition
from headrace.gateway.problem import TOPIC_NOT_FOUND, Problem, problem_of
from headrace.gateway.streams.cursor import Cursor, Shown
from headrace.gateway.streams.event import Event
from headrace.gateway.streams.form import Form
from headrace.gateway.streams.moment import EARLIEST, LATEST
from headrace.gateway.streams.start import Start, find_stops
from headrace.gateway.streams.wish import Wish
from headrace.model.errors import ErrorCode, HeadraceError, KafkaError

if TYPE_CHECKING:
    from headrace.gateway.connection import Put
    from headrace.gateway.streams.registry import Streams

_CHUNK_BYTES: Final = 64 * 1024
_READ_PLACES_MAX: Final = 100
_PAUSE_S: Final = 0.1
_NEVER: Final = float("inf")
_ELSEWHERE: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)
"""Somebody else leads it, or will; or the topic is gone, which the hub will say."""

Write = Callable[[Sequence[bytes]], Awaitable[None]]


class _Read(NamedTuple):
    """What the stream read for itself and has not sent yet."""

    place: TopicPartition
    events: deque[Event]
    position: int
    reaches_end: bool


@dataclass(frozen=True, slots=True)
class Ending:
    """How a stream ended: well (`until`, `max`), with a problem, or because its client went."""

    reason: str
    problem: Problem | None = None


class Stream:
    """A stream that is open."""

    def __init__(self, streams: Streams, wish: Wish, start: Start, form: Form) -> None:
        self.wish = wish
        self.key = wish.key
        self.passes = wish.passes
        self.cursor = Cursor(
            start.positions,
            key=wish.key,
            passes=wish.passes,
            stops=start.stops,
            count_max=wish.count_max,
            ids=wish.ids,
        )
        self.paused = False
        self.sending_since = _NEVER
        """Since when the client has been given something it does not take."""
        self.on_sent: Callable[[], None] | None = None
        """Told when something was handed to the client."""
        self._streams = streams
        self._hub = streams.hub
        self._topics = start.topics
        self._form = form
        self._reads: deque[_Read] = deque()
        self._notices: deque[bytes] = deque()
        self._work: set[asyncio.Task[None]] = set()
        self._reading = False
        self._closing = False
        self._news = asyncio.Event()
        self._put: Put | None = None
        """The short way to the client, while the loop has nothing to do."""
        self._ending: Ending | None = None
        self._told_at = asyncio.get_running_loop().time()
        self._beats = False
        for place, end in start.beyond.items():
            self._move(place, end)

    # --- what others tell it

    def wake(self, place: TopicPartition, base: int) -> None:
        """Something came, and will be served."""
        self.cursor.wake(place, base)

    def serve(self, now_s: float) -> None:
        """Give the client what came: at once if it waits for nothing else, or the loop will."""
        if self._put is None or self._news.is_set():
            self._news.set()
            return
        pieces = self._pieces()
        if pieces:
            data = b"".join(pieces)
            if self._put(data):
                self._told_at = now_s
            else:
                # The loop sends this before all else, and waits until there is room for it.
                self._notices.append(data)
                self._news.set()
        cursor = self.cursor
        if cursor.behind or cursor.has_news or cursor.is_done:
            self._news.set()

    def grow(self, topic: str, partitions: Iterable[int]) -> None:
        """A topic has these partitions now; new ones are read from their beginning."""
        if self.wish.partitions is None:
            for number in sorted(partitions):
                self.cursor.add(TopicPartition(topic, number), 0)
            self._news.set()

    def lose(self, topic: str) -> None:
        """A topic is gone."""
        self.end(Ending("problem", Problem(404, TOPIC_NOT_FOUND, f"Topic '{topic}' was deleted.")))

    def end(self, ending: Ending) -> None:
        """Come to an end as soon as what is being sent is sent."""
        self._ending = self._ending or ending
        self._news.set()

    def stir(self) -> None:
        """Look again."""
        self._news.set()

    def tick(self, now_s: float, now_ms: int, heartbeat_s: float) -> None:
        """Time passes."""
        until = self.wish.until
        if until is not None and self.cursor.stops is None and now_ms >= until and not self._closing:
            self._closing = True
            self._begin(self._find_stops(until))
        if now_s - self._told_at >= heartbeat_s and self.sending_since == _NEVER:
            self._beats = True
            self._told_at = now_s
            self._news.set()

    # --- its life

    async def run(self, write: Write, put: Put | None = None) -> Ending:
        """Send until there is nothing more to send or nobody to send it to; `put` is the short way, if there is one."""
        self._hub.enter(self, self._topics)
        try:
            await self._say(write, [self._form.hello(self._streams.retry_ms, self.cursor.text)])
            while self._ending is None:
                pieces = self._pieces()
                if pieces:
                    await self._say(write, pieces)
                elif (reason := self.cursor.is_done) is not None:
                    return Ending(reason)
                elif self.cursor.has_news and not self.paused:
                    # Much that nobody wants came at once; others want to run, too.
                    await asyncio.sleep(0)
                else:
                    await self._rest(put)
            return self._ending
        finally:
            self._hub.leave(self, self._topics, list(self.cursor.positions))
            for task in self._work:
                task.cancel()
            await asyncio.gather(*self._work, return_exceptions=True)

    async def _say(self, write: Write, pieces: Sequence[bytes]) -> None:
        loop = asyncio.get_running_loop()
        self.sending_since = self._told_at = loop.time()
        await write(pieces)
        self.sending_since = _NEVER
        if self.on_sent is not None:
            self.on_sent()

    async def _rest(self, put: Put | None) -> None:
        if self.cursor.behind and not self._reading and not self._reads and not self.paused:
            self._reading = True
            self._begin(self._read())
        self._put = put
        try:
            await self._news.wait()
        finally:
            self._put = None
        self._news.clear()

    def _begin(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._work.add(task)
        task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._work.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            problem = problem_of(error) if isinstance(error, Exception) else None
            self.end(Ending("problem", problem or Problem(500, 500, f"The stream cannot go on: {error}.")))
        self._news.set()

    # --- what to send

    def _pieces(self) -> list[bytes]:
        pieces = list(self._notices)
        self._notices.clear()
        if not self.paused:
            shown = self._from_reads() if self._reads else self.cursor.take(self._hub.tail, _CHUNK_BYTES)
            record = self._form.record
            pieces += [record(event, position) for event, position in shown]
            self._streams.delivered += len(shown)
        if pieces:
            self._beats = False
        elif self._beats:
            self._beats = False
            pieces = [self._form.alive(self._where())]
        return [piece for piece in pieces if piece]

    def _where(self) -> str:
        """The position over all that was not for this client, too."""
        if not self.paused:
            self.cursor.touch()
            record = self._form.record
            self._notices.extend(record(event, at) for event, at in self.cursor.take(self._hub.tail, _CHUNK_BYTES))
        return self.cursor.untold() if not self._notices else ""

    def _from_reads(self) -> list[Shown]:
        place, events, position, reaches_end = self._reads[0]
        chunk: list[Event] = []
        size = 0
        while events and size < _CHUNK_BYTES:
            event = events.popleft()
            chunk.append(event)
            size += event.size
        shown = self.cursor.read(place, chunk, events[0].offset if events else position)
        if not events:
            self._reads.popleft()
            if reaches_end and place in self.cursor.behind and self._hub.follow(self, place, position):
                self.cursor.follow(place)
        self._news.set()
        return shown

    # --- reading for itself

    async def _read(self) -> None:
        """One read of what is behind, of all brokers that lead any of it."""
        try:
            async with self._streams.reads:
                by_leader: dict[int | None, dict[TopicPartition, int]] = {}
                for place in sorted(self.cursor.behind)[:_READ_PLACES_MAX]:
                    by_leader.setdefault(self._hub.leader(place), {})[place] = self.cursor.positions[place]
                unled = by_leader.pop(None, {})
                moved = [
                    await self._read_from(leader, wanted) for leader, wanted in by_leader.items() if leader is not None
                ]
            if unled:
                self._hub.doubt(unled)
            if not any(moved):
                # Nobody leads it now, or it was all refused.
                await asyncio.sleep(_PAUSE_S)
        finally:
            self._reading = False

    async def _read_from(self, leader: int, wanted: dict[TopicPartition, int]) -> bool:
        room = self._streams.buffer_bytes
        try:
            answers = await self._streams.fetcher.fetch_from(
                leader, wanted, max_wait_ms=0, max_bytes=room, partition_bytes=max(room // len(wanted), 16 * 1024)
            )
        except ClientFault:
            self._hub.doubt(wanted)
            return False
        moved = False
        for place, one in answers.items():
            if isinstance(one, KafkaError):
                moved |= await self._refused(place, wanted[place], one)
            elif one.position > wanted[place] or one.end_offset <= one.position:
                moved = True
                self._keep(place, one)
        return moved

    def _keep(self, place: TopicPartition, one: FetchedPartition) -> None:
        events = deque(map(Event, one.records))
        self._reads.append(_Read(place, events, one.position, one.position >= one.end_offset))

    async def _refused(self, place: TopicPartition, offset: int, error: KafkaError) -> bool:
        if error.code in _ELSEWHERE:
            self._hub.doubt([place])
            return False
        if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            raise error
        await self._reset(place, offset)
        return True

    async def _reset(self, place: TopicPartition, offset: int) -> None:
        """Retention took what we wanted, or it never was: go on at the nearest record there is, and say so."""
        admin = self._streams.admin
        first = (await admin.list_offsets({place: EARLIEST}))[place].offset
        last = (await admin.list_offsets({place: LATEST}))[place].offset
        target = first if offset < first else last
        if target != offset:
            self._move(place, target)

    def _move(self, place: TopicPartition, target: int) -> None:
        """Go on elsewhere, and say so."""
        offset = self.cursor.positions[place]
        self.cursor.move(place, target)
        self._notices.append(
            self._form.notice(
                "reset",
                {"topic": place.topic, "partition": place.partition, "offset": offset, "new_offset": target},
            )
        )

    async def _find_stops(self, until: int) -> None:
        try:
            self.cursor.close_at(await find_stops(self._streams.admin, list(self.cursor.positions), until))
        except HeadraceError:
            # The next tick asks again.
            self._closing = False
