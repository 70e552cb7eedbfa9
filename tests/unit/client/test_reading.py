"""How far a program has come, without an engine that could make it wait."""

import pytest

from headrace.client.engine import Engine, Troubles
from headrace.client.reading import Reading
from headrace.client.records import TopicPartition


class BusyEngine:
    """An engine in the middle of a rebalance: what needs its own thread would never be answered."""

    def position(self, places):
        """What it knows by heart."""
        return [Engine.TopicPartition(one.topic, one.partition, 10 + one.partition) for one in places]

    def assignment(self):
        """What it would have to ask its thread for."""
        pytest.fail("this would wait for ever")


def test_positions_ask_no_other_thread():
    """Can a rebalance that comes while closing note how far we are, without asking the engine what it reads?"""
    reading = Reading(BusyEngine(), Troubles(), readers=(None, None), where="here", patience_s=1, stores=True)
    reading.assigned = {TopicPartition("t", 0), TopicPartition("t", 2)}

    assert reading.positions() == {TopicPartition("t", 0): 10, TopicPartition("t", 2): 12}


def test_looking_takes_nothing():
    """Are records that were only looked at given by the next take, and not counted as got?"""
    reading = Reading(BusyEngine(), Troubles(), readers=(None, None), where="here", patience_s=1, stores=True)
    messages = [Engine.Message(topic="t", partition=0, offset=number) for number in range(3)]
    reading._put(messages)

    assert [record.message for record in reading.peek()] == messages
    assert (reading.left, reading.positions()[TopicPartition("t", 0)]) == (3, 0)
    assert [record.message for record in reading.take(2)[TopicPartition("t", 0)]] == messages[:2]
    assert [record.message for record in reading.peek()] == messages[2:]


class LateEngine(BusyEngine):
    """An engine that was moved, and goes elsewhere."""

    def __init__(self, *batches):
        self.batches = list(batches)
        self.sought = []

    def poll(self, timeout):
        """The first record of the next batch, if that is not empty."""
        return self.batches[0].pop(0) if self.batches and self.batches[0] else None

    def consume(self, most, timeout):
        """The rest of it."""
        return self.batches.pop(0)

    def seek(self, place):
        """Where it is sent to."""
        self.sought.append((place.topic, place.partition, place.offset))


def records(partition, *offsets):
    """Messages of a partition."""
    return [Engine.Message(topic="t", partition=partition, offset=offset) for offset in offsets]


def offsets_of(reading):
    """Which offsets a program gets of each partition."""
    return {place.partition: [one.offset for one in records] for place, records in reading.take(10).items()}


def test_a_seek_that_is_overtaken():
    """Is the engine sent once more to where the program went, if it comes back with what lies before?"""
    engine = LateEngine([*records(0, 0, 1, 2), *records(1, 4)], records(0, 7, 8))
    reading = Reading(engine, Troubles(), readers=(None, None), where="here", patience_s=1, stores=False)
    reading.move(TopicPartition("t", 0), 7)

    assert reading.fill(1.0, 10)
    assert (offsets_of(reading), engine.sought) == ({1: [4]}, [("t", 0, 7)])
    assert reading.fill(1.0, 10)
    assert (offsets_of(reading), len(engine.sought)) == ({0: [7, 8]}, 1)


def test_a_seek_to_nowhere():
    """Is an offset that is not there left for the beginning, after a second look?"""
    engine = LateEngine(records(0, 0, 1), records(0, 0, 1), records(0, 2))
    reading = Reading(engine, Troubles(), readers=(None, None), where="here", patience_s=1, stores=False)
    reading.move(TopicPartition("t", 0), 1000)

    assert reading.fill(1.0, 10)
    assert (offsets_of(reading), engine.sought) == ({0: [0, 1]}, [("t", 0, 1000)])
    assert reading.fill(1.0, 10)
    assert (offsets_of(reading), len(engine.sought)) == ({0: [2]}, 1)
