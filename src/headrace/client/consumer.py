"""`KafkaConsumer`, in kafka-python's shape."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

from headrace.client.client_options import ClientOptions, gather, is_on
from headrace.client.engine import (
    Engine,
    EngineError,
    EngineException,
    Troubles,
    raise_fault,
    reach,
    settings_refusal,
)
from headrace.client.fault import BadOption, ClientFault, Closed
from headrace.client.listener import ConsumerRebalanceListener
from headrace.client.offset_lists import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    Offsets,
    engine_offsets,
    engine_places,
    offset_and_metadata,
)
from headrace.client.offset_lookup import AT_BEGINNING, AT_END, OffsetLookup
from headrace.client.option_table import CONSUMER
from headrace.client.producer import topic_partitions
from headrace.client.reading import Reading
from headrace.client.records import ConsumerRecord, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition, place_of
from headrace.client.serializers import deserializer

# The engine wants a group's name even of those that are in none; nobody ever joins this one.
_NO_GROUP = "headrace-reader"
_REVOCATION_S = 5.0
_STARTS = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}
_SEEK_S, _SEEK_AGAIN_S = 5.0, 0.01

Records = dict[TopicPartition, list[ConsumerRecord]]
CommitCallback = Callable[[Mapping[TopicPartition, Any], Exception | None], object]


class KafkaConsumer:
    """Reads records from topics, alone or in a group; an iterator of records. For one thread at a time."""

    def __init__(
        self,
        *topics: str,
        config: Mapping[str, Any] | None = None,
        config_file: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        """Options have kafka-python's names, in `config` and `config_file` Java's as well; docs/howto/clients.md."""
        self._options = gather(CONSUMER, options, config=config, config_file=config_file)
        own = self._options.own
        readers = (
            deserializer(self._options.called("key_deserializer"), own["key_deserializer"]),
            deserializer(self._options.called("value_deserializer"), own["value_deserializer"]),
        )
        self._max_records = _max_records(self._options)
        self._timeout_s = self._options.seconds("default_api_timeout_ms")
        self._has_group = bool(self._options.engine.get("group.id"))
        self._listener: ConsumerRebalanceListener | None = None
        self._subscription: set[str] | None = None
        self._sought: dict[TopicPartition, int] | None = None
        """What a listener seeks to while it is told of an assignment."""
        self._lookup: OffsetLookup | None = None
        self._committer: ThreadPoolExecutor | None = None
        self._iterator: Iterator[ConsumerRecord] | None = None
        self._is_closed = False
        troubles = Troubles(self._options.explain)
        self._consumer = _new_consumer(self._options, troubles)
        self._auto_commits = self._has_group and is_on(self._options, "enable.auto.commit", default=True)
        self._reading = Reading(
            self._consumer,
            troubles,
            readers=readers,
            where=self._options.where,
            patience_s=self._timeout_s,
            stores=self._auto_commits,
        )
        try:
            reach(
                self._consumer,
                lambda: self._consumer.poll(0),
                troubles,
                where=self._options.where,
                timeout_s=self._options.seconds("bootstrap_timeout_ms"),
            )
            if topics:
                self.subscribe(topics)
        except BaseException:
            self._consumer.close()
            self._is_closed = True
            raise

    # --- reading

    def poll(self, timeout_ms: float = 0, max_records: int | None = None) -> Records:
        """The next records by partition, as soon as there are any; empty if none come in time."""
        reading = self._open_reading()
        most = max_records or self._max_records
        if not reading.left and not reading.fill(timeout_ms / 1000, most):
            return {}
        return reading.take(most)

    def peek(self) -> list[ConsumerRecord]:
        """The records at hand, which the next `poll` gives; nobody has got them by looking at them."""
        return self._open_reading().peek()

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Records one by one, for ever, or until none came for `consumer_timeout_ms`."""
        silence_s = self.silence_s
        while True:
            reading = self._open_reading()
            yield from reading.rest
            # A seek while the program has control ends the batch and may lay out another one.
            if not reading.left and not self._open_reading().fill(silence_s, self._max_records):
                return

    def __next__(self) -> ConsumerRecord:
        """The next record."""
        if self._iterator is None:
            self._iterator = iter(self)
        try:
            return next(self._iterator)
        except StopIteration:
            self._iterator = None
            raise

    @property
    def silence_s(self) -> float:
        """How long iteration waits for a record before it ends."""
        return self._options.seconds("consumer_timeout_ms")

    @property
    def has_records(self) -> bool:
        """Whether records are at hand that the program has not got yet."""
        return self._reading.left > 0

    def wait(self, timeout_s: float) -> bool:
        """Wait until records are at hand; False if none came in time. Those at hand before must have been taken."""
        return self._open_reading().fill(timeout_s, self._max_records)

    def _open_reading(self) -> Reading:
        if self._is_closed:
            raise Closed("The consumer is closed")
        return self._reading

    # --- which partitions

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Read topics, or all whose names match a pattern; in a group, which shares them out, else all by oneself."""
        names: list[Any] = [topics] if isinstance(topics, str) else list(topics)
        if bool(names) == bool(pattern):
            raise BadOption("A subscription has either topics or a pattern", "Give one of them.")
        if strange := [name for name in names if not isinstance(name, str)]:
            raise BadOption(f"{strange[0]!r} is not a topic's name", 'Give names one by one: KafkaConsumer("a", "b").')
        self._listener = listener
        self._subscription = set(names)
        if not self._has_group:
            self._assign_all(names, pattern)
            return
        self._reading.stay()
        expression = pattern if pattern is None or pattern.startswith("^") else f"^{pattern}"
        try:
            self._consumer.subscribe(
                [expression] if expression else names,
                on_assign=self._on_assign,
                on_revoke=self._on_revoke,
                on_lost=self._on_lost,
            )
        except EngineException as error:
            raise_fault(error)

    def _assign_all(self, names: Collection[str], pattern: str | None) -> None:
        if pattern is not None:
            expression = re.compile(pattern)
            names = [name for name in self.topics() if expression.match(name)]
        places = [TopicPartition(name, number) for name in names for number in sorted(self._partitions(name))]
        self._assign(places)
        if self._listener is not None:
            self._listener.on_partitions_assigned(places)

    def assign(self, partitions: Iterable[Any]) -> None:
        """Read exactly these partitions, whatever a group may do."""
        self._subscription = None
        self._assign([place_of(one) for one in partitions])

    def _assign(self, places: list[TopicPartition]) -> None:
        start = OFFSET_INVALID
        if not self._has_group:
            start = _STARTS.get(self._options.engine.get("auto.offset.reset", "latest"), OFFSET_INVALID)
        self._reading.forget(self.assignment() - set(places))
        known = self._reading.positions()
        self._reading.begin({place: known.get(place, start) for place in places})

    def unsubscribe(self) -> None:
        """Read nothing any more, and leave the group."""
        self._reading.forget(self.assignment())
        is_member = self._subscription is not None and self._has_group
        self._subscription = None
        self._reading.stay()
        self._consumer.unsubscribe()
        if is_member:
            self._await_revocation()
        else:
            self._consumer.unassign()
        self._reading.assigned = set()

    def _await_revocation(self) -> None:
        """Have the engine take back what it assigned: done behind its back, it may wait for us for ever in `close`."""
        deadline = time.monotonic() + _REVOCATION_S
        while self._reading.assigned and time.monotonic() < deadline:
            self._consumer.poll(_REVOCATION_S / 100)

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read."""
        return set(self._reading.assigned)

    def subscription(self) -> set[str] | None:
        """The topics subscribed to by name."""
        return None if self._subscription is None else set(self._subscription)

    def _on_assign(self, _: Engine.Consumer, partitions: list[Engine.TopicPartition]) -> None:
        places = {place_of(one) for one in partitions}
        if _is_cooperative(self._options):
            self._consumer.incremental_assign(partitions)
            self._reading.assigned |= places
        else:
            self._consumer.assign(partitions)
            self._reading.assigned = set(places)
        if self._listener is not None:
            # The engine moves only for the thread that is being told; a listener may live on another one.
            sought: dict[TopicPartition, int] = {}
            self._sought = sought
            try:
                self._listener.on_partitions_assigned(places)
            finally:
                self._sought = None
            for place, offset in sought.items():
                self.seek(place, offset)

    def _on_revoke(self, _: Engine.Consumer, partitions: list[Engine.TopicPartition]) -> None:
        places = {place_of(one) for one in partitions}
        if self._auto_commits:
            self._reading.store()
        if self._listener is not None:
            self._listener.on_partitions_revoked(places)
        self._reading.forget(places)
        self._reading.assigned -= places
        self._give_back(partitions)

    def _give_back(self, partitions: list[Engine.TopicPartition]) -> None:
        """Tell the engine that they are free: left to confluent-kafka, it does so while no other thread can run."""
        if _is_cooperative(self._options):
            self._consumer.incremental_unassign(partitions)
        else:
            self._consumer.unassign()

    def _on_lost(self, _: Engine.Consumer, partitions: list[Engine.TopicPartition]) -> None:
        places = {place_of(one) for one in partitions}
        self._reading.forget(places)
        self._reading.assigned -= places
        if self._listener is not None:
            self._listener.on_partitions_lost(places)
        self._give_back(partitions)

    # --- where

    def seek(self, partition: Any, offset: int) -> None:
        """Go on at an offset."""
        place = place_of(partition)
        self._reading.move(place, offset)
        if self._sought is not None:
            self._sought[place] = offset
            return
        if self._reading.begins_at(place, offset):
            return
        target = Engine.TopicPartition(place.topic, place.partition, offset)
        deadline = time.monotonic() + _SEEK_S
        while True:
            try:
                self._consumer.seek(target)
                return
            except EngineException as error:
                # A partition that was assigned a moment ago is not being read yet.
                code = error.args[0].code()
                if code != EngineError._STATE or place not in self.assignment() or time.monotonic() > deadline:  # noqa: SLF001
                    raise_fault(error)
                time.sleep(_SEEK_AGAIN_S)

    def seek_to_beginning(self, *partitions: Any) -> None:
        """Go to the first offset of these partitions, or of all."""
        for place in partitions or self.assignment():
            self.seek(place, OFFSET_BEGINNING)

    def seek_to_end(self, *partitions: Any) -> None:
        """Go behind the last offset of these partitions, or of all."""
        for place in partitions or self.assignment():
            self.seek(place, OFFSET_END)

    def position(self, partition: Any) -> int:
        """The offset that is read next."""
        place = place_of(partition)
        known = self._reading.positions().get(place)
        if known is None:
            known = self.committed(place) if self._has_group else None
        if known is None:
            known = _STARTS.get(self._options.engine.get("auto.offset.reset", "latest"))
        if known is None:
            raise ClientFault(f"{place.topic}-{place.partition} has no position", "Seek to one.")
        if known >= 0:
            return known
        look = self.beginning_offsets if known == OFFSET_BEGINNING else self.end_offsets
        return look([place])[place]

    def pause(self, *partitions: Any) -> None:
        """Read nothing from these partitions for now."""
        places = {place_of(one) for one in partitions}
        self._reading.paused |= places
        if not self._reading.is_settled:
            return
        first = self._reading.drop(places)
        self._consumer.pause(engine_places(places))
        for place, offset in first.items():
            self.seek(place, offset)

    def resume(self, *partitions: Any) -> None:
        """Read from these partitions again."""
        places = {place_of(one) for one in partitions}
        self._reading.paused -= places
        if self._reading.is_settled:
            self._consumer.resume(engine_places(places))

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return self._reading.paused & self.assignment()

    # --- offsets of the group

    def commit(self, offsets: Offsets | None = None, timeout_ms: float | None = None) -> None:
        """Commit offsets, or what the program has read; returns when the broker has them."""
        self._commit(self._to_commit(offsets))

    def _to_commit(self, offsets: Offsets | None) -> Offsets:
        if not self._has_group:
            raise BadOption("Offsets are committed for a group", "Give the consumer a group_id.")
        if offsets is not None:
            return offsets
        mine = self.assignment()
        return {place: offset for place, offset in self._reading.positions().items() if offset >= 0 and place in mine}

    def _commit(self, offsets: Offsets) -> None:
        if not offsets:
            return
        try:
            done = self._consumer.commit(offsets=engine_offsets(offsets), asynchronous=False)
        except EngineException as error:
            raise_fault(error)
        for one in done:
            if one.error is not None:
                raise_fault(one.error)

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> Future[None]:
        """Commit without waiting; `callback(offsets, exception)` hears how it went, from another thread."""
        chosen = self._to_commit(offsets)
        if self._committer is None:
            self._committer = ThreadPoolExecutor(1, "headrace-commits")
        done = self._committer.submit(self._commit, chosen)
        if callback is not None:
            done.add_done_callback(lambda future: callback(chosen, _problem_of(future)))
        return done

    def committed(self, partition: Any, metadata: bool = False, timeout_ms: float | None = None) -> Any:
        """The committed offset, with its note if asked for; None if there is none."""
        timeout_s = self._timeout_s if timeout_ms is None else timeout_ms / 1000
        try:
            (found,) = self._consumer.committed(engine_places([partition]), timeout=timeout_s)
        except EngineException as error:
            raise_fault(error)
        if found.error is not None:
            raise_fault(found.error)
        stored: OffsetAndMetadata | None = offset_and_metadata(found)
        return stored if metadata or stored is None else stored.offset

    def group_metadata(self) -> Any:
        """What a producer needs to commit this group's offsets in a transaction."""
        return self._consumer.consumer_group_metadata()

    # --- what is there

    def topics(self) -> set[str]:
        """The names of all topics."""
        try:
            return set(self._consumer.list_topics(timeout=self._timeout_s).topics)
        except EngineException as error:
            raise_fault(error)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """The numbers of a topic's partitions; None if there is no such topic."""
        return self._partitions(topic) if topic in self.topics() else None

    def _partitions(self, topic: str) -> set[int]:
        return topic_partitions(self._consumer, topic, self._options)

    def beginning_offsets(
        self, partitions: Iterable[Any], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return self._offsets(dict.fromkeys(map(place_of, partitions), AT_BEGINNING), timeout_ms)

    def end_offsets(self, partitions: Iterable[Any], timeout_ms: float | None = None) -> dict[TopicPartition, int]:
        """The offset after the last record of each partition that this consumer may see."""
        return self._offsets(dict.fromkeys(map(place_of, partitions), AT_END), timeout_ms)

    def _offsets(self, wanted: dict[TopicPartition, int], timeout_ms: float | None) -> dict[TopicPartition, int]:
        return {place: found.offset for place, found in self._look_up(wanted, timeout_ms).items()}

    def offsets_for_times(
        self, timestamps: Mapping[Any, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition at or after a time in milliseconds; None if there is none."""
        found = self._look_up({place_of(place): when for place, when in timestamps.items()}, timeout_ms)
        return {place: None if at.offset < 0 else at for place, at in found.items()}

    def _look_up(
        self, wanted: dict[TopicPartition, int], timeout_ms: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        if self._lookup is None:
            self._lookup = OffsetLookup(self._options)
        return self._lookup.find(wanted, self._timeout_s if timeout_ms is None else timeout_ms / 1000)

    def highwater(self, partition: Any) -> int | None:
        """The end of a partition as the last fetch told it."""
        (place,) = engine_places([partition])
        try:
            marks = self._consumer.get_watermark_offsets(place, cached=True)
        except EngineException as error:
            raise_fault(error)
        # The stubs promise a pair, but there is none before the first fetch.
        end = -1 if marks is None else marks[1]  # type: ignore[redundant-expr]
        return end if end >= 0 else None

    def bootstrap_connected(self) -> bool:
        """Whether a broker answers now."""
        try:
            self._consumer.list_topics(timeout=1.0)
        except EngineException:
            return False
        return True

    def metrics(self) -> dict[str, int]:
        """How many records were fetched and not yet taken."""
        return {"records-waiting": self._reading.left}

    # --- the end

    def close(self, autocommit: bool = True) -> None:
        """Leave the group, committing what was read if that is on."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._committer is not None:
            self._committer.shutdown()
        try:
            if autocommit and self._auto_commits:
                self._reading.store()
        finally:
            self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _problem_of(future: Future[None]) -> Exception | None:
    problem = future.exception()
    assert problem is None or isinstance(problem, Exception)
    return problem


def _max_records(options: ClientOptions) -> int:
    value = options.own["max_poll_records"]
    if isinstance(value, bool) or not str(value).isdigit() or int(value) < 1:
        raise BadOption(f"{options.called('max_poll_records')}={value!r} is not a number above 0")
    return int(value)


def _is_cooperative(options: ClientOptions) -> bool:
    strategy = str(options.engine.get("partition.assignment.strategy", ""))
    return options.engine.get("group.protocol") == "consumer" or "cooperative" in strategy


def _new_consumer(options: ClientOptions, troubles: Troubles) -> Engine.Consumer:
    settings = {**options.engine, "error_cb": troubles.note}
    if not settings.get("group.id"):
        settings |= {"group.id": _NO_GROUP, "enable.auto.commit": False}
    try:
        return Engine.Consumer(settings)
    except EngineException as error:
        raise settings_refusal(error, options.typed) from error
    except (TypeError, ValueError) as error:
        raise BadOption(str(error)) from error
