"""What clients did to a broker, held against what a log that keeps its promises can have done.

Clients write down each send and what came of it, and each record they were given. `check` says which promises the two
lists cannot both be true under, in the words the field uses for them:

    inconsistent-offsets   one offset, two values; or a send was told another offset than its value is at
    lost-write             an acknowledged value is missing below the highest offset anybody read
    unseen                 an acknowledged value lies above that, and nobody ever got it
    G1a                    a value was read whose send had definitely failed
    phantom-read           a value was read that nobody sent, or in a topic or partition it was not sent to
    duplicate              a value is there more often than it was attempted; with idempotence, more than once
    nonmonotonic-send      a producer's values stand in another order than it sent them in
    nonmonotonic-poll      a consumer was taken back
    poll-skip              a consumer was taken past records that are there

Consumer groups and transactions have checkers of their own: `group_history` and `transaction_history`. Offsets need
not be dense: markers and compaction leave gaps. Who knows that there are none says so (`dense`), and then a gap is a
poll-skip.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum
from hashlib import blake2b
from typing import NamedTuple, Self

_HASH_BYTES = 8


class GarbledPayload(Exception):
    """A value that does not say where it belongs, or whose hash says otherwise."""


class Payload(NamedTuple):
    """A value no other is equal to, which knows its own place (a client that mixes up buffers is found out)."""

    topic: str
    partition: int
    producer: str
    sequence: int

    def encode(self, size: int = 0) -> bytes:
        """The value's bytes, filled up to `size`."""
        text = f"|{self.topic}|{self.partition}|{self.producer}|{self.sequence}|".encode()
        text = text.ljust(size - 2 * _HASH_BYTES, b"-")
        return blake2b(text, digest_size=_HASH_BYTES).hexdigest().encode() + text

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a value back; GarbledPayload if a single bit of it is another."""
        head, text = data[: 2 * _HASH_BYTES], data[2 * _HASH_BYTES :]
        if blake2b(text, digest_size=_HASH_BYTES).hexdigest().encode() != head:
            raise GarbledPayload(f"the hash does not match: {data[:80]!r}")
        _, topic, partition, producer, sequence, _ = text.decode().split("|")
        return cls(topic, int(partition), producer, int(sequence))


class Outcome(Enum):
    """What a producer knows of a send in the end."""

    OK = "acknowledged"
    FAILED = "refused: it is not in the log and never will be"
    UNKNOWN = "no answer, or one that leaves it open"


class Send(NamedTuple):
    """One value and what became of it, over all attempts."""

    payload: Payload
    outcome: Outcome
    offset: int = -1
    """Where the broker said it is; -1 if it did not say."""
    attempts: int = 1


class Poll(NamedTuple):
    """One record as one consumer got it; a consumer that seeks goes on under another name."""

    consumer: str
    topic: str
    partition: int
    offset: int
    payload: Payload


class Violation(NamedTuple):
    """A promise broken, and by which sends and reads."""

    name: str
    what: str


Place = tuple[str, int]


class _Facts:
    """The two lists, sorted in the ways the rules ask for."""

    def __init__(self, sends: Sequence[Send], polls: Sequence[Poll], idempotent: Collection[str]) -> None:
        self.sends = sends
        self.polls = polls
        self.idempotent = idempotent
        self.by_payload = {send.payload: send for send in sends}
        self.log: dict[Place, dict[int, Payload]] = defaultdict(dict)
        self.offsets: dict[Payload, set[int]] = defaultdict(set)
        for poll in polls:
            self.log[poll.topic, poll.partition].setdefault(poll.offset, poll.payload)
            self.offsets[poll.payload].add(poll.offset)


def check(
    sends: Sequence[Send], polls: Sequence[Poll], *, idempotent: Collection[str] = (), dense: bool = False
) -> list[Violation]:
    """Every promise the history breaks; `idempotent` names the producers that sent with idempotence."""
    facts = _Facts(sends, polls, idempotent)
    assert len(facts.by_payload) == len(sends), "a value was used for two sends: the history says nothing"
    found = [violation for rule in _RULES for violation in rule(facts)]
    return found + list(_skips(facts) if dense else ())


def _inconsistent(facts: _Facts) -> Iterator[Violation]:
    for poll in facts.polls:
        first = facts.log[poll.topic, poll.partition][poll.offset]
        if first != poll.payload:
            yield Violation("inconsistent-offsets", f"{poll} but earlier {first}")
    for send in facts.sends:
        read = facts.log.get((send.payload.topic, send.payload.partition), {}).get(send.offset, send.payload)
        if send.outcome is Outcome.OK and read != send.payload:
            yield Violation("inconsistent-offsets", f"{send} but {read} was read there")


def _lost(facts: _Facts) -> Iterator[Violation]:
    ends = {place: max(log) for place, log in facts.log.items()}
    for send in facts.sends:
        if send.outcome is Outcome.OK and not facts.offsets.get(send.payload):
            end = ends.get((send.payload.topic, send.payload.partition), -1)
            yield Violation("lost-write" if send.offset <= end else "unseen", f"{send}, read up to {end}")


def _aborted_and_phantom(facts: _Facts) -> Iterator[Violation]:
    for poll in facts.polls:
        send = facts.by_payload.get(poll.payload)
        if send is None or (poll.topic, poll.partition) != poll.payload[:2]:
            yield Violation("phantom-read", f"{poll}")
        elif send.outcome is Outcome.FAILED:
            yield Violation("G1a", f"{poll} of {send}")


def _duplicates(facts: _Facts) -> Iterator[Violation]:
    for payload, offsets in facts.offsets.items():
        send = facts.by_payload.get(payload)
        allowed = 1 if send is None or payload.producer in facts.idempotent else send.attempts
        if len(offsets) > allowed:
            yield Violation("duplicate", f"{payload} is at {sorted(offsets)}, {allowed} allowed")


def _sent_order(facts: _Facts) -> Iterator[Violation]:
    """By the first place of each value: a retry of one that is there already may stand behind later ones."""
    last: dict[tuple[Place, str], tuple[int, int]] = {}
    for payload, offsets in sorted(facts.offsets.items(), key=lambda item: (item[0][:3], min(item[1]))):
        key = (payload.topic, payload.partition), payload.producer
        sequence, offset = last.get(key, (-1, -1))
        if payload.sequence < sequence:
            yield Violation("nonmonotonic-send", f"{payload} at {min(offsets)} behind {sequence} at {offset}")
        last[key] = (payload.sequence, min(offsets))


def _poll_order(facts: _Facts) -> Iterator[Violation]:
    for before, poll in _steps(facts.polls):
        if poll.offset <= before:
            yield Violation("nonmonotonic-poll", f"{poll} after {before}")


def _skips(facts: _Facts) -> Iterator[Violation]:
    for before, poll in _steps(facts.polls):
        if poll.offset > before + 1:
            yield Violation("poll-skip", f"{poll} after {before}")


def _steps(polls: Iterable[Poll]) -> Iterator[tuple[int, Poll]]:
    """Each poll with the offset the same consumer got before it in the same partition."""
    last: dict[tuple[str, str, int], int] = {}
    for poll in polls:
        key = (poll.consumer, poll.topic, poll.partition)
        if key in last:
            yield last[key], poll
        last[key] = poll.offset


_RULES = (_inconsistent, _lost, _aborted_and_phantom, _duplicates, _sent_order, _poll_order)
