"""Tails and cursors without a wire between them: is every record shown exactly once, wherever a client is cut off?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.fetching import FetchedRecord
from headrace.client.records import TopicPartition
from headrace.gateway.streams.cursor import ID_EVERY, Cursor
from headrace.gateway.streams.event import Event
from headrace.gateway.streams.position import parse_position
from headrace.gateway.streams.tail import Tail

PLACE = TopicPartition("t", 0)


def event(offset, *, partition=0, key=None, size=1):
    """A record at an offset."""
    return Event(FetchedRecord("t", partition, offset, 1000 + offset, key, b"x" * size, ()))


def offsets(shown):
    """What was shown, as offsets."""
    return [one.event.offset for one in shown]


class Partition:
    """A log that grows, and its tail as the hub keeps it."""

    def __init__(self, number, tail_bytes=2_000):
        self.place = TopicPartition("t", number)
        self.log: list[Event] = []
        self.end = 0
        self.tail: Tail | None = None
        self.tail_bytes = tail_bytes

    def write(self, count, *, gap):
        """So many records, and an offset that shows nothing between them."""
        for _ in range(count):
            self.log.append(event(self.end, partition=self.place.partition, key=b"k%d" % (self.end % 3)))
            self.end += 1 + gap

    def poll(self, cursor, count):
        """The hub reads a little more, and wakes who follows."""
        if self.tail is None or self.tail.end == self.end:
            return
        base = self.tail.end
        events = [one for one in self.log if one.offset >= base][:count]
        self.tail.add(events, events[-1].offset + 1 if len(events) == count else self.end, 0.0)
        cursor.wake(self.place, base)

    def read(self, cursor, count):
        """The stream reads for itself, and follows once it is at the end."""
        at = cursor.positions[self.place]
        events = [one for one in self.log if one.offset >= at][:count]
        position = events[-1].offset + 1 if len(events) == count else self.end
        shown = cursor.read(self.place, events, position)
        if position >= self.end and self.place in cursor.behind:
            if self.tail is None:
                self.tail = Tail(position, self.tail_bytes)
            if position >= self.tail.start:
                cursor.follow(self.place)
        return shown


class Client:
    """Somebody who takes what comes, and comes again with the last id."""

    def __init__(self, logs, key, chunk):
        self.logs = logs
        self.key = key
        self.chunk = chunk
        self.seen = []
        self.position = ",".join(f"{'t:' * (not n)}{n}=0" for n in range(len(logs)))
        self.connect()

    def connect(self):
        places = parse_position(self.position).places
        self.cursor = Cursor({place: at.offset for place, at in places.items()}, key=self.key)

    def receive(self, shown):
        for one in shown:
            self.seen.append((one.event.record.partition, one.event.offset))
            self.position = one.position

    def read(self, log, count):
        if log.place in self.cursor.behind:
            self.receive(log.read(self.cursor, count))

    def take(self):
        return self.cursor.take(lambda place: self.logs[place.partition].tail, self.chunk)

    def cut(self, part):
        shown = self.take()
        self.receive(shown[: int(len(shown) * part)])
        self.connect()


STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "poll", "read", "take", "cut"]), st.integers(0, 2), st.integers(1, 12)),
    max_size=60,
)


@pytest.mark.parametrize("key", [None, b"k1"])
@given(steps=STEPS, gap=st.integers(0, 1), chunk=st.integers(1, 3000), part=st.floats(0, 1))
def test_every_record_exactly_once(key, steps, gap, chunk, part):
    """Is nothing lost and nothing repeated, whatever is read, taken and cut off in which order?"""
    logs = [Partition(number) for number in range(3)]
    client = Client(logs, key, chunk)
    actions = {
        "write": lambda log, count: log.write(count, gap=gap),
        "poll": lambda log, count: log.poll(client.cursor, count),
        "read": client.read,
        "take": lambda *_: client.receive(client.take()),
        "cut": lambda *_: client.cut(part),
    }
    for action, which, count in steps:
        actions[action](logs[which], count)
    client.connect()
    for log in logs:
        while client.cursor.positions[log.place] < log.end:
            client.read(log, 5)

    written = [(log.place.partition, one.offset) for log in logs for one in log.log if key in {None, one.record.key}]
    assert written == sorted(client.seen)
    assert [sorted(of) for of in _by_partition(client.seen)] == _by_partition(client.seen)


def _by_partition(seen):
    return [[offset for partition, offset in seen if partition == number] for number in range(3)]


def test_tail_forgets_the_oldest():
    """Does a tail stay within its bytes, and does who was too slow hear that it must read for itself?"""
    tail = Tail(0, 1000)
    for offset in range(10):
        tail.add([event(offset, size=100)], offset + 1, float(offset))

    assert tail.take(0, 10_000) is None
    assert 7 == tail.start
    assert [7, 8, 9] == [one.offset for one in tail.take(7, 10_000).events]
    assert ((), 12, 0) == tail.take(12, 10_000)
    tail.expire(100.0)
    assert (10, 10) == (tail.start, tail.end)
    assert tail.take(9, 10_000) is None


def test_tail_of_one_large_piece():
    """Is a piece larger than the tail kept until the next comes, and handed out in parts?"""
    tail = Tail(0, 1000)
    tail.add([event(offset, size=900) for offset in range(5)], 5, 0.0)

    first = tail.take(0, 2500)
    assert ([0, 1], 2) == ([one.offset for one in first.events], first.position)
    assert [2, 3] == [one.offset for one in tail.take(2, 2500).events]


def test_ends():
    """Does a stream stop at `until` in every partition, and at `max` in the middle of what came?"""
    other = TopicPartition("t", 1)
    cursor = Cursor({PLACE: 0, other: 5}, stops={PLACE: 2, other: 5})

    assert {PLACE} == cursor.behind
    assert [0, 1] == offsets(cursor.read(PLACE, [event(0), event(1), event(2)], 3))
    assert ("until", 2) == (cursor.is_done, cursor.positions[PLACE])

    cursor = Cursor({PLACE: 0}, count_max=2)
    assert [0, 1] == offsets(cursor.read(PLACE, [event(0), event(1), event(2)], 3))
    assert ("max", "t:0=2") == (cursor.is_done, cursor.text)


def test_nothing_after_max():
    """Is what was read of other partitions before `max` was reached neither shown nor passed over?"""
    cursor = Cursor({TopicPartition("t", 0): 0, TopicPartition("t", 1): 0}, count_max=3)
    shown = cursor.read(PLACE, [event(n) for n in range(5)], 5)
    shown += cursor.read(TopicPartition("t", 1), [event(n, partition=1) for n in range(5)], 5)

    assert [0, 1, 2] == offsets(shown)
    assert ("max", "t:0=3,1=0") == (cursor.is_done, cursor.text)


def test_filter_moves_the_position():
    """Is what a filter leaves out passed over, and told when nothing else is?"""
    cursor = Cursor({PLACE: 0}, passes=lambda one: one.offset == 1)

    assert ["t:0=2"] == [one.position for one in cursor.read(PLACE, [event(0), event(1), event(2)], 3)]
    assert "t:0=3" == cursor.untold()
    assert "" == cursor.untold()


def test_long_ids_are_rare():
    """Do ids that are long stand at every hundredth record and at the last, and short ones at each?"""
    many = {TopicPartition("topic-with-a-long-name", number): 10**9 for number in range(400)}
    place = next(iter(many))
    records = [event(10**9 + number) for number in range(250)]

    ids = [one.position for one in Cursor(dict(many)).read(place, records, 10**9 + 250)]
    assert [ID_EVERY - 1, 2 * ID_EVERY - 1, 249] == [number for number, text in enumerate(ids) if text]
    assert all(one.position for one in Cursor({PLACE: 0}).read(PLACE, [event(n) for n in range(250)], 250))


def test_new_partition():
    """Is a partition that is added read from its beginning, and not once the end is known?"""
    cursor = Cursor({PLACE: 3})
    cursor.add(TopicPartition("t", 1), 0)
    assert "t:0=3,1=0" == cursor.text

    cursor.close_at({PLACE: 3})
    cursor.add(TopicPartition("t", 2), 0)
    assert ("t:0=3,1=0", "until") == (cursor.text, cursor.is_done)
