"""The checker of client histories: it must find each broken promise, and nothing in a history that breaks none."""

import pytest

from headrace.testing.history import GarbledPayload, Outcome, Payload, Poll, Send, check


def value(sequence: int, *, producer: str = "p", partition: int = 0) -> Payload:
    """The value of that sequence number."""
    return Payload("t", partition, producer, sequence)


def sent(sequence: int, offset: int, **more) -> Send:
    """An acknowledged send."""
    return Send(value(sequence), Outcome.OK, offset, **more)


def polled(offset: int, sequence: int, *, consumer: str = "c") -> Poll:
    """A record read by a consumer."""
    return Poll(consumer, "t", 0, offset, value(sequence))


def names(sends, polls, **more) -> list[str]:
    """The names of what is found."""
    return [violation.name for violation in check(sends, polls, **more)]


def test_sound_history():
    """Is nothing found where everything sent is there once, in order, and what is open came or did not come?"""
    sends = [sent(1, 0), sent(2, 1), Send(value(3), Outcome.UNKNOWN), Send(value(4), Outcome.UNKNOWN), sent(5, 3)]
    polls = [polled(0, 1), polled(1, 2), polled(2, 3), polled(3, 5), polled(1, 2, consumer="d")]

    assert names(sends, polls, idempotent={"p"}, dense=True) == []


BROKEN = {
    "two values at one offset": (
        [sent(1, 0), Send(value(2), Outcome.UNKNOWN)],
        [polled(0, 1), polled(0, 2, consumer="d")],
        ["inconsistent-offsets"],
    ),
    "another offset than the producer was told": (
        [sent(1, 0), sent(2, 1)],
        [polled(0, 2), polled(1, 1)],
        ["inconsistent-offsets", "inconsistent-offsets", "nonmonotonic-send"],
    ),
    "missing below what was read": ([sent(1, 0), sent(2, 1)], [polled(1, 2)], ["lost-write"]),
    "missing above what was read": ([sent(1, 0), sent(2, 1)], [polled(0, 1)], ["unseen"]),
    "nothing read at all": ([sent(1, 0)], [], ["unseen"]),
    "refused but there": ([Send(value(1), Outcome.FAILED)], [polled(0, 1)], ["G1a"]),
    "never sent": ([], [polled(0, 1)], ["phantom-read"]),
    "in another partition": (
        [Send(value(1, partition=1), Outcome.UNKNOWN)],
        [Poll("c", "t", 0, 0, value(1, partition=1))],
        ["phantom-read"],
    ),
    "there twice": ([sent(1, 0)], [polled(0, 1), polled(1, 1)], ["duplicate"]),
    "in another order": (
        [Send(value(1), Outcome.UNKNOWN), Send(value(2), Outcome.UNKNOWN)],
        [polled(0, 2), polled(1, 1)],
        ["nonmonotonic-send"],
    ),
    "a consumer taken back": (
        [sent(1, 0), sent(2, 1)],
        [polled(0, 1), polled(1, 2), polled(0, 1)],
        ["nonmonotonic-poll"],
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_promise_is_named(case):
    """Is each promise, once broken, found under its own name and no other?"""
    sends, polls, expected = BROKEN[case]

    assert names(sends, polls) == expected


def test_gap_is_a_skip_only_where_offsets_are_dense():
    """Does a gap count against a log without markers and compaction, and only there?"""
    sends, polls = [sent(1, 0), sent(2, 5)], [polled(0, 1), polled(5, 2)]

    assert names(sends, polls) == []
    assert names(sends, polls, dense=True) == ["poll-skip"]


def test_duplicates_of_retries():
    """Is a value allowed to be there once per attempt, and with idempotence once whatever the attempts?"""
    sends, polls = [sent(1, 1, attempts=2)], [polled(0, 1), polled(1, 1)]

    assert names(sends, polls) == []
    assert names(sends, polls, idempotent={"p"}) == ["duplicate"]
    assert names(sends, [*polls, polled(2, 1)]) == ["duplicate"]


def test_values_must_be_unique():
    """Is a history with one value for two sends refused, as nothing could be told from it?"""
    with pytest.raises(AssertionError):
        check([sent(1, 0), sent(1, 1)], [])


@pytest.mark.parametrize("size", [0, 17, 400])
def test_payload_knows_its_place(size):
    """Does a value come back as it was made, in at least the size asked for?"""
    payload = Payload("topic.a", 3, "producer-1", 77)
    data = payload.encode(size)

    assert Payload.decode(data) == payload
    assert len(data) >= size


def test_any_flipped_bit_is_noticed():
    """Is a value with one bit changed never taken for another value?"""
    data = Payload("t", 0, "p", 1).encode()

    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(GarbledPayload):
            Payload.decode(bytes(damaged))
