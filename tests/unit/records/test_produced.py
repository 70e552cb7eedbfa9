"""What a producer may send and what it is told otherwise."""

import struct
from collections.abc import Callable
from typing import Any

import pytest

from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.log_config import LogConfig
from headrace.records.batch import HEADER, HEADER_BYTES, CorruptBatch, check_batch, read_header, seal
from headrace.records.build import NewRecord, assemble, build_batch, encode_record
from headrace.records.compression import CODEC_NAMES, CODECS
from headrace.records.produced import (
    RECORD_ERRORS_MAX,
    WALKED_AT_ONCE_MAX,
    RecordsRejected,
    check_produced,
    deep_check,
    needs_deep_check,
    refusal_anew,
)
from headrace.records.walk import payload_of, walk

NOW = 1_700_000_000_000
HOUR = 3_600_000
PLAIN = LogConfig()
COMPACTED = LogConfig(cleanup_compact=True)


def records(count: int, *, key: bytes | None = b"k", timestamp: int = NOW) -> list[NewRecord]:
    """`count` records of slowly changing size."""
    return [NewRecord(timestamp, key, b"v" * (50 + index // 7)) for index in range(count)]


def batch(count: int = 3, **options: Any) -> bytearray:
    """A good batch."""
    return build_batch(records(count), **options)


def with_header(data: bytearray, **fields: Any) -> bytearray:
    """The same batch with other header fields and the CRC that goes with them."""
    changed = bytearray(data)
    HEADER.pack_into(changed, 0, *read_header(data)._replace(**fields))
    seal(changed)
    return changed


def refused(data: bytes | bytearray, config: LogConfig = PLAIN) -> ErrorCode:
    """The error a produce of these bytes is answered with, looked at as deeply as the topic asks for."""
    with pytest.raises(KafkaError) as caught:
        accept(data, config)
    return caught.value.code


def accept(data: bytes | bytearray, config: LogConfig = PLAIN) -> bytearray | None:
    """What the broker does with a produced batch before it appends it."""
    view = memoryview(bytearray(data))
    header = check_produced(view, config, NOW)
    return deep_check(view, header, config, NOW) if needs_deep_check(header, config) else None


@pytest.mark.parametrize("codec", CODEC_NAMES)
@pytest.mark.parametrize("count", [1, 2, WALKED_AT_ONCE_MAX, WALKED_AT_ONCE_MAX + 1, 500])
@pytest.mark.parametrize("config", [PLAIN, COMPACTED], ids=["plain", "compacted"])
def test_good_batches_pass_unchanged(codec: str, count: int, config: LogConfig) -> None:
    """Does every good batch pass, in every codec, on either kind of topic, and stay as it is?"""
    data = batch(count, codec=codec, producer_id=1, producer_epoch=0, base_sequence=0)

    assert accept(data, config) is None
    assert check_produced(memoryview(data), config, NOW) == check_batch(data)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (batch()[:30], ErrorCode.INVALID_RECORD),
        (batch()[:-1], ErrorCode.INVALID_RECORD),
        (batch() + b"\x00", ErrorCode.INVALID_RECORD),
        (batch() + batch(), ErrorCode.INVALID_RECORD),
        (with_header(batch(), magic=0), ErrorCode.INVALID_RECORD),
        (with_header(batch(), magic=1), ErrorCode.INVALID_RECORD),
        (with_header(batch(), magic=3), ErrorCode.CORRUPT_MESSAGE),
        (with_header(batch(), magic=-1), ErrorCode.CORRUPT_MESSAGE),
        (batch()[:8] + struct.pack(">i", 10) + batch()[12:], ErrorCode.CORRUPT_MESSAGE),
        (batch()[:8] + struct.pack(">i", -(2**31)) + batch()[12:], ErrorCode.CORRUPT_MESSAGE),
    ],
    ids=range(11),
)
def test_not_one_batch_of_magic_2(data: bytes, code: ErrorCode) -> None:
    """Is anything but exactly one whole batch of magic 2 refused with Kafka's code?"""
    assert refused(data) == code


@pytest.mark.parametrize("position", [HEADER_BYTES + 3, 22, 40, -1])
def test_a_wrong_crc(position: int) -> None:
    """Is a changed byte CORRUPT_MESSAGE, which a client answers by sending again?"""
    data = batch()
    data[position] ^= 1

    assert refused(data) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    "fields",
    [
        {"base_offset": 1},
        {"base_offset": -1},
        {"record_count": 0, "last_offset_delta": -1},
        {"record_count": -3},
        {"record_count": 2},
        {"record_count": 4},
        {"record_count": 4, "last_offset_delta": 3},
        {"record_count": 2, "last_offset_delta": 1},
        {"record_count": 2**31 - 1, "last_offset_delta": 2**31 - 2},
        {"last_offset_delta": 7},
        {"attributes": 0x20},
        {"attributes": 0x40},
        {"attributes": 0x10},
        {"producer_id": 4},
        {"producer_id": 4, "producer_epoch": 0},
        {"producer_id": 4, "base_sequence": 0},
    ],
    ids=str,
)
def test_headers_that_lie(fields: dict[str, int]) -> None:
    """Are counts, offsets, attributes and producer fields that do not go together refused, CRC right or not?"""
    assert refused(with_header(batch(), **fields)) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_compression(codec: int) -> None:
    """Is a codec nobody knows refused by name?"""
    assert refused(with_header(batch(), attributes=codec)) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_size_limit() -> None:
    """Is a batch of exactly max.message.bytes fine and one byte more too large, before its CRC is looked at?"""
    data = batch()

    assert accept(data, LogConfig(max_message_bytes=len(data))) is None
    data[-1] ^= 1
    assert refused(data, LogConfig(max_message_bytes=len(data) - 1)) == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    ("timestamp", "good"),
    [(NOW + HOUR, True), (NOW + HOUR + 1, False), (0, True), (-1, True), (2**62, False)],
)
def test_create_time_from_the_future(timestamp: int, good: bool) -> None:
    """Is a timestamp refused beyond an hour ahead, and no other?"""
    data = build_batch(records(2, timestamp=timestamp))
    if good:
        assert accept(data) is None
    else:
        assert refused(data) == ErrorCode.INVALID_TIMESTAMP
    assert accept(data, LogConfig(message_timestamp_log_append=True)) is None


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("count", [1, 500])
def test_create_time_from_the_past(codec: str, count: int) -> None:
    """Is one old record found among young ones where the topic sets a limit to age?"""
    config = LogConfig(message_timestamp_before_max_ms=HOUR)
    old = build_batch([*records(count), NewRecord(NOW - HOUR - 1)], codec=codec)
    young = build_batch([*records(count), NewRecord(NOW - HOUR)], codec=codec)

    assert refused(old, config) == ErrorCode.INVALID_TIMESTAMP
    assert accept(young, config) is None
    assert accept(old) is None


def test_a_base_timestamp_beyond_the_limit() -> None:
    """Is a header refused whose base is in the far future, whatever its maximum says?"""
    assert refused(with_header(batch(), base_timestamp=2**60)) == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("config", [PLAIN, LogConfig(message_timestamp_log_append=True)])
def test_producers_do_not_stamp(config: LogConfig) -> None:
    """Is LogAppendTime from a producer refused?"""
    assert refused(build_batch(records(1), log_append_time_ms=NOW), config) == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", CODEC_NAMES)
@pytest.mark.parametrize("count", [1, 10, 500])
def test_a_compacted_topic_needs_keys(codec: str, count: int) -> None:
    """Is one record without a key noticed on a compacted topic, wherever it hides?"""
    data = build_batch([*records(count), NewRecord(NOW, None, b"keyless"), *records(2)], codec=codec)

    assert refused(data, COMPACTED) == ErrorCode.INVALID_RECORD
    assert accept(data) is None


@pytest.mark.parametrize("source", CODEC_NAMES)
@pytest.mark.parametrize("target", ["uncompressed", *CODEC_NAMES[1:]])
def test_the_topics_own_compression(source: str, target: str) -> None:
    """Is a batch written anew in the topic's codec, with everything else as it was?"""
    data = batch(40, codec=source, producer_id=1, producer_epoch=2, base_sequence=3)
    replaced = accept(data, LogConfig(compression_type=target))
    if CODECS[source] == CODECS[target]:
        assert replaced is None
        return
    assert replaced is not None
    before, after = read_header(data), check_batch(replaced)

    assert after.codec == CODECS[target]
    assert after._replace(crc=0, batch_length=0, attributes=0) == before._replace(crc=0, batch_length=0, attributes=0)
    assert list(walk(replaced)) == list(walk(data))


def test_grown_beyond_the_limit() -> None:
    """Is a batch that only fits max.message.bytes compressed refused where the topic is not?"""
    data = batch(500, codec="zstd")
    config = LogConfig(compression_type="uncompressed", max_message_bytes=len(data))

    assert refused(data, config) == ErrorCode.MESSAGE_TOO_LARGE


def _payload(count: int) -> bytearray:
    return bytearray(payload_of(batch(count), read_header(batch(count))))


def _cut(payload: bytearray) -> bytearray:
    return payload[:-1]


def _padded(payload: bytearray) -> bytearray:
    return payload + b"\x00"


def _first_length_wrong(payload: bytearray) -> bytearray:
    return bytearray([payload[0] ^ 2]) + payload[1:]


def _empty(payload: bytearray) -> bytearray:
    return bytearray()


def _noise(payload: bytearray) -> bytearray:
    return bytearray(b"\xaa" * len(payload))


@pytest.mark.parametrize("harm", [_cut, _padded, _first_length_wrong, _empty, _noise])
@pytest.mark.parametrize("count", [1, 2, 20, 500])
@pytest.mark.parametrize("config", [PLAIN, COMPACTED], ids=["plain", "compacted"])
def test_a_right_crc_around_wrong_records(
    harm: Callable[[bytearray], bytearray], count: int, config: LogConfig
) -> None:
    """Is a batch whose CRC fits but whose records do not refused on every topic, though nobody walks them all?"""
    assert refused(assemble(read_header(batch(count)), harm(_payload(count))), config) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("deltas", [[1], [1, 1], [0, 0], [0, 2], [1, 0], [0, 1, 2, 2], [-1, 1]])
@pytest.mark.parametrize("config", [PLAIN, COMPACTED], ids=["plain", "compacted"])
def test_offset_deltas_at_the_ends(deltas: list[int], config: LogConfig) -> None:
    """Is a batch refused whose first or last record does not lie where the header says?"""
    header = read_header(batch(len(deltas)))
    payload = b"".join(encode_record(NewRecord(NOW, b"k"), timestamp_delta=0, offset_delta=delta) for delta in deltas)

    assert refused(assemble(header, payload), config) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", CODEC_NAMES[1:])
def test_records_that_are_not_what_they_say(codec: str) -> None:
    """Is a batch refused that says gzip and is not, on the plain topic by its looks and deeper on the other?"""
    lying = with_header(batch(), attributes=CODECS[codec])

    assert refused(lying, COMPACTED) == ErrorCode.INVALID_RECORD
    if codec != "snappy":
        assert refused(lying) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", CODEC_NAMES[1:])
def test_bombs(codec: str) -> None:
    """Is a batch that grows beyond max.decompressed.bytes MESSAGE_TOO_LARGE where it must be decompressed?"""
    bomb = build_batch([NewRecord(NOW, b"k", bytes(4_000_000))], codec=codec)
    config = LogConfig(cleanup_compact=True, max_decompressed_bytes=1_000_000)

    assert refused(bomb, config) == ErrorCode.MESSAGE_TOO_LARGE


def test_more_records_than_may_come_out() -> None:
    """Is a compressed batch refused whose count alone is beyond the cap?"""
    data = with_header(batch(codec="zstd"), record_count=2**31 - 1, last_offset_delta=2**31 - 2)

    assert refused(data) == ErrorCode.MESSAGE_TOO_LARGE


def test_errors_carry_a_sentence() -> None:
    """Is a person told which record, and what is wrong with it?"""
    with pytest.raises(KafkaError, match="record 3: A compacted topic needs a key"):
        accept(build_batch([*records(3), NewRecord(NOW)]), COMPACTED)


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("count", [5, WALKED_AT_ONCE_MAX + 5])
def test_all_bad_records_are_named(codec: str, count: int) -> None:
    """Is a producer told of every record without a key, in a batch of either size, compressed or not?"""
    sent = records(count)
    for index in (1, 4):
        sent[index] = NewRecord(NOW, None, b"v")
    with pytest.raises(RecordsRejected) as caught:
        accept(build_batch(sent, codec=codec), COMPACTED)

    assert ErrorCode.INVALID_RECORD == caught.value.code
    assert [1, 4] == [index for index, _ in caught.value.record_errors]


@pytest.mark.parametrize(
    ("config", "codec", "count"),
    [(PLAIN, "none", 5), (COMPACTED, "none", 5), (COMPACTED, "gzip", 5), (COMPACTED, "none", WALKED_AT_ONCE_MAX + 5)],
    ids=["plain", "compacted", "compressed", "large"],
)
def test_one_bad_timestamp_decides_the_code(config: LogConfig, codec: str, count: int) -> None:
    """Is the record from the future named, and the whole told as INVALID_TIMESTAMP even beside another fault?"""
    sent = records(count)
    sent[2] = NewRecord(NOW + 2 * HOUR, b"k", b"v")
    if config.cleanup_compact:
        sent[3] = NewRecord(NOW, None, b"v")
    with pytest.raises(RecordsRejected) as caught:
        accept(build_batch(sent, codec=codec), config)

    assert ErrorCode.INVALID_TIMESTAMP == caught.value.code
    assert ([2, 3] if config.cleanup_compact else [2]) == [index for index, _ in caught.value.record_errors]
    assert f"{NOW + 2 * HOUR}" in caught.value.record_errors[0][1]


def test_a_header_that_lies_about_its_time_is_refused_deeply_too() -> None:
    """Is a batch refused whose header is of the future though no record is, where each record is looked at?"""
    for count in (3, WALKED_AT_ONCE_MAX + 5):
        assert refused(with_header(batch(count), max_timestamp=2**60), COMPACTED) == ErrorCode.INVALID_TIMESTAMP


def test_named_records_are_limited() -> None:
    """Are no more than a hundred bad records named, and all of them counted?"""
    with pytest.raises(RecordsRejected, match="Bad records in the batch: 500") as caught:
        accept(build_batch(records(500, key=None)), COMPACTED)

    assert RECORD_ERRORS_MAX == len(caught.value.record_errors)


def test_a_refusal_anew_is_the_same() -> None:
    """Does a refusal that is kept say what the raised one said, without the frames of the raise?"""
    with pytest.raises(RecordsRejected) as caught:
        accept(build_batch(records(2, key=None)), COMPACTED)
    anew = refusal_anew(caught.value)

    assert isinstance(anew, RecordsRejected)
    assert (caught.value.code, caught.value.message) == (anew.code, anew.message)
    assert caught.value.record_errors == anew.record_errors
    assert anew.__traceback__ is None


def test_corrupt_batch_never_leaks() -> None:
    """Is our own CorruptBatch always told as a KafkaError?"""
    with pytest.raises(KafkaError) as caught:
        check_produced(memoryview(assemble(read_header(batch(2)), b"\x0c" * 60)), PLAIN, NOW)
    assert not isinstance(caught.value, CorruptBatch)
