"""Fetch sessions decide which partitions a request means and which are worth telling."""

from headrace.cores.fetch_sessions import CachedPartition, FetchSession, FetchSessions
from headrace.model.errors import ErrorCode


def opened(sessions: FetchSessions[str], session_id: int = 7, now_ms: int = 0) -> FetchSession[str]:
    session = sessions.open([("a", 0, "first"), ("a", 1, "second")], session_id=session_id, now_ms=now_ms)
    assert session is not None
    return session


def test_a_session_goes_on_by_one_epoch_at_a_time() -> None:
    """Does each request of a session need the next epoch, so that a repeated or lost one is noticed?"""
    sessions: FetchSessions[str] = FetchSessions(10)
    session = opened(sessions)

    assert sessions.resume(7, 1, 0) is session
    assert sessions.resume(7, 1, 0) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert sessions.resume(7, 2, 0) is session
    assert sessions.resume(8, 1, 0) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_the_epoch_wraps_to_one() -> None:
    """Does the epoch after the largest one be 1, as 0 means a new session?"""
    sessions: FetchSessions[str] = FetchSessions(10)
    session = opened(sessions)
    session.epoch = 2**31 - 1

    assert sessions.resume(7, 2**31 - 1, 0) is session
    assert session.epoch == 1


def test_incremental_requests_change_the_session() -> None:
    """Do added, changed and forgotten partitions take effect, and the others stay?"""
    session = opened(FetchSessions(10))

    session.update([("a", 1, "changed"), ("b", 0, "new")], [("a", 0), ("z", 9)])

    assert [("a", 1, "changed"), ("b", 0, "new")] == [
        (cached.topic, cached.partition, cached.asked) for cached in session.partitions.values()
    ]


def test_partitions_that_got_data_go_last() -> None:
    """Is a partition that was served moved behind those that were not, so that none starves?"""
    session = opened(FetchSessions(10))

    session.served_last([("a", 0), ("gone", 0)])

    assert [("a", 1), ("a", 0)] == list(session.partitions)


def test_only_changes_are_told() -> None:
    """Is a partition left out of the answer while nothing about it changed?"""
    cached = CachedPartition("a", 0, "wish")

    assert cached.changed(high_watermark=5, log_start_offset=0, must_tell=False)
    assert not cached.changed(high_watermark=5, log_start_offset=0, must_tell=False)
    assert cached.changed(high_watermark=5, log_start_offset=0, must_tell=True)
    assert cached.changed(high_watermark=6, log_start_offset=0, must_tell=False)
    assert cached.changed(high_watermark=6, log_start_offset=2, must_tell=False)
    cached.forget_answer()
    assert cached.changed(high_watermark=6, log_start_offset=2, must_tell=False)


def test_a_full_cache_gives_up_only_idle_sessions() -> None:
    """Is a new client refused a session while all are busy, and given the place of one that fell asleep?"""
    sessions: FetchSessions[str] = FetchSessions(1)
    opened(sessions)

    assert sessions.open([("a", 0, "x")], session_id=8, now_ms=1_000) is None
    assert sessions.open([("a", 0, "x")], session_id=8, now_ms=120_000) is not None
    assert sessions.resume(7, 1, 120_000) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 1


def test_no_room_at_all() -> None:
    """Does a cache without slots turn everyone away?"""
    assert FetchSessions(0).open([("a", 0, "x")], session_id=8, now_ms=0) is None


def test_a_session_needs_partitions_and_an_id_of_its_own() -> None:
    """Is an empty session, or one under an id in use, not opened?"""
    sessions: FetchSessions[str] = FetchSessions(10)
    opened(sessions)

    assert sessions.open([], session_id=8, now_ms=0) is None
    assert sessions.open([("a", 0, "x")], session_id=7, now_ms=0) is None


def test_closing() -> None:
    """Is a closed session gone, and closing an unknown one harmless?"""
    sessions: FetchSessions[str] = FetchSessions(10)
    opened(sessions)

    sessions.close(7)
    sessions.close(7)

    assert len(sessions) == 0
