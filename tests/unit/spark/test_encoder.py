"""Columns as record batches, against other readers, and partitions against other partitioners."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.client.partitioners import partition_of
from headrace.records.batch import HEADER_BYTES, check_batch
from headrace.records.walk import walk
from headrace.spark.encoder import BadHeaders, encode, partitions_of
from headrace.spark.row_schema import HEADERS

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of importlib.resources, by kafka-python's own import
    from kafka.partitioner.default import murmur2
    from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch

BIG = 1 << 20

rows = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=50),
        st.none() | st.binary(max_size=300),
        st.none() | st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=10)), max_size=3),
        st.integers(-1, 2**41),
    ),
    max_size=40,
)


def columns(rows):
    """Rows as the columns of a sink."""
    headers = [None if row[2] is None else [{"key": key, "value": value} for key, value in row[2]] for row in rows]
    return (
        pa.array([row[0] for row in rows], pa.binary()),
        pa.array([row[1] for row in rows], pa.binary()),
        pa.array(headers, HEADERS),
        np.array([row[3] for row in rows], np.int64),
    )


def plain(batches):
    """The records of batches, to compare."""
    return [
        (
            None if record.key is None else bytes(record.key),
            None if record.value is None else bytes(record.value),
            list(record.headers),
            record.timestamp,
        )
        for batch, _ in batches
        for record in walk(batch)
    ]


@settings(max_examples=80, deadline=None)
@given(rows, st.integers(0, 4), st.integers(1, 2000))
def test_any_rows(rows, codec, max_bytes):
    """Whatever the rows: do sound batches hold them all in order, none larger than allowed if it could be smaller?"""
    batches = encode(*columns(rows), codec=codec, max_bytes=max_bytes, base_sequence=5, producer_id=9, producer_epoch=1)

    assert [(key, value, headers or [], ms) for key, value, headers, ms in rows] == plain(batches)
    sequence = 5
    for batch, count in batches:
        header = check_batch(batch)
        assert (count, count - 1, sequence) == (header.record_count, header.last_offset_delta, header.base_sequence)
        assert (9, 1, codec) == (header.producer_id, header.producer_epoch, header.attributes)
        assert codec or count == 1 or len(batch) <= max_bytes
        assert header.size == len(batch)
        assert max(record.timestamp for record in walk(batch)) == header.max_timestamp
        sequence += count


@settings(max_examples=50, deadline=None)
@given(rows.filter(bool), st.integers(0, 4))
def test_other_readers(rows, codec):
    """Do kafka-python and aiokafka read what is written, CRC and all?"""
    (batch, _), *others = encode(*columns(rows), codec=codec, max_bytes=BIG)

    assert not others
    for reader_class in (KafkaPythonBatch, AioBatch):
        reader = reader_class(bytes(batch))
        assert reader.validate_crc()
        found = [(record.key, record.value, list(record.headers), record.timestamp) for record in reader]
        assert [(key, value, headers or [], ms) for key, value, headers, ms in rows] == found


def test_batches_are_as_full_as_may_be():
    """Does a batch end only where the next record would make it too large?"""
    values = pa.array([bytes(100)] * 100)

    batches = encode(None, values, None, 7, max_bytes=1000)

    record_bytes = 100 + 9
    assert [(1000 - HEADER_BYTES) // record_bytes] * 12 == [count for _, count in batches[:12]]


def test_a_record_that_is_too_large():
    """Does a record beyond the limit get a batch of its own?"""
    values = pa.array([b"a", bytes(500), b"b"])

    assert [1, 1, 1] == [count for _, count in encode(None, values, None, 7, max_bytes=100)]


def test_sequences_wrap():
    """Does the sequence behind 2**31 - 1 begin at 0 again?"""
    batches = encode(None, pa.array([bytes(50)] * 3), None, 7, max_bytes=100, base_sequence=2**31 - 2, producer_id=1)

    assert [2**31 - 2, 2**31 - 1, 0] == [check_batch(batch).base_sequence for batch, _ in batches]


def test_transactional():
    """Do batches say that they belong to a transaction, whatever the codec?"""
    for codec in range(5):
        ((batch, _),) = encode(None, pa.array([b"a"]), None, 7, max_bytes=BIG, codec=codec, transactional=True)
        assert check_batch(batch).is_transactional
        assert codec == check_batch(batch).codec


@pytest.mark.parametrize("data_type", [pa.string(), pa.large_string(), pa.large_binary(), pa.binary()])
def test_kinds_of_columns(data_type):
    """Are text, large arrays, slices and chunks of arrays all taken for what they hold?"""
    array = pa.array([b"x", b"a", None, b"cc", b"y"]).cast(data_type)
    expected = [(b"a", b"a", [], 7), (None, None, [], 7), (b"cc", b"cc", [], 7)]

    for part in (array[1:4], pa.chunked_array([array[1:2], array[2:4]])):
        assert expected == plain(encode(part, part, None, 7, max_bytes=BIG))


def test_slices_with_headers():
    """Do rows keep their own headers when the columns are slices?"""
    rows = [(b"%d" % number, b"v", [(f"h{number}", b"")] * (number % 3), number) for number in range(10)]
    keys, values, headers, timestamps = columns(rows)

    assert rows[3:7] == plain(encode(keys[3:7], values[3:7], headers[3:7], timestamps[3:7], max_bytes=BIG))


def test_no_keys_and_no_values():
    """Are columns without a type, as a literal NULL has none, all nulls?"""
    nulls = pa.nulls(2)

    assert [(None, None, [], 7)] * 2 == plain(encode(nulls, nulls, pa.nulls(2), pa.array([7, 7]), max_bytes=BIG))
    assert [] == encode(None, pa.array([], pa.binary()), None, 7, max_bytes=BIG)


def test_a_header_without_a_name():
    """Is a header with a null for its name refused?"""
    headers = pa.array([[], [{"key": None, "value": b""}]], HEADERS)

    with pytest.raises(BadHeaders, match="row 1"):
        encode(None, pa.array([b"", b""]), headers, 7, max_bytes=BIG)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=40), max_size=30), st.integers(1, 100), st.integers(0, 99))
def test_partitions(keys, count, sticky):
    """Does each key go where Java's, kafka-python's and our own partitioner put it, and no key where it is told?"""
    found = partitions_of(pa.array(keys, pa.binary()), count, sticky=sticky).tolist()

    assert [sticky if key is None else (murmur2(key) & 0x7FFFFFFF) % count for key in keys] == found
    assert [sticky if key is None else partition_of(key, count) for key in keys] == found


def test_partitions_of_java():
    """Are the hashes those of Kafka's own UtilsTest?"""
    hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    hashes |= {b"a-little-bit-longer-string": -1486304829, b"abc": 479470107}

    found = partitions_of(pa.array(list(hashes)), 2**31 - 1).tolist()

    assert [(number & 0x7FFFFFFF) % (2**31 - 1) for number in hashes.values()] == found
