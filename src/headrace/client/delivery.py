"""`Delivery`: the future of one record, in kafka-python's shape; made for every record, so it is small."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from headrace.client.engine import EngineError, fault_of
from headrace.client.fault import TimedOut
from headrace.client.records import RecordMetadata, metadata_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Message


class Poller(Protocol):
    """Who brings the reports."""

    def hurry(self) -> None:
        """Somebody waits."""


_LOG = logging.getLogger(__name__)
# Guards only what happens when somebody waits for a record or has hung a function on it, never the usual way.
_LISTENING = threading.Lock()


class Delivery(msgspec.Struct, gc=False, eq=False):
    """Where a record was stored, once that is known.

    The collector of reference cycles does not look at it: there are too many, and nothing here leads back to one.
    """

    poller: Poller
    message: Message | None = None
    error: EngineError | None = None
    refusal: Exception | None = None
    listeners: list[Callable[[Delivery], None]] | None = None

    def report(self, error: EngineError | None, message: Message) -> None:
        """What the engine calls when the record is stored, or never will be."""
        self.error = error
        self.message = message
        if self.listeners is not None:
            self._tell()

    def refuse(self, problem: Exception) -> None:
        """The record could not even be handed over."""
        self.refusal = problem
        if self.listeners is not None:
            self._tell()

    def _tell(self) -> None:
        with _LISTENING:
            listeners, self.listeners = self.listeners, None
        for listener in listeners or ():
            try:
                listener(self)
            except Exception:  # noqa: BLE001 - the program's function is at fault, and other records must go on
                _LOG.exception("A function that was to hear of a record failed")

    def _listen(self, listener: Callable[[Delivery], None]) -> None:
        with _LISTENING:
            if self.listeners is None:
                self.listeners = []
            self.listeners.append(listener)
        # The report may have come before it could see the listener.
        if self.is_done:
            self._tell()
        else:
            self.poller.hurry()

    # --- what programs use

    @property
    def is_done(self) -> bool:
        """Whether it is known."""
        return self.message is not None or self.refusal is not None

    def succeeded(self) -> bool:
        """Whether the record is stored."""
        return self.is_done and self.exception is None

    def failed(self) -> bool:
        """Whether it is known that the record is not stored."""
        return self.is_done and self.exception is not None

    @property
    def exception(self) -> Exception | None:
        """Why it was not stored."""
        return self.refusal if self.error is None else fault_of(self.error)

    @property
    def value(self) -> RecordMetadata | None:
        """Where it was stored, if that is known already."""
        return metadata_of(self.message) if self.message is not None and self.error is None else None

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Wait, for at most `timeout` seconds; raises why the record could not be stored."""
        if not self.is_done:
            done = threading.Event()
            self._listen(lambda _: done.set())
            if not done.wait(timeout):
                raise TimedOut(f"The record was not acknowledged within {timeout:g} s", "It may still be.")
        problem = self.exception
        if problem is not None:
            raise problem
        assert self.message is not None, "a record that is done and has not failed has a report"
        return metadata_of(self.message)

    def add_callback(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Delivery:
        """Call `function(*args, metadata)` when it is stored."""

        def listener(done: Delivery) -> None:
            if (stored := done.value) is not None:
                function(*args, stored, **kwargs)

        self._listen(listener)
        return self

    def add_errback(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Delivery:
        """Call `function(*args, exception)` when it cannot be."""

        def listener(done: Delivery) -> None:
            if (problem := done.exception) is not None:
                function(*args, problem, **kwargs)

        self._listen(listener)
        return self

    def add_both(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Delivery:
        """Call `function` in either case."""
        return self.add_callback(function, *args, **kwargs).add_errback(function, *args, **kwargs)
