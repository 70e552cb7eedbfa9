"""A producer is told which records of its batch were bad, over the wire (KIP-467)."""

import pytest

from headrace.model.errors import ErrorCode
from headrace.records.build import NewRecord, build_batch


@pytest.mark.parametrize(("codec", "count"), [("none", 3), ("gzip", 3), ("none", 100)], ids=["at once", "gzip", "many"])
def test_bad_records_are_named(shared, wire, topic, codec, count):
    """Is a record without a key named in the answer, whether it was found at once or by a thread?"""
    client = wire(shared)
    client.create_topic(topic, cleanup_policy="compact")
    records = [NewRecord(1_700_000_000_000, b"k" if place != 1 else None, b"v") for place in range(count)]
    answer = client.produce(topic, bytes(build_batch(records, codec=codec)))

    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1]
    assert "key" in answer.record_errors[0].batch_index_error_message
    assert "record 1" in answer.error_message
    assert client.produce(topic, bytes(build_batch(records[:1], codec=codec))).record_errors == ()
