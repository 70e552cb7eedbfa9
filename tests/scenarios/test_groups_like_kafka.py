"""The same conversations of classic groups with Headrace and with Apache Kafka: both must give the same answers.

Member ids are chance; they are compared by the order in which they came up. Messages for people are left out.
"""

import pytest
from msgspec import to_builtins

from headrace.testing.cluster import Cluster
from headrace.testing.kafka_jars import PeerUnavailable
from headrace.testing.peer import KafkaPeer
from headrace.wire.messages.delete_groups import DeleteGroupsRequest
from headrace.wire.messages.describe_groups import DescribeGroupsRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headrace.wire.messages.list_groups import ListGroupsRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.slow]

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}
READS_T = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    """Headrace and Apache Kafka, each with a topic and a coordinator."""
    try:
        peer = KafkaPeer(tmp_path_factory.mktemp("peer") / "kafka", settings=SETTINGS)
        peer.command()
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    with peer, Cluster(SETTINGS) as cluster:
        for port in (cluster.port, peer.port):
            with WireClient(port) as client:
                client.create_topic("t", partitions=2)
                find = FindCoordinatorRequest(key_type=0, coordinator_keys=("any",))
                while client.ask("FindCoordinator", 4, find).coordinators[0].error_code:
                    pass
                fetch = OffsetFetchRequest(group_id="any", topics=None)
                while client.ask("OffsetFetch", 7, fetch).error_code:
                    pass
        yield cluster.port, peer.port


class Talk:
    """One conversation with one broker, and what was answered in a form that can be compared."""

    def __init__(self, port):
        self.clients = [WireClient(port, client_id=f"client-{number}") for number in range(3)]
        self.names = {}
        self.heard = []
        self.topic_id = self.clients[0].describe_topic("t").topic_id
        self.names[str(self.topic_id)] = "<topic>"

    def close(self):
        """Hang up."""
        for client in self.clients:
            client.close()

    def ask(self, api, version, request, client=0):
        """Ask and note the answer."""
        return self.hear(api, version, self.say(api, version, request, client), client)

    def say(self, api, version, request, client=0):
        """Ask only."""
        return self.clients[client].send(api, version, request)

    def hear(self, api, version, correlation_id, client=0):
        """Note the answer to what was asked before."""
        answer = self.clients[client].receive(api, version, correlation_id)
        if getattr(answer, "member_id", "") and api == "JoinGroup":
            self.names.setdefault(answer.member_id, f"<{len(self.names)}>")
        self.heard.append((api, version, self.comparable(to_builtins(answer))))
        return answer

    def comparable(self, value):
        """Names for what is chance; sorted where the order is."""
        if isinstance(value, dict):
            return {key: self.comparable(each) for key, each in value.items() if key != "error_message"}
        if isinstance(value, list | tuple):
            return sorted((self.comparable(each) for each in value), key=repr)
        return self.names.get(value, value) if isinstance(value, str) else value


def same(ports, conversation):
    """Have the same conversation with both; the answers must be the same, one by one."""
    heard = []
    for port in ports:
        talk = Talk(port)
        try:
            conversation(talk)
        finally:
            talk.close()
        heard.append(talk.heard)
    for ours, theirs in zip(*heard, strict=True):
        assert theirs == ours


def join_request(group_id, member_id="", **fields):
    fields.setdefault("protocols", (JoinGroupRequestProtocol(name="range", metadata=READS_T),))
    fields.setdefault("session_timeout_ms", 30_000)
    fields.setdefault("protocol_type", "consumer")
    return JoinGroupRequest(group_id=group_id, member_id=member_id, rebalance_timeout_ms=30_000, **fields)


def join(talk, group_id, *, version=9, client=0, **fields):
    """Join for good; the answer."""
    answer = talk.ask("JoinGroup", version, join_request(group_id, **fields), client)
    if answer.error_code == 79:
        answer = talk.ask("JoinGroup", version, join_request(group_id, answer.member_id, **fields), client)
    return answer


def sync_request(group_id, member_id, generation_id=1, **fields):
    fields.setdefault("protocol_type", "consumer")
    fields.setdefault("protocol_name", "range")
    return SyncGroupRequest(group_id=group_id, member_id=member_id, generation_id=generation_id, **fields)


def settle(talk, group_id, **fields):
    """One member alone, with an assignment; its id."""
    member_id = join(talk, group_id, **fields).member_id
    assignments = (SyncGroupRequestAssignment(member_id=member_id, assignment=b"all"),)
    protocol_type = fields.get("protocol_type", "consumer")
    request = sync_request(group_id, member_id, assignments=assignments, protocol_type=protocol_type)
    talk.ask("SyncGroup", 5, request)
    return member_id


def commit_request(talk, group_id, offsets, *, version, **fields):
    by_id = version >= 10
    partitions = tuple(
        OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=0 if version >= 6 else -1,
            committed_metadata="note",
        )
        for index, offset in offsets.items()
    )
    topic = OffsetCommitRequestTopic(
        name="" if by_id else "t",
        partitions=partitions,
        **({"topic_id": talk.topic_id} if by_id else {}),
    )
    return OffsetCommitRequest(group_id=group_id, topics=(topic,), **fields)


@pytest.mark.parametrize("version", range(10))
def test_life_of_a_member(ports, version):
    """Is a member that joins, syncs, lives and leaves answered the same, in every version of joining?"""

    def conversation(talk):
        group_id = f"life-{version}"
        member_id = join(talk, group_id, version=version).member_id
        talk.ask("DescribeGroups", 5, DescribeGroupsRequest(groups=(group_id,)))
        assignments = (SyncGroupRequestAssignment(member_id=member_id, assignment=b"all"),)
        talk.ask(
            "SyncGroup",
            3,
            sync_request(group_id, member_id, assignments=assignments, protocol_type=None, protocol_name=None),
        )
        talk.ask("Heartbeat", 4, HeartbeatRequest(group_id=group_id, member_id=member_id, generation_id=1))
        talk.ask(
            "DescribeGroups", 6, DescribeGroupsRequest(groups=(group_id, "nowhere"), include_authorized_operations=True)
        )
        talk.ask("LeaveGroup", 2, LeaveGroupRequest(group_id=group_id, member_id=member_id))
        talk.ask("Heartbeat", 0, HeartbeatRequest(group_id=group_id, member_id=member_id, generation_id=1))
        talk.ask("DescribeGroups", 3, DescribeGroupsRequest(groups=(group_id, "nowhere")))
        talk.ask("DeleteGroups", 2, DeleteGroupsRequest(groups_names=(group_id, "nowhere")))

    same(ports, conversation)


def test_refusals(ports):
    """Is everything that does not fit refused the same?"""

    def conversation(talk):
        for version in (0, 4, 7, 9):
            for fields in (
                {"group_id": ""},
                {"session_timeout_ms": 1},
                {"session_timeout_ms": 10_000_000},
                {"member_id": "nobody"},
                {"member_id": "nobody", "group_instance_id": "box"} if version >= 5 else {"member_id": "x"},
            ):
                talk.ask("JoinGroup", version, join_request(**{"group_id": "refused", **fields}))
        member_id = settle(talk, "refusals")
        for fields in (
            {"protocol_type": "connect"},
            {"protocols": (JoinGroupRequestProtocol(name="other", metadata=b""),)},
            {"member_id": member_id, "protocols": ()},
            {"member_id": member_id, "group_instance_id": "box"},
            {"member_id": "nobody"},
        ):
            talk.ask("JoinGroup", 9, join_request("refusals", **fields))
        for request in (
            sync_request("refusals", "nobody"),
            sync_request("refusals", member_id, 2),
            sync_request("refusals", member_id, protocol_name="other"),
            sync_request("refusals", member_id, protocol_type="other"),
            sync_request("refusals", member_id, protocol_type=None),
            sync_request("refusals", member_id, group_instance_id="box"),
            sync_request("nowhere", member_id),
            sync_request("", member_id),
            sync_request("refusals", member_id),
        ):
            talk.ask("SyncGroup", 5, request)
        for fields in (
            {"member_id": "nobody"},
            {"generation_id": 2},
            {"group_id": "nowhere"},
            {"group_id": ""},
            {"group_instance_id": "box"},
            {},
        ):
            right = {"group_id": "refusals", "member_id": member_id, "generation_id": 1}
            talk.ask("Heartbeat", 4, HeartbeatRequest(**{**right, **fields}))
        talk.ask("DescribeGroups", 6, DescribeGroupsRequest(groups=("",)))
        talk.ask("DeleteGroups", 2, DeleteGroupsRequest(groups_names=("refusals", "")))
        strangers = (MemberIdentity(member_id="nobody"), MemberIdentity(member_id="", group_instance_id="box"))
        for group_id in ("refusals", "nowhere", ""):
            talk.ask("LeaveGroup", 5, LeaveGroupRequest(group_id=group_id, members=strangers))

    same(ports, conversation)


def test_rebalances(ports):
    """Do two members go through rebalances with the same words?"""

    def conversation(talk):
        first = settle(talk, "pair")
        away = talk.ask("JoinGroup", 9, join_request("pair"), client=1)
        waiting = talk.say("JoinGroup", 9, join_request("pair", away.member_id), client=1)
        beat = HeartbeatRequest(group_id="pair", member_id=first, generation_id=1)
        while talk.clients[0].ask("Heartbeat", 4, beat).error_code == 0:
            pass
        talk.ask("Heartbeat", 4, beat)
        talk.ask("SyncGroup", 5, sync_request("pair", first))
        talk.ask("DescribeGroups", 5, DescribeGroupsRequest(groups=("pair",)), client=2)
        talk.ask("JoinGroup", 9, join_request("pair", first))
        second = talk.hear("JoinGroup", 9, waiting, client=1).member_id
        talk.ask("JoinGroup", 9, join_request("pair", second), client=1)
        talk.ask(
            "OffsetCommit",
            9,
            commit_request(talk, "pair", {0: 1}, version=9, member_id=second, generation_id_or_member_epoch=2),
            client=1,
        )
        early = talk.say("SyncGroup", 5, sync_request("pair", second, 2), client=1)
        assignments = tuple(
            SyncGroupRequestAssignment(member_id=each, assignment=each.encode()[:7]) for each in (first, second)
        )
        talk.ask("SyncGroup", 5, sync_request("pair", first, 2, assignments=assignments))
        talk.hear("SyncGroup", 5, early, client=1)
        talk.ask("JoinGroup", 9, join_request("pair", second), client=1)
        talk.ask("DescribeGroups", 5, DescribeGroupsRequest(groups=("pair",)))
        talk.ask(
            "LeaveGroup",
            5,
            LeaveGroupRequest(
                group_id="pair", members=(MemberIdentity(member_id=first), MemberIdentity(member_id="x"))
            ),
        )
        talk.ask("JoinGroup", 9, join_request("pair", second), client=1)

    same(ports, conversation)


@pytest.mark.parametrize("version", [5, 8, 9])
def test_static_members(ports, version):
    """Does a static member come back, fence its twin and leave with the same words?"""

    def conversation(talk):
        group_id = f"static-{version}"
        old = settle(talk, group_id, group_instance_id="box")
        new = talk.ask("JoinGroup", version, join_request(group_id, group_instance_id="box"), client=1).member_id
        talk.ask("SyncGroup", 5, sync_request(group_id, new, group_instance_id="box"), client=1)
        for member_id in (old, new):
            beat = HeartbeatRequest(group_id=group_id, member_id=member_id, generation_id=1, group_instance_id="box")
            talk.ask("Heartbeat", 4, beat)
            talk.ask("JoinGroup", version, join_request(group_id, member_id, group_instance_id="box"))
        talk.ask("DescribeGroups", 5, DescribeGroupsRequest(groups=(group_id,)))
        leaving = tuple(MemberIdentity(member_id=each, group_instance_id="box") for each in (old, "", new))
        talk.ask("LeaveGroup", 5, LeaveGroupRequest(group_id=group_id, members=leaving))

    same(ports, conversation)


@pytest.mark.parametrize("version", range(2, 11))
def test_offsets(ports, version):
    """Are offsets committed, fetched and deleted with the same words, in every version of committing?"""

    def conversation(talk):
        group_id = f"offsets-{version}"
        for fields in (
            {},
            {"generation_id_or_member_epoch": 1, "member_id": "nobody"},
        ):
            talk.ask("OffsetCommit", version, commit_request(talk, group_id, {0: 5, 7: 1}, version=version, **fields))
        talk.ask(
            "OffsetCommit",
            version,
            commit_request(
                talk, "nowhere", {0: 5}, version=version, generation_id_or_member_epoch=1, member_id="nobody"
            ),
        )
        for fetch_version in range(1, 8):
            topics = (
                OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1, 7)),
                OffsetFetchRequestTopic(name="x", partition_indexes=(0,)),
            )
            talk.ask("OffsetFetch", fetch_version, OffsetFetchRequest(group_id=group_id, topics=topics))
            if fetch_version >= 2:
                talk.ask("OffsetFetch", fetch_version, OffsetFetchRequest(group_id=group_id, topics=None))
        for fetch_version in range(8, 11):
            named = {"topic_id": talk.topic_id} if fetch_version >= 10 else {"name": "t"}
            topics = (OffsetFetchRequestTopics(partition_indexes=(0, 1), **named),)
            asked = tuple(
                OffsetFetchRequestGroup(group_id=each, topics=wanted)
                for each in (group_id, "nowhere")
                for wanted in (topics, None)
            )
            talk.ask("OffsetFetch", fetch_version, OffsetFetchRequest(groups=asked, require_stable=True))
        partitions = tuple(OffsetDeleteRequestPartition(partition_index=index) for index in (0, 1, 7))
        for group in (group_id, "nowhere", ""):
            topics = tuple(OffsetDeleteRequestTopic(name=name, partitions=partitions) for name in ("t", "x"))
            talk.ask("OffsetDelete", 0, OffsetDeleteRequest(group_id=group, topics=topics))
        talk.ask("OffsetFetch", 7, OffsetFetchRequest(group_id=group_id, topics=None))
        talk.ask("DeleteGroups", 1, DeleteGroupsRequest(groups_names=(group_id,)))

    same(ports, conversation)


def test_offsets_of_members(ports):
    """Are members' and strangers' commits to a stable group, and deletions, answered the same?"""

    def conversation(talk):
        member_id = settle(talk, "readers")
        for fields in (
            {"member_id": member_id, "generation_id_or_member_epoch": 1},
            {"member_id": member_id, "generation_id_or_member_epoch": 2},
            {"member_id": member_id},
            {"member_id": "nobody", "generation_id_or_member_epoch": 1},
            {"member_id": member_id, "generation_id_or_member_epoch": 1, "group_instance_id": "box"},
            {},
        ):
            talk.ask("OffsetCommit", 9, commit_request(talk, "readers", {0: 5}, version=9, **fields))
        topics = (OffsetDeleteRequestTopic(name="t", partitions=(OffsetDeleteRequestPartition(partition_index=0),)),)
        talk.ask("OffsetDelete", 0, OffsetDeleteRequest(group_id="readers", topics=topics))
        settle(talk, "workers", protocol_type="connect")
        talk.ask("OffsetDelete", 0, OffsetDeleteRequest(group_id="workers", topics=topics))
        for filters in ({"states_filter": ("Stable",)}, {"types_filter": ("consumer",)}, {"types_filter": ("no",)}):
            talk.ask("ListGroups", 5, ListGroupsRequest(**filters))

    same(ports, conversation)
