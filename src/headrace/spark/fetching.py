"""Records as a task needs them: ranges of partitions fetched from their leaders, as the bytes the brokers sent.

All partitions that one broker leads are fetched together. The next Fetch is on its way while the last answer is worked
on; what is asked for is what the range still needs, as far as that can be guessed. Brokers may restart and leaders may
move: fetching goes on, as long as something comes before the patience is over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.client.cluster import RETRIABLE
from headrace.client.fault import ClientFault, ConnectionEnded, NoBroker, TimedOut
from headrace.client.records import TopicPartition
from headrace.model.errors import ErrorCode, KafkaError
from headrace.spark.decoder import next_offset_of
from headrace.spark.offsets import Range, data_lost, name_of
from headrace.spark.positions import EARLIEST
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from headrace.client.blocking_channel import BlockingChannel
    from headrace.spark.links import Links

FETCH, LIST_OFFSETS = 1, 2
_NAMES_LAST = 12
"""From the next version on, topics are named by their ids."""
NO_LEADER = -1
_PAUSE_FIRST_S, _PAUSE_MAX_S = 0.02, 0.5
MISSING_S = 10.0
"""How long a partition may be unknown, as it is while a cluster comes up, before it counts as deleted."""
BARREN_MAX = 5
"""So many empty answers, where there should be records, mean that compaction has left nothing up to the end."""
_BYTES_MIN = 64 * 1024
_GUESSES_MAX = 10_000

LOG = logging.getLogger("headrace.spark")


class Chunk(NamedTuple):
    """What one answer holds of one partition; the records stay valid until the next chunk is asked for."""

    place: TopicPartition
    start: int
    next: int
    """Where the next chunk of the partition begins; the records may go further."""
    records: memoryview
    aborted: tuple[tuple[int, int], ...]
    """Aborted transactions among them: producer id and first offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRules:
    """How to fetch."""

    is_committed_only: bool = True
    fail_on_data_loss: bool = True
    may_be_gone: bool = False
    """Whether it does not matter if records are not there any more."""
    bytes_max: int = 32 * 1024 * 1024
    partition_bytes_max: int = 4 * 1024 * 1024
    wait_max_ms: int = 500
    patience_s: float = 120.0


@dataclass(slots=True)
class _Reading:
    """How far one range has come."""

    place: TopicPartition
    next: int
    stop: int
    leader: int
    empty: int = 0
    """Answers in a row that held nothing of it."""
    barren: int = 0
    """Those among them that would have had room for it."""
    missing_since: float | None = None

    @property
    def is_done(self) -> bool:
        return self.next >= self.stop


class Fetching:
    """Reads the ranges of one task."""

    def __init__(
        self,
        links: Links,
        rules: FetchRules,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._links = links
        self._rules = rules
        self._clock = clock
        self._sleep = pause
        self._pause_s = _PAUSE_FIRST_S
        self._moved_at = clock()
        self._first: TopicPartition | None = None
        self._looked_up = False

    def chunks(self, wanted: Sequence[tuple[Range, int]]) -> Generator[Chunk]:
        """Everything in these ranges, each with the broker that led it last, or NO_LEADER; close it if you stop."""
        readings = [_Reading(one.place, one.start, one.stop, leader) for one, leader in wanted]
        self._moved_at = self._clock()
        while readings := [one for one in readings if not one.is_done]:
            node_id = readings[0].leader
            try:
                if node_id == NO_LEADER:
                    self._look_up(readings)
                else:
                    yield from self._drain(node_id, [one for one in readings if one.leader == node_id])
            except (ConnectionEnded, NoBroker, TimedOut) as fault:
                self._forget(readings, node_id)
                self._wait(fault)
            except KafkaError as error:
                if error.code not in RETRIABLE:
                    raise ClientFault(f"The broker answers {error.code.name}: {error}", "See its log.") from error
                self._forget(readings, node_id)
                self._wait(error)

    # --- one broker

    def _drain(self, node_id: int, readings: list[_Reading]) -> Iterator[Chunk]:
        """Fetch from one broker until it has nothing more for us; whatever goes wrong, what came is handed on first."""
        channel = self._links.lane_to(node_id)
        try:
            self._send(channel, readings)
            while not channel.is_idle:
                found, refused = self._take(channel.receive(), readings)
                readings = [one for one in readings if not one.is_done]
                fault = None if refused else self._send_ahead(channel, readings)
                yield from found
                if fault is not None:
                    raise fault
                self._check_patience(readings)
                for one, code in refused:
                    self._refused(channel, one, code)
                readings = [one for one in readings if not one.is_done and one.leader == node_id]
                if refused and readings:
                    self._send(channel, readings)
        finally:
            if not channel.is_idle:
                self._links.drop_lane(node_id)

    def _send_ahead(self, channel: BlockingChannel, readings: list[_Reading]) -> ConnectionEnded | TimedOut | None:
        """Send the next Fetch; what went wrong has to wait until what came before is handed on."""
        try:
            if readings:
                self._send(channel, readings)
        except (ConnectionEnded, TimedOut) as fault:
            return fault
        return None

    def _send(self, channel: BlockingChannel, readings: list[_Reading]) -> None:
        topics: dict[str, list[FetchPartition]] = {}
        # Only the first partition of a Fetch is sure to get something: whoever got nothing comes first.
        order = sorted(readings, key=lambda reading: -reading.empty)
        self._first = order[0].place
        for one in order:
            topics.setdefault(one.place.topic, []).append(
                FetchPartition(
                    partition=one.place.partition, fetch_offset=one.next, partition_max_bytes=self._bytes_for(one)
                )
            )
        request = FetchRequest(
            max_wait_ms=self._rules.wait_max_ms,
            min_bytes=1,
            max_bytes=self._rules.bytes_max,
            isolation_level=int(self._rules.is_committed_only),
            topics=tuple(FetchTopic(topic=name, partitions=tuple(parts)) for name, parts in topics.items()),
        )
        channel.send(FETCH, request, version=channel.version_of(FETCH, at_most=_NAMES_LAST))

    def _bytes_for(self, one: _Reading) -> int:
        """What the rest of a range should take, with a reserve; records of a partition are of a size, mostly."""
        known = _RECORD_BYTES.get(one.place)
        if known is None:
            return self._rules.partition_bytes_max
        return min(self._rules.partition_bytes_max, _BYTES_MIN + int(1.25 * known * (one.stop - one.next)))

    def _take(self, answer: Any, readings: list[_Reading]) -> tuple[list[Chunk], list[tuple[_Reading, ErrorCode]]]:
        """What an answer brings, and which partitions it brings nothing of."""
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code), "Fetch")
        by_place = {one.place: one for one in readings}
        found, refused = [], []
        for topic in answer.responses:
            for data in topic.partitions:
                one = by_place[TopicPartition(topic.topic, data.partition_index)]
                if data.error_code:
                    refused.append((one, ErrorCode(data.error_code)))
                    continue
                chunk = self._advance(one, data, is_throttled=answer.throttle_time_ms > 0)
                # Bytes that hold no whole batch may be no batch at all: whoever reads them will say so.
                if chunk.records:
                    found.append(chunk)
        return found, refused

    def _advance(self, one: _Reading, data: Any, *, is_throttled: bool) -> Chunk:
        one.missing_since = None
        records = memoryview(data.records or b"")
        start, behind = one.next, next_offset_of(records, one.next)
        one.next = min(behind, one.stop)
        aborted = tuple((each.producer_id, each.first_offset) for each in data.aborted_transactions or ())
        chunk = Chunk(one.place, start, one.next, records, aborted)
        if one.next > start:
            _remember(one.place, len(records) / (behind - start))
            self._moved()
            one.empty = one.barren = 0
            return chunk
        one.empty += 1
        one.barren += one.place == self._first and not is_throttled and not records
        end = data.last_stable_offset if self._rules.is_committed_only else data.high_watermark
        if one.barren >= BARREN_MAX and end >= one.stop:
            LOG.warning("%s holds no more records from %d to %d", name_of(one.place), start, one.stop)
            one.next = one.stop
        return chunk

    # --- trouble

    def _refused(self, channel: BlockingChannel, one: _Reading, code: ErrorCode) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(channel, one)
        elif code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or code in RETRIABLE:
            one.leader = NO_LEADER
        elif code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise _forbidden(one.place.topic)
        else:
            raise KafkaError(code, name_of(one.place))

    def _out_of_range(self, channel: BlockingChannel, one: _Reading) -> None:
        """Records we wanted are gone: retention was faster, or the topic is another one of the same name."""
        earliest = _earliest(channel, one.place)
        begin = earliest if earliest > one.next else one.stop
        self._lose(one, f"{name_of(one.place)} has no record at {one.next} any more; it begins at {earliest}")
        one.next = min(begin, one.stop)

    def _lose(self, one: _Reading, sentence: str) -> None:
        if self._rules.may_be_gone:
            return
        if self._rules.fail_on_data_loss:
            raise data_lost([sentence])
        LOG.warning("%s: some records are skipped.", sentence)

    def _look_up(self, readings: list[_Reading]) -> None:
        """Who leads what has no leader; not twice in a row without giving the cluster time to find out itself."""
        lost = [one for one in readings if one.leader == NO_LEADER]
        if self._looked_up:
            self._wait(ClientFault(f"{name_of(lost[0].place)} has no leader that serves it", "Is its broker running?"))
        self._looked_up = True
        answer = self._links.metadata({one.place.topic for one in lost})
        leaders = {}
        for topic in answer.topics:
            if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise _forbidden(topic.name or "")
            leaders.update({TopicPartition(topic.name or "", one.partition_index): one for one in topic.partitions})
        for one in lost:
            found = leaders.get(one.place)
            if found is None:
                self._miss(one)
            else:
                one.leader, one.missing_since = found.leader_id, None

    def _miss(self, one: _Reading) -> None:
        if one.missing_since is None:
            one.missing_since = self._clock()
        elif self._clock() - one.missing_since > min(MISSING_S, self._rules.patience_s):
            self._lose(one, f"{name_of(one.place)} is gone; it was read up to {one.next}")
            one.next = one.stop

    def _forget(self, readings: list[_Reading], node_id: int) -> None:
        self._links.drop_lane(node_id)
        for one in readings:
            if one.leader == node_id:
                one.leader = NO_LEADER

    def _check_patience(self, readings: list[_Reading]) -> None:
        if readings and self._clock() - self._moved_at > self._rules.patience_s:
            raise TimedOut(
                f"No record came from {name_of(readings[0].place)} at {readings[0].next} for"
                f" {self._rules.patience_s:g} s",
                "Is its broker overloaded? kafkaConsumer.pollTimeoutMs sets how long to wait.",
            )

    def _moved(self) -> None:
        self._moved_at = self._clock()
        self._looked_up = False
        self._pause_s = _PAUSE_FIRST_S

    def _wait(self, reason: Exception) -> None:
        """Give the cluster a little time, unless it had enough."""
        if self._clock() - self._moved_at > self._rules.patience_s:
            raise reason
        self._sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, _PAUSE_MAX_S)


def _forbidden(topic: str) -> ClientFault:
    return ClientFault(f"Topic '{topic}' must not be read", "Ask for the right to read it.")


_RECORD_BYTES: dict[TopicPartition, float] = {}
"""What a record of a partition took when it was last fetched, in this process."""


def _remember(place: TopicPartition, record_bytes: float) -> None:
    if len(_RECORD_BYTES) >= _GUESSES_MAX:
        _RECORD_BYTES.clear()
    _RECORD_BYTES[place] = record_bytes


def _earliest(channel: BlockingChannel, place: TopicPartition) -> int:
    asked = ListOffsetsPartition(partition_index=place.partition, timestamp=EARLIEST)
    answer = channel.ask(
        LIST_OFFSETS,
        ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=place.topic, partitions=(asked,)),)),
    )
    found = answer.topics[0].partitions[0]
    if found.error_code:
        raise KafkaError(ErrorCode(found.error_code), name_of(place))
    return int(found.offset)
