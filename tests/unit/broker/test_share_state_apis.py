"""The share coordinator's APIs, as brokers ask each other: 83 to 87."""

from uuid import UUID

import pytest

from headrace.broker.handlers import (
    api83_initialize_share_group_state,
    api84_read_share_group_state,
    api85_write_share_group_state,
    api86_delete_share_group_state,
    api87_read_share_group_state_summary,
)
from headrace.model.errors import ErrorCode
from headrace.wire.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)

from .share_desk import SETTINGS, ShareDesk


@pytest.fixture
def shares(open_desk):
    """A broker with a topic."""
    shares = ShareDesk(open_desk(SETTINGS))
    shares.desk.create("orders")
    return shares


def only(answer):
    """The one partition of an answer."""
    ((partition,),) = (topic.partitions for topic in answer.results)
    return partition


def initialize(shares, *, partition=0, topic_id=None, state_epoch=1, start=5):
    """Begin a state."""
    one = initialize_share_group_state.PartitionData(partition=partition, state_epoch=state_epoch, start_offset=start)
    topic = initialize_share_group_state.InitializeStateData(topic_id=topic_id or shares.topic_id(), partitions=(one,))
    request = initialize_share_group_state.InitializeShareGroupStateRequest(group_id="g", topics=(topic,))
    return only(shares.ask(api83_initialize_share_group_state.API, request))


def read(shares, *, leader_epoch=0):
    """Read a state."""
    one = read_share_group_state.PartitionData(partition=0, leader_epoch=leader_epoch)
    topic = read_share_group_state.ReadStateData(topic_id=shares.topic_id(), partitions=(one,))
    request = read_share_group_state.ReadShareGroupStateRequest(group_id="g", topics=(topic,))
    return only(shares.ask(api84_read_share_group_state.API, request))


def write(shares, *, leader_epoch=0, state_epoch=1, batches=((5, 6, 2, 1),), version=1):
    """Write a state."""
    one = write_share_group_state.PartitionData(
        partition=0,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=5,
        delivery_complete_count=2,
        state_batches=tuple(
            write_share_group_state.StateBatch(
                first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
            )
            for first, last, state, count in batches
        ),
    )
    topic = write_share_group_state.WriteStateData(topic_id=shares.topic_id(), partitions=(one,))
    request = write_share_group_state.WriteShareGroupStateRequest(group_id="g", topics=(topic,))
    return only(shares.ask(api85_write_share_group_state.API, request, version=version))


def delete(shares):
    """Forget a state."""
    one = delete_share_group_state.PartitionData(partition=0)
    topic = delete_share_group_state.DeleteStateData(topic_id=shares.topic_id(), partitions=(one,))
    request = delete_share_group_state.DeleteShareGroupStateRequest(group_id="g", topics=(topic,))
    return only(shares.ask(api86_delete_share_group_state.API, request))


def summary(shares, *, version=1):
    """Where a share partition stands."""
    one = read_share_group_state_summary.PartitionData(partition=0, leader_epoch=0)
    topic = read_share_group_state_summary.ReadStateSummaryData(topic_id=shares.topic_id(), partitions=(one,))
    request = read_share_group_state_summary.ReadShareGroupStateSummaryRequest(group_id="g", topics=(topic,))
    return only(shares.ask(api87_read_share_group_state_summary.API, request, version=version))


def test_state_from_beginning_to_end(shares):
    """Can a state be begun, written, read, summarized and deleted, and is it still there after a power cut?"""
    assert summary(shares).start_offset == -1
    assert initialize(shares).error_code == 0
    assert write(shares).error_code == 0
    shares.desk.power_cut()
    shares.switch_on()

    state = read(shares)

    assert (state.error_code, state.state_epoch, state.start_offset) == (0, 1, 5)
    assert [(one.first_offset, one.last_offset, one.delivery_state) for one in state.state_batches] == [(5, 6, 2)]
    assert (summary(shares).start_offset, summary(shares).delivery_complete_count) == (5, 2)
    assert summary(shares, version=0).start_offset == 5
    assert delete(shares).error_code == 0
    assert summary(shares).start_offset == -1


def test_epochs(shares):
    """Are leaders and states of older epochs refused?"""
    initialize(shares, state_epoch=3)
    assert read(shares, leader_epoch=2).error_code == 0

    assert write(shares, leader_epoch=1, state_epoch=3).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert read(shares, leader_epoch=1).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert write(shares, leader_epoch=2, state_epoch=2).error_code == ErrorCode.FENCED_STATE_EPOCH
    assert initialize(shares, state_epoch=2).error_code == ErrorCode.FENCED_STATE_EPOCH
    assert write(shares, leader_epoch=2, state_epoch=3, version=0).error_code == 0


def test_bad_input(shares):
    """Is what cannot be answered with its error, and nothing kept?"""
    assert initialize(shares, partition=-1).error_code == ErrorCode.INVALID_REQUEST
    assert initialize(shares, partition=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert initialize(shares, topic_id=UUID(int=5)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert initialize(shares, start=-2).error_code == ErrorCode.INVALID_REQUEST
    assert write(shares).error_code == ErrorCode.INVALID_REQUEST
    assert read(shares).error_code == ErrorCode.INVALID_REQUEST
    initialize(shares)
    for batch in ((6, 5, 2, 1), (5, 6, 3, 1), (5, 6, 2, -1), (-4, 6, 2, 1)):
        assert write(shares, batches=(batch,)).error_code == ErrorCode.INVALID_REQUEST
    assert read(shares).state_batches == ()


def test_switched_off(shares):
    """Is everything refused while the cluster has no share groups?"""
    shares.broker.metadata.features["share.version"] = 0

    for answer in (initialize(shares), read(shares), write(shares), delete(shares), summary(shares)):
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
