"""What is said to the coordinators of transactions and groups, each question asked until it is answered.

The versions are those of before KIP-890's second part: a transaction begins with AddPartitionsToTxn, and its epoch
stays the same when it ends. Brokers from 2.5 on speak them, and an EndTxn that is asked twice with the same identity
is answered twice with the same word, by whatever process: a driver can end what its tasks began.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from headrace.client.fault import BadOption
from headrace.model.errors import ErrorCode, KafkaError
from headrace.spark.links import GROUP, PASSING, TRANSACTION, persist
from headrace.spark.producer_identity import Identity
from headrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

if TYPE_CHECKING:
    from headrace.spark.links import Links
    from headrace.spark.outbox import Place
    from headrace.spark.producer_settings import ProducerSettings

OFFSET_COMMIT, OFFSET_FETCH = 8, 9
INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT = 22, 24, 25, 26, 28
_LAST = {
    OFFSET_COMMIT: 9,
    OFFSET_FETCH: 9,
    INIT_PRODUCER_ID: 4,
    ADD_PARTITIONS_TO_TXN: 3,
    ADD_OFFSETS_TO_TXN: 3,
    END_TXN: 3,
    TXN_OFFSET_COMMIT: 3,
}
"""The last version of each request that knows topics by name, and nothing of transaction version 2."""
TIMEOUT_SMALL_MS = 60_000
"""What Kafka's producer asks for; for brokers that allow less than they do by themselves."""
NO_OFFSET = -1

Result = TypeVar("Result")


class Note(NamedTuple):
    """A group's committed offset and what was written beside it."""

    offset: int = NO_OFFSET
    text: str = ""


class Coordinators:
    """Asks the coordinators of a cluster; for one thread."""

    def __init__(self, links: Links, settings: ProducerSettings) -> None:
        self._links = links
        self._settings = settings

    # --- transactions

    def identify(self, transactional_id: str | None) -> Identity:
        """A producer's id and epoch; whoever used the transactional id before is fenced, and what it began aborted."""
        try:
            return self._identify(transactional_id, self._settings.transaction_timeout_ms)
        except KafkaError as error:
            if error.code is not ErrorCode.INVALID_TRANSACTION_TIMEOUT:
                raise
            if self._settings.is_timeout_given:
                given = self._settings.transaction_timeout_ms
                raise BadOption(
                    f"kafka.transaction.timeout.ms={given} is more than the broker allows",
                    "Its limit is transaction.max.timeout.ms.",
                ) from error
        return self._identify(transactional_id, TIMEOUT_SMALL_MS)

    def _identify(self, transactional_id: str | None, timeout_ms: int) -> Identity:
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)

        def attempt() -> Identity:
            if transactional_id is None:
                answer = self._links.ask_anyone(INIT_PRODUCER_ID, request, at_most=_LAST[INIT_PRODUCER_ID])
            else:
                answer = self._ask(TRANSACTION, transactional_id, INIT_PRODUCER_ID, request)
            _check(answer.error_code)
            return Identity(
                producer_id=answer.producer_id, epoch=answer.producer_epoch, transactional_id=transactional_id
            )

        return self._persist(attempt)

    def add_partitions(self, identity: Identity, places: Sequence[Place]) -> None:
        """Say where a transaction is about to write."""
        topics: defaultdict[str, list[int]] = defaultdict(list)
        for topic, partition in places:
            topics[topic].append(partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=identity.transactional_id or "",
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.epoch,
            v3_and_below_topics=tuple(
                AddPartitionsToTxnTopic(name=name, partitions=tuple(partitions)) for name, partitions in topics.items()
            ),
        )

        def attempt() -> None:
            answer = self._ask(TRANSACTION, identity.transactional_id or "", ADD_PARTITIONS_TO_TXN, request)
            codes = [one.partition_error_code
                     for topic in answer.results_by_topic_v3_and_below
                     for one in topic.results_by_partition]  # fmt: skip
            # One that is wrong leaves the others "not attempted": say what is wrong.
            for code in sorted(codes, key=lambda code: code == ErrorCode.OPERATION_NOT_ATTEMPTED):
                _check(code)

        self._persist(attempt)

    def add_note(self, identity: Identity, group: str, topic: str, note: Note) -> None:
        """Commit a group's offset with a transaction: it counts if the transaction is committed."""
        adding = AddOffsetsToTxnRequest(
            transactional_id=identity.transactional_id or "",
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            group_id=group,
        )
        place = TxnOffsetCommitRequestPartition(committed_offset=note.offset, committed_metadata=note.text)
        committing = TxnOffsetCommitRequest(
            transactional_id=identity.transactional_id or "",
            group_id=group,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            topics=(TxnOffsetCommitRequestTopic(name=topic, partitions=(place,)),),
        )

        def add() -> None:
            answer = self._ask(TRANSACTION, identity.transactional_id or "", ADD_OFFSETS_TO_TXN, adding)
            _check(answer.error_code)

        def commit() -> None:
            answer = self._ask(GROUP, group, TXN_OFFSET_COMMIT, committing)
            _check(answer.topics[0].partitions[0].error_code)

        self._persist(add)
        self._persist(commit)

    def end(self, identity: Identity, *, commit: bool) -> None:
        """Commit or abort a transaction; a refusal leaves open whether it was committed before."""
        request = EndTxnRequest(
            transactional_id=identity.transactional_id or "",
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            committed=commit,
        )

        def attempt() -> None:
            _check(self._ask(TRANSACTION, identity.transactional_id or "", END_TXN, request).error_code)

        self._persist(attempt)

    # --- notes: offsets of groups that nobody is a member of

    def read_note(self, group: str, topic: str) -> Note:
        """What a group has committed for the first partition of a topic.

        UNSTABLE_OFFSET_COMMIT if an open transaction may still change it: that is not waited for, as whoever opened it
        may be dead and the one who asks may be the one to end it.
        """
        old = OffsetFetchRequestTopic(name=topic, partition_indexes=(0,))
        new = OffsetFetchRequestTopics(name=topic, partition_indexes=(0,))
        request = OffsetFetchRequest(
            groups=(OffsetFetchRequestGroup(group_id=group, topics=(new,)),),
            group_id=group,
            topics=(old,),
            require_stable=True,
        )

        def attempt() -> Note:
            answer = self._ask(GROUP, group, OFFSET_FETCH, request)
            found = answer.groups[0] if answer.groups else answer
            _check(found.error_code)
            one = found.topics[0].partitions[0]
            if one.error_code in {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}:
                return Note()
            _check(one.error_code)
            return Note(one.committed_offset, one.metadata or "")

        return self._persist(attempt, passing=PASSING - {ErrorCode.UNSTABLE_OFFSET_COMMIT})

    def write_note(self, group: str, topic: str, note: Note) -> None:
        """Commit an offset of a group at once, outside any transaction."""
        place = OffsetCommitRequestPartition(committed_offset=note.offset, committed_metadata=note.text)
        request = OffsetCommitRequest(
            group_id=group, topics=(OffsetCommitRequestTopic(name=topic, partitions=(place,)),)
        )

        def attempt() -> None:
            _check(self._ask(GROUP, group, OFFSET_COMMIT, request).topics[0].partitions[0].error_code)

        self._persist(attempt)

    # --- asking

    def _ask(self, kind: int, key: str, api_key: int, message: Any) -> Any:
        return self._links.ask_coordinator(kind, key, api_key, message, at_most=_LAST[api_key])

    def _persist(self, attempt: Callable[[], Result], *, passing: Collection[ErrorCode] = PASSING) -> Result:
        return persist(self._links, attempt, patience_s=self._settings.patience_s, passing=passing)


def _check(number: int) -> None:
    if number:
        code = ErrorCode(number)
        raise KafkaError(code, code.name)
