"""Markers on their way to leaders here and elsewhere, with the other brokers played by the test."""

import asyncio
from types import SimpleNamespace

import pytest

from headrace.broker.coordinators import marker_post
from headrace.broker.coordinators.marker_post import MarkerPost
from headrace.broker.coordinators.markers import Marker
from headrace.model.errors import ErrorCode
from headrace.net.link import LinkBroken
from headrace.wire.codec import decode_request, decode_response, encode_request, encode_response
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

HERE = 1
MARKER = Marker(producer_id=7, producer_epoch=3, commit=True, coordinator_epoch=5, transaction_version=2)


class Others:
    """The other brokers: what they were asked, and what they say."""

    def __init__(self):
        self.asked = []
        self.codes = {}
        self.gone = set()

    async def ask(self, node_id, api_key, request, *, purpose):
        """Answer through the wire's bytes, in the order of the producers."""
        sent = decode_request(api_key, 2, memoryview(encode_request(api_key, 2, request)), 0)
        self.asked.append((node_id, api_key, sent, purpose))
        if node_id in self.gone:
            raise LinkBroken("nobody there")
        results = tuple(
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(
                            WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=int(self.codes.get((topic.name, index), 0))
                            )
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in sorted(sent.markers, key=lambda one: -one.producer_id)
        )
        answer = encode_response(api_key, 2, WriteTxnMarkersResponse(markers=results))
        return decode_response(api_key, 2, memoryview(bytes(answer)), 0)


@pytest.fixture
def others():
    """Brokers that write every marker."""
    return Others()


def post_at(others, leaders, monkeypatch):
    """The post of broker 1, where partitions of `t` are led by these brokers; what it writes itself is noted."""
    states = [SimpleNamespace(leader=leader) for leader in leaders]
    topics = {"t": SimpleNamespace(partitions=states)}
    here = []

    async def write(broker, marker, places):
        here.append((marker, list(places)))
        return dict.fromkeys(places, ErrorCode.NONE)

    monkeypatch.setattr(marker_post, "write_markers", write)
    broker = SimpleNamespace(
        node_id=HERE, metadata=SimpleNamespace(topics=topics), peers=others, spawn=asyncio.ensure_future
    )
    return MarkerPost(broker), here, states


def test_each_leader_gets_its_partitions(others, monkeypatch):
    """Is a marker written where each partition is led, one request for each broker, with all that fences it?"""

    async def run():
        post, here, _ = post_at(others, [HERE, 2, 3, 2], monkeypatch)
        return here, await post.write(MARKER, [("t", index) for index in range(4)])

    here, codes = asyncio.run(run())

    assert codes == {("t", index): ErrorCode.NONE for index in range(4)}
    assert here == [(MARKER, [("t", 0)])]
    (second, key, request, purpose), (third, *_) = others.asked
    assert (second, third, key, purpose) == (2, 3, 27, "markers")
    (marker,) = request.markers
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (7, 3, True)
    assert (marker.coordinator_epoch, marker.transaction_version) == (5, 2)
    assert [(topic.name, topic.partition_indexes) for topic in marker.topics] == [("t", (1, 3))]


def test_transactions_share_a_request(others, monkeypatch):
    """Do markers of several transactions go together, each answered with its own, whatever the answer's order?"""

    async def run():
        post, _, _ = post_at(others, [2, 2], monkeypatch)
        others.codes = {("t", 1): ErrorCode.NOT_LEADER_OR_FOLLOWER}
        second = Marker(producer_id=8, producer_epoch=0, commit=False, coordinator_epoch=5, transaction_version=2)
        return await asyncio.gather(post.write(MARKER, [("t", 0)]), post.write(second, [("t", 1)]))

    first, second = asyncio.run(run())

    assert (first, second) == ({("t", 0): ErrorCode.NONE}, {("t", 1): ErrorCode.NOT_LEADER_OR_FOLLOWER})
    assert len(others.asked) == 1


def test_a_producer_is_in_a_request_once(others, monkeypatch):
    """Are two markers of one producer, of a coordinator and its successor, not confused?"""

    async def run():
        post, _, _ = post_at(others, [2, 2], monkeypatch)
        await asyncio.gather(post.write(MARKER, [("t", 0)]), post.write(MARKER, [("t", 1)]))

    asyncio.run(run())

    assert [len(request.markers) for _, _, request, _ in others.asked] == [1, 1]


def test_partitions_that_cannot_be_reached(others, monkeypatch):
    """Is each partition told apart whose leader is gone, or that has none, so that it is tried again?"""

    async def run():
        post, _, states = post_at(others, [2, -1, 3], monkeypatch)
        others.gone = {2}
        first = await post.write(MARKER, [("t", index) for index in range(3)])
        states[0].leader = 3
        return first, await post.write(MARKER, [("t", 0)])

    first, second = asyncio.run(run())

    assert first == {
        ("t", 0): ErrorCode.NETWORK_EXCEPTION,
        ("t", 1): ErrorCode.LEADER_NOT_AVAILABLE,
        ("t", 2): ErrorCode.NONE,
    }
    assert second == {("t", 0): ErrorCode.NONE}
