"""Keeping the share state topic short."""

import pytest

from headrace.broker.share_pruning import prune, prune_shard
from headrace.cores.share_state import coordinator_key

from .share_desk import GROUP, RELEASE, SETTINGS, ShareDesk, acquired
from .test_share_groups import alter, offsets


@pytest.fixture
def shares(open_desk):
    """A broker with a topic that a group reads from its beginning."""
    shares = ShareDesk(open_desk({**SETTINGS, "group.share.delivery.count.limit": "10"}))
    shares.desk.create("orders")
    alter(shares, {"orders": {0: 0}})
    shares.desk.produce("orders", 4)
    shares.join()
    shares.fetch()
    return shares


def state_shard(shares):
    """The share coordinator of the partition."""
    return shares.broker.share_state.shard_for(coordinator_key((GROUP, shares.topic_id(), 0)))


def test_state_is_all_there_behind_the_new_start(shares):
    """Does a broker that reads the shortened log know what it knew before?"""
    shares.acknowledge(epoch=1, acks=[(0, 3, RELEASE)])
    log = state_shard(shares).partition.log
    end = log.log_end_offset

    shares.desk.run(prune_shard(state_shard(shares)))

    assert (log.log_start_offset, log.log_end_offset) == (end, end + 1)
    shares.desk.restart()
    shares.switch_on()
    assert state_shard(shares).partition.log.log_start_offset == end
    assert acquired(shares.fetch()) == [(0, 0, 3, 2)]
    assert offsets(shares)[1]["orders", 0][0] == 0


def test_short_logs_are_left_alone(shares):
    """Is a log rewritten only when it has grown long for what it says?"""
    log = state_shard(shares).partition.log
    shares.desk.run(prune(shares.broker))
    assert log.log_start_offset == 0
    leader = shares.leader()
    for _ in range(300):
        write = leader.core.release("a")
        shares.desk.run(leader.write_down(write))
        leader.core.write_failed(write.number)

    shares.desk.run(prune(shares.broker))

    assert log.log_start_offset > 200


def test_nothing_known_nothing_kept(shares):
    """Is the log of a coordinator that knows nothing emptied?"""
    for shard in shares.broker.share_state.shards:
        shares.desk.run(prune_shard(shard))
        assert shard.partition.log.log_start_offset == shard.partition.log.log_end_offset - len(shard.core.states)
