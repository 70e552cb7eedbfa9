"""ShareFetch and ShareAcknowledge, from joining the group to the state on disk."""

import asyncio

import pytest

from headrace.broker.handlers import api78_share_fetch
from headrace.model.errors import ErrorCode
from headrace.model.metadata_records import ConfigRecord

from .share_desk import ACCEPT, GROUP, REJECT, RELEASE, RENEW, SETTINGS, ShareDesk, acquired, errors, extents


@pytest.fixture
def shares(open_desk):
    """A broker with a topic that a group reads from its beginning."""
    desk = open_desk(SETTINGS)
    shares = ShareDesk(desk)
    configure(shares, "share.auto.offset.reset", "earliest")
    desk.create("orders", partitions=2)
    return shares


def configure(shares, name, value):
    """Set a setting of the group."""
    record = ConfigRecord(resource_type=32, resource_name=GROUP, name=name, value=value)
    shares.broker.metadata.replay(record)


def reading(shares, *members):
    """Members that have joined and opened a session."""
    for member in members:
        shares.join(member)
        shares.fetch(member, max_records=0)


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_handed_out_with_their_batches(shares, version):
    """Does a member get raw batches of the log, and the ranges it has?"""
    shares.join()
    shares.desk.produce("orders", 3)
    shares.desk.produce("orders", 4)

    answer = shares.ask(api78_share_fetch.API, shares.fetch_request(), version=version)

    assert (answer.error_code, answer.acquisition_lock_timeout_ms) == (0, 30_000)
    assert (acquired(answer), extents(answer)) == ([(0, 0, 6, 1)], [(0, 2), (3, 6)])
    assert acquired(shares.fetch(epoch=1)) == []


def test_two_members_share_one_partition(shares):
    """Do two members that read one partition get different records?"""
    for _ in range(4):
        shares.desk.produce("orders", 2)
    shares.join("a")
    shares.join("b")

    first = shares.fetch("a", max_records=3)
    second = shares.fetch("b", max_records=100)

    assert (acquired(first), extents(first)) == ([(0, 0, 3, 1)], [(0, 1), (2, 3)])
    assert (acquired(second), extents(second)) == ([(0, 4, 7, 1)], [(4, 5), (6, 7)])


def test_record_limit_is_met_if_asked(shares):
    """Does mode 1 hand out exactly as many records as asked for (KIP-1206)?"""
    shares.join()
    shares.desk.produce("orders", 9)

    assert acquired(shares.fetch(max_records=4, share_acquire_mode=1)) == [(0, 0, 3, 1)]


def test_acknowledgements_ride_along(shares):
    """Are acknowledgements in a fetch carried out, and answered per partition?"""
    shares.join()
    shares.desk.produce("orders", 6)
    shares.fetch()

    answer = shares.fetch(epoch=1, acks=[(0, 1, ACCEPT), (2, 3, RELEASE), (4, 5, REJECT)])

    assert errors(answer) == [(0, 0, 0)]
    leader = shares.leader()
    assert acquired(shares.fetch(epoch=2)) == ([] if acquired(answer) else [(0, 2, 3, 2)])
    assert (leader.core.start_offset, leader.core.held_by("a")) == (2, [(2, 3)])


def test_acknowledging(shares):
    """Are records accepted, released and rejected by ShareAcknowledge?"""
    shares.join()
    shares.desk.produce("orders", 6)
    shares.fetch()

    assert shares.acknowledge(epoch=1, acks=[(0, 1, ACCEPT), (2, 3, RELEASE), (4, 5, REJECT)]) == (0, 0)
    assert acquired(shares.fetch(epoch=2)) == [(0, 2, 3, 2)]
    assert shares.acknowledge(epoch=3, acks=[(0, 3, ACCEPT)]) == (0, 0)
    assert shares.leader().core.start_offset == 6


@pytest.mark.parametrize(
    ("acks", "code"),
    [
        ([(5, 6, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(3, 2, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(0, 1, 9)], ErrorCode.INVALID_REQUEST),
        ([(0, 1, RENEW)], ErrorCode.INVALID_REQUEST),
        ([(0, 1, ACCEPT), (1, 2, ACCEPT)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_senseless_acknowledgement_is_refused(shares, acks, code):
    """Is an acknowledgement that makes no sense refused, with nothing changed?"""
    shares.join()
    shares.desk.produce("orders", 6)
    shares.fetch()

    assert shares.acknowledge(epoch=1, acks=acks) == (0, code)
    assert errors(shares.fetch(epoch=2, acks=acks)) == [(0, 0, code)]
    assert shares.leader().core.held_by("a") == [(0, 5)]


def test_acknowledging_what_another_has(shares):
    """Is a member refused that speaks of another's records, or of a partition nobody reads?"""
    shares.desk.produce("orders", 6)
    shares.join("a")
    shares.fetch("a")
    reading(shares, "b")

    assert shares.acknowledge("b", epoch=1, acks=[(0, 1, ACCEPT)]) == (0, ErrorCode.INVALID_RECORD_STATE)
    assert shares.acknowledge("b", epoch=2, acks=[(0, 1, ACCEPT)], partition=("orders", 1)) == (
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )


def test_lock_runs_out(shares):
    """Do records that a member keeps for too long go to another, and can the member prolong that?"""
    shares.desk.produce("orders", 4)
    shares.join("a")
    shares.fetch("a")
    reading(shares, "b")
    shares.desk.now_ms += 20_000
    assert shares.acknowledge("a", epoch=1, acks=[(2, 3, RENEW)], renew=True) == (0, 0)

    async def expire():
        shares.leader().expire_locks()

    shares.desk.now_ms += 10_000
    shares.desk.run(expire())

    assert acquired(shares.fetch("b", epoch=1)) == [(0, 0, 1, 2)]
    assert shares.acknowledge("a", epoch=2, acks=[(0, 1, ACCEPT)]) == (0, ErrorCode.INVALID_RECORD_STATE)
    assert shares.acknowledge("a", epoch=3, acks=[(2, 3, ACCEPT)]) == (0, 0)


def test_renewing_in_a_fetch(shares):
    """Does a fetch that renews locks fetch nothing, and is it refused if it wants to (KIP-1222)?"""
    shares.desk.produce("orders", 4)
    shares.join()
    shares.fetch(max_records=2, share_acquire_mode=1)
    nothing = {"max_bytes": 0, "min_bytes": 0, "max_records": 0}

    answer = shares.fetch(epoch=1, acks=[(0, 1, RENEW)], is_renew_ack=True, **nothing)
    refused = shares.fetch(epoch=2, acks=[(0, 1, RENEW)], is_renew_ack=True)

    assert (errors(answer), acquired(answer)) == ([(0, 0, 0)], [])
    assert refused.error_code == ErrorCode.INVALID_REQUEST


def test_record_is_given_up_after_the_last_delivery(shares):
    """Is a record that is always released delivered five times, and no more?"""
    shares.desk.produce("orders", 1)
    shares.join()
    counts = []
    for epoch in range(0, 14, 2):
        counts += [run[3] for run in acquired(shares.fetch(epoch=epoch))]
        shares.acknowledge(epoch=epoch + 1, acks=[(0, 0, RELEASE)])

    assert counts == [1, 2, 3, 4, 5]
    assert shares.leader().core.start_offset == 1


def test_fetch_waits_for_records(shares):
    """Is a fetch with nothing to read answered when something is produced, and when something is released?"""
    shares.join("a")
    shares.join("b")

    async def produce_meanwhile():
        waiting = asyncio.ensure_future(
            shares.asked(api78_share_fetch.API, shares.fetch_request("a", wait_ms=60_000), member="a")
        )
        await shares.until(lambda: shares.leader() is not None and shares.leader()._waiters)
        assert not waiting.done()
        return waiting

    async def finish(waiting):
        return await waiting

    waiting = shares.desk.run(produce_meanwhile())
    shares.desk.produce("orders", 2)
    assert acquired(shares.desk.run(finish(waiting))) == [(0, 0, 1, 1)]

    async def release_meanwhile():
        other = asyncio.ensure_future(
            shares.asked(api78_share_fetch.API, shares.fetch_request("b", wait_ms=60_000), member="b")
        )
        await shares.until(lambda: shares.leader()._waiters)
        return other

    waiting = shares.desk.run(release_meanwhile())
    assert shares.acknowledge("a", epoch=1, acks=[(0, 1, RELEASE)]) == (0, 0)
    assert acquired(shares.desk.run(finish(waiting))) == [(0, 0, 1, 2)]


def test_stop_lets_waiting_fetches_go(shares):
    """Is a fetch that waits for records answered as soon as its broker stops?"""
    shares.join()

    async def stop_meanwhile():
        waiting = asyncio.ensure_future(shares.asked(api78_share_fetch.API, shares.fetch_request(wait_ms=300_000)))
        await shares.until(lambda: shares.leader() is not None and shares.leader()._waiters)
        shares.broker.share.stop()
        await shares.until(waiting.done)
        return waiting.result()

    assert acquired(shares.desk.run(stop_meanwhile())) == []


def test_stop_lets_refused_fetches_go(open_desk):
    """Is a fetch that waits because there are too many sessions answered as soon as its broker stops?"""
    shares = ShareDesk(open_desk({**SETTINGS, "group.share.max.share.sessions": "1"}))
    shares.desk.create("orders")
    reading(shares, "a")

    async def stop_meanwhile():
        waiting = asyncio.ensure_future(
            shares.asked(api78_share_fetch.API, shares.fetch_request("b", wait_ms=300_000), member="b")
        )
        await asyncio.sleep(0)
        assert not waiting.done()
        shares.broker.share.stop()
        await shares.until(waiting.done)
        return waiting.result()

    assert shares.desk.run(stop_meanwhile()).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED


def test_state_survives_a_power_cut(shares):
    """Does a restarted broker know what was accepted and how often the rest was delivered?"""
    shares.desk.produce("orders", 6)
    shares.join()
    shares.fetch()
    assert shares.acknowledge(epoch=1, acks=[(0, 0, ACCEPT), (2, 2, ACCEPT), (3, 3, RELEASE)]) == (0, 0)

    shares.desk.power_cut()
    shares.switch_on()

    assert acquired(shares.fetch()) == [(0, 1, 1, 1), (0, 3, 3, 2), (0, 4, 5, 1)]


def test_first_offset_survives_a_restart(shares):
    """Does a group that begins at the latest offset get what was produced while its broker was down for a moment?"""
    configure(shares, "share.auto.offset.reset", "latest")
    shares.desk.produce("orders", 3)
    reading(shares, "a")
    shares.desk.produce("orders", 2)

    shares.desk.restart()
    shares.switch_on()

    assert acquired(shares.fetch()) == [(0, 3, 4, 1)]


@pytest.mark.parametrize(
    ("strategy", "first"), [("latest", []), ("earliest", [(0, 0, 2, 1)]), ("by_duration:PT1H", [(0, 0, 2, 1)])]
)
def test_where_a_group_begins(shares, strategy, first):
    """Does a new group begin where its settings say?"""
    configure(shares, "share.auto.offset.reset", strategy)
    shares.desk.produce("orders", 3)
    shares.join()

    assert acquired(shares.fetch()) == first


def test_log_start_moves(shares):
    """Does a group go on behind records that were deleted?"""
    shares.join()
    shares.desk.produce("orders", 3)
    shares.desk.produce("orders", 3)
    shares.broker.partitions.require("orders", 0).log.advance_start_offset(3)

    assert acquired(shares.fetch()) == [(0, 3, 5, 1)]


def test_deleted_topic_is_told(shares):
    """Is a topic that was deleted under the session answered with its error?"""
    from headrace.broker.handlers.api20_delete_topics import API
    from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    reading(shares, "a")
    shares.desk.ask(API, DeleteTopicsRequest(topics=(DeleteTopicState(name="orders"),)))

    assert errors(shares.fetch(epoch=1, wait_ms=60_000)) == [(0, ErrorCode.UNKNOWN_TOPIC_ID, 0)]


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (1, ErrorCode.SHARE_SESSION_NOT_FOUND),
        (-1, ErrorCode.SHARE_SESSION_NOT_FOUND),
    ],
)
def test_no_session(shares, epoch, code):
    """Is a member without a session told so?"""
    assert shares.fetch(epoch=epoch).error_code == code
    assert shares.acknowledge(epoch=epoch, acks=[])[0] == code


def test_session_epochs(shares):
    """Is a repeated or skipped request noticed, and a session opened by an acknowledgement refused?"""
    reading(shares, "a")

    assert shares.fetch(epoch=2).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert shares.fetch(epoch=1).error_code == 0
    assert shares.fetch(epoch=1).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert shares.acknowledge(epoch=1, acks=[])[0] == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert shares.acknowledge(epoch=0, acks=[])[0] == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert shares.acknowledge(epoch=2, acks=[])[0] == 0


def test_sessions_are_limited(open_desk):
    """Is a session too many refused?"""
    shares = ShareDesk(open_desk({**SETTINGS, "group.share.max.share.sessions": "1"}))
    shares.desk.create("orders")
    reading(shares, "a")

    assert shares.fetch("b").error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert shares.fetch("a").error_code == 0, "the member's old session makes room for its new one"


@pytest.mark.parametrize("by", ["fetch", "acknowledge", "connection"])
def test_end_of_a_session_frees_what_the_member_has(shares, by):
    """Do others get a member's records when its session ends, by its own wish or because its connection is gone?"""
    shares.desk.produce("orders", 4)
    shares.join("a")
    shares.fetch("a")
    reading(shares, "b")
    if by == "fetch":
        assert errors(shares.fetch("a", epoch=-1, acks=[(0, 0, ACCEPT)])) == [(0, 0, 0)]
    elif by == "acknowledge":
        assert shares.acknowledge("a", epoch=-1, acks=[(0, 0, ACCEPT)]) == (0, 0)
    else:
        assert shares.acknowledge("a", epoch=1, acks=[(0, 0, ACCEPT)]) == (0, 0)
        shares.connection("a").closed = True

        async def sweep():
            shares.broker.share.sweep()

        shares.desk.run(sweep())
        shares.settle()

    assert acquired(shares.fetch("b", epoch=1)) == [(0, 1, 3, 2)]
    assert shares.fetch("a", epoch=2).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_sessions_follow_what_requests_change(shares):
    """Are partitions added and forgotten as requests say, and read in turn?"""
    from headrace.wire.messages.share_fetch import ForgottenTopic

    shares.desk.produce("orders", 2, partition=0)
    shares.desk.produce("orders", 2, partition=1)
    shares.join()

    assert acquired(shares.fetch(max_records=1, share_acquire_mode=1)) == [(0, 0, 0, 1)]
    more = shares.fetch(epoch=1, topics=(("orders", 1),), max_records=2, share_acquire_mode=1)
    assert acquired(more) == [(0, 1, 1, 1), (1, 0, 0, 1)]
    forgotten = (ForgottenTopic(topic_id=shares.topic_id(), partitions=(1,)),)
    assert acquired(shares.fetch(epoch=2, forgotten_topics_data=forgotten)) == []


@pytest.mark.parametrize("fields", [{"group_id": ""}, {"group_id": None}, {"member_id": ""}, {"member_id": None}])
def test_nameless_requests_are_refused(shares, fields):
    """Is a request without group or member refused?"""
    from msgspec.structs import replace

    request = replace(shares.fetch_request(), **fields)

    assert shares.ask(api78_share_fetch.API, request).error_code == ErrorCode.INVALID_REQUEST


def test_first_request_cannot_acknowledge(shares):
    """Is an acknowledgement in a request that opens a session refused?"""
    assert shares.fetch(epoch=0, acks=[(0, 1, ACCEPT)]).error_code == ErrorCode.INVALID_REQUEST


def test_group_that_never_joined_cannot_read(shares):
    """Is a partition without a delivery state not read, and the connection not lost for it?"""
    shares.desk.produce("orders", 2)

    answer = shares.fetch()

    assert (errors(answer), acquired(answer)) == ([(0, ErrorCode.UNKNOWN_SERVER_ERROR, 0)], [])


def test_write_that_fails_leaves_the_records_with_the_member(shares):
    """Is a member told when its acknowledgement could not be written down, and may it try again?"""
    shares.desk.produce("orders", 2)
    shares.join()
    shares.fetch()
    shares.broker.share_state.resign_all()

    assert shares.acknowledge(epoch=1, acks=[(0, 1, ACCEPT)]) == (0, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert shares.leader().core.held_by("a") == [(0, 1)]

    shares.desk.run(shares.broker.share_state.lead_all())
    assert shares.acknowledge(epoch=2, acks=[(0, 1, ACCEPT)]) == (0, 0)


def test_switched_off(shares):
    """Is everything refused while the cluster has no share groups?"""
    shares.broker.metadata.features["share.version"] = 0

    assert shares.join().error_code == ErrorCode.UNSUPPORTED_VERSION
    assert shares.fetch().error_code == ErrorCode.UNSUPPORTED_VERSION
    assert shares.acknowledge(epoch=1, acks=[])[0] == ErrorCode.UNSUPPORTED_VERSION
