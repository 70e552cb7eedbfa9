"""Asking a cluster about transactions and the producers in partitions, and ending what hangs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.client.admin_topics import TopicAdmin
from headrace.client.admin_values import (
    HangingTransaction,
    ProducerDescription,
    TransactionDescription,
    TransactionListing,
)
from headrace.client.answers import check, partitions_of
from headrace.client.cluster import TRANSACTION
from headrace.client.records import TopicPartition, place_of
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.wire.messages.describe_transactions import DescribeTransactionsRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.list_transactions import ListTransactionsRequest
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

INIT_PRODUCER_ID, WRITE_TXN_MARKERS = 22, 27
DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 61, 65, 66
_AT_ONCE = 500
"""Partitions in one question about producers."""


class TransactionAdmin(TopicAdmin):
    """The part of the admin client that is about transactions, and asks leaders as that of topics does."""

    # --- looking

    async def list_transactions(
        self, states_filter: Iterable[str] = (), producer_ids_filter: Iterable[int] = ()
    ) -> list[TransactionListing]:
        """The transactional ids of every coordinator, or those in some states or of some producers."""
        request = ListTransactionsRequest(
            state_filters=tuple(states_filter), producer_id_filters=tuple(producer_ids_filter)
        )
        found = []
        for node_id in await self._cluster.brokers():
            answer = await self._cluster.ask(LIST_TRANSACTIONS, request, node_id=node_id)
            check(f"broker {node_id}", answer)
            found += [
                TransactionListing(
                    transactional_id=one.transactional_id,
                    coordinator_id=node_id,
                    producer_id=one.producer_id,
                    state=one.transaction_state,
                )
                for one in answer.transaction_states
            ]
        return found

    async def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        """What a transactional id is at; KafkaError(TRANSACTIONAL_ID_NOT_FOUND) if there is none."""

        async def attempt() -> TransactionDescription:
            node_id = await self._cluster.coordinator_of(TRANSACTION, transactional_id)
            request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
            answer = await self._cluster.ask(DESCRIBE_TRANSACTIONS, request, node_id=node_id)
            (state,) = answer.transaction_states
            check(transactional_id, state)
            return _description(state, node_id)

        return await self._cluster.persist(attempt)

    async def describe_producers(self, partitions: Iterable[Any]) -> dict[TopicPartition, list[ProducerDescription]]:
        """The producers that the leader of each partition remembers."""
        wanted = [place_of(place) for place in partitions]

        async def attempt() -> dict[TopicPartition, list[ProducerDescription]]:
            found: dict[TopicPartition, list[ProducerDescription]] = {}
            for node_id, places in (await self._by_leader(wanted)).items():
                request = DescribeProducersRequest(topics=_asked(places))
                answer = await self._cluster.ask(DESCRIBE_PRODUCERS, request, node_id=node_id)
                for place, one in partitions_of(answer):
                    check(f"{place.topic}-{place.partition}", one)
                    found[place] = [_producer(producer) for producer in one.active_producers]
            return found

        return await self._cluster.persist(attempt)

    async def find_hanging_transactions(
        self, partitions: Iterable[Any], *, now_ms: int, silent_ms: int
    ) -> list[HangingTransaction]:
        """Transactions open in these partitions whose producer was silent for so long and no coordinator knows."""
        places = [place_of(place) for place in partitions]
        candidates = []
        for start in range(0, len(places), _AT_ONCE):
            described = await self.describe_producers(places[start : start + _AT_ONCE])
            candidates += [
                HangingTransaction(partition=place, producer=one)
                for place, producers in described.items()
                for one in producers
                if one.transaction_start_offset is not None and now_ms - one.last_timestamp > silent_ms
            ]
        if not candidates:
            return []
        producer_ids = sorted({one.producer.producer_id for one in candidates})
        names = {
            one.producer_id: one.transactional_id
            for one in await self.list_transactions(producer_ids_filter=producer_ids)
        }
        known = {producer_id: await self._open_partitions(name) for producer_id, name in names.items()}
        return [one for one in candidates if one.partition not in known.get(one.producer.producer_id, ())]

    async def _open_partitions(self, transactional_id: str) -> Sequence[TopicPartition]:
        try:
            return (await self.describe_transaction(transactional_id)).partitions
        except KafkaError as error:
            if error.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                return ()
            raise

    # --- ending

    async def abort_transaction(self, hanging: HangingTransaction) -> None:
        """Write the marker that ends a hanging transaction in its partition."""
        topic, index = hanging.partition
        producer = hanging.producer
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            coordinator_epoch=max(producer.coordinator_epoch, 0),
            transaction_result=False,
            topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=(index,)),),
        )

        async def attempt() -> None:
            (leader,) = await self._by_leader([hanging.partition])
            answer = await self._cluster.ask(
                WRITE_TXN_MARKERS, WriteTxnMarkersRequest(markers=(marker,)), node_id=leader
            )
            check(f"{topic}-{index}", answer.markers[0].topics[0].partitions[0])

        await self._cluster.persist(attempt)

    async def force_terminate_transaction(self, transactional_id: str) -> None:
        """Abort whatever a transactional id has open, by taking its place as a producer: its producer is fenced."""
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=self._timeout_ms)

        async def attempt() -> None:
            answer = await self._cluster.ask_coordinator(TRANSACTION, transactional_id, INIT_PRODUCER_ID, request)
            if answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
                # It is being ended just now: told as something that passes, it is tried again.
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{transactional_id} is being ended.")
            check(transactional_id, answer)

        await self._cluster.persist(attempt)


def _description(state: Any, node_id: int) -> TransactionDescription:
    started_ms = state.transaction_start_time_ms
    return TransactionDescription(
        transactional_id=state.transactional_id,
        coordinator_id=node_id,
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        state=state.transaction_state,
        timeout_ms=state.transaction_timeout_ms,
        started_ms=None if started_ms < 0 else started_ms,
        partitions=tuple(
            sorted(TopicPartition(topic.topic, index) for topic in state.topics for index in topic.partitions)
        ),
    )


def _producer(state: Any) -> ProducerDescription:
    start = state.current_txn_start_offset
    return ProducerDescription(
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        last_sequence=state.last_sequence,
        last_timestamp=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch,
        transaction_start_offset=None if start < 0 else start,
    )


def _asked(places: Iterable[TopicPartition]) -> tuple[TopicRequest, ...]:
    by_topic: dict[str, list[int]] = {}
    for place in places:
        by_topic.setdefault(place.topic, []).append(place.partition)
    return tuple(TopicRequest(name=name, partition_indexes=tuple(indexes)) for name, indexes in by_topic.items())
