"""Batches on their way: which wait, which are in flight, and which have to be sent again, in order for every partition.

A batch carries the sequence number it was made with and is sent again as it is, so that a broker that has it already
says so (KIP-98). A request has at most one batch of a partition, and a broker has at most `in_flight_max` requests: no
more batches than it remembers. When one comes back, its partition is held until the later ones that are in flight have
come back too; then they go out again in their order.

A partition that has nothing of a producer yet takes whatever number comes first. So the first batch goes alone: were
it refused, those behind it would be taken in its stead.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from headrace.model.errors import RETRIABLE, ErrorCode

Place = tuple[str, int]
"""A topic and a partition of it."""


@dataclass(slots=True, kw_only=True)
class Batch:
    """One record batch of one partition."""

    place: Place
    data: bytes | bytearray | memoryview
    count: int
    turn: tuple[int, ...]
    """The order within a partition; parts of a batch have one number more than it."""
    split: Callable[[], Sequence[Batch]] | None = field(default=None, repr=False)
    """Makes smaller batches of the same records, for a topic that takes no larger ones."""


class Verdict(Enum):
    """What becomes of a batch."""

    DONE = auto()
    AGAIN = auto()
    SPLIT = auto()
    REFUSED = auto()


_VERDICTS: Mapping[ErrorCode, Verdict] = {
    **dict.fromkeys(RETRIABLE, Verdict.AGAIN),
    ErrorCode.NONE: Verdict.DONE,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: Verdict.DONE,
    # The topic may only just have been created, or moved.
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.AGAIN,
    ErrorCode.MESSAGE_TOO_LARGE: Verdict.SPLIT,
    ErrorCode.RECORD_LIST_TOO_LARGE: Verdict.SPLIT,
}


class Outbox:
    """What one producer has to send."""

    def __init__(self, *, in_flight_max: int, known: Iterable[Place] = ()) -> None:
        """`known` are partitions that have batches of this producer already."""
        self.waiting_bytes = 0
        self._known = set(known)
        self._in_flight_max = in_flight_max
        self._waiting: defaultdict[Place, deque[Batch]] = defaultdict(deque)
        self._flights: defaultdict[int, deque[list[Batch]]] = defaultdict(deque)
        self._flying: defaultdict[Place, int] = defaultdict(int)
        self._held: set[Place] = set()

    @property
    def is_empty(self) -> bool:
        """Whether everything was accepted."""
        return not self._waiting and not any(self._flights.values())

    @property
    def places(self) -> Iterator[Place]:
        """The partitions that have batches waiting."""
        return iter(tuple(self._waiting))

    @property
    def nodes(self) -> Sequence[int]:
        """The brokers that owe us an answer."""
        return [node_id for node_id, flights in self._flights.items() if flights]

    def put(self, batch: Batch) -> None:
        """A batch more; those of a partition come in order."""
        self._waiting[batch.place].append(batch)
        self.waiting_bytes += len(batch.data)

    def take(self, node_id: int, led: Iterable[Place], *, bytes_max: int) -> Sequence[Batch]:
        """What the next request to a broker has in it, of the partitions it leads; nothing if it has enough to do."""
        if len(self._flights[node_id]) >= self._in_flight_max:
            return ()
        chosen: list[Batch] = []
        size = 0
        for place in led:
            queue = self._waiting.get(place)
            if not queue or not self._may_fly(place) or (chosen and size + len(queue[0].data) > bytes_max):
                continue
            batch = queue.popleft()
            if not queue:
                del self._waiting[place]
            chosen.append(batch)
            size += len(batch.data)
            self._flying[place] += 1
        if chosen:
            self.waiting_bytes -= size
            self._flights[node_id].append(chosen)
        return chosen

    def _may_fly(self, place: Place) -> bool:
        return place not in self._held and (place in self._known or place not in self._flying)

    def answered(self, node_id: int) -> Sequence[Batch]:
        """The batches of the oldest request to a broker, which was answered: each is to be `settle`d."""
        return self._flights[node_id].popleft()

    def lost(self, node_id: int) -> Sequence[Batch]:
        """The batches of all requests to a broker that will not be answered: each is to be `settle`d."""
        flights = self._flights.pop(node_id, deque())
        return [batch for flight in flights for batch in flight]

    def verdict(self, batch: Batch, code: ErrorCode) -> Verdict:
        """What an answer means for a batch."""
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and batch.place in self._held:
            # The one before it did not arrive; it comes first the next time.
            return Verdict.AGAIN
        found = _VERDICTS.get(code, Verdict.REFUSED)
        if found is Verdict.SPLIT and batch.split is None:
            return Verdict.REFUSED
        return found

    def settle(self, batch: Batch, verdict: Verdict) -> None:
        """Forget a batch that is done, or put it back in its turn, whole or in parts."""
        place = batch.place
        self._flying[place] -= 1
        if verdict is Verdict.DONE:
            self._known.add(place)
        elif verdict is Verdict.AGAIN:
            self._put_back(place, (batch,))
        elif verdict is Verdict.SPLIT:
            assert batch.split is not None, "the verdict was made with it"
            self._put_back(place, batch.split())
        if not self._flying[place]:
            del self._flying[place]
            self._held.discard(place)

    def _put_back(self, place: Place, batches: Sequence[Batch]) -> None:
        self._held.add(place)
        self._waiting[place] = deque(sorted((*batches, *self._waiting.get(place, ())), key=_turn))
        self.waiting_bytes += sum(len(batch.data) for batch in batches)


def _turn(batch: Batch) -> tuple[int, ...]:
    return batch.turn
