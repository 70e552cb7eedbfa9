"""`KafkaProducer`, in kafka-python's shape."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

from headrace.client.client_options import ClientOptions, gather
from headrace.client.delivery import Delivery
from headrace.client.delivery_thread import DeliveryThread
from headrace.client.engine import (
    Engine,
    EngineError,
    EngineException,
    Troubles,
    fault_of,
    raise_fault,
    reach,
    settings_refusal,
)
from headrace.client.fault import BadOption, ClientFault, Closed, TimedOut
from headrace.client.option_table import PRODUCER
from headrace.client.partitioners import Partitioner, RoundRobin
from headrace.client.serializers import serializer
from headrace.client.transaction import Transactions

if TYPE_CHECKING:
    from headrace.client.offset_lists import Offsets
    from headrace.model.errors import HeadraceError

Headers = Sequence[tuple[str, bytes | str | None]]

ANY_PARTITION = -1
ENGINE_PARTITIONERS = {
    "default": "murmur2_random",
    "sticky": "murmur2_random",
    "murmur2": "murmur2_random",
    "consistent": "consistent_random",
    "random": "random",
}
_PARTITIONS_KNOWN_S = 60.0
# How many records are sent between two looks at the reports: often enough to keep few, seldom enough to cost nothing.
_REPORTS_EVERY = 255
CLOSE_S = 30.0
_ROOM_S = 0.05
_PURGE_S = 1.0
_MET_MAX = 10_000
_MEETING_S = 5.0


class KafkaProducer:
    """Sends records to topics; may be used by several threads."""

    def __init__(
        self,
        *,
        config: Mapping[str, Any] | None = None,
        config_file: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        """Options have kafka-python's names, in `config` and `config_file` Java's as well; docs/howto/clients.md."""
        self._options = gather(PRODUCER, options, config=config, config_file=config_file)
        own = self._options.own
        self._key_to = serializer(self._options.called("key_serializer"), own["key_serializer"])
        self._value_to = serializer(self._options.called("value_serializer"), own["value_serializer"])
        self._choose = choose_partitioner(self._options)
        self._is_plain = self._key_to is None and self._value_to is None and self._choose is None
        self._max_block_s = self._options.seconds("max_block_ms")
        self._partitions: dict[str, tuple[float, list[int]]] = {}
        self._met: set[str] = set()
        troubles = Troubles(self._options.explain)
        self._producer = new_producer(self._options, troubles)
        self._deliveries = DeliveryThread(self._producer)
        self._finalizer = weakref.finalize(self, _end, self._producer, self._deliveries)
        self._produce = self._producer.produce
        self._transactions = Transactions(self._producer, self._options)
        try:
            reach(
                self._producer,
                self._deliveries.serve,
                troubles,
                where=self._options.where,
                timeout_s=self._options.seconds("bootstrap_timeout_ms"),
            )
        except BaseException:
            self._finalizer.detach()
            self._deliveries.end()
            self._produce = _refuse
            raise

    # --- sending

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Hand a record over; where it was stored comes in the future.

        Waits only while there is no room for it, and for the partitions of a topic that it meets for the first time.
        """
        deliveries = self._deliveries
        delivery = Delivery(deliveries)
        if topic not in self._met:
            meet(self._producer, topic, self._met, self._max_block_s)
        if self._is_plain and timestamp_ms is None:
            number = ANY_PARTITION if partition is None else partition
            try:
                # By position: parsing names costs a tenth of the call.
                if headers:
                    self._produce(topic, value, key, number, delivery.report, headers=list(headers))
                else:
                    self._produce(topic, value, key, number, delivery.report)
            except (BufferError, EngineException, RuntimeError):
                self._send_slowly(delivery, topic, value, key, headers, partition, None)
        else:
            raw_key = key if self._key_to is None else self._key_to(topic, key)
            raw_value = value if self._value_to is None else self._value_to(topic, value)
            if partition is None and self._choose is not None:
                partition = self._choose_partition(topic, raw_key)
            self._send_slowly(delivery, topic, raw_value, raw_key, headers, partition, timestamp_ms)
        # Two threads may count one record as one; that only moves the next look.
        deliveries.sent = sent = deliveries.sent + 1
        if not sent & _REPORTS_EVERY:
            deliveries.serve()
        return delivery

    def _send_slowly(
        self,
        delivery: Delivery,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> None:
        """The whole way: with headers and time, and with waiting for room."""
        rest: dict[str, Any] = {} if timestamp_ms is None else {"timestamp": timestamp_ms}
        if headers:
            rest["headers"] = list(headers)
        number = ANY_PARTITION if partition is None else partition
        deadline = time.monotonic() + self._max_block_s
        while True:
            try:
                self._produce(topic, value, key, number, delivery.report, **rest)
                return
            except BufferError:
                if time.monotonic() > deadline:
                    delivery.refuse(
                        TimedOut(f"There was no room for a record within {self._max_block_s:g} s", "See buffer_memory.")
                    )
                    return
                self._deliveries.serve(_ROOM_S)
            except EngineException as error:
                delivery.refuse(refusal(error, self._options))
                return
            except RuntimeError as error:
                raise Closed(f"The producer cannot send: {error}") from error

    def _choose_partition(self, topic: str, key: bytes | None) -> int:
        assert self._choose is not None
        known_at, partitions = self._partitions.get(topic, (-_PARTITIONS_KNOWN_S, []))
        now = time.monotonic()
        if now - known_at >= _PARTITIONS_KNOWN_S:
            partitions = sorted(self.partitions_for(topic))
            self._partitions[topic] = (now, partitions)
        return self._choose(key, partitions, partitions)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything sent so far is stored or has failed; TimedOut after `timeout` seconds."""
        left = self._deliveries.flush(-1 if timeout is None else timeout)
        if left:
            raise TimedOut(f"{left} records were not acknowledged within {timeout:g} s", "They are still being sent.")

    def partitions_for(self, topic: str) -> set[int]:
        """The numbers of a topic's partitions."""
        return topic_partitions(self._producer, topic, self._options)

    def bootstrap_connected(self) -> bool:
        """Whether a broker answers now."""
        try:
            self._producer.list_topics(timeout=1.0)
        except EngineException:
            return False
        return True

    def metrics(self) -> dict[str, int]:
        """How many records were sent, and how many of them are still on their way."""
        return {"records-sent": self._deliveries.sent, "records-waiting": len(self._producer)}

    # --- transactions

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """A transaction: committed at the end of the block, aborted if the block raises."""
        self._transactions.begin()
        try:
            yield self
        except BaseException:
            self._transactions.abandon()
            raise
        self._transactions.commit()

    def init_transactions(self) -> None:
        """Take the transactional id over; `transaction` does it by itself."""
        self._transactions.init()

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        self._transactions.begin()

    def commit_transaction(self) -> None:
        """Make everything in the transaction visible."""
        self._transactions.commit()

    def abort_transaction(self) -> None:
        """Let nothing in the transaction become visible."""
        self._transactions.abort()

    def send_offsets_to_transaction(self, offsets: Offsets, group: Any) -> None:
        """Commit what a group has read with the transaction; `group` is the consumer, its metadata, or a name."""
        self._transactions.send_offsets(offsets, group)

    # --- the end

    def close(self, timeout: float | None = None) -> None:
        """Send what is left, for at most `timeout` seconds, and end."""
        if not self._finalizer.alive:
            return
        self._finalizer.detach()
        finish(self._producer, CLOSE_S if timeout is None else timeout)
        self._deliveries.end()
        self._produce = _refuse

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _refuse(*_: Any, **__: Any) -> None:
    raise Closed("The producer is closed")


def _end(producer: Engine.Producer, deliveries: DeliveryThread) -> None:
    """What a producer that nobody closed leaves behind is still sent."""
    finish(producer, CLOSE_S)
    deliveries.end()


def finish(producer: Engine.Producer, timeout_s: float) -> None:
    """Send what is left; what cannot be sent in time has failed, and its futures say so."""
    try:
        if producer.flush(timeout_s):
            producer.purge()
            producer.flush(_PURGE_S)
    except EngineException:
        # It had ended before, and said so.
        return


def new_producer(options: ClientOptions, troubles: Troubles) -> Engine.Producer:
    """The engine's producer."""
    settings = {**options.engine, "error_cb": troubles.note}
    partitioner = options.own["partitioner"]
    settings["partitioner"] = ENGINE_PARTITIONERS.get(partitioner if isinstance(partitioner, str) else "", "random")
    try:
        return Engine.Producer(settings)
    except EngineException as error:
        raise settings_refusal(error, options.typed) from error
    except (TypeError, ValueError) as error:
        raise BadOption(str(error)) from error


def choose_partitioner(options: ClientOptions) -> Partitioner | None:
    """Who chooses partitions: None for the engine."""
    given: str | Callable[..., int] = options.own["partitioner"]
    if callable(given):
        return given
    if given in {"round_robin", "roundrobin"}:
        return RoundRobin()
    if given not in ENGINE_PARTITIONERS:
        known = ", ".join(("round_robin", *ENGINE_PARTITIONERS))
        raise BadOption(f"{options.called('partitioner')}={given} is unknown", f"Use a function, or one of {known}.")
    return None


def refusal(error: EngineException, options: ClientOptions) -> HeadraceError:
    """Why the engine did not take a record."""
    if error.args[0].code() == EngineError._STATE and options.engine.get("transactional.id"):  # noqa: SLF001
        return ClientFault(
            "The producer has a transactional_id, and no transaction is open",
            "Send within `with producer.transaction():`.",
        )
    return fault_of(error)


def meet(producer: Engine.Producer, topic: str, met: set[str], patience_s: float) -> None:
    """Have the engine learn a topic's partitions before its first record.

    What it is given before, it spreads over them one by one, so that a few records come back in another order. Where it
    cannot learn them the records wait, and what is wrong is told of them.
    """
    with suppress(EngineException):
        producer.list_topics(topic, timeout=min(patience_s, _MEETING_S))
    if len(met) >= _MET_MAX:
        met.clear()
    met.add(topic)


def topic_partitions(client: Any, topic: str, options: ClientOptions) -> set[int]:
    """The numbers of a topic's partitions, as a broker says."""
    try:
        found = client.list_topics(topic, timeout=options.seconds("default_api_timeout_ms")).topics[topic]
    except EngineException as error:
        raise_fault(error)
    if found.error is not None:
        raise_fault(found.error)
    return set(found.partitions)
