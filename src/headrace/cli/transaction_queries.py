"""What tools ask a cluster about transactions and the producers in partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.cli.group_queries import by_topic, check
from headrace.cli.java_words import sentence
from headrace.cli.log_offsets import NO_LEADER, leaders
from headrace.client.cluster import TRANSACTION
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from headrace.client.cluster import Cluster
    from headrace.wire.messages.describe_producers import ProducerState
    from headrace.wire.messages.describe_transactions import TransactionState

    Place = tuple[str, int]

INIT_PRODUCER_ID, WRITE_TXN_MARKERS = 22, 27
DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 61, 65, 66
_DURATION_FIRST, _PATTERN_FIRST = 1, 2
_RETRIED_BY_KAFKA = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort:
    """Which transaction to end on a partition, and with whose authority."""

    place: Place
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int

    def __str__(self) -> str:
        topic, index = self.place
        return (
            f"AbortTransactionSpec(topicPartition={topic}-{index}, producerId={self.producer_id}, "
            f"producerEpoch={self.producer_epoch}, coordinatorEpoch={self.coordinator_epoch})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTransaction:
    """A transaction as its coordinator lists it."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


async def list_transactions(
    cluster: Cluster, *, producer_ids: Sequence[int] = (), longer_than_ms: int = -1, pattern: str | None = None
) -> list[ListedTransaction]:
    """The transactions of every coordinator that pass the filters."""
    from headrace.wire.messages.list_transactions import ListTransactionsRequest

    request = ListTransactionsRequest(
        producer_id_filters=tuple(producer_ids), duration_filter=longer_than_ms, transactional_id_pattern=pattern
    )
    found = []
    await cluster.metadata(())
    for node_id in await cluster.brokers():
        channel = await cluster.channel_to(node_id)
        version = channel.version_of(LIST_TRANSACTIONS)
        _need(version >= _DURATION_FIRST or longer_than_ms < 0, "Duration filter")
        _need(version >= _PATTERN_FIRST or pattern is None, "Transactional ID pattern filter")
        answer = await channel.ask(LIST_TRANSACTIONS, request, version=version)
        check(
            answer.error_code,
            f"ListTransactions request sent to broker {node_id} failed with an unexpected exception",
        )
        found += [
            ListedTransaction(
                transactional_id=one.transactional_id,
                coordinator_id=node_id,
                producer_id=one.producer_id,
                state=one.transaction_state,
            )
            for one in answer.transaction_states
        ]
    return found


def _need(is_known: bool, what: str) -> None:
    if not is_known:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{what} can be set only when the broker knows it")


async def describe_transaction(cluster: Cluster, transactional_id: str) -> tuple[int, TransactionState]:
    """The coordinator and the state of a transactional id; KafkaError if it is unknown."""
    return await cluster.persist(lambda: _describe_transaction(cluster, transactional_id))


async def _describe_transaction(cluster: Cluster, transactional_id: str) -> tuple[int, TransactionState]:
    from headrace.wire.messages.describe_transactions import DescribeTransactionsRequest

    node_id = await cluster.coordinator_of(TRANSACTION, transactional_id)
    request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
    answer = await cluster.ask(DESCRIBE_TRANSACTIONS, request, node_id=node_id)
    (state,) = answer.transaction_states
    about = f"DescribeTransactions request for transactionalId `{transactional_id}` failed"
    reasons = {
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "because the ID could not be found",
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "due to authorization failure",
    }
    code = ErrorCode(state.error_code)
    check(code, f"{about} {reasons.get(code, 'due to unexpected error')}")
    return node_id, state


async def describe_producers(
    cluster: Cluster, places: Collection[Place], *, broker_id: int | None = None
) -> dict[Place, Sequence[ProducerState]]:
    """The producers each partition knows, from its leader or from one of its replicas."""
    return await cluster.persist(lambda: _describe_producers(cluster, places, broker_id))


async def _describe_producers(
    cluster: Cluster, places: Collection[Place], broker_id: int | None
) -> dict[Place, Sequence[ProducerState]]:
    from headrace.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest

    by_node: dict[int, list[Place]] = {}
    led = await leaders(cluster, (topic for topic, _ in places)) if broker_id is None else {}
    for place in places:
        if broker_id is None and place not in led:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        node_id = led[place] if broker_id is None else broker_id
        if node_id == NO_LEADER:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "")
        by_node.setdefault(node_id, []).append(place)
    found: dict[Place, Sequence[ProducerState]] = {}
    for node_id, mine in by_node.items():
        topics = tuple(TopicRequest(name=name, partition_indexes=tuple(ids)) for name, ids in by_topic(mine).items())
        answer = await cluster.ask(DESCRIBE_PRODUCERS, DescribeProducersRequest(topics=topics), node_id=node_id)
        for topic in answer.topics:
            for one in topic.partitions:
                _check_producers(topic.name, one, broker_id)
                found[topic.name, one.partition_index] = one.active_producers
    return found


def _check_producers(topic: str, answer: object, broker_id: int | None) -> None:
    code, index = ErrorCode(getattr(answer, "error_code", 0)), getattr(answer, "partition_index", 0)
    about = f"Failed to describe active producers for partition {topic}-{index}"
    reasons = {
        ErrorCode.NOT_LEADER_OR_FOLLOWER: f"{about} on brokerId {broker_id}",
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: f"{about} due to authorization failure on topic `{topic}`",
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "",
    }
    # A replica that was asked for by name is not looked up again: its answer is final.
    final = (
        ErrorCode.UNKNOWN_SERVER_ERROR if broker_id is not None and code == ErrorCode.NOT_LEADER_OR_FOLLOWER else code
    )
    check(final, reasons.get(code, f"{about} due to unexpected error"))


async def abort(cluster: Cluster, wanted: Abort) -> None:
    """Write the marker that ends a transaction on a partition; KafkaError with Kafka's sentence if it cannot be."""
    await cluster.persist(lambda: _abort(cluster, wanted))


async def _abort(cluster: Cluster, wanted: Abort) -> None:
    from headrace.wire.messages.write_txn_markers import (
        WritableTxnMarker,
        WritableTxnMarkerTopic,
        WriteTxnMarkersRequest,
    )

    topic, index = wanted.place
    leader = (await leaders(cluster, [topic])).get(wanted.place)
    if leader is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    marker = WritableTxnMarker(
        producer_id=wanted.producer_id,
        producer_epoch=wanted.producer_epoch,
        coordinator_epoch=wanted.coordinator_epoch,
        transaction_result=False,
        topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=(index,)),),
    )
    answer = await cluster.ask(WRITE_TXN_MARKERS, WriteTxnMarkersRequest(markers=(marker,)), node_id=leader)
    code = ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)
    about = f"WriteTxnMarkers request with {wanted} failed"
    reasons = {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "due to cluster authorization error",
        ErrorCode.INVALID_PRODUCER_EPOCH: "due an invalid producer epoch",
        ErrorCode.TRANSACTION_COORDINATOR_FENCED: (
            f"since the provided coordinator epoch {wanted.coordinator_epoch} has been fenced by the active coordinator"
        ),
    }
    check(code, f"{about} {reasons.get(code, f'due to unexpected error: {sentence(code)}')}")


async def force_terminate(cluster: Cluster, transactional_id: str) -> None:
    """Abort whatever a transactional id has open, by taking its place as a producer."""
    await cluster.persist(lambda: _force_terminate(cluster, transactional_id))


async def _force_terminate(cluster: Cluster, transactional_id: str) -> None:
    from headrace.wire.messages.init_producer_id import InitProducerIdRequest

    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=int(cluster.options.request_timeout_s * 1000)
    )
    answer = await cluster.ask_coordinator(TRANSACTION, transactional_id, INIT_PRODUCER_ID, request)
    code = ErrorCode(answer.error_code)
    if code in _RETRIED_BY_KAFKA:
        # It ends by itself: told as something that passes, it is tried again.
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "")
    about = f"InitProducerId request for transactionalId `{transactional_id}` failed"
    reasons = {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "due to cluster authorization failure",
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "due to transactional ID authorization failure",
    }
    check(code, f"{about} {reasons.get(code, 'due to unexpected error')}")
