"""The thread that brings delivery reports when the sender does not fetch them itself.

A sender that is busy fetches its reports between two records, which is cheapest: the thread would fight it for the
interpreter, report by report. So the thread looks away while records are sent and nobody waits for an answer.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from headrace.client.engine import EngineException, raise_fault

if TYPE_CHECKING:
    from confluent_kafka import Producer

_LOOK_AGAIN_S = 0.01
_QUIET_LOOKS = 2
_POLL_S = 0.05


class DeliveryThread:
    """Polls a producer until it is told to end."""

    def __init__(self, producer: Producer) -> None:
        self.sent = 0
        """How many records the sender has handed over; it counts itself."""
        self._producer = producer
        self._hurry = threading.Event()
        self._ending = False
        self._is_flushing = False
        self._thread = threading.Thread(target=self._run, name="headrace-deliveries", daemon=True)
        self._thread.start()

    def hurry(self) -> None:
        """Somebody waits for a report."""
        self._hurry.set()

    def flush(self, timeout_s: float) -> int:
        """Wait for all reports on the caller's thread, without a fight; gives how many did not come in time."""
        self._is_flushing = True
        try:
            return self._producer.flush(timeout_s)
        except EngineException as error:
            raise_fault(error)
        finally:
            self._is_flushing = False

    def serve(self, timeout_s: float = 0) -> None:
        """Fetch reports on the caller's thread; raises what ended the producer, if anything did."""
        try:
            self._producer.poll(timeout_s)
        except EngineException as error:
            raise_fault(error)

    def _run(self) -> None:
        seen, quiet = -1, 0
        while not self._ending:
            quiet = quiet + 1 if self.sent == seen else 0
            seen = self.sent
            if self._is_flushing or (quiet < _QUIET_LOOKS and not self._hurry.is_set()):
                self._hurry.wait(_LOOK_AGAIN_S)
                if self._is_flushing:
                    self._hurry.clear()
                continue
            self._hurry.clear()
            try:
                self._producer.poll(_POLL_S)
            except EngineException:
                # A producer that is fenced, say: whoever sends, flushes or commits is told.
                self._hurry.wait(_LOOK_AGAIN_S)

    def end(self) -> None:
        """Stop polling; at the latest after one poll."""
        self._ending = True
        self._hurry.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
