"""A follower of a partition."""

import pytest

from headrace.cores.replication.follower import Follower, StartOver, Truncate, Verdict
from headrace.cores.replication.messages import EpochEnd, FetchAnswer, FetchPosition, LeaderRange, ReplicationSettings
from headrace.model.errors import ErrorCode
from headrace.sim.replication_log import Record


@pytest.fixture
def follow(log_of, registration):
    """A follower of broker 2 with a log of one record for each epoch given."""

    def make(*epochs, high_watermark=0, flushes=True, leader=2, flushed=None):
        log = log_of(*epochs, flushed=flushed)
        settings = ReplicationSettings(flushes=flushes)
        return log, Follower(log, registration(leader=leader), settings=settings, high_watermark=high_watermark)

    return make


def test_asks_from_the_end(follow):
    """Does it ask from its end on, with the epoch of its last record?"""
    _, follower = follow(1, 1, 3)

    assert follower.ask() == FetchPosition(leader_epoch=5, offset=3, last_fetched_epoch=3, log_start_offset=0)


def test_asks_when_empty(follow):
    """Does an empty log ask without an epoch, wherever it begins?"""
    log, follower = follow()
    assert follower.ask() == FetchPosition(leader_epoch=5, offset=0, last_fetched_epoch=-1, log_start_offset=0)

    log.start_over(9, [])
    assert follower.ask() == FetchPosition(leader_epoch=5, offset=9, last_fetched_epoch=-1, log_start_offset=9)


def test_an_epoch_without_records(follow):
    """Is an epoch that wrote nothing here not taken for that of the last record?"""
    log, follower = follow(1, 1)
    log.assign_epoch(4, 2)

    assert follower.ask().last_fetched_epoch == 1


def test_the_epoch_survives_an_empty_answer(follow):
    """Is the last epoch still told after a fetch that brought nothing (KAFKA-15510)?"""
    _, follower = follow(1, 1)
    for _ in range(2):
        asked = follower.ask()
        assert asked.last_fetched_epoch == 1
        assert follower.answered(asked, FetchAnswer(high_watermark=1)) is Verdict.APPEND
        follower.appended(FetchAnswer(high_watermark=1))


def test_asks_nobody(follow):
    """Does it ask nothing while there is no leader?"""
    assert follow(1, leader=-1)[1].ask() is None


def test_flushes_first(follow):
    """Does it ask for more only once it has flushed what it got, where the topic flushes?"""
    log, follower = follow(1, 1, flushed=1)
    assert follower.must_flush
    assert follower.ask() is None

    log.recovery_point = 2
    assert follower.ask().offset == 2
    log.recovery_point = 1
    follower.configure(ReplicationSettings(flushes=False))
    assert follower.ask().offset == 2


def test_high_watermark(follow):
    """Does it follow the leader's high watermark as far as its own log goes, and never back?"""
    log, follower = follow(1, 1)
    assert follower.appended(FetchAnswer(high_watermark=9))
    assert follower.high_watermark == 2
    log.append(Record(1, 0, 2))
    assert not follower.appended(FetchAnswer(high_watermark=1))
    assert follower.high_watermark == 2


def test_divergence(follow):
    """Does it truncate where the leader says it parted, and leave the high watermark alone (KAFKA-14704)?"""
    _, follower = follow(1, 1, 2, 2)
    answer = FetchAnswer(diverging=EpochEnd(1, 2), high_watermark=4)

    assert follower.answered(follower.ask(), answer) == Truncate(offset=2)
    assert follower.high_watermark == 0


def test_truncation_below_the_high_watermark(follow):
    """Does it say so when it loses what it took for committed?"""
    _, follower = follow(1, 1, 2, 2, high_watermark=3)

    action = follower.answered(follower.ask(), FetchAnswer(diverging=EpochEnd(1, 2)))

    assert action == Truncate(offset=2, lost_high_watermark=3)
    assert follower.high_watermark == 2


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (ErrorCode.UNKNOWN_LEADER_EPOCH, Verdict.RETRY),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Verdict.RETRY),
        (ErrorCode.UNKNOWN_TOPIC_ID, Verdict.RETRY),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, Verdict.RETRY),
        (ErrorCode.KAFKA_STORAGE_ERROR, Verdict.RETRY),
        (ErrorCode.OFFSET_OUT_OF_RANGE, Verdict.FIND_RANGE),
        (ErrorCode.FENCED_LEADER_EPOCH, Verdict.AWAIT_METADATA),
    ],
)
def test_errors(follow, error, verdict):
    """Does each error lead to what it asks for, and a fenced follower ask no more?"""
    _, follower = follow(1)

    assert follower.answered(follower.ask(), FetchAnswer(error=error)) is verdict
    assert (follower.ask() is None) == (verdict is Verdict.AWAIT_METADATA)


def test_late_answers(follow):
    """Is an answer ignored that is not to the last question, even if both asked the same?"""
    _, follower = follow(1, 1)
    before = follower.ask()
    asked = follower.ask()
    assert before == asked

    assert follower.answered(before, FetchAnswer(diverging=EpochEnd(0, 0))) is Verdict.IGNORE
    assert follower.answered(asked, FetchAnswer()) is Verdict.APPEND
    assert follower.answered(asked, FetchAnswer()) is Verdict.IGNORE


@pytest.mark.parametrize(
    ("leader", "expected"),
    [
        pytest.param(LeaderRange(start_offset=7, end_offset=9), StartOver(offset=7), id="deleted what comes next"),
        pytest.param(LeaderRange(start_offset=5, end_offset=9), StartOver(offset=5), id="deleted all we have"),
        pytest.param(LeaderRange(start_offset=0, end_offset=9), Verdict.RETRY, id="has grown meanwhile"),
        pytest.param(
            LeaderRange(start_offset=0, end_offset=3, end_epoch=2),
            Truncate(offset=3, lost_high_watermark=4),
            id="is shorter: the same epoch",
        ),
        pytest.param(
            LeaderRange(start_offset=0, end_offset=3, end_epoch=1),
            Truncate(offset=2, lost_high_watermark=4),
            id="is shorter: an older epoch",
        ),
    ],
)
def test_out_of_range(follow, leader, expected):
    """Does it start over, wait or truncate by epoch, as the leader's offsets tell?"""
    _, follower = follow(1, 1, 2, 2, 2, high_watermark=4)
    asked = follower.ask()
    follower.answered(asked, FetchAnswer(error=ErrorCode.OFFSET_OUT_OF_RANGE))

    assert follower.found(asked, leader) == expected
    assert follower.found(asked, leader) is Verdict.IGNORE


def test_high_watermark_after_starting_over(follow):
    """Is what the leader deleted known to be committed?"""
    _, follower = follow(1, 1, high_watermark=1)
    asked = follower.ask()
    follower.answered(asked, FetchAnswer(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    follower.found(asked, LeaderRange(start_offset=7, end_offset=9))

    assert follower.high_watermark == 7


def test_a_leader_from_before_our_start(follow):
    """Does it start over from the leader's start, loudly, where all it has is beyond the leader's end?"""
    log, follower = follow()
    log.start_over(20, [])
    follower.high_watermark = 20
    asked = follower.ask()
    follower.answered(asked, FetchAnswer(error=ErrorCode.OFFSET_OUT_OF_RANGE))

    expected = StartOver(offset=2, lost_high_watermark=20)
    assert follower.found(asked, LeaderRange(start_offset=2, end_offset=9, end_epoch=1)) == expected


def test_nothing_to_start_over_from(follow):
    """Does an empty log that begins where the leader's does just ask again?"""
    log, follower = follow()
    log.start_over(20, [])
    asked = follower.ask()
    follower.answered(asked, FetchAnswer(error=ErrorCode.OFFSET_OUT_OF_RANGE))

    assert follower.found(asked, LeaderRange(start_offset=20, end_offset=25)) is Verdict.RETRY
