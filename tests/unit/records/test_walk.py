"""Building batches and walking them, against other implementations and against damage."""

import warnings
from collections.abc import Iterable

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.records.batch import CorruptBatch, check_batch, read_header
from headrace.records.build import NewRecord, build_batch, build_entries, move_timestamp, write_varint
from headrace.records.compression import CODEC_NAMES, CODECS
from headrace.records.walk import Record, payload_of, read_varint, skim, walk, walk_payload

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of importlib.resources, by kafka-python's own import
    from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

Plain = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]

RECORDS = [
    NewRecord(1_700_000_000_000, b"key", b"value", [("h", b"1"), ("h", None), ("", b"")]),
    NewRecord(1_700_000_000_005, None, None),
    NewRecord(1_699_999_999_000, b"", b""),
    NewRecord(1_700_000_100_000, "schlüssel".encode(), bytes(70_000), [("größe", b"70000")]),
]

JAVA = {
    "none": (
        "0000000000000000000000bd00000009023165677b0000000000020000018bcfe568000000018bcfe5680500000000000000"
        "46000300000005000000032a000000066b65790a76616c75650402680231026e010c000a02010100da0100cf0f04026bc801"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "00"
    ),
    "gzip": (
        "0000000000000000000000700000000902a5d39acf0001000000020000018bcfe568000000018bcfe5680500000000000000"
        "46000300000005000000031f8b08000000000000ffd362606060cb4eade42a4bcc294d6561ca603264ca63e461e062626464"
        "b8c5c8709e9f8529fb0463051d00030076e61de98c000000"
    ),
    "snappy": (
        "0000000000000000000000790000000902f6028a840002000000020000018bcfe568000000018bcfe5680500000000000000"
        "460003000000050000000382534e41505059000000000100000001000000348c01a02a000000066b65790a76616c75650402"
        "680231026e010c000a02010100da0100cf0f04026bc8017878fe02008602000000"
    ),
    "lz4": (
        "0000000000000000000000730000000902b5443b970003000000020000018bcfe568000000018bcfe5680500000000000000"
        "460003000000050000000304224d1860408233000000ff192a000000066b65790a76616c75650402680231026e010c000a02"
        "010100da0100cf0f04026bc8017801004c50787878780000000000"
    ),
    "zstd": (
        "00000000000000000000006e0000000902b53b876f0004000000020000018bcfe568000000018bcfe5680500000000000000"
        "460003000000050000000328b52ffd00588c010094022a000000066b65790a76616c75650402680231026e010c000a020101"
        "00da0100cf0f04026bc8017800010000292803010000"
    ),
}
"""One batch in each codec as kafka-clients 4.3.1 builds it (MemoryRecordsBuilder), in hex."""

new_records = st.lists(
    st.builds(
        NewRecord,
        st.integers(0, 2**41),
        st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=300),
        st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10)), max_size=3),
    ),
    min_size=1,
    max_size=20,
)


def plain(records: Iterable[Record]) -> list[Plain]:
    """Walked records without views, to compare."""
    return [
        (
            record.offset,
            record.timestamp,
            None if record.key is None else bytes(record.key),
            None if record.value is None else bytes(record.value),
            record.headers,
        )
        for record in records
    ]


def expected(records: list[NewRecord], base_offset: int = 0) -> list[Plain]:
    """What walking a batch of these records must give."""
    return [
        (
            base_offset + index,
            record.timestamp,
            None if record.key is None else bytes(record.key),
            None if record.value is None else bytes(record.value),
            tuple(record.headers),
        )
        for index, record in enumerate(records)
    ]


@settings(max_examples=60, deadline=None)
@given(new_records, st.sampled_from(CODEC_NAMES), st.integers(0, 2**62))
def test_what_is_built_is_walked(records: list[NewRecord], codec: str, base_offset: int) -> None:
    """Do records come out of a batch as they went in, in every codec?"""
    batch = build_batch(records, codec=codec, base_offset=base_offset)
    header = check_batch(batch)

    assert header.codec == CODECS[codec]
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert expected(records, base_offset) == plain(walk(batch))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.binary(max_size=300), st.none() | st.binary(max_size=80)), min_size=1, max_size=70),
    st.integers(0, 2**41),
    st.none() | st.tuples(st.integers(0, 2**62), st.integers(0, 2**15 - 1)),
)
def test_entries_are_a_batch_like_any_other(
    entries: list[tuple[bytes, bytes | None]], timestamp: int, producer: tuple[int, int] | None
) -> None:
    """Is a coordinator's batch, built in one go, the one that its records would make?"""
    producer_id, producer_epoch = producer or (-1, -1)
    transactional = producer is not None
    expected = build_batch(
        [NewRecord(timestamp, key, value) for key, value in entries],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=transactional,
    )

    assert (expected, read_header(expected)) == build_entries(
        entries, timestamp, producer_id=producer_id, producer_epoch=producer_epoch, transactional=transactional
    )


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_aiokafka_reads_ours(codec: str) -> None:
    """Does another implementation read our batch in every codec?"""
    batch = AioBatch(bytes(build_batch(RECORDS, codec=codec, base_offset=40)))

    assert batch.validate_crc()
    assert expected(RECORDS, 40) == [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_we_read_aiokafkas(codec: str) -> None:
    """Do we read another implementation's batch in every codec?"""
    builder = AioBuilder(
        magic=2,
        compression_type=CODECS[codec],
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=10**6,
    )
    for index, record in enumerate(RECORDS):
        builder.append(index, record.timestamp, record.key, record.value, list(record.headers))
    batch = bytes(builder.build())

    assert check_batch(batch).codec == CODECS[codec]
    assert expected(RECORDS) == plain(walk(batch))


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_kafka_python_both_ways(codec: str) -> None:
    """Do kafka-python and we read each other, in the codecs it has without further packages?"""
    theirs = KafkaPythonBatch(bytes(build_batch(RECORDS, codec=codec, base_offset=40)))
    builder = KafkaPythonBuilder(2, CODECS[codec], False, -1, -1, -1, 10**6)
    for index, record in enumerate(RECORDS):
        builder.append(index, record.timestamp, record.key, record.value, list(record.headers))

    assert theirs.validate_crc()
    assert expected(RECORDS, 40) == [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in theirs]
    assert expected(RECORDS) == plain(walk(bytes(builder.build())))


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_we_read_javas(codec: str) -> None:
    """Do we read what Apache Kafka's own client builds, in every codec?"""
    batch = bytes.fromhex(JAVA[codec])
    header = check_batch(batch)

    assert (header.codec, header.producer_id, header.producer_epoch, header.base_sequence) == (CODECS[codec], 70, 3, 5)
    assert plain(walk(batch)) == [
        (0, 1_700_000_000_000, b"key", b"value", (("h", b"1"), ("n", None))),
        (1, 1_700_000_000_005, None, None, ()),
        (2, 1_699_999_999_000, b"k", b"x" * 100, ()),
    ]


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_come_back(value: int) -> None:
    """Does every 64-bit number survive, with the right end?"""
    out = bytearray(b"..")
    write_varint(out, value)

    assert (value, len(out)) == read_varint(out + b"\x80\x01", 2, 10)


@pytest.mark.parametrize("length", [1, 2, 4, 9])
def test_a_varint_that_ends_nowhere_is_an_index_error(length: int) -> None:
    """Is a number cut off by the end of the bytes noticed at once?"""
    with pytest.raises(IndexError):
        read_varint(b"\x80" * length, 0, 10)


@pytest.mark.parametrize("limit", [5, 10])
def test_a_varint_that_never_ends_is_corrupt(limit: int) -> None:
    """Is a number of too many bytes refused instead of read on?"""
    with pytest.raises(CorruptBatch):
        read_varint(b"\xff" * 100, 0, limit)


def test_moved_timestamp_changes_nothing_else() -> None:
    """Is a record with another timestamp delta otherwise the same, also where the number gets longer?"""
    batch = build_batch(RECORDS)
    header = read_header(batch)
    payload = payload_of(batch, header)
    moved = b"".join(
        move_timestamp(payload, span, timestamp_delta=span.timestamp_delta + 10**9) for span in skim(payload, header)
    )

    later = [record._replace(timestamp=record.timestamp + 10**9) for record in RECORDS]
    assert expected(later) == plain(walk_payload(moved, header))


def _damaged(payload: bytearray, at: int, value: int) -> bytearray:
    damaged = bytearray(payload)
    damaged[at] = value
    return damaged


def test_no_single_wrong_byte_breaks_the_walk() -> None:
    """Does each changed byte of the records give other records or CorruptBatch, and never anything else?"""
    batch = build_batch(RECORDS[:3] * 2)
    header = read_header(batch)
    payload = bytearray(payload_of(batch, header))
    outcomes = {"corrupt": 0, "fine": 0}
    for at in range(len(payload)):
        for value in (0, 1, 2, 3, 0x7F, 0x80, 0xFF, payload[at] ^ 2):
            try:
                list(walk_payload(_damaged(payload, at, value), header))
                outcomes["fine"] += 1
            except CorruptBatch:
                outcomes["corrupt"] += 1

    assert all(outcomes.values())


@pytest.mark.parametrize("change", [-1, 1])
def test_the_count_must_fit_the_bytes(change: int) -> None:
    """Is one record too many or too few noticed?"""
    batch = build_batch(RECORDS)
    header = read_header(batch)
    with pytest.raises(CorruptBatch):
        list(skim(payload_of(batch, header), header._replace(record_count=len(RECORDS) + change)))


def test_a_timestamp_beyond_64_bits_is_corrupt() -> None:
    """Is a delta that leads out of the timestamp's range refused, so that nobody packs it later?"""
    batch = build_batch([NewRecord(10), NewRecord(20)])
    header = read_header(batch)
    with pytest.raises(CorruptBatch):
        list(skim(payload_of(batch, header), header._replace(base_timestamp=2**63 - 5)))
