"""Fetched records as columns, against other readers and against damage."""

import io
import itertools
import random
import warnings

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.records.batch import HEADER_BYTES, CorruptBatch, read_header, seal
from headrace.records.build import NewRecord, assemble, build_batch, encode_record
from headrace.records.compression import CODEC_NAMES, CODECS
from headrace.records.control import EndTransactionMarker, build_end_marker
from headrace.records.walk import walk
from headrace.spark import decoder
from headrace.spark.columns import COLUMN_NAMES, Columns
from headrace.spark.decoder import BadRecords, decode, next_offset_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of importlib.resources, by kafka-python's own import
    from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

END = 2**62
RECORDS = [
    NewRecord(1_700_000_000_000, b"key", b"value", [("h", b"1"), ("h", None), ("", b"")]),
    NewRecord(1_700_000_000_005, None, None),
    NewRecord(1_699_999_999_000, b"", b""),
    NewRecord(1_700_000_100_000, "schlüssel".encode(), bytes(70_000), [("größe", b"70000")]),
]

batches_of_records = st.lists(
    st.tuples(
        st.lists(
            st.builds(
                NewRecord,
                st.integers(0, 2**41),
                st.none() | st.binary(max_size=200),
                st.none() | st.binary(max_size=300),
                st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10)), max_size=3),
            ),
            min_size=1,
            max_size=20,
        ),
        st.sampled_from(CODEC_NAMES),
        st.integers(0, 5),
    ),
    max_size=5,
)


def plain(columns: Columns):
    """The columns as rows of plain values, to compare."""
    headers = columns.headers
    return [
        (
            int(columns.offsets[row]),
            int(columns.timestamps_ms[row]),
            columns.keys.cell(row),
            columns.values.cell(row),
            tuple(
                (headers.keys.cell(at).decode("utf-8", "replace"), headers.values.cell(at))
                for at in range(headers.lists[row], headers.lists[row + 1])
            ),
        )
        for row in range(columns.count)
    ]


def walked(batch):
    """The same rows as the walk of the records room has them."""
    return [
        (
            record.offset,
            record.timestamp,
            None if record.key is None else bytes(record.key),
            None if record.value is None else bytes(record.value),
            record.headers,
        )
        for record in walk(batch)
    ]


def read_all(data, start=0, stop=END, **options):
    """Every column of everything."""
    return decode(memoryview(bytes(data)), start=start, stop=stop, wanted=COLUMN_NAMES, **options)


def sealed(batch, payload):
    """The batch with other records in it, and a CRC that vouches for them."""
    return assemble(read_header(batch)._replace(batch_length=0), payload)


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_every_codec(codec):
    """Are the records of a batch of each codec those that went in?"""
    batch = build_batch(RECORDS, base_offset=7, codec=codec)

    columns = read_all(batch)

    assert walked(batch) == plain(columns)
    assert len(RECORDS) + 7 == columns.next_offset
    assert [0] * len(RECORDS) == columns.timestamp_types.tolist()


@settings(max_examples=80, deadline=None)
@given(batches_of_records, st.integers(0, 60), st.integers(0, 60))
def test_any_records(batches, start, length):
    """Whatever the records, codecs, gaps and bounds: are just the records between the bounds there?"""
    data, expected, offset = bytearray(), [], 0
    for records, codec, gap in batches:
        batch = build_batch(records, base_offset=offset + gap, codec=codec)
        expected += walked(batch)
        offset += gap + len(records)
        data += batch
    stop = start + length

    columns = read_all(data, start, stop)

    assert [row for row in expected if start <= row[0] < stop] == plain(columns)
    assert max(start, min(offset, stop)) == columns.next_offset
    assert max(start, offset) == next_offset_of(bytes(data), start)


@pytest.mark.parametrize("wanted", sorted(COLUMN_NAMES))
def test_only_what_is_wanted(wanted):
    """Is one column the same whether or not the others are wanted, and are the others empty then?"""
    data = bytes(build_batch(RECORDS)) + bytes(build_batch(RECORDS, base_offset=4, codec="lz4"))
    everything = read_all(data)

    columns = decode(data, start=1, stop=6, wanted=frozenset({wanted}))

    whole, part = plain_column(everything, wanted), plain_column(columns, wanted)
    assert whole[1:6] == part
    assert 5 == columns.count
    assert all(not plain_column(columns, other) for other in COLUMN_NAMES - {wanted})


def plain_column(columns, name):
    """One column as a list."""
    if name == "headers":
        lists = columns.headers.lists
        return [int(last - first) for first, last in itertools.pairwise(lists)]
    if name in ("key", "value"):
        cells = columns.keys if name == "key" else columns.values
        return [cells.cell(row) for row in range(cells.row_count)]
    arrays = {"offset": columns.offsets, "timestamp": columns.timestamps_ms, "timestampType": columns.timestamp_types}
    return arrays[name].tolist()


def test_nothing_wanted():
    """Are records counted if no column of them is wanted?"""
    assert 4 == decode(bytes(build_batch(RECORDS)), start=0, stop=END, wanted=frozenset()).count


def test_other_writers():
    """Are batches that kafka-python and aiokafka wrote read as they meant them?"""
    for builder_class in (KafkaPythonBuilder, AioBuilder):
        builder = builder_class(
            magic=2, compression_type=0, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
            batch_size=1 << 20,
        )  # fmt: skip
        for offset, record in enumerate(RECORDS):
            builder.append(offset, record.timestamp, record.key, record.value, list(record.headers))

        columns = read_all(builder.build())

        assert [
            (offset, record.timestamp, record.key, record.value, tuple(record.headers))
            for offset, record in enumerate(RECORDS)
        ] == plain(columns)


def test_broker_time():
    """Do all records of a LogAppendTime batch have the broker's timestamp, and say so?"""
    columns = read_all(build_batch(RECORDS, log_append_time_ms=123))

    assert [123] * 4 == columns.timestamps_ms.tolist()
    assert [1] * 4 == columns.timestamp_types.tolist()


def test_a_cut_batch_is_left_for_later():
    """Does reading go on at the batch whose end did not come, wherever it is cut?"""
    whole, cut = bytes(build_batch(RECORDS)), bytes(build_batch(RECORDS[:2], base_offset=4))
    for length in range(len(cut)):
        columns = read_all(whole + cut[:length])

        assert (4, 4) == (columns.count, columns.next_offset)

    assert (0, 3) == (read_all(cut[:-1], 3).count, read_all(cut[:-1], 3).next_offset)


def test_nothing_came():
    """Does an empty answer leave reading where it was?"""
    columns = read_all(b"", 17)

    assert (0, 17) == (columns.count, columns.next_offset)


def test_gaps_of_compaction():
    """Are records read by their own offsets in a batch whose neighbours compaction took, and empty batches passed?"""
    payload = b"".join(bytes(encode_record(RECORDS[1], timestamp_delta=0, offset_delta=delta)) for delta in (3, 8))
    sparse = read_header(build_batch(RECORDS[:2], base_offset=100))
    empty = sparse._replace(base_offset=110, record_count=0, attributes=CODECS["gzip"])
    data = assemble(sparse._replace(last_offset_delta=9), payload) + assemble(empty._replace(attributes=0), b"")

    columns = read_all(data, 104)

    assert [108] == columns.offsets.tolist()
    assert 112 == columns.next_offset


def test_an_emptied_compressed_batch():
    """Is a batch without records, which still names a codec, passed over?"""
    header = read_header(build_batch(RECORDS[:1]))._replace(record_count=0)
    batch = assemble(header, b"")
    batch[22] = CODECS["gzip"]
    seal(batch)

    assert (0, 1) == (read_all(batch).count, read_all(batch).next_offset)


def test_aborted_transactions_are_left_out():
    """Under read_committed: is exactly what an aborted transaction wrote missing, and its producer's next one not?"""

    def part(offset, producer, *, transactional=True):
        return build_batch(
            [NewRecord(0, None, b"%d" % offset)], base_offset=offset, producer_id=producer, producer_epoch=0,
            transactional=transactional,
        )  # fmt: skip

    def marker(offset, producer, *, committed):
        end = EndTransactionMarker(committed=committed, coordinator_epoch=0, timestamp_ms=0)
        return build_end_marker(end, producer_id=producer, producer_epoch=0, base_offset=offset)

    data = b"".join(
        map(
            bytes,
            (
                *(part(0, 5), part(1, 6), part(2, 5, transactional=False), marker(3, 5, committed=False), part(4, 5)),
                *(
                    marker(5, 6, committed=True),
                    marker(6, 5, committed=True),
                    part(7, 6),
                    marker(8, 6, committed=False),
                ),
            ),
        )
    )

    aborted = [(6, 7), (5, 0)]

    everything, committed = read_all(data), read_all(data, aborted=aborted)

    assert [0, 1, 2, 4, 7] == everything.offsets.tolist()
    assert [1, 2, 4] == committed.offsets.tolist()
    assert 9 == committed.next_offset
    for start in range(10):
        assert [offset for offset in (1, 2, 4) if offset >= start] == read_all(
            data, start, aborted=aborted
        ).offsets.tolist()


def test_old_formats_are_named():
    """Is a message set from before Kafka 0.11 refused in words?"""
    for magic in (0, 1):
        message = bytearray(build_batch(RECORDS[:1], base_offset=3))
        message[16] = magic

        with pytest.raises(BadRecords, match=r"offset 3 .* older than Kafka 0\.11"):
            read_all(message)


def test_batches_behind_the_bound_do_not_matter():
    """Is a harmed batch no fault if it lies behind what is asked for?"""
    harmed = bytearray(build_batch(RECORDS, base_offset=4))
    harmed[-1] ^= 1

    assert 4 == read_all(build_batch(RECORDS) + harmed, 0, 4).count
    with pytest.raises(BadRecords, match="CRC of the batch at offset 4"):
        read_all(build_batch(RECORDS) + harmed, 0, 5)


def test_batches_that_go_back():
    """Is a batch refused that begins before the last one ended?"""
    with pytest.raises(BadRecords, match="offset 2 behind offset 3"):
        read_all(build_batch(RECORDS) + build_batch(RECORDS, base_offset=2))


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_flipped_bits(codec):
    """Is a batch with any bit flipped behind its magic refused?"""
    batch = bytes(build_batch(RECORDS[:3], codec=codec))
    for position in range(16, len(batch)):
        for bit in range(8):
            harmed = bytearray(batch)
            harmed[position] ^= 1 << bit

            with pytest.raises(BadRecords):
                read_all(harmed)


def test_flipped_bits_in_front():
    """Do flips in front of the magic, which no CRC covers, move a batch or hide it, but never change its records?"""
    batch = bytes(build_batch(RECORDS[:3]))
    expected = [row[1:] for row in walked(batch)]
    for position in range(16):
        for bit in range(8):
            harmed = bytearray(batch)
            harmed[position] ^= 1 << bit
            try:
                rows = plain(read_all(harmed, stop=2**63 - 1))
            except BadRecords:
                continue

            assert [row[1:] for row in rows] in (expected, [])


def test_malicious_records():
    """Where the CRC is right and the records are not: is every batch refused that the records room refuses?"""
    chance = random.Random(20)
    batch = build_batch(RECORDS[:3] * 2)
    payload = bytes(batch[HEADER_BYTES:])
    for _ in range(4_000):
        harmed = bytearray(payload)
        for _ in range(chance.randint(1, 3)):
            harmed[chance.randrange(len(harmed))] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        hostile = sealed(batch, harmed)
        try:
            expected = walked(hostile)
        except CorruptBatch:
            with pytest.raises(BadRecords):
                read_all(hostile)
        else:
            assert expected == plain(read_all(hostile))


def test_malicious_counts():
    """Is a batch refused whose header promises more records than its bytes can hold, compressed or not?"""
    for codec in ("none", "zstd"):
        header = read_header(build_batch(RECORDS[:1], codec=codec))
        hostile = header._replace(record_count=2**31 - 1, last_offset_delta=2**31 - 2)

        with pytest.raises(BadRecords):
            read_all(assemble(hostile, encode_record(RECORDS[0], timestamp_delta=0, offset_delta=0)))


def test_too_much_at_once(monkeypatch):
    """Does decoding stop at a batch's end when the columns grow too large, and does going on give the rest?"""
    monkeypatch.setattr(decoder, "ANSWER_BYTES_MAX", 100_000)
    data = io.BytesIO()
    for number in range(10):
        data.write(build_batch(RECORDS, base_offset=number * 4, codec=CODEC_NAMES[number % 5]))
    offsets, start, rounds = [], 0, 0
    while start < 40:
        columns = read_all(data.getvalue(), start)
        offsets += columns.offsets.tolist()
        start, rounds = columns.next_offset, rounds + 1

    assert list(range(40)) == offsets
    assert 5 == rounds


def test_read_only_and_writable_memory():
    """Is it all the same whether the bytes may be written to?"""
    batch = build_batch(RECORDS)

    assert plain(read_all(batch)) == plain(decode(memoryview(batch), start=0, stop=END, wanted=COLUMN_NAMES))
