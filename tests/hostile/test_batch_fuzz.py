"""Batches meant to harm: right CRC, wrong everything else.

Whatever bytes a client sends, the broker answers with a Kafka error or takes them, and whatever it takes, its own
walkers survive.
"""

import contextlib
import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.errors import KafkaError
from headrace.model.log_config import LogConfig
from headrace.records.batch import (
    HEADER,
    HEADER_BYTES,
    MAGIC,
    BatchHeader,
    CorruptBatch,
    check_batch,
    seal,
    split_batches,
)
from headrace.records.build import NewRecord, assemble, build_batch
from headrace.records.compression import CODEC_NAMES
from headrace.records.control import read_end_marker
from headrace.records.produced import check_produced, deep_check, needs_deep_check
from headrace.records.walk import walk

NOW = 1_700_000_000_000
CAP = 200_000
TOPICS = [
    LogConfig(max_decompressed_bytes=CAP),
    LogConfig(max_decompressed_bytes=CAP, cleanup_compact=True),
    LogConfig(max_decompressed_bytes=CAP, compression_type="zstd"),
    LogConfig(max_decompressed_bytes=CAP, message_timestamp_before_max_ms=1_000),
    LogConfig(max_decompressed_bytes=CAP, message_timestamp_log_append=True, compression_type="uncompressed"),
]

edges = st.sampled_from(
    [0, 1, -1, 2, 5, 48, 61, 127, 128, 2**15 - 1, -(2**15), 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
)


def fitting(bits: int) -> st.SearchStrategy[int]:
    """Numbers of a field's width, mostly at its edges."""
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return edges.filter(lambda value: low <= value <= high) | st.integers(low, high)


wild_headers = st.builds(
    BatchHeader,
    base_offset=st.just(0) | fitting(64),
    batch_length=fitting(32),
    leader_epoch=fitting(32),
    magic=st.sampled_from([MAGIC, MAGIC, MAGIC, 0, 1, 3, -1]),
    crc=st.integers(0, 2**32 - 1),
    attributes=st.integers(0, 7) | fitting(16),
    last_offset_delta=st.integers(0, 5) | fitting(32),
    base_timestamp=st.just(NOW) | fitting(64),
    max_timestamp=st.just(NOW) | fitting(64),
    producer_id=fitting(64),
    producer_epoch=fitting(16),
    base_sequence=fitting(32),
    record_count=st.integers(0, 6) | fitting(32),
)

good = st.builds(
    lambda codec, values: build_batch([NewRecord(NOW, b"k", value, [("h", value)]) for value in values], codec=codec),
    st.sampled_from(CODEC_NAMES),
    st.lists(st.binary(max_size=40), min_size=1, max_size=6),
)


def serve(data: bytes) -> None:
    """All the broker does with a produced batch, on each kind of topic, and with what it then finds in its log."""
    for config in TOPICS:
        view = memoryview(bytearray(data))
        try:
            header = check_produced(view, config, NOW)
            stored = deep_check(view, header, config, NOW) if needs_deep_check(header, config) else None
        except KafkaError:
            continue
        read_back(bytes(stored or view))


def read_back(stored: bytes) -> None:
    """The log's own readers; CorruptBatch is the one thing they may say."""
    header = check_batch(stored)

    assert header.record_count == header.last_offset_delta + 1 > 0
    with contextlib.suppress(CorruptBatch):
        for record in walk(stored, CAP):
            assert header.base_offset <= record.offset <= header.last_offset
            struct.pack(">q", record.timestamp)
    assert [found for _, found in split_batches(stored)] == [header]


@settings(max_examples=400)
@given(st.binary(max_size=300))
def test_noise(data: bytes) -> None:
    """Does noise never do more than be refused?"""
    serve(data)


@settings(max_examples=400)
@given(wild_headers, st.binary(max_size=200), st.booleans())
def test_wild_headers(header: BatchHeader, payload: bytes, honest_length: bool) -> None:
    """Does no header, however wild, escape the checks or break a walker, with a CRC that fits?"""
    data = bytearray(HEADER_BYTES) + payload
    length = len(data) - 12 if honest_length else header.batch_length
    HEADER.pack_into(data, 0, *header._replace(batch_length=len(data) - 12))
    seal(data)
    struct.pack_into(">i", data, 8, length)
    serve(bytes(data))


@settings(max_examples=400)
@given(good, st.lists(st.tuples(st.integers(16, 400), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes_with_the_crc_made_right(data: bytearray, changes: list[tuple[int, int]]) -> None:
    """Does a good batch with bytes changed under a new CRC pass or fail cleanly, in every codec?"""
    for position, value in changes:
        data[position % len(data)] = value
    struct.pack_into(">i", data, 8, len(data) - 12)
    seal(data)
    serve(bytes(data))


@settings(max_examples=300)
@given(st.integers(1, 5), st.binary(max_size=120), st.sampled_from(range(5)))
def test_noise_under_a_compression(count: int, payload: bytes, codec: int) -> None:
    """Does noise that is properly compressed and counted harm nobody?"""
    header = BatchHeader(0, 0, -1, MAGIC, 0, codec, count - 1, NOW, NOW, -1, -1, -1, count)
    serve(bytes(assemble(header, payload)))


@settings(max_examples=200)
@given(st.none() | st.binary(max_size=12), st.none() | st.binary(max_size=12))
def test_control_records(key: bytes | None, value: bytes | None) -> None:
    """Does reading a control record of any content end in a marker, nothing, or CorruptBatch?"""
    with contextlib.suppress(CorruptBatch):
        read_end_marker(build_batch([NewRecord(NOW, key, value)], control=True))
