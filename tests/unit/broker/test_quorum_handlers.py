"""The quorum's APIs as handlers answer them: what goes to the core, and what is refused before."""

import asyncio
from types import SimpleNamespace
from uuid import UUID

import pytest
from msgspec.structs import replace

from headrace.broker.api import Call
from headrace.broker.handlers import (
    api52_vote,
    api53_begin_quorum_epoch,
    api54_end_quorum_epoch,
    api55_describe_quorum,
    api59_fetch_snapshot,
    api80_add_raft_voter,
    api81_remove_raft_voter,
    api82_update_raft_voter,
)
from headrace.broker.metadata_fetch import answer_fetch
from headrace.broker.refusals import Refusals
from headrace.model.errors import ErrorCode, KafkaError
from headrace.storage.memory_files import MemoryFiles
from headrace.wire.codec import decode_request, decode_response, encode_request, encode_response
from headrace.wire.header import RequestHeader
from headrace.wire.messages import (
    add_raft_voter,
    begin_quorum_epoch,
    describe_quorum,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from quorum_nodes import CLUSTER, Node, creation, static_voters

TOPIC = "__cluster_metadata"
DIRECTORY = UUID(int=12345)
FETCH = SimpleNamespace(key=1, high=18, handle=answer_fetch)


def one(module, *, prefix="Request", **facts):
    """The topics of a request about the one partition."""
    partition = getattr(module, f"{prefix}PartitionData")(**facts)
    return (getattr(module, f"{prefix}TopicData")(topic_name=TOPIC, partitions=(partition,)),)


VOTE = vote.VoteRequest(topics=one(vote, replica_epoch=9, replica_id=2, last_offset=100, last_offset_epoch=1))
BEGIN = begin_quorum_epoch.BeginQuorumEpochRequest(topics=one(begin_quorum_epoch, leader_id=2, leader_epoch=9))
END = end_quorum_epoch.EndQuorumEpochRequest(topics=one(end_quorum_epoch, leader_id=2, leader_epoch=0))
DESCRIBE = describe_quorum.DescribeQuorumRequest(topics=one(describe_quorum))
SNAPSHOT = fetch_snapshot.FetchSnapshotRequest(
    topics=(
        fetch_snapshot.RequestTopicSnapshot(
            name=TOPIC, partitions=(fetch_snapshot.RequestPartitionSnapshot(current_leader_epoch=1),)
        ),
    )
)
ADD = add_raft_voter.AddRaftVoterRequest(
    cluster_id=None,
    voter_id=2,
    voter_directory_id=DIRECTORY,
    listeners=(add_raft_voter.Listener(name="CONTROLLER", host="two", port=9093),),
)
REMOVE = remove_raft_voter.RemoveRaftVoterRequest(cluster_id=None, voter_id=1, voter_directory_id=DIRECTORY)
UPDATE = update_raft_voter.UpdateRaftVoterRequest(
    cluster_id=None,
    current_leader_epoch=1,
    voter_id=1,
    voter_directory_id=DIRECTORY,
    listeners=(update_raft_voter.Listener(name="CONTROLLER", host="one", port=9093),),
    k_raft_version_feature=update_raft_voter.KRaftVersionFeature(max_supported_version=1),
)
FETCH_REQUEST = fetch.FetchRequest(
    replica_state=fetch.ReplicaState(replica_id=9),
    topics=(
        fetch.FetchTopic(
            topic_id=UUID(int=1),
            topic=TOPIC,
            partitions=(
                fetch.FetchPartition(current_leader_epoch=1, last_fetched_epoch=0, partition_max_bytes=1 << 20),
            ),
        ),
    ),
)
ALL = [
    (api52_vote.API, VOTE),
    (api53_begin_quorum_epoch.API, BEGIN),
    (api54_end_quorum_epoch.API, END),
    (api59_fetch_snapshot.API, SNAPSHOT),
    (api80_add_raft_voter.API, ADD),
    (api81_remove_raft_voter.API, REMOVE),
    (api82_update_raft_voter.API, UPDATE),
    (FETCH, FETCH_REQUEST),
]


async def ask(node, api, request, *, version=None):
    """What a node that speaks `version` gets for an answer."""
    version = api.high if version is None else version
    broker = SimpleNamespace(quorum=node.quorum, refusals=Refusals(lambda: 0))
    call = Call(broker, SimpleNamespace(peer=("somewhere", 1)), RequestHeader(api.key, version, 1, "test", 0))
    sent = decode_request(api.key, version, memoryview(encode_request(api.key, version, request)))
    answer = await api.handle(call, sent)
    return decode_response(api.key, version, memoryview(encode_response(api.key, version, answer)))


def scene(play):
    """Play a scene with a node that leads a quorum of its own, in epoch 1."""

    async def story():
        node = Node(1, MemoryFiles(), "/data")
        node.port = 9093
        await node.start(static_voters([node]))
        try:
            await play(node)
        finally:
            if node.quorum.fault is None:
                await node.stop()
            node.close()

    asyncio.run(story())


def error_of(answer):
    """The error an answer tells, at the top or of its partition."""
    if answer.error_code:
        return ErrorCode(answer.error_code)
    topics = getattr(answer, "topics", None) or getattr(answer, "responses", None)
    return ErrorCode(topics[0].partitions[0].error_code) if topics else ErrorCode.NONE


@pytest.mark.parametrize(("api", "request_"), ALL, ids=[str(api.key) for api, _ in ALL])
def test_another_cluster(api, request_):
    """Is a request of another cluster refused as a whole, with nothing changed?"""

    async def play(node):
        answer = await ask(node, api, replace(request_, cluster_id="another"))
        assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
        assert (1, 1) == (node.quorum.leader_id, node.quorum.leader_epoch)

    scene(play)


@pytest.mark.parametrize(
    ("api", "request_"),
    [(api, request) for api, request in ALL if api.key in {1, 52, 53, 54}],
    ids=["52", "53", "54", "1"],
)
def test_other_partitions(api, request_):
    """Is a request about something else than the metadata INVALID_REQUEST as a whole, as in Kafka?"""

    async def play(node):
        (topic,) = request_.topics
        for topics in ((), (topic, topic), (replace(topic, partitions=()),)):
            answer = await ask(node, api, replace(request_, topics=topics))
            assert answer.error_code == ErrorCode.INVALID_REQUEST

    scene(play)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_vote(version):
    """Does a leader that is asked for a vote in a later epoch give up the lead, and say so?"""

    async def play(node):
        answer = await ask(node, api52_vote.API, replace(VOTE, cluster_id=CLUSTER), version=version)
        (partition,) = answer.topics[0].partitions
        assert (0, True, 9) == (partition.error_code, partition.vote_granted, partition.leader_epoch)
        assert 9 == node.quorum.leader_epoch

    scene(play)


def test_vote_with_a_shorter_log():
    """Is a candidate refused that lacks what is here?"""

    async def play(node):
        await node.quorum.run(creation("topic"))
        topics = one(vote, replica_epoch=9, replica_id=2, last_offset=1, last_offset_epoch=1)
        answer = await ask(node, api52_vote.API, replace(VOTE, topics=topics))
        assert not answer.topics[0].partitions[0].vote_granted

    scene(play)


def test_vote_for_another_voter():
    """Is a vote that is meant for somebody else INVALID_VOTER_KEY?"""

    async def play(node):
        answer = await ask(node, api52_vote.API, replace(VOTE, voter_id=7))
        assert error_of(answer) is ErrorCode.INVALID_VOTER_KEY

    scene(play)


@pytest.mark.parametrize("version", [0, 1])
def test_begin(version):
    """Does a node follow a leader that presents itself in a later epoch?"""

    async def play(node):
        listener = begin_quorum_epoch.LeaderEndpoint(name="CONTROLLER", host="127.0.0.1", port=1)
        answer = await ask(
            node, api53_begin_quorum_epoch.API, replace(BEGIN, leader_endpoints=(listener,)), version=version
        )
        assert error_of(answer) is ErrorCode.NONE
        assert 9 == node.quorum.leader_epoch
        assert not node.quorum.is_active

    scene(play)


@pytest.mark.parametrize("version", [0, 1])
def test_end(version):
    """Is the end of an epoch that is over refused, with the leader there is?"""

    async def play(node):
        answer = await ask(node, api54_end_quorum_epoch.API, END, version=version)
        (partition,) = answer.topics[0].partitions
        assert (ErrorCode.FENCED_LEADER_EPOCH, 1, 1) == (
            partition.error_code,
            partition.leader_id,
            partition.leader_epoch,
        )
        if version:
            assert [(1, 9093)] == [(found.node_id, found.port) for found in answer.node_endpoints]

    scene(play)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_describe(version):
    """Does the leader tell of itself, with today's time, and are other partitions unknown?"""

    async def play(node):
        answer = await ask(node, api55_describe_quorum.API, DESCRIBE, version=version)
        (partition,) = answer.topics[0].partitions
        assert (0, 1, 1) == (partition.error_code, partition.leader_id, partition.high_watermark)
        (voter,) = partition.current_voters
        assert (1, 1) == (voter.replica_id, voter.log_end_offset)
        if version:
            assert voter.last_fetch_timestamp > 1_600_000_000_000
        wrong = replace(DESCRIBE, topics=(replace(DESCRIBE.topics[0], topic_name="another"),))
        unknown = await ask(node, api55_describe_quorum.API, wrong, version=version)
        assert "another" == unknown.topics[0].topic_name
        assert error_of(unknown) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    scene(play)


def test_describe_elsewhere():
    """Does a node that does not lead say so, of the partition?"""

    async def play(node):
        await ask(node, api52_vote.API, VOTE)
        answer = await ask(node, api55_describe_quorum.API, DESCRIBE)
        assert error_of(answer) is ErrorCode.NOT_LEADER_OR_FOLLOWER

    scene(play)


@pytest.mark.parametrize("version", [0, 1])
def test_fetch_snapshot(version):
    """Is a snapshot handed out, and are those that are not there, and other partitions, refused?"""

    async def play(node):
        await node.quorum.run(creation("topic"))
        await node.quorum.snapshot()
        (found,) = node.quorum._snapshots.ids()
        (topic,) = SNAPSHOT.topics
        wanted = replace(
            topic.partitions[0],
            snapshot_id=fetch_snapshot.SnapshotId(end_offset=found.offset, epoch=found.epoch),
        )
        request = replace(SNAPSHOT, topics=(replace(topic, partitions=(wanted,)),))
        answer = await ask(node, api59_fetch_snapshot.API, request, version=version)
        (partition,) = answer.topics[0].partitions
        assert (0, partition.size) == (partition.error_code, len(partition.unaligned_records))

        assert ErrorCode.SNAPSHOT_NOT_FOUND is error_of(
            await ask(node, api59_fetch_snapshot.API, SNAPSHOT, version=version)
        )
        another = replace(SNAPSHOT, topics=(replace(topic, name="another"),))
        unknown = await ask(node, api59_fetch_snapshot.API, another, version=version)
        assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION is error_of(unknown)
        nothing = await ask(node, api59_fetch_snapshot.API, replace(SNAPSHOT, topics=()), version=version)
        assert nothing.error_code == ErrorCode.INVALID_REQUEST

    scene(play)


@pytest.mark.parametrize("version", [12, 13, 17, 18])
def test_fetch(version):
    """Does a fetch bring the log's bytes, the high watermark, and where the leader is?"""

    async def play(node):
        await node.quorum.run(creation("topic"))
        answer = await ask(node, FETCH, FETCH_REQUEST, version=version)
        (partition,) = answer.responses[0].partitions
        assert bytes(partition.records) == node.quorum._log.find(0, 1 << 20).load()
        assert (4, 1, 1) == (
            partition.high_watermark,
            partition.current_leader.leader_id,
            partition.current_leader.leader_epoch,
        )

    scene(play)


def test_fetch_in_another_epoch():
    """Is a fetch of an epoch that is over, or not yet there, refused with the leader there is?"""

    async def play(node):
        for epoch, error in ((0, ErrorCode.FENCED_LEADER_EPOCH), (9, ErrorCode.UNKNOWN_LEADER_EPOCH)):
            (topic,) = FETCH_REQUEST.topics
            wanted = replace(topic.partitions[0], current_leader_epoch=epoch)
            request = replace(FETCH_REQUEST, topics=(replace(topic, partitions=(wanted,)),))
            assert error is error_of(await ask(node, FETCH, request))

    scene(play)


def test_voter_changes_where_the_settings_name_the_voters():
    """Are changes of the voters refused where the log does not name them, and nonsense before that?"""

    async def play(node):
        for api, request in ((api80_add_raft_voter.API, ADD), (api81_remove_raft_voter.API, REMOVE)):
            assert ErrorCode.UNSUPPORTED_VERSION == (await ask(node, api, request)).error_code
            nobody = await ask(node, api, replace(request, voter_directory_id=UUID(int=0)))
            assert nobody.error_code == ErrorCode.INVALID_REQUEST
            assert nobody.error_message.endswith("voter request didn't include a valid voter")
        nowhere = await ask(node, api80_add_raft_voter.API, replace(ADD, listeners=()))
        assert "the default listener CONTROLLER" in nowhere.error_message

    scene(play)


def test_update_voter():
    """Does every answer to an update name the leader, and is nonsense refused?"""

    async def play(node):
        for change, error in (
            ({}, ErrorCode.UNSUPPORTED_VERSION),
            ({"listeners": ()}, ErrorCode.INVALID_REQUEST),
            ({"voter_id": -1}, ErrorCode.INVALID_REQUEST),
            ({"current_leader_epoch": 7}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ):
            answer = await ask(node, api82_update_raft_voter.API, replace(UPDATE, **change))
            assert error == answer.error_code
            assert (1, 1, 9093) == (
                answer.current_leader.leader_id,
                answer.current_leader.leader_epoch,
                answer.current_leader.port,
            )

    scene(play)


def test_a_broken_quorum():
    """Is every request refused with the error of the storage once the log has failed?"""

    async def play(node):
        node.files.fail_next("fsync", path_contains=".log")
        with pytest.raises(KafkaError):
            await node.quorum.run(creation("topic"))
        for api, request in (*ALL, (api55_describe_quorum.API, DESCRIBE)):
            answer = await ask(node, api, request)
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR, api.key

    scene(play)
