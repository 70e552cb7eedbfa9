"""Asking a transaction's coordinator whether a partition belongs to it, or having it added (KIP-890).

The coordinator may be this broker or another; those of other brokers are asked about many transactions at once.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec import Struct

from headrace.broker.coordinators.leaders import NO_LEADER
from headrace.broker.coordinators.post import Post
from headrace.cores.transactions.partitions import TransactionPartitions, add_partitions, verify_partitions
from headrace.cores.transactions.transaction import BUMPS_EPOCH
from headrace.model.errors import ErrorCode, KafkaError
from headrace.net.link import LinkBroken
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.broker.broker import Broker
    from headrace.broker.coordinators.markers import TopicPartition
    from headrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse, AddPartitionsToTxnResult

ADD_PARTITIONS_TO_TXN = 24
PURPOSE = "transactions"
NOT_ADDED = "The partition was not added to the transaction."


class Membership(Struct, frozen=True, kw_only=True):
    """One partition, and the transaction it is to be in."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    place: TopicPartition
    adds: bool
    """Whether it is to be added if it is not in it yet."""


class Confirmations:
    """The questions of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._post: Post[Membership, ErrorCode] = Post(broker.spawn, self._send, _key)

    async def ask(self, membership: Membership) -> None:
        """KafkaError unless the transaction is open, and has the partition."""
        transactions = self._broker.transactions
        if transactions.is_here(membership.transactional_id):
            await self._ask_here(membership)
            return
        leader = transactions.leader_for(membership.transactional_id)
        if leader == NO_LEADER:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
        try:
            code = await self._post.ask(leader, membership)
        except LinkBroken as broken:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"The transaction's coordinator: {broken}") from broken
        if code is not ErrorCode.NONE:
            raise KafkaError(code, NOT_ADDED)

    async def _ask_here(self, membership: Membership) -> None:
        shard = self._broker.transactions.shard_for(membership.transactional_id)
        command = TransactionPartitions(
            transactional_id=membership.transactional_id,
            producer_id=membership.producer_id,
            producer_epoch=membership.producer_epoch,
            partitions=frozenset({membership.place}),
            transaction_version=BUMPS_EPOCH,
        )
        if membership.adds:
            await shard.ask(partial(add_partitions, shard.core, command))
            return
        verdicts = await shard.look(partial(verify_partitions, shard.core, command))
        code = verdicts[membership.place]
        if code is not ErrorCode.NONE:
            raise KafkaError(code, NOT_ADDED)

    async def _send(self, node_id: int, asked: Sequence[Membership]) -> list[ErrorCode]:
        transactions: dict[str, list[Membership]] = {}
        for one in asked:
            transactions.setdefault(one.transactional_id, []).append(one)
        request = AddPartitionsToTxnRequest(transactions=tuple(map(_asked, transactions.values())))
        response: AddPartitionsToTxnResponse = await self._broker.peers.ask(
            node_id, ADD_PARTITIONS_TO_TXN, request, purpose=PURPOSE
        )
        if response.error_code:
            code = ErrorCode(response.error_code)
            # A producer would take it for its own right that is missing.
            is_ours = code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return [ErrorCode.INVALID_TXN_STATE if is_ours else code] * len(asked)
        codes = _codes(response.results_by_transaction)
        return [codes.get((one.transactional_id, *one.place), ErrorCode.UNKNOWN_SERVER_ERROR) for one in asked]


def _key(one: Membership) -> tuple[str, tuple[int, int, bool]]:
    """A request has a transactional id once, for one producer of it that wants one thing."""
    return one.transactional_id, (one.producer_id, one.producer_epoch, one.adds)


def _asked(memberships: Sequence[Membership]) -> AddPartitionsToTxnTransaction:
    first = memberships[0]
    places = sorted(one.place for one in memberships)
    return AddPartitionsToTxnTransaction(
        transactional_id=first.transactional_id,
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        verify_only=not first.adds,
        topics=tuple(
            AddPartitionsToTxnTopic(name=topic, partitions=tuple(index for _, index in group))
            for topic, group in groupby(places, key=itemgetter(0))
        ),
    )


def _codes(results: Sequence[AddPartitionsToTxnResult]) -> dict[tuple[str, str, int], ErrorCode]:
    return {
        (result.transactional_id, topic.name, partition.partition_index): ErrorCode(partition.partition_error_code)
        for result in results
        for topic in result.topic_results
        for partition in topic.results_by_partition
    }
