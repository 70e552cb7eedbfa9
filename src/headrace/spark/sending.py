"""Sends batches to the leaders of their partitions, several requests ahead of the answers, until all are accepted.

What has to be decided about batches is decided by the outbox; here are the sockets, the clock, and who leads what. As
long as something is accepted now and then we go on; when nothing has been for `patience_s`, we give up and say why.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.client.fault import ClientFault, ConnectionEnded, NoBroker, TimedOut
from headrace.model.errors import ErrorCode, HeadraceError, KafkaError, MalformedRequest
from headrace.spark.outbox import Batch, Outbox, Place, Verdict
from headrace.spark.produce_request import LAST, PRODUCE, produce_pieces
from headrace.spark.producer_identity import Identity
from headrace.spark.topic_leaders import NO_LEADER, TopicLeaders
from headrace.wire.messages.produce import PartitionProduceResponse

if TYPE_CHECKING:
    from headrace.spark.links import Links
    from headrace.spark.producer_settings import ProducerSettings

WAITING_BYTES_MAX = 16 * 1024 * 1024
"""More than this does not wait: whoever has more to send waits for answers first."""
_BACKOFF_FIRST_S, _BACKOFF_MAX_S = 0.01, 0.5
_UNREACHABLE = (ConnectionEnded, NoBroker, TimedOut, MalformedRequest)


_NO_ANSWER = PartitionProduceResponse(error_code=int(ErrorCode.UNKNOWN_SERVER_ERROR))
"""What a broker says of a partition that it leaves out of its answer."""


class NotWritten(ClientFault):
    """Records were refused, or nobody took them in time."""


_TAKEN_OVER = (
    "Another attempt of this task has taken over, or its transaction took longer than kafka.transaction.timeout.ms."
)
_REASONS = {
    ErrorCode.MESSAGE_TOO_LARGE: "A record is larger than the topic's max.message.bytes: one has to change.",
    ErrorCode.RECORD_LIST_TOO_LARGE: "A record is larger than a segment of the topic may be.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "The user may not write to this topic.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "The user may not write idempotently: set kafka.enable.idempotence=false.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "The user may not read the groups that are named after the query.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "The user may not use this transactional id.",
    ErrorCode.INVALID_PRODUCER_EPOCH: _TAKEN_OVER,
    ErrorCode.PRODUCER_FENCED: _TAKEN_OVER,
    ErrorCode.INVALID_TXN_STATE: _TAKEN_OVER,
    ErrorCode.TRANSACTION_ABORTABLE: _TAKEN_OVER,
}
"""What is to be said to a refusal that says little."""


def refusal(what: str, code: ErrorCode, said: str = "") -> NotWritten:
    """An error code as a sentence about `what`."""
    return NotWritten(f"{what}: {code.name}", _REASONS.get(code, said))


class Sender:
    """Sends the batches of one task; for one thread."""

    def __init__(
        self,
        links: Links,
        settings: ProducerSettings,
        identity: Identity,
        *,
        known: Iterable[Place] = (),
        admit: Callable[[Sequence[Place]], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`known` are partitions that have batches of this identity already.

        `admit` is told of partitions before the first batch goes to them, as transactions want it.
        """
        self.leaders = TopicLeaders(links, settings, clock=clock, pause=pause)
        self._links = links
        self._settings = settings
        self._identity = identity
        self._admit = admit
        self._admitted: set[Place] = set()
        self._outbox = Outbox(in_flight_max=settings.in_flight_max, known=known)
        self._clock, self._pause = clock, pause
        self._progress_s = clock()
        self._trouble: HeadraceError | None = None
        self._troubles = 0

    def send(self, batches: Sequence[Batch]) -> None:
        """Send batches, or keep them until there is room in flight; waits only when too many are kept."""
        if self._outbox.is_empty:
            self._progress_s = self._clock()
        for batch in batches:
            self._outbox.put(batch)
        self._send_ahead()
        while self._outbox.waiting_bytes > WAITING_BYTES_MAX:
            self._step()

    def flush(self) -> None:
        """Wait until every batch was accepted."""
        while not self._outbox.is_empty:
            self._step()

    def give_up(self) -> None:
        """Let what is in flight arrive and send no more: what came after the end of a transaction might hang."""
        for node_id in self._outbox.nodes:
            lane = self._links.lane_to(node_id)
            try:
                while not lane.is_idle:
                    lane.receive()
            except _UNREACHABLE:
                self._links.drop_lane(node_id)

    def _step(self) -> None:
        """Send what can be sent, and take in one answer."""
        self._send_ahead()
        nodes = self._outbox.nodes
        if nodes:
            self._receive(nodes[0])
        if self._trouble is not None:
            self._recover()

    # --- out

    def _send_ahead(self) -> None:
        """As many requests as may be in flight."""
        try:
            self._admit_new()
            led = self._led()
        except _UNREACHABLE as fault:
            self._trouble = fault
            return
        for node_id, places in led.items():
            try:
                while batches := self._outbox.take(node_id, places, bytes_max=self._settings.request_bytes):
                    self._send(node_id, batches)
            except _UNREACHABLE as fault:
                self._lose(node_id, fault)

    def _admit_new(self) -> None:
        if self._admit is None:
            return
        new = [place for place in self._outbox.places if place not in self._admitted]
        if new:
            self._admit(new)
            self._admitted.update(new)

    def _led(self) -> dict[int, list[Place]]:
        led: defaultdict[int, list[Place]] = defaultdict(list)
        for place in self._outbox.places:
            leader = self.leaders.of(place)
            if leader == NO_LEADER:
                self.leaders.forget(place[0])
                self._trouble = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{place[0]}-{place[1]} has no leader.")
            else:
                led[leader].append(place)
        return led

    def _send(self, node_id: int, batches: Sequence[Batch]) -> None:
        lane = self._links.lane_to(node_id)
        version = lane.version_of(PRODUCE, at_most=LAST)
        body = produce_pieces(
            batches,
            version=version,
            transactional_id=self._identity.transactional_id,
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
        )
        lane.send_body(PRODUCE, version, *body)

    # --- in

    def _receive(self, node_id: int) -> None:
        try:
            answer = self._links.lane_to(node_id).receive()
        except _UNREACHABLE as fault:
            self._lose(node_id, fault)
            return
        by_place = _answers(answer)
        for batch in self._outbox.answered(node_id):
            self._take_in(batch, by_place.get(batch.place, _NO_ANSWER))

    def _take_in(self, batch: Batch, answer: PartitionProduceResponse) -> None:
        code = ErrorCode(answer.error_code)
        verdict = self._outbox.verdict(batch, code)
        if verdict is Verdict.REFUSED:
            raise refusal(f"Records for {batch.place[0]}-{batch.place[1]} were refused", code, _said(answer))
        self._outbox.settle(batch, verdict)
        if verdict is Verdict.AGAIN:
            self._trouble = KafkaError(code, answer.error_message or code.name)
            self.leaders.forget(batch.place[0])
        else:
            self._progress_s = self._clock()
            self._troubles = 0

    def _lose(self, node_id: int, fault: HeadraceError) -> None:
        """A connection ended: nobody knows which batches arrived, so that all are sent again."""
        self._links.drop_lane(node_id)
        self.leaders.forget_all()
        self._trouble = fault
        for batch in self._outbox.lost(node_id):
            self._outbox.settle(batch, Verdict.AGAIN)

    def _recover(self) -> None:
        """Wait a little before the next try, or give up."""
        trouble, self._trouble = self._trouble, None
        self._troubles += 1
        pause_s = min(_BACKOFF_FIRST_S * 2 ** min(self._troubles, 10), _BACKOFF_MAX_S)
        if self._clock() - self._progress_s + pause_s > self._settings.patience_s:
            raise NotWritten(
                f"No record was accepted for {self._settings.patience_s:g} s: {str(trouble).rstrip('.')}",
                "Is the cluster well? kafka.delivery.timeout.ms is how long it is waited for.",
            ) from trouble
        self._pause(pause_s)


def _answers(answer: Any) -> dict[Place, PartitionProduceResponse]:
    return {(topic.name, one.index): one for topic in answer.responses for one in topic.partition_responses}


def _said(answer: PartitionProduceResponse) -> str:
    """What the broker says about it, the first of the records it names included."""
    named = [error.batch_index_error_message for error in answer.record_errors if error.batch_index_error_message]
    said = " ".join(text.rstrip(".") for text in (answer.error_message, *named[:1]) if text)
    return f"{said}." if said else ""
