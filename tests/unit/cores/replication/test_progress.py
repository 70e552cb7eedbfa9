"""How far a follower is, as its leader sees it."""

from headrace.cores.replication.progress import FollowerProgress


def test_a_new_follower_in_sync_has_time():
    """Has a member of the ISR the whole lag time to be heard, and any other none?"""
    assert FollowerProgress(2, 500, in_sync=True).is_caught_up(10, 1500, 1000)
    assert not FollowerProgress(2, 500, in_sync=True).is_caught_up(10, 1501, 1000)
    assert not FollowerProgress(2, 500, in_sync=False).is_caught_up(10, 500, 1000)


def test_level_is_caught_up():
    """Is a follower that is level caught up, however long it has been silent?"""
    follower = FollowerProgress(2, 0, in_sync=False)
    follower.fetched(10, 0, 1, 10, 100)

    assert follower.is_caught_up(10, 10**9, 1000)
    assert not follower.is_caught_up(11, 10**9, 1000)


def test_always_a_little_behind():
    """Does a follower that has what the leader had at its fetch before count as level then?"""
    follower = FollowerProgress(2, 0, in_sync=False)
    for step in range(1, 5):
        follower.fetched(step * 10, 0, 1, step * 10 + 10, step * 100)

    assert follower.last_caught_up_ms == 300


def test_falling_behind():
    """Does one that falls ever further behind stop being caught up?"""
    follower = FollowerProgress(2, 0, in_sync=True)
    for step in range(1, 5):
        follower.fetched(step, 0, 1, step * 100, step * 100)

    assert follower.last_caught_up_ms == 0


def test_lead_again():
    """Does a new epoch of the same leader keep what the follower has, and start its times anew?"""
    follower = FollowerProgress(2, 0, in_sync=True)
    follower.fetched(10, 3, 7, 10, 100)
    follower.lead_again(20, 400, in_sync=True)

    assert (follower.offset, follower.log_start_offset, follower.broker_epoch) == (10, 3, 7)
    assert follower.last_caught_up_ms == 400
    follower.lead_again(20, 500, in_sync=False)
    assert not follower.is_caught_up(20, 500, 1000)


def test_broker_epoch_of_one_not_heard():
    """Is the broker epoch of a follower that has not fetched given as unknown?"""
    follower = FollowerProgress(2, 0, in_sync=True)

    assert (follower.is_heard, follower.known_broker_epoch) == (False, -1)
    follower.fetched(0, 0, 12, 0, 0)
    assert (follower.is_heard, follower.known_broker_epoch) == (True, 12)
