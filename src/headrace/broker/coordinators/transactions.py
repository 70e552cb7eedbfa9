"""The hands of the transaction coordinator: what its core decides is carried to the partitions, until all know it."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from headrace.broker.coordinators.confirmation import Confirmations
from headrace.broker.coordinators.coordinator import Coordinator
from headrace.broker.coordinators.leaders import state_of
from headrace.broker.coordinators.marker_post import MarkerPost
from headrace.broker.coordinators.markers import Marker
from headrace.broker.coordinators.topics import TRANSACTIONS
from headrace.cores.transactions.ending import EndTransaction, NeedsProducerId, WriteMarkers, complete
from headrace.cores.transactions.expiry import abort_late
from headrace.cores.transactions.initialization import InitProducerId
from headrace.cores.transactions.limits import TransactionLimits, limits_from
from headrace.cores.transactions.shard import Transactions
from headrace.model.errors import ErrorCode, KafkaError
from headrace.wire.coordinator_records import TRANSACTION_RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.broker.broker import Broker
    from headrace.broker.coordinators.markers import TopicPartition
    from headrace.broker.coordinators.shard import Shard
    from headrace.cores.outcome import Outcome, Token
    from headrace.cores.transactions.transaction import ProducerIdentity

logger = logging.getLogger(__name__)

RETRY_FIRST_S = 0.05
RETRY_MAX_S = 1.0

_PASSING = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""What is heard while leaders move, and passes by itself."""

CommandT = TypeVar("CommandT", InitProducerId, EndTransaction)


class TransactionCoordinator(Coordinator[Transactions]):
    """The coordinator of transactions, with its ways to the brokers that have their partitions."""

    def __init__(self, broker: Broker) -> None:
        def limits() -> TransactionLimits:
            return limits_from(broker.config, broker.metadata.features)

        on_effect = partial(carry_out, broker, MarkerPost(broker))
        super().__init__(broker, TRANSACTIONS, TRANSACTION_RECORDS, lambda: Transactions(limits), on_effect)
        self.confirmations = Confirmations(broker)
        """Questions of this broker's partitions about transactions, wherever those are coordinated."""


def transaction_coordinator(broker: Broker) -> TransactionCoordinator:
    """The coordinator of transactions, put together."""
    return TransactionCoordinator(broker)


async def identity_after(
    broker: Broker,
    shard: Shard[Transactions],
    step: Callable[[Transactions, CommandT, Token, int], Outcome],
    command: CommandT,
) -> ProducerIdentity:
    """Who a producer is after a step; a fresh producer id is fetched only if the step turns out to need one."""
    while True:
        reply: ProducerIdentity | NeedsProducerId = await shard.ask(partial(step, shard.core, command))
        if not isinstance(reply, NeedsProducerId):
            return reply
        command = replace(command, fresh_producer_id=await broker.producer_ids.next())


def carry_out(broker: Broker, post: MarkerPost, shard: Shard[Transactions], effect: Any) -> None:
    """Do what the core asked for, in the background."""
    match effect:
        case WriteMarkers():
            broker.spawn(_finish(broker, post, shard, shard.core, effect))
        case NeedsProducerId():
            broker.spawn(_abort_late(broker, shard, effect))


async def _finish(
    broker: Broker, post: MarkerPost, shard: Shard[Transactions], core: Transactions, effect: WriteMarkers
) -> None:
    """Write a transaction's markers until every partition has its own, then close the transaction."""
    marker = Marker(
        producer_id=effect.producer_id,
        producer_epoch=effect.producer_epoch,
        commit=effect.commit,
        coordinator_epoch=shard.epoch,
        transaction_version=effect.transaction_version,
    )
    missing = set(effect.partitions)
    pause_s = RETRY_FIRST_S
    while missing:
        # A core that read the log again has markers of its own under way. A second one from here, after those, could
        # end the producer's next transaction.
        if not _drives(shard, core):
            return
        results = await post.write(marker, sorted(place for place in missing if _exists(broker, place)))
        if ErrorCode.TRANSACTION_COORDINATOR_FENCED in results.values():
            logger.warning("transaction_left transactional_id=%s reason=coordinator fenced", effect.transactional_id)
            return
        missing = {place for place, code in results.items() if _must_retry(effect, place, code)}
        if missing:
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, RETRY_MAX_S)
    _act(shard, core, partial(complete, core, effect))


def _must_retry(effect: WriteMarkers, place: TopicPartition, code: ErrorCode) -> bool:
    """Whether a partition still needs its marker."""
    if code is ErrorCode.NONE:
        return False
    logger.log(
        logging.DEBUG if code in _PASSING else logging.WARNING,
        "transaction_marker_refused transactional_id=%s partition=%s-%d reason=%s",
        effect.transactional_id,
        *place,
        code.name,
    )
    # The producer has written there in a newer epoch, so nothing of the ended one can be open: as good as written.
    return code is not ErrorCode.INVALID_PRODUCER_EPOCH


def _exists(broker: Broker, place: TopicPartition) -> bool:
    """Whether a partition is still there; a deleted topic needs no marker."""
    return state_of(broker.metadata, *place) is not None


async def _abort_late(broker: Broker, shard: Shard[Transactions], effect: NeedsProducerId) -> None:
    core = shard.core
    try:
        fresh = await broker.producer_ids.next()
    except KafkaError as error:
        # It is late still when the core looks the next time.
        logger.warning("transaction_abort_delayed transactional_id=%s reason=%s", effect.transactional_id, error)
        return
    _act(shard, core, partial(abort_late, core, effect.transactional_id, fresh))


def _drives(shard: Shard[Transactions], core: Transactions) -> bool:
    """Whether the shard is still the one whose core decided."""
    return shard.is_loaded and shard.core is core


def _act(shard: Shard[Transactions], core: Transactions, step: Callable[[int], Outcome]) -> None:
    if not _drives(shard, core):
        return
    try:
        shard.act(step)
    except KafkaError as error:
        # The shard reads its log again, and finds there what is left to do.
        logger.warning("transaction_step_failed partition=%d reason=%s", shard.index, error)
