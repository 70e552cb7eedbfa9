"""Refusals in the log."""

import logging

import pytest

from headrace.broker import refusals
from headrace.broker.refusals import QUIET_MS, Refusals
from headrace.model.errors import ErrorCode, KafkaError

FACTOR = KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "There are too few brokers.")


class Desk:
    """Refusals, a clock that is set by hand, and what was told."""

    def __init__(self, caplog):
        caplog.set_level(logging.INFO)
        self._caplog = caplog
        self.now_ms = 0
        self.refusals = Refusals(lambda: self.now_ms)

    @property
    def told(self):
        """The lines so far."""
        return [record.getMessage() for record in self._caplog.records]


@pytest.fixture
def desk(caplog):
    """A log to look at."""
    return Desk(caplog)


def test_a_refusal_is_a_line(desk):
    """Does a line say what was refused, by Kafka's name of the error, and why?"""
    desk.refusals.tell("topic_refused", "topic=a", FACTOR)

    assert ["topic_refused topic=a error=INVALID_REPLICATION_FACTOR reason=There are too few brokers."] == desk.told


def test_the_same_refusal_is_told_once_a_minute(desk):
    """Is one who comes again and again told of once a minute, and another at once?"""
    for now_ms in (0, 1, QUIET_MS - 1, QUIET_MS):
        desk.now_ms = now_ms
        desk.refusals.tell("topic_refused", "topic=a", FACTOR)
    desk.refusals.tell("topic_refused", "topic=b", FACTOR)

    assert ["topic=a", "topic=a", "topic=b"] == [line.split()[1] for line in desk.told]


def test_memory_has_a_limit(desk, monkeypatch):
    """Is the oldest forgotten when too many different things are refused?"""
    monkeypatch.setattr(refusals, "REMEMBERED_MAX", 2)
    for name in "abcba":
        desk.refusals.tell("topic_refused", name, FACTOR)

    assert list("abca") == [line.split()[1] for line in desk.told]


def test_one_request_has_a_limit(desk, monkeypatch):
    """Are only some told of where a request has thousands, and nothing of what was not refused?"""
    monkeypatch.setattr(refusals, "TOLD_AT_ONCE_MAX", 2)
    desk.refusals.tell_all("topic_refused", [("a", None), ("b", FACTOR), ("c", FACTOR), ("d", FACTOR)])

    assert ["b", "c"] == [line.split()[1] for line in desk.told]


def test_names_cannot_forge_lines(desk):
    """Is a name with line breaks, or one without end, kept to a piece of one line?"""
    desk.refusals.tell("topic_refused", "a\nb\x1b[2J" + "x" * 10_000, FACTOR)

    (line,) = desk.told
    assert line.startswith("topic_refused a?b?[2Jxxx")
    assert len(line) < 1_000
