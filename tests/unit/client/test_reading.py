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
