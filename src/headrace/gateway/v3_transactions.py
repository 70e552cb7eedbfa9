"""Transactions, and ending those that stay open: shapes of our own, beside those of REST v3."""

from __future__ import annotations

import time
from typing import Annotated

from msgspec import Meta, Struct

from headrace.client.admin_values import HangingTransaction, TransactionDescription
from headrace.client.records import TopicPartition
from headrace.gateway.problem import TRANSACTION_NOT_FOUND, Problem
from headrace.gateway.route import Call, Route
from headrace.gateway.services import Services
from headrace.gateway.v3_address import CLUSTER, Address, ListMetadata, Page, Related, Resource, cluster_of, turn
from headrace.gateway.v3_clusters import ClusterId, broker_address
from headrace.gateway.v3_partitions import Offset, PartitionId
from headrace.gateway.v3_topics import NewTopicName, TopicName
from headrace.model.errors import ErrorCode, KafkaError

TransactionalId = Annotated[str, Meta(examples=["mover-1"])]
ProducerId = Annotated[int, Meta(examples=[4001])]
State = Annotated[str, Meta(examples=["Ongoing"])]
_SILENT_MINUTES = 15.0
_DAY_MINUTES = 24 * 60.0


class KafkaTransactionalId(Resource, frozen=True, kw_only=True):
    """A transactional id in the list of all."""

    cluster_id: ClusterId
    transactional_id: TransactionalId
    state: State
    producer_id: ProducerId
    coordinator: Related


class KafkaTransactionalIdList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """Transactional ids, by name."""

    metadata: ListMetadata
    data: list[KafkaTransactionalId]


class PartitionData(Struct, frozen=True, kw_only=True):
    """A partition that a transaction has written to."""

    topic_name: TopicName
    partition_id: PartitionId


class KafkaTransaction(Resource, frozen=True, kw_only=True):
    """A transactional id, and what its transaction has written to."""

    cluster_id: ClusterId
    transactional_id: TransactionalId
    state: State
    producer_id: ProducerId
    producer_epoch: Annotated[int, Meta(examples=[0])]
    timeout_ms: Annotated[int, Meta(examples=[60_000])]
    start_timestamp: Annotated[int | None, Meta(description="Milliseconds since 1970; null while nothing is open.")]
    partitions: list[PartitionData]
    coordinator: Related


class HangingData(Struct, frozen=True, kw_only=True):
    """A transaction that is open in a partition and that no coordinator knows."""

    topic_name: TopicName
    partition_id: PartitionId
    start_offset: Offset
    producer_id: ProducerId
    last_timestamp: Annotated[int, Meta(description="When its producer wrote last, in milliseconds since 1970.")]


class KafkaHangingTransactionList(Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """Hanging transactions."""

    metadata: ListMetadata
    data: list[HangingData]


class Silence(Struct, frozen=True, kw_only=True):
    """What hangs."""

    silent_minutes: Annotated[
        float, Meta(ge=0, le=_DAY_MINUTES, description="For so long its producer has written nothing.", examples=[15])
    ] = _SILENT_MINUTES


class AbortHanging(Struct, frozen=True, kw_only=True):
    """Which transaction to end, as the list of those that hang names it."""

    topic_name: NewTopicName
    partition_id: Annotated[int, Meta(ge=0, le=2**31 - 1, examples=[0])]
    start_offset: Annotated[int, Meta(ge=0, le=2**63 - 1, examples=[1042])]


async def find_hanging(services: Services, *, silent_minutes: float) -> list[HangingTransaction]:
    """What hangs anywhere in the cluster and was silent for so long."""
    topics = await services.admin.describe_topics()
    places = [
        TopicPartition(topic.name, one.partition) for topic in topics for one in topic.partitions if one.leader >= 0
    ]
    return await services.admin.find_hanging_transactions(
        places, now_ms=time.time_ns() // 1_000_000, silent_ms=round(silent_minutes * 60_000)
    )


# --- looking


async def _list(call: Call) -> KafkaTransactionalIdList:
    cluster = await cluster_of(call)
    listed = sorted(await call.services.admin.list_transactions(), key=lambda one: one.transactional_id)
    shown, metadata = turn(call, f"{cluster.url}/transactions", listed, lambda one: [one.transactional_id])
    return KafkaTransactionalIdList(
        metadata=metadata,
        data=[
            KafkaTransactionalId(
                metadata=_address(cluster, one.transactional_id).metadata,
                cluster_id=call.path["cluster_id"],
                transactional_id=one.transactional_id,
                state=one.state,
                producer_id=one.producer_id,
                coordinator=broker_address(cluster, one.coordinator_id).related(),
            )
            for one in shown
        ],
    )


async def _get(call: Call) -> KafkaTransaction:
    cluster = await cluster_of(call)
    found = await _described(call)
    return KafkaTransaction(
        metadata=_address(cluster, found.transactional_id).metadata,
        cluster_id=call.path["cluster_id"],
        transactional_id=found.transactional_id,
        state=found.state,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        timeout_ms=found.timeout_ms,
        start_timestamp=found.started_ms,
        partitions=[PartitionData(topic_name=one.topic, partition_id=one.partition) for one in found.partitions],
        coordinator=broker_address(cluster, found.coordinator_id).related(),
    )


async def _list_hanging(call: Call) -> KafkaHangingTransactionList:
    cluster = await cluster_of(call)
    asked: Silence = call.query
    return KafkaHangingTransactionList(
        metadata=ListMetadata(self=f"{cluster.url}/transactions:hanging"),
        data=[
            HangingData(
                topic_name=one.partition.topic,
                partition_id=one.partition.partition,
                start_offset=one.producer.transaction_start_offset or 0,
                producer_id=one.producer.producer_id,
                last_timestamp=one.producer.last_timestamp,
            )
            for one in await find_hanging(call.services, silent_minutes=asked.silent_minutes)
        ],
    )


# --- ending


async def _abort(call: Call) -> None:
    await cluster_of(call)
    found = await _described(call)  # whoever takes the place of a producer that never was makes one
    await call.services.admin.force_terminate_transaction(found.transactional_id)


async def _abort_hanging(call: Call) -> None:
    await cluster_of(call)
    asked: AbortHanging = call.body
    place = TopicPartition(asked.topic_name, asked.partition_id)
    producers = (await call.services.admin.describe_producers([place]))[place]
    producer = next((one for one in producers if one.transaction_start_offset == asked.start_offset), None)
    if producer is None:
        words = f"No transaction that begins at offset {asked.start_offset} is open in {place.topic}-{place.partition}."
        raise Problem(404, TRANSACTION_NOT_FOUND, words)
    await call.services.admin.abort_transaction(HangingTransaction(partition=place, producer=producer))


async def _described(call: Call) -> TransactionDescription:
    name: str = call.path["transactional_id"]
    try:
        return await call.services.admin.describe_transaction(name)
    except KafkaError as error:
        if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        raise Problem(404, TRANSACTION_NOT_FOUND, f"Nobody has used the transactional id '{name[:100]}'.") from None


def _address(cluster: Address, transactional_id: str) -> Address:
    return cluster.under("transactions", "transaction", transactional_id)


_TAG = "v3 transactions"
ROUTES = (
    Route(
        method="GET",
        path=f"{CLUSTER}/transactions",
        handle=_list,
        tag=_TAG,
        summary="All transactional ids",
        query=Page,
        answer=KafkaTransactionalIdList,
        problems=(403,),
    ),
    Route(
        method="GET",
        path=f"{CLUSTER}/transactions:hanging",
        handle=_list_hanging,
        tag=_TAG,
        summary="The transactions that hang",
        detail="Open in a partition and known to no coordinator, so that readers wait for them for ever. Every "
        "partition is looked into.",
        query=Silence,
        answer=KafkaHangingTransactionList,
        problems=(403,),
    ),
    Route(
        method="POST",
        path=f"{CLUSTER}/transactions:abort-hanging",
        handle=_abort_hanging,
        tag=_TAG,
        summary="End a transaction that hangs",
        detail="What it wrote is never read by those who read only what is committed; they go on behind it.",
        body=AbortHanging,
        status=204,
        problems=(403,),
    ),
    Route(
        method="GET",
        path=f"{CLUSTER}/transactions/{{transactional_id}}",
        handle=_get,
        tag=_TAG,
        summary="A transactional id and its transaction",
        answer=KafkaTransaction,
        problems=(403,),
    ),
    Route(
        method="POST",
        path=f"{CLUSTER}/transactions/{{transactional_id}}/abort",
        handle=_abort,
        tag=_TAG,
        summary="Abort what a transactional id has open",
        detail="Its producer is fenced: it has to begin anew.",
        status=204,
        problems=(403,),
    ),
)
