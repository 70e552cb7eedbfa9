"""Looking at transactions."""

import pytest

from headrace.cores.transactions.listing import TransactionFilter, describe, list_transactions
from headrace.cores.transactions.state import TransactionState
from headrace.model.errors import ErrorCode, KafkaError


@pytest.fixture
def busy(coordinator):
    """One id that is idle, one with a transaction that is open for 100 ms."""
    coordinator.init("idle")
    coordinator.add(coordinator.init("open"), ("a", 0), name="open")
    coordinator.now_ms += 100
    return coordinator


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (TransactionFilter(), {"idle", "open"}),
        (TransactionFilter(states=frozenset({TransactionState.ONGOING})), {"open"}),
        (TransactionFilter(states=frozenset()), set()),
        (TransactionFilter(producer_ids=frozenset({1000})), {"idle"}),
        (TransactionFilter(longer_than_ms=99), {"idle", "open"}),
        (TransactionFilter(longer_than_ms=100), {"idle"}),
        (TransactionFilter(matches_id=lambda name: name.startswith("o")), {"open"}),
    ],
)
def test_filters(busy, wanted, names):
    """Does each filter leave what it should, an id without transaction counting as open for ever as in Kafka?"""
    assert {found.transactional_id for found in busy.ask(list_transactions, wanted)} == names


def test_describing(busy):
    """Is one id shown as it is, and one that is not known refused?"""
    assert busy.ask(describe, "open").partitions == {("a", 0)}
    with pytest.raises(KafkaError) as refusal:
        busy.ask(describe, "nobody")
    assert refusal.value.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
