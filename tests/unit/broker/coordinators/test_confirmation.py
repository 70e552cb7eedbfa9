"""Asking the transaction's coordinator on another broker, which the test plays."""

import asyncio
from types import SimpleNamespace

import pytest

from headrace.broker.coordinators.confirmation import Confirmations, Membership
from headrace.broker.coordinators.verification import produce_error
from headrace.model.errors import ErrorCode, KafkaError
from headrace.net.link import LinkBroken
from headrace.wire.codec import decode_request, decode_response, encode_request, encode_response
from headrace.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)

API_KEY, VERSION = 24, 5


class Coordinator:
    """Another broker that coordinates all transactions."""

    def __init__(self):
        self.asked = []
        self.leader = 2
        self.codes = {}
        self.error_code = 0
        self.is_gone = False

    async def ask(self, node_id, api_key, request, *, purpose):
        """Answer through the wire's bytes."""
        assert (node_id, api_key) == (self.leader, API_KEY)
        sent = decode_request(api_key, VERSION, memoryview(encode_request(api_key, VERSION, request)), 0)
        self.asked.append(sent.transactions)
        if self.is_gone:
            raise LinkBroken("nobody there")
        answer = AddPartitionsToTxnResponse(
            error_code=self.error_code,
            results_by_transaction=tuple(self._result(each) for each in sent.transactions),
        )
        return decode_response(api_key, VERSION, memoryview(bytes(encode_response(api_key, VERSION, answer))), 0)

    def _result(self, asked):
        return AddPartitionsToTxnResult(
            transactional_id=asked.transactional_id,
            topic_results=tuple(
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=tuple(
                        AddPartitionsToTxnPartitionResult(
                            partition_index=index,
                            partition_error_code=int(self.codes.get((asked.transactional_id, topic.name, index), 0)),
                        )
                        for index in topic.partitions
                    ),
                )
                for topic in asked.topics
            ),
        )


class Asker:
    """A broker with partitions of a transaction that is coordinated elsewhere."""

    def __init__(self):
        self.node_id = 1
        self.peers = self.coordinator = Coordinator()
        self.transactions = SimpleNamespace(is_here=lambda _: False, leader_for=lambda _: self.coordinator.leader)
        self.spawn = asyncio.ensure_future

    def confirm(self, *memberships):
        """What each question comes to: None or the error's code."""

        async def ask(confirmations, membership):
            try:
                return await confirmations.ask(membership)
            except KafkaError as error:
                return error.code

        async def run():
            confirmations = Confirmations(self)
            return await asyncio.gather(*(ask(confirmations, each) for each in memberships))

        return asyncio.run(run())


@pytest.fixture
def asker():
    """A broker, and a coordinator that says yes."""
    return Asker()


def member(name="x", index=0, *, epoch=1, adds=True):
    """A partition that is to be in a transaction."""
    return Membership(transactional_id=name, producer_id=9, producer_epoch=epoch, place=("t", index), adds=adds)


def test_partitions_of_one_transaction_are_asked_about_at_once(asker):
    """Do several partitions, and several transactions, travel in one request with all that is to be checked?"""
    assert asker.confirm(member(), member(index=1), member("y", adds=False)) == [None, None, None]
    ((first, second),) = asker.coordinator.asked
    assert (first.transactional_id, first.producer_id, first.producer_epoch, first.verify_only) == ("x", 9, 1, False)
    assert [(topic.name, topic.partitions) for topic in first.topics] == [("t", (0, 1))]
    assert (second.transactional_id, second.verify_only) == ("y", True)


def test_each_partition_has_its_own_answer(asker):
    """Is one partition's refusal that one's alone?"""
    asker.coordinator.codes = {("x", "t", 1): ErrorCode.TRANSACTION_ABORTABLE}
    assert asker.confirm(member(adds=False), member(index=1, adds=False)) == [None, ErrorCode.TRANSACTION_ABORTABLE]


def test_two_epochs_of_a_producer_are_told_apart(asker):
    """Does a transactional id come once in a request, so that an old producer does not answer for the new one?"""
    asker.confirm(member(), member(index=1, epoch=2))
    assert [[each.producer_epoch for each in request] for request in asker.coordinator.asked] == [[1], [2]]


@pytest.mark.parametrize(
    ("spoil", "told", "to_producers"),
    [
        (lambda it: setattr(it, "is_gone", True), ErrorCode.NETWORK_EXCEPTION, ErrorCode.NOT_ENOUGH_REPLICAS),
        (lambda it: setattr(it, "leader", -1), ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_ENOUGH_REPLICAS),
        (
            lambda it: setattr(it, "error_code", int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)),
            ErrorCode.INVALID_TXN_STATE,
            ErrorCode.INVALID_TXN_STATE,
        ),
        (
            lambda it: it.codes.update({("x", "t", 0): ErrorCode.NOT_COORDINATOR}),
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.NOT_ENOUGH_REPLICAS,
        ),
        (
            lambda it: it.codes.update({("x", "t", 0): ErrorCode.OPERATION_NOT_ATTEMPTED}),
            ErrorCode.OPERATION_NOT_ATTEMPTED,
            ErrorCode.NOT_ENOUGH_REPLICAS,
        ),
        (
            lambda it: it.codes.update({("x", "t", 0): ErrorCode.PRODUCER_FENCED}),
            ErrorCode.PRODUCER_FENCED,
            ErrorCode.INVALID_PRODUCER_EPOCH,
        ),
    ],
)
def test_what_goes_wrong_is_told_in_words_a_producer_knows(asker, spoil, told, to_producers):
    """Does a producer try again when the coordinator cannot be asked, and stop when it is fenced?"""
    spoil(asker.coordinator)
    assert asker.confirm(member()) == [told]
    assert produce_error(KafkaError(told, ""), 12).code is to_producers
