"""The quorum's messages in Kafka's form and back, in every version."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from headrace.coordination.quorum import (
    describe_messages,
    epoch_messages,
    fetch_messages,
    vote_messages,
    voter_messages,
)
from headrace.coordination.quorum.control_batches import voters_record
from headrace.cores.raft import messages as core
from headrace.cores.raft.log_mirror import OffsetAndEpoch
from headrace.cores.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from headrace.model.errors import ErrorCode
from headrace.records.build import NewRecord, build_batch
from headrace.wire.apis import APIS
from headrace.wire.codec import decode_request, decode_response, encode_request, encode_response
from headrace.wire.control_records import build_control_batch
from headrace.wire.messages import api_versions, fetch
from headrace.wire.messages.add_raft_voter import AddRaftVoterRequest
from headrace.wire.messages.add_raft_voter import Listener as AddListener
from headrace.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

LISTENER = "CONTROLLER"
HERE = (Endpoint(LISTENER, "host", 9093),)
ONE, TWO = ReplicaKey(1, UUID(int=111)), ReplicaKey(2, UUID(int=222))
LEADER = {"leader_id": 2, "epoch": 7, "endpoints": HERE}
VOTERS = VoterSet([Voter(ONE, HERE)])
BATCHES = (
    bytes(build_batch([NewRecord(1, None, b"a"), NewRecord(1, None, b"b")], base_offset=40, leader_epoch=6)),
    bytes(build_control_batch([voters_record(VOTERS)], timestamp_ms=1, base_offset=42, leader_epoch=7)),
)

REQUESTS = [
    (
        52,
        core.VoteRequest(
            cluster_id="c", voter=TWO, epoch=7, candidate=ONE, last_offset=42, last_epoch=6, pre_vote=True
        ),
        vote_messages.request_to_wire,
        vote_messages.request_from_wire,
    ),
    (
        53,
        core.BeginQuorumEpochRequest(cluster_id="c", voter=TWO, leader_id=1, epoch=7, endpoints=HERE),
        epoch_messages.begin_request_to_wire,
        epoch_messages.begin_request_from_wire,
    ),
    (
        54,
        core.EndQuorumEpochRequest(cluster_id="c", leader_id=1, epoch=7, preferred=(TWO, ONE), endpoints=HERE),
        epoch_messages.end_request_to_wire,
        epoch_messages.end_request_from_wire,
    ),
    (
        1,
        core.FetchRequest(
            cluster_id="c", replica=ONE, epoch=7, fetch_offset=42, last_epoch=6, max_wait_ms=500, high_watermark=40
        ),
        lambda request: fetch_messages.fetch_request_to_wire(request, 1000),
        lambda message: fetch_messages.fetch_request_from_wire(message, 18),
    ),
    (
        59,
        core.FetchSnapshotRequest(
            cluster_id="c", replica=ONE, epoch=7, snapshot_id=OffsetAndEpoch(42, 6), position=10, max_bytes=99
        ),
        fetch_messages.snapshot_request_to_wire,
        fetch_messages.snapshot_request_from_wire,
    ),
    (
        82,
        core.UpdateVoterRequest(cluster_id="c", voter=ONE, epoch=7, endpoints=HERE, kraft_versions=(0, 1)),
        voter_messages.update_request_to_wire,
        voter_messages.update_request_from_wire,
    ),
]
RESPONSES = [
    (
        52,
        core.VoteResponse(granted=True, **LEADER),
        vote_messages.response_to_wire,
        vote_messages.response_from_wire,
    ),
    (
        53,
        core.BeginQuorumEpochResponse(**LEADER),
        epoch_messages.begin_response_to_wire,
        epoch_messages.begin_response_from_wire,
    ),
    (
        54,
        core.EndQuorumEpochResponse(**LEADER),
        epoch_messages.end_response_to_wire,
        epoch_messages.end_response_from_wire,
    ),
    (
        1,
        core.FetchResponse(high_watermark=42, log_start_offset=3, **LEADER),
        fetch_messages.fetch_response_to_wire,
        fetch_messages.fetch_response_from_wire,
    ),
    (
        59,
        core.FetchSnapshotResponse(snapshot_id=OffsetAndEpoch(42, 6), size=100, position=10, data=b"piece", **LEADER),
        fetch_messages.snapshot_response_to_wire,
        fetch_messages.snapshot_response_from_wire,
    ),
    (
        82,
        core.UpdateVoterResponse(**LEADER),
        voter_messages.update_response_to_wire,
        voter_messages.update_response_from_wire,
    ),
]


def over_the_wire(api_key, version, message):
    """A request as it arrives."""
    return decode_request(api_key, version, memoryview(encode_request(api_key, version, message)))


def back_over_the_wire(api_key, version, message):
    """A response as it arrives."""
    return decode_response(api_key, version, memoryview(encode_response(api_key, version, message)))


@pytest.mark.parametrize(
    ("api_key", "request_", "to_wire", "from_wire"), REQUESTS, ids=lambda one: str(one) if isinstance(one, int) else ""
)
def test_requests(api_key, request_, to_wire, from_wire):
    """Does each request arrive as it was sent, in the newest version?"""
    version = APIS[api_key].version_last

    assert request_ == from_wire(over_the_wire(api_key, version, to_wire(request_)))


@pytest.mark.parametrize(
    ("api_key", "response", "to_wire", "from_wire"), RESPONSES, ids=lambda one: str(one) if isinstance(one, int) else ""
)
def test_responses(api_key, response, to_wire, from_wire):
    """Does each response arrive as it was sent, in the newest version, errors of the partition included?"""
    version = APIS[api_key].version_last

    for error in (ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH):
        told = replace(response, error=error)
        assert told == from_wire(back_over_the_wire(api_key, version, to_wire(told, LISTENER)), LISTENER)


@pytest.mark.parametrize(
    ("api_key", "response", "to_wire", "from_wire"),
    RESPONSES[:5],
    ids=lambda one: str(one) if isinstance(one, int) else "",
)
def test_another_cluster_is_told_of_the_whole_request(api_key, response, to_wire, from_wire):
    """Is the error about the cluster told at the top, as Kafka does, and understood there?"""
    wrong = to_wire(replace(response, error=ErrorCode.INCONSISTENT_CLUSTER_ID), LISTENER)

    assert wrong.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    version = APIS[api_key].version_last
    understood = from_wire(back_over_the_wire(api_key, version, wrong), LISTENER)
    assert understood.error is ErrorCode.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize(
    ("api_key", "request_", "to_wire", "from_wire"),
    REQUESTS[:3],
    ids=lambda one: str(one) if isinstance(one, int) else "",
)
def test_older_requests(api_key, request_, to_wire, from_wire):
    """Is the oldest version understood, with nobody in particular meant and no directories?"""
    understood = from_wire(over_the_wire(api_key, 0, to_wire(request_)))

    assert request_.epoch == understood.epoch
    assert getattr(understood, "voter", None) is None
    if api_key == 54:
        assert (ReplicaKey(2), ReplicaKey(1)) == understood.preferred


@pytest.mark.parametrize("version", range(12, 19))
def test_fetches_of_all_versions(version):
    """Is a replica known by its id in every version, and its topic by name or by id?"""
    message = replace(REQUESTS[3][2](REQUESTS[3][1]), replica_id=1)

    understood = fetch_messages.fetch_request_from_wire(over_the_wire(1, version, message), version)

    assert understood.replica == (ONE if version >= 17 else ReplicaKey(1))
    assert understood.high_watermark == (40 if version >= 18 else core.HIGH_WATERMARK_UNTOLD)


def test_other_partitions_are_not_ours():
    """Is a request about anything but the one partition of the metadata told apart?"""
    for (api_key, request, to_wire, from_wire), bad in zip(REQUESTS[:5], [0, 1, 2, 1, 0], strict=True):
        message = to_wire(request)
        (topic,) = message.topics
        (partition,) = topic.partitions
        name = "partition" if hasattr(partition, "partition") else "partition_index"
        wrong = [
            replace(message, topics=()),
            replace(message, topics=(topic, topic)),
            replace(message, topics=(replace(topic, partitions=(replace(partition, **{name: 1}),)),)),
        ]
        assert from_wire(wrong[bad]) is None, api_key
        assert [None] * 3 == [from_wire(one) for one in wrong]


def test_fetched_batches():
    """Do records arrive as batches with their offsets, epochs and voters, the bytes unchanged?"""
    sent = core.FetchResponse(batches=(core.Batch(40, 3, 7, None, b"".join(BATCHES)),), **LEADER)

    received = back_over_the_wire(1, 18, fetch_messages.fetch_response_to_wire(sent, LISTENER))
    first, second = fetch_messages.fetch_response_from_wire(received, LISTENER).batches

    assert (40, 2, 6, None) == (first.base_offset, first.count, first.epoch, first.voters)
    assert (42, 1, 7, VOTERS) == (second.base_offset, second.count, second.epoch, second.voters)
    assert BATCHES == (bytes(first.records), bytes(second.records))


def test_damaged_records_are_no_answer():
    """Is an answer whose records were harmed on the way thrown away as a whole?"""
    harmed = bytearray(b"".join(BATCHES))
    harmed[100] ^= 1
    sent = core.FetchResponse(batches=(core.Batch(40, 3, 7, None, bytes(harmed)),), **LEADER)

    received = back_over_the_wire(1, 18, fetch_messages.fetch_response_to_wire(sent, LISTENER))

    assert fetch_messages.fetch_response_from_wire(received, LISTENER) is None


def test_diverging_and_behind():
    """Do the two other kinds of answers to a fetch arrive?"""
    for facts in ({"diverging": OffsetAndEpoch(5, 2)}, {"snapshot_id": OffsetAndEpoch(9, 3)}):
        sent = core.FetchResponse(**facts, **LEADER)
        received = back_over_the_wire(1, 18, fetch_messages.fetch_response_to_wire(sent, LISTENER))
        assert sent == fetch_messages.fetch_response_from_wire(received, LISTENER)


def test_answers_that_make_no_sense():
    """Is an answer without the partition none, and one with an error of later days an unknown one?"""
    assert fetch_messages.fetch_response_from_wire(fetch.FetchResponse(), LISTENER) is None
    told = fetch_messages.fetch_response_from_wire(fetch.FetchResponse(error_code=9999), LISTENER)
    assert told.error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_describing():
    """Are offsets, times of day, directories and endpoints of every replica told?"""
    voter = core.ReplicaStatus(ONE, 42, 1000, 900, HERE)
    observer = core.ReplicaStatus(TWO, 41, -1, -1)
    response = core.DescribeQuorumResponse(high_watermark=40, voters=(voter,), observers=(observer,), **LEADER)

    wire = back_over_the_wire(55, 2, describe_messages.response_to_wire(response, lambda ms: ms + 1_000_000))

    (partition,) = wire.topics[0].partitions
    (seen,) = partition.current_voters
    assert (1, ONE.directory_id, 42, 1_001_000, 1_000_900) == (
        seen.replica_id,
        seen.replica_directory_id,
        seen.log_end_offset,
        seen.last_fetch_timestamp,
        seen.last_caught_up_timestamp,
    )
    assert [-1] == [one.last_fetch_timestamp for one in partition.observers]
    assert ("host", 9093) == (wire.nodes[0].listeners[0].host, wire.nodes[0].listeners[0].port)
    assert describe_messages.high_watermark_of(wire) == 40


def test_voter_changes():
    """Is it understood who is to be added or removed?"""
    added = voter_messages.add_request_from_wire(
        over_the_wire(
            80,
            1,
            AddRaftVoterRequest(
                cluster_id="c",
                timeout_ms=5,
                voter_id=1,
                voter_directory_id=ONE.directory_id,
                listeners=(AddListener(name=LISTENER, host="host", port=9093),),
                ack_when_committed=False,
            ),
        )
    )
    removed = voter_messages.remove_request_from_wire(
        over_the_wire(81, 0, RemoveRaftVoterRequest(cluster_id=None, voter_id=2, voter_directory_id=TWO.directory_id))
    )

    assert added == core.AddVoterRequest(
        cluster_id="c", voter=ONE, endpoints=HERE, timeout_ms=5, ack_when_committed=False
    )
    assert removed == core.RemoveVoterRequest(cluster_id=None, voter=TWO)


def test_versions_of_a_new_voter():
    """Is `kraft.version` found among a node's features, and taken for 0 where it is not named?"""
    feature = api_versions.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
    named = api_versions.ApiVersionsResponse(supported_features=(feature,))

    assert voter_messages.versions_response_from_wire(named, LISTENER).kraft_versions == (0, 1)
    unnamed = voter_messages.versions_response_from_wire(api_versions.ApiVersionsResponse(), LISTENER)
    assert unnamed.kraft_versions == (0, 0)
    assert over_the_wire(18, 4, voter_messages.versions_request_to_wire(core.KRaftVersionsRequest()))
