"""Batches on their way to brokers that refuse, forget and die: each accepted once, in order within its partition."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.errors import ErrorCode
from headrace.spark.outbox import Batch, Outbox, Verdict

PLACES = [("a", 0), ("a", 1), ("b", 0)]
IN_FLIGHT = 3


def batch(place, number, *, count=1, split=None):
    return Batch(place=place, data=b"x" * 10, count=count, turn=(number,), split=split)


class Leader:
    """A broker's memory of what a producer sent: what is not next is refused, what comes again is known."""

    def __init__(self, chance):
        self.logs = {place: [] for place in PLACES}
        self._chance = chance

    def append(self, one):
        log = self.logs[one.place]
        if one.turn in log[-5:]:
            return self._chance.choice((ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER))
        # A partition that has nothing of a producer takes any number, as Kafka's do.
        if log and one.turn[0] != len(log):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if self._chance.random() < 0.2:
            return self._chance.choice((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS))
        log.append(one.turn)
        # It is in the log, but not on enough replicas in time.
        return ErrorCode.REQUEST_TIMED_OUT if self._chance.random() < 0.1 else ErrorCode.NONE


@given(st.integers(0, 10**9))
def test_every_batch_once_and_in_order(seed):
    """Whatever is refused, lost or answered late: is every batch accepted once, and those of a partition in order?"""
    chance = Random(seed)
    leader, outbox = Leader(chance), Outbox(in_flight_max=IN_FLIGHT)
    for number in range(12):
        for place in PLACES:
            outbox.put(batch(place, number))
    answers = []
    for _ in range(5000):
        if outbox.is_empty:
            break
        taken = outbox.take(1, tuple(outbox.places), bytes_max=chance.choice((10, 20, 100)))
        if taken:
            answers.append([leader.append(one) for one in taken])
            assert len(answers) <= IN_FLIGHT
        if answers and chance.random() < 0.05:
            answers.clear()
            for one in outbox.lost(1):
                outbox.settle(one, Verdict.AGAIN)
        elif answers and (not taken or chance.random() < 0.4):
            for one, code in zip(outbox.answered(1), answers.pop(0), strict=True):
                verdict = outbox.verdict(one, code)
                assert verdict is not Verdict.REFUSED, (one, code)
                outbox.settle(one, verdict)

    assert outbox.is_empty
    assert outbox.waiting_bytes == 0
    assert leader.logs == {place: [(number,) for number in range(12)] for place in PLACES}


def test_the_first_batch_goes_alone():
    """Is the first batch of a partition accepted before others follow, which a new leader would take in its stead?"""
    outbox = Outbox(in_flight_max=IN_FLIGHT)
    for number in range(2):
        outbox.put(batch(PLACES[0], number))
    (first,) = outbox.take(1, PLACES, bytes_max=100)

    assert [] == list(outbox.take(1, PLACES, bytes_max=100))

    outbox.answered(1)
    outbox.settle(first, Verdict.DONE)

    assert [(1,)] == [one.turn for one in outbox.take(1, PLACES, bytes_max=100)]


def test_a_partition_that_failed_waits_for_its_later_batches():
    """When a batch comes back, is its partition left alone until those behind it have come back too?"""
    outbox = Outbox(in_flight_max=IN_FLIGHT, known=PLACES)
    for number in range(3):
        outbox.put(batch(PLACES[0], number))
    first, second = (outbox.take(1, PLACES, bytes_max=100)[0] for _ in range(2))
    outbox.answered(1)
    outbox.settle(first, outbox.verdict(first, ErrorCode.NOT_LEADER_OR_FOLLOWER))

    assert [] == list(outbox.take(1, PLACES, bytes_max=100))

    outbox.answered(1)
    outbox.settle(second, outbox.verdict(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
    again = [outbox.take(1, PLACES, bytes_max=100)[0].turn for _ in range(3)]

    assert [(0,), (1,), (2,)] == again


def test_a_gap_of_our_own_is_not_tried_for_ever():
    """Is a batch out of order refused for good, if none before it is on its way?"""
    outbox = Outbox(in_flight_max=IN_FLIGHT)
    outbox.put(batch(PLACES[0], 0))
    (one,) = outbox.take(1, PLACES, bytes_max=100)

    assert outbox.verdict(one, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER) is Verdict.REFUSED


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_RECORD,
        ErrorCode.MESSAGE_TOO_LARGE,
    ],
)
def test_what_does_not_pass_is_refused(code):
    """Is what trying again cannot mend not tried again?"""
    assert Outbox(in_flight_max=1).verdict(batch(PLACES[0], 0), code) is Verdict.REFUSED


def test_parts_take_the_place_of_the_whole():
    """Does a batch that is too large go out in parts, before those behind it, though one of these was on its way?"""

    def halves():
        return [Batch(place=PLACES[0], data=b"y" * 5, count=1, turn=(0, part)) for part in range(2)]

    outbox = Outbox(in_flight_max=IN_FLIGHT, known=PLACES)
    outbox.put(batch(PLACES[0], 0, count=2, split=halves))
    outbox.put(batch(PLACES[0], 1))
    whole, later = (outbox.take(1, PLACES, bytes_max=100)[0] for _ in range(2))
    outbox.answered(1)
    outbox.settle(whole, outbox.verdict(whole, ErrorCode.MESSAGE_TOO_LARGE))
    outbox.answered(1)
    outbox.settle(later, outbox.verdict(later, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))

    assert [(0, 0), (0, 1), (1,)] == [outbox.take(1, PLACES, bytes_max=100)[0].turn for _ in range(3)]
