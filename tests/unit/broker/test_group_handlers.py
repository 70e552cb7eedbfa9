"""The APIs of classic groups, at a real broker: every version, every error, and after restarts."""

import asyncio

import pytest

from headrace.broker.handlers import (
    api11_join_group,
    api12_heartbeat,
    api13_leave_group,
    api14_sync_group,
    api15_describe_groups,
    api16_list_groups,
    api42_delete_groups,
)
from headrace.broker.handlers.api15_describe_groups import GROUP_OPERATIONS
from headrace.model.errors import ErrorCode
from headrace.wire.messages.delete_groups import DeleteGroupsRequest
from headrace.wire.messages.describe_groups import DescribeGroupsRequest
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headrace.wire.messages.list_groups import ListGroupsRequest
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

QUICK = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}


@pytest.fixture
def desk(open_desk):
    """A broker whose groups begin at once."""
    desk = open_desk(QUICK)
    desk.run(desk.broker.groups.ensure_topic())
    return desk


def join_request(group_id="g", member_id="", **fields):
    fields.setdefault("protocols", (JoinGroupRequestProtocol(name="range", metadata=b"meta"),))
    fields.setdefault("session_timeout_ms", 30_000)
    fields.setdefault("rebalance_timeout_ms", 30_000)
    return JoinGroupRequest(group_id=group_id, member_id=member_id, protocol_type="consumer", **fields)


def join(desk, version=9, **fields):
    """Join, a second time with the id that was given if that is asked for."""
    answer = desk.ask(api11_join_group.API, join_request(**fields), version=version)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        fields["member_id"] = answer.member_id
        answer = desk.ask(api11_join_group.API, join_request(**fields), version=version)
    return answer


def settle(desk, group_id="g", **fields):
    """A group with one member, stable; its id."""
    member_id = join(desk, group_id=group_id, **fields).member_id
    request = SyncGroupRequest(
        group_id=group_id,
        generation_id=1,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=(SyncGroupRequestAssignment(member_id=member_id, assignment=b"mine"),),
    )
    answer = desk.ask(api14_sync_group.API, request)
    assert (0, b"mine") == (answer.error_code, answer.assignment)
    return member_id


@pytest.mark.parametrize("version", range(10))
def test_join_in_every_version(desk, version):
    """Does a client of any version get into a group, sent away once only from version 4 on?"""
    first = desk.ask(api11_join_group.API, join_request(), version=version)

    assert (ErrorCode.MEMBER_ID_REQUIRED if version >= 4 else 0) == first.error_code
    assert first.member_id.startswith("test-")

    answer = first
    if version >= 4:
        answer = desk.ask(api11_join_group.API, join_request(member_id=first.member_id), version=version)

    assert (0, 1, "range", first.member_id) == (
        answer.error_code,
        answer.generation_id,
        answer.protocol_name,
        answer.leader,
    )
    assert [(first.member_id, b"meta")] == [(member.member_id, member.metadata) for member in answer.members]
    assert ("consumer" if version >= 7 else None) == answer.protocol_type


def test_rebalance_timeout_of_the_first_version(desk):
    """Is the session timeout taken as rebalance timeout of a client that has none?"""
    member_id = join(desk, version=0, session_timeout_ms=7_000).member_id
    (group,) = [group for shard in desk.broker.groups.shards for group in shard.core.groups.values()]

    assert 7_000 == group.members[member_id].rebalance_timeout_ms


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
@pytest.mark.parametrize("version", [0, 6, 7, 9])
def test_refused_join(desk, fields, error, version):
    """Is a refused join answered in every version, with the member id the client came with?"""
    answer = desk.ask(api11_join_group.API, join_request(**fields), version=version)

    assert (error, fields.get("member_id", ""), -1) == (answer.error_code, answer.member_id, answer.generation_id)
    assert (None if version >= 7 else "") == answer.protocol_name


def test_two_members(desk):
    """Do two members get into one generation, and each its own assignment from the leader?"""
    first = settle(desk)

    async def both():
        second = await desk.asked(api11_join_group.API, join_request(), client_id="other")
        waiting = asyncio.ensure_future(desk.asked(api11_join_group.API, join_request(member_id=second.member_id)))
        await asyncio.sleep(0)
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=first)
        told = await desk.asked(api12_heartbeat.API, beat)
        again = await desk.asked(api11_join_group.API, join_request(member_id=first))
        return told, again, await waiting

    told, again, other = desk.run(both())

    assert ErrorCode.REBALANCE_IN_PROGRESS == told.error_code
    assert (2, 2) == (again.generation_id, other.generation_id)
    assert {first, other.member_id} == {member.member_id for member in again.members}
    assert other.member_id.startswith("other-")
    assert () == other.members


def test_member_ids_of_static_members(desk):
    """Is a static member's id made of its instance id, and given at once?"""
    answer = desk.ask(api11_join_group.API, join_request(group_instance_id="box"))

    assert (0, True) == (answer.error_code, answer.member_id.startswith("box-"))


@pytest.mark.parametrize("version", range(6))
def test_sync_in_every_version(desk, version):
    """Does the leader get its own assignment in any version, with the protocol from version 5 on?"""
    member_id = join(desk).member_id
    request = SyncGroupRequest(
        group_id="g",
        generation_id=1,
        member_id=member_id,
        protocol_type="consumer" if version >= 5 else None,
        protocol_name="range" if version >= 5 else None,
        assignments=(SyncGroupRequestAssignment(member_id=member_id, assignment=b"a"),),
    )
    answer = desk.ask(api14_sync_group.API, request, version=version)

    assert (0, b"a") == (answer.error_code, answer.assignment)
    assert (("consumer", "range") if version >= 5 else (None, None)) == (answer.protocol_type, answer.protocol_name)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"protocol_name": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"generation_id": 7}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    ],
)
def test_refused_sync(desk, fields, error):
    """Is a sync that does not fit refused as Kafka does?"""
    member_id = settle(desk)
    right = {
        "group_id": "g",
        "generation_id": 1,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
    }

    assert error == desk.ask(api14_sync_group.API, SyncGroupRequest(**{**right, **fields})).error_code


@pytest.mark.parametrize("version", range(5))
def test_heartbeat(desk, version):
    """Is a heartbeat of a member welcome in every version, and one of a stranger not?"""
    member_id = settle(desk)
    errors = [
        desk.ask(
            api12_heartbeat.API, HeartbeatRequest(group_id="g", generation_id=1, member_id=each), version=version
        ).error_code
        for each in (member_id, "nobody")
    ]

    assert [0, ErrorCode.UNKNOWN_MEMBER_ID] == errors


@pytest.mark.parametrize("version", range(3))
def test_leave_one(desk, version):
    """Does the one member of an older leave request go, and is a stranger told so at the top?"""
    member_id = settle(desk)
    errors = [
        desk.ask(api13_leave_group.API, LeaveGroupRequest(group_id="g", member_id=each), version=version).error_code
        for each in (member_id, member_id)
    ]

    assert [0, ErrorCode.UNKNOWN_MEMBER_ID] == errors


@pytest.mark.parametrize("version", range(3, 6))
def test_leave_several(desk, version):
    """Are members that leave together answered one by one, in their order, an administrator's removal too?"""
    member_id = settle(desk, group_instance_id="box")
    leaving = (
        MemberIdentity(member_id="nobody"),
        MemberIdentity(member_id="x", group_instance_id="box"),
        MemberIdentity(member_id="", group_instance_id="box"),
        MemberIdentity(member_id=member_id),
    )
    answer = desk.ask(api13_leave_group.API, LeaveGroupRequest(group_id="g", members=leaving), version=version)

    assert 0 == answer.error_code
    assert [
        ("nobody", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("x", "box", ErrorCode.FENCED_INSTANCE_ID),
        ("", "box", 0),
        (member_id, None, ErrorCode.UNKNOWN_MEMBER_ID),
    ] == [(each.member_id, each.group_instance_id, each.error_code) for each in answer.members]


def test_leave_of_an_unknown_group(desk):
    """Are the members of a group that is not there unknown, and a group without a name an error?"""
    asked = (MemberIdentity(member_id="a"),)
    unknown = desk.ask(api13_leave_group.API, LeaveGroupRequest(group_id="x", members=asked))
    nameless = desk.ask(api13_leave_group.API, LeaveGroupRequest(group_id="", members=asked))

    assert (0, [ErrorCode.UNKNOWN_MEMBER_ID]) == (unknown.error_code, [each.error_code for each in unknown.members])
    assert (ErrorCode.INVALID_GROUP_ID, ()) == (nameless.error_code, nameless.members)


@pytest.mark.parametrize("version", range(7))
def test_describe(desk, version):
    """Is a group described with its members in every version, and one that is not there as Kafka does it?"""
    member_id = settle(desk, group_instance_id="box")
    request = DescribeGroupsRequest(groups=("g", "x"), include_authorized_operations=version >= 3)
    known, unknown = desk.ask(api15_describe_groups.API, request, version=version).groups

    assert (0, "g", "Stable", "consumer", "range") == (
        known.error_code,
        known.group_id,
        known.group_state,
        known.protocol_type,
        known.protocol_data,
    )
    assert [(member_id, "test", "/127.0.0.1", b"meta", b"mine")] == [
        (each.member_id, each.client_id, each.client_host, each.member_metadata, each.member_assignment)
        for each in known.members
    ]
    assert ["box" if version >= 4 else None] == [each.group_instance_id for each in known.members]
    assert ("x", "Dead", ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0) == (
        unknown.group_id,
        unknown.group_state,
        unknown.error_code,
    )
    assert (GROUP_OPERATIONS if version >= 3 else -(2**31)) == known.authorized_operations


def test_describe_without_a_name(desk):
    """Is the group without a name, which old clients can commit to, asked for like any other?"""
    (group,) = desk.ask(api15_describe_groups.API, DescribeGroupsRequest(groups=("",))).groups

    assert ErrorCode.GROUP_ID_NOT_FOUND == group.error_code


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ((), (), {"g", "h"}),
        (("stable",), (), {"g"}),
        (("Empty", "Dead"), (), {"h"}),
        ((), ("Classic",), {"g", "h"}),
        ((), ("consumer",), set()),
        ((), ("no such type",), set()),
        (("Stable",), ("classic",), {"g"}),
    ],
)
def test_list(desk, states, types, expected):
    """Are groups listed by state and kind, in any case of letters, and all without a filter?"""
    settle(desk)
    member_id = settle(desk, "h")
    desk.ask(api13_leave_group.API, LeaveGroupRequest(group_id="h", members=(MemberIdentity(member_id=member_id),)))
    answer = desk.ask(api16_list_groups.API, ListGroupsRequest(states_filter=states, types_filter=types))

    assert (0, expected) == (answer.error_code, {group.group_id for group in answer.groups})


@pytest.mark.parametrize("version", range(6))
def test_list_in_every_version(desk, version):
    """Does a list tell the state from version 4 on and the kind from version 5 on?"""
    settle(desk)
    (group,) = desk.ask(api16_list_groups.API, ListGroupsRequest(), version=version).groups

    assert ("g", "consumer") == (group.group_id, group.protocol_type)
    assert ("Stable" if version >= 4 else "") == group.group_state
    assert ("classic" if version >= 5 else "") == group.group_type


@pytest.mark.parametrize("version", range(3))
def test_delete(desk, version):
    """Can a group be deleted only when it is empty, and once?"""
    member_id = settle(desk)
    request = DeleteGroupsRequest(groups_names=("g", "x"))
    full = desk.ask(api42_delete_groups.API, request, version=version).results
    desk.ask(api13_leave_group.API, LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id=member_id),)))
    empty = desk.ask(api42_delete_groups.API, request, version=version).results

    assert [("g", ErrorCode.NON_EMPTY_GROUP), ("x", ErrorCode.GROUP_ID_NOT_FOUND)] == [
        (each.group_id, each.error_code) for each in full
    ]
    assert [0, ErrorCode.GROUP_ID_NOT_FOUND] == [each.error_code for each in empty]
    assert () == desk.ask(api16_list_groups.API, ListGroupsRequest()).groups


@pytest.mark.parametrize("lost", ["restart", "crash"])
def test_group_survives(desk, lost):
    """Does a stable group go on after the broker was restarted, or killed?"""
    member_id = settle(desk)
    getattr(desk, lost)()
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)

    assert 0 == desk.ask(api12_heartbeat.API, beat).error_code


def test_no_coordinator(open_desk):
    """Are clients that did not look for a coordinator told to, by every API?"""
    desk = open_desk(QUICK)
    gone = ErrorCode.COORDINATOR_NOT_AVAILABLE

    assert gone == desk.ask(api11_join_group.API, join_request()).error_code
    assert gone == desk.ask(api12_heartbeat.API, HeartbeatRequest(group_id="g")).error_code
    assert gone == desk.ask(api13_leave_group.API, LeaveGroupRequest(group_id="g")).error_code
    assert gone == desk.ask(api14_sync_group.API, SyncGroupRequest(group_id="g"), version=4).error_code
    assert gone == desk.ask(api15_describe_groups.API, DescribeGroupsRequest(groups=("g",))).groups[0].error_code
    assert gone == desk.ask(api42_delete_groups.API, DeleteGroupsRequest(groups_names=("g",))).results[0].error_code
    assert () == desk.ask(api16_list_groups.API, ListGroupsRequest()).groups


def test_while_the_log_is_read(desk):
    """While a coordinator reads its log, are members kept calm, lists refused and all others asked to try again?"""
    for shard in tuple(desk.broker.groups.shards):
        shard.close()
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    assert 0 == desk.ask(api12_heartbeat.API, HeartbeatRequest(group_id="g", member_id="a")).error_code
    assert loading == desk.ask(api16_list_groups.API, ListGroupsRequest()).error_code
    assert loading == desk.ask(api11_join_group.API, join_request()).error_code
