"""A client that writes to a node which may no longer lead, and writes down what it was told."""

import time

from crash.cluster_nodes import Node
from crash.log_reader import Place
from headrace.model.errors import ErrorCode
from headrace.records.build import NewRecord, build_batch
from headrace.testing.history import Outcome, Payload, Send
from headrace.wire.messages.api_versions import ApiVersionsRequest


class StaleWriter:
    """Writes to a node that stands still or is cut off, and thinks that it still leads."""

    def __init__(self, node: Node, place: Place) -> None:
        self._place = place
        self._client = node.client("stale")
        # A connection that says nothing is closed after a while, and a busy machine takes its time to cut a network.
        self._client.ask("ApiVersions", 0, ApiVersionsRequest())
        self._asked: list[tuple[int, int]] = []

    def send(self, numbers: range) -> None:
        """Put requests into the node's socket, and do not wait for answers."""
        topic, partition = self._place
        for number in numbers:
            record = NewRecord(time.time_ns() // 1_000_000, None, stale_payload(self._place, number).encode(), ())
            batch = bytes(build_batch([record]))
            self._asked.append((number, self._client.produce_later(topic, batch, partition=partition)))

    def is_answered(self) -> bool:
        """Whether the node has said anything yet."""
        return self._client.has_answer()

    def answers(self) -> list[Send]:
        """What the node said to each, in the end."""
        told = []
        for number, correlation_id in self._asked:
            payload = stale_payload(self._place, number)
            try:
                (answered,) = self._client.receive("Produce", 12, correlation_id).responses
                (result,) = answered.partition_responses
            except OSError:
                told.append(Send(payload, Outcome.UNKNOWN))
                continue
            is_ok = result.error_code == ErrorCode.NONE
            told.append(Send(payload, Outcome.OK if is_ok else Outcome.UNKNOWN, result.base_offset if is_ok else -1))
        self.close()
        return told

    def close(self) -> None:
        """Hang up."""
        self._client.close()


def stale_payload(place: Place, number: int) -> Payload:
    """A value written to a node that may no longer lead."""
    return Payload(*place, "stale", number)
