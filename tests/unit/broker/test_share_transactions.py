"""Share groups that read only what was committed."""

import pytest

from headrace.model.metadata_records import ConfigRecord

from .share_desk import ACCEPT, GROUP, SETTINGS, ShareDesk, acquired
from .test_partition_transactions import Teller
from .test_share_groups import alter


@pytest.fixture
def shares(open_desk):
    """A broker with a topic that is written to in transactions, and a group that reads it from its beginning."""
    shares = ShareDesk(open_desk(SETTINGS))
    shares.teller = Teller(shares.desk)
    alter(shares, {"orders": {0: 0}})
    shares.join()
    return shares


def read_committed(shares):
    """Have the group see only what was committed."""
    record = ConfigRecord(resource_type=32, resource_name=GROUP, name="share.isolation.level", value="read_committed")
    shares.broker.metadata.replay(record)


def test_aborted_records_are_not_handed_out(shares):
    """Are the records of aborted transactions done for good, while those around them are handed out?"""
    read_committed(shares)
    teller = shares.teller
    teller.write(2)
    teller.end(commit=True)
    teller.write(3, producer_id=8)
    teller.write(2, producer_id=9)
    teller.end(commit=False, producer_id=8)
    teller.end(commit=True, producer_id=9)
    teller.write(1, producer_id=8, sequence=3)
    teller.end(commit=True, producer_id=8)

    got = shares.fetch()

    assert acquired(got) == [(0, 0, 2, 1), (0, 6, 11, 1)]
    assert shares.acknowledge(epoch=1, acks=[(0, 2, ACCEPT), (6, 11, ACCEPT)]) == (0, 0)
    assert shares.leader().core.start_offset == 12


def test_only_aborted_records(shares):
    """Does a fetch that finds nothing but aborted records go on to what lies behind them?"""
    read_committed(shares)
    shares.teller.write(3)
    shares.teller.end(commit=False)
    shares.teller.write(2, producer_id=-1, sequence=-1, epoch=-1, transactional=False)

    assert acquired(shares.fetch(max_bytes=1)) == [(0, 3, 3, 1)]
    assert shares.leader().core.start_offset == 3
    assert acquired(shares.fetch(epoch=1)) == [(0, 4, 5, 1)]


def test_open_transactions_are_waited_for(shares):
    """Is nothing handed out from the first open transaction on?"""
    read_committed(shares)
    shares.teller.write(2, producer_id=-1, sequence=-1, epoch=-1, transactional=False)
    shares.teller.write(2)

    assert acquired(shares.fetch()) == [(0, 0, 1, 1)]
    shares.teller.end(commit=True)
    assert acquired(shares.fetch(epoch=1)) == [(0, 2, 4, 1)]


def test_everything_is_read_by_default(shares):
    """Does a group that says nothing see aborted and undecided records too?"""
    shares.teller.write(2)
    shares.teller.end(commit=False)
    shares.teller.write(2, sequence=2)

    assert acquired(shares.fetch()) == [(0, 0, 4, 1)]
