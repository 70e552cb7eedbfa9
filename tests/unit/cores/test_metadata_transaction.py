"""Transactions of the metadata log."""

import pytest

from headrace.cores.metadata_transaction import MetadataTransaction
from headrace.model.errors import StorageFault
from headrace.model.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)

BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()


def feature(level):
    """Some record."""
    return FeatureLevelRecord(name="some", feature_level=level)


def test_nothing_is_held_back_outside():
    """Do records that belong to no transaction hold at once, as they came?"""
    records = [feature(1), feature(2)]
    transaction = MetadataTransaction()

    assert records is transaction.released(records)
    assert not transaction.is_open


def test_all_is_released_at_the_end():
    """Are the records of a transaction given in order when it ends, between those before and after it?"""
    transaction = MetadataTransaction()

    assert [feature(1)] == transaction.released([feature(1), BEGIN, feature(2)])
    assert [] == transaction.released([feature(3)])
    assert transaction.is_open
    assert [feature(2), feature(3), feature(4), feature(5)] == transaction.released([feature(4), END, feature(5)])
    assert not transaction.is_open


def test_nothing_is_released_at_the_abort():
    """Are the records of an aborted transaction dropped, and those behind it not?"""
    transaction = MetadataTransaction()

    assert [feature(3)] == transaction.released([BEGIN, feature(1), feature(2), ABORT, feature(3)])
    assert not transaction.is_open


@pytest.mark.parametrize("records", [[BEGIN, BEGIN], [END], [ABORT], [BEGIN, END, END]])
def test_what_makes_no_sense(records):
    """Is a transaction within another, or an end without a beginning, taken for damage?"""
    with pytest.raises(StorageFault, match="metadata transaction"):
        MetadataTransaction().released(records)
