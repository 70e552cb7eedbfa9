"""What the engine has handed over and how far the program has come with it.

Records come from the engine in batches. Offsets are stored for committing only when the program asks for the next
batch: then it is done with the ones it was given, and a crash before loses nothing. How far the engine has come it
knows itself; all that is added here is what lies between the engine and the program.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby, islice, repeat
from operator import itemgetter, length_hint
from typing import Any

from headrace.client.engine import Engine, EngineError, EngineException, Troubles, fault_of, raise_fault, reach
from headrace.client.offset_lists import engine_offsets, engine_places
from headrace.client.records import ConsumerRecord, TopicPartition
from headrace.model.errors import HeadraceError

_TOPIC, _PARTITION, _ERROR = Engine.Message.topic, Engine.Message.partition, Engine.Message.error
_SLICE_S = 0.1
_AGAIN_S = 1.0
# Storing is cheap but not free, and commits are seconds apart.
_STORE_EVERY_S = 0.1
# A topic may come into being later, and a member that was away too long joins again by itself, as with Java's client.
_PASSING = frozenset(
    {
        EngineError.UNKNOWN_TOPIC_OR_PART,
        EngineError._UNKNOWN_TOPIC,  # noqa: SLF001 - its public names begin so
        EngineError._UNKNOWN_PARTITION,  # noqa: SLF001
        EngineError._PARTITION_EOF,  # noqa: SLF001
        EngineError._MAX_POLL_EXCEEDED,  # noqa: SLF001
        EngineError._TRANSPORT,  # noqa: SLF001
        EngineError._ALL_BROKERS_DOWN,  # noqa: SLF001
        EngineError._TIMED_OUT,  # noqa: SLF001
    }
)


class Reading:
    """The current batch, the place in it, and the positions behind it.

    `rest` is an iterator over the records that the program has not got; it knows itself how many are left, so that
    nothing needs to be counted record by record.
    """

    def __init__(
        self,
        consumer: Engine.Consumer,
        troubles: Troubles,
        *,
        readers: tuple[Callable[[bytes], Any] | None, Callable[[bytes], Any] | None],
        where: str,
        patience_s: float,
        stores: bool,
    ) -> None:
        self.rest: Iterator[ConsumerRecord] = iter(())
        self.assigned: set[TopicPartition] = set()
        """What is read, by what we were told and told the engine. To ask it is to wait for a thread of its own, which
        may be waiting for us: in a rebalance while closing, for ever."""
        self.paused: set[TopicPartition] = set()
        self._begins: dict[TopicPartition, int] | None = None
        """Where partitions begin that the engine was not told of yet."""
        self._messages: list[Engine.Message] = []
        self._sought: dict[TopicPartition, int] = {}
        """Where partitions were moved to from which nothing has come since."""
        self._sent_again: set[TopicPartition] = set()
        """Those among them that the engine was sent to a second time."""
        self._stored_at = 0.0
        self._consumer = consumer
        self._troubles = troubles
        self._readers = readers
        self._where = where
        self._patience_s = patience_s
        self._stores = stores
        self._problem: HeadraceError | None = None
        self._down_since: float | None = None

    @property
    def left(self) -> int:
        """How many records of the batch the program has not got."""
        return length_hint(self.rest)

    def _waiting(self) -> list[Engine.Message]:
        left = self.left
        return self._messages[-left:] if left else []

    def fill(self, timeout_s: float, most: int) -> bool:
        """Get the next batch; False if none came in time."""
        now = time.monotonic()
        if self._stores and now - self._stored_at > _STORE_EVERY_S:
            self._stored_at = now
            self.store()
        deadline = now + timeout_s
        while True:
            self.settle()
            self._raise_problem()
            # In slices, so that a signal is served; and one first, because the engine waits until a list is full.
            left = deadline - time.monotonic()
            first = self._consumer.poll(max(min(left, _SLICE_S), 0))
            if first is not None:
                self._receive([first, *self._consumer.consume(most - 1, 0)] if most > 1 else [first])
                if self.left:
                    return True
            else:
                self._watch()
                if left <= _SLICE_S:
                    return False

    def _receive(self, messages: list[Engine.Message]) -> None:
        if any(map(_ERROR, messages)):
            for error in filter(None, map(_ERROR, messages)):
                if error.code() not in _PASSING:
                    self._problem = self._problem or fault_of(error)
            messages = [message for message in messages if message.error() is None]
        else:
            self._troubles.clear()
            self._down_since = None
        if self._sought:
            messages = self._without_strays(messages)
        self._put(messages)

    def _without_strays(self, messages: list[Engine.Message]) -> list[Engine.Message]:
        """Leave out what lies before the place that the program went to, and send the engine there once more.

        A partition that is moved while the engine asks where it begins may be taken there by the late answer. That it
        begins anew because there is no such offset looks the same: the second time it is believed.
        """
        strays: dict[TopicPartition, int] = {}
        for message in messages:
            place = TopicPartition(message.topic() or "", message.partition() or 0)
            sought = self._sought.pop(place, -1)
            if (message.offset() or 0) < sought and place not in self._sent_again:
                strays[place] = sought
            self._sent_again.discard(place)
        if not strays:
            return messages
        for place, sought in strays.items():
            self._sought[place] = sought
            self._sent_again.add(place)
            try:
                self._consumer.seek(Engine.TopicPartition(place.topic, place.partition, sought))
            except EngineException as error:
                raise_fault(error)
        return [message for message, place in zip(messages, places_of(messages), strict=True) if place not in strays]

    def _put(self, messages: list[Engine.Message]) -> None:
        """Lay out messages; the list first, because another thread may ask which of them the iterator still has."""
        self._messages = messages
        if self._readers == (None, None):
            self.rest = iter(list(map(ConsumerRecord, messages)))
        else:
            self.rest = iter(list(map(ConsumerRecord, messages, *map(repeat, self._readers))))

    def peek(self) -> list[ConsumerRecord]:
        """The records of the batch that the program has not got, without giving them to it."""
        return [ConsumerRecord(message, *self._readers) for message in self._waiting()]

    def take(self, most: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        """The next records by partition."""
        begin = len(self._messages) - self.left
        records = list(islice(self.rest, most))
        places = places_of(self._messages[begin : begin + len(records)])
        if places.count(places[0]) == len(places):
            return {TopicPartition(*places[0]): records}
        found: dict[TopicPartition, list[ConsumerRecord]] = {}
        for place, run in groupby(zip(places, records, strict=True), key=itemgetter(0)):
            found.setdefault(TopicPartition(*place), []).extend(map(itemgetter(1), run))
        return found

    def _raise_problem(self) -> None:
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem

    def _watch(self) -> None:
        """Give up on brokers that have been away for too long; the engine never would."""
        if self._troubles.login is not None:
            raise self._troubles.login
        if self._troubles.network is None:
            return
        now = time.monotonic()
        if self._down_since is None:
            self._down_since = now
        elif now - self._down_since > self._patience_s:
            self._down_since = None
            reach(self._consumer, lambda: None, self._troubles, where=self._where, timeout_s=_AGAIN_S)

    # --- what is read

    def begin(self, begins: dict[TopicPartition, int]) -> None:
        """Read exactly these partitions from now on, each from an offset or a mark.

        The engine is told when the next record is wanted. Told at once, it would ask where those begin that have only a
        mark, and its late answer would win over a program that goes elsewhere meanwhile.
        """
        self._begins = begins
        self.assigned = set(begins)

    def begins_at(self, place: TopicPartition, offset: int) -> bool:
        """Let a partition begin elsewhere; False if the engine has begun with it."""
        if self._begins is None or place not in self._begins:
            return False
        self._begins[place] = offset
        return True

    @property
    def is_settled(self) -> bool:
        """Whether the engine knows what is read."""
        return self._begins is None

    def stay(self) -> None:
        """Take back what the engine was not told yet."""
        self._begins = None

    def settle(self) -> None:
        """Tell the engine what is read, if that has changed."""
        begins, self._begins = self._begins, None
        if begins is None:
            return
        try:
            self._consumer.assign(engine_offsets(begins))
            if resting := self.paused & begins.keys():
                self._consumer.pause(engine_places(resting))
        except EngineException as error:
            raise_fault(error)

    # --- how far the program has come

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset of every partition the program has read from or sought to, before 0 if it is a mark."""
        engine = self._consumer.position([Engine.TopicPartition(*place) for place in self.assigned])
        found = {TopicPartition(one.topic, one.partition): one.offset for one in engine if one.offset >= 0}
        found.update(self._sought)
        for message in reversed(self._waiting()):
            found[TopicPartition(message.topic() or "", message.partition() or 0)] = message.offset() or 0
        return found

    def store(self) -> None:
        """Let the engine commit, when it next does, what the program has got."""
        reached = {place: offset for place, offset in self.positions().items() if offset >= 0}
        if not reached:
            return
        try:
            self._consumer.store_offsets(offsets=engine_offsets(reached))
        except EngineException as error:
            # Partitions that went to another member meanwhile are that one's to commit.
            if error.args[0].code() != EngineError._STATE:  # noqa: SLF001
                raise_fault(error)

    def move(self, place: TopicPartition, offset: int) -> None:
        """The program goes on elsewhere."""
        self.drop([place])
        self._sought[place] = offset
        self._sent_again.discard(place)

    def drop(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Forget the records of partitions that the program has not got; gives the first offset of each."""
        first: dict[TopicPartition, int] = {}
        kept: list[Engine.Message] = []
        for message in self._waiting():
            place = TopicPartition(message.topic() or "", message.partition() or 0)
            if place in places:
                first.setdefault(place, message.offset() or 0)
            else:
                kept.append(message)
        if first:
            # Whoever iterates over the old batch finds its end, and goes on with the new one.
            deque(self.rest, maxlen=0)
            self._put(kept)
        return first

    def forget(self, places: Collection[TopicPartition]) -> None:
        """These partitions are no longer ours."""
        self.drop(places)
        for place in places:
            self._sought.pop(place, None)
            self._sent_again.discard(place)


def places_of(messages: Sequence[Engine.Message]) -> list[Any]:
    """The topic and partition of each message."""
    return list(zip(map(_TOPIC, messages), map(_PARTITION, messages), strict=True))
