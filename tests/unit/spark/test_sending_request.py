"""Produce requests written in pieces: joined, they are what the codec would have made."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.outbox import Batch
from headrace.spark.produce_request import LAST, PRODUCE, produce_pieces
from headrace.wire.codec import decode_request, encode_request

places = st.tuples(st.sampled_from(["a", "topic-b", "ü"]), st.integers(0, 2**31 - 1))


@given(
    st.lists(st.tuples(places, st.binary(min_size=1, max_size=300)), unique_by=lambda one: one[0], max_size=8),
    st.integers(3, LAST),
    st.one_of(st.none(), st.text(max_size=40)),
)
def test_pieces_are_a_request(sent, version, transactional_id):
    """In every version: does the request have these batches, byte for byte as the codec writes it?"""
    batches = [Batch(place=place, data=data, count=1, turn=(0,)) for place, data in sent]
    body = b"".join(
        produce_pieces(batches, version=version, transactional_id=transactional_id, acks=-1, timeout_ms=30_000)
    )
    found = decode_request(PRODUCE, version, memoryview(body))

    assert body == encode_request(PRODUCE, version, found)
    assert (transactional_id, -1, 30_000) == (found.transactional_id, found.acks, found.timeout_ms)
    assert dict(sent) == {
        (topic.name, one.index): bytes(one.records) for topic in found.topic_data for one in topic.partition_data
    }
