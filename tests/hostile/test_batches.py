"""Batches no honest producer sends: the right error for each, nothing appended, and no memory for bombs."""

import struct
import threading
import zlib
from collections.abc import Callable

import cramjam
import pytest
from crc32c import crc32c

from headrace.model.errors import ErrorCode
from headrace.records.build import NewRecord, build_batch
from headrace.records.compression import CODECS
from hostile.neighbour import read_values
from wire_client import WireClient

pytestmark = pytest.mark.slow

MIB = 1 << 20
NOW_MS = 1_700_000_000_000
CRC_AT, CRC_FROM = 17, 21


def good(count: int = 3, **more) -> bytearray:
    """A batch as producers send them."""
    return build_batch([NewRecord(NOW_MS + n, b"key", b"value %d" % n, ()) for n in range(count)], **more)


def sealed(batch: bytearray) -> bytes:
    """The batch with a CRC that is right."""
    struct.pack_into(">I", batch, CRC_AT, crc32c(bytes(batch[CRC_FROM:])))
    return bytes(batch)


def with_field(position: int, form: str, value: int, **more) -> bytes:
    """A good batch in which one field of the header is another, the CRC following."""
    batch = good(**more)
    struct.pack_into(form, batch, position, value)
    return sealed(batch)


def with_payload(change: Callable[[bytearray], bytes | bytearray], *, count: int = 3) -> bytes:
    """A good batch whose records are others, length and CRC following."""
    batch = good(count)
    payload = change(batch[61:])
    batch = batch[:61] + payload
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    return sealed(batch)


def flipped(batch: bytearray, bit: int) -> bytes:
    """The batch with one bit flipped and its old CRC."""
    batch[bit // 8] ^= 1 << bit % 8
    return bytes(batch)


def old_message(magic: int) -> bytes:
    """A message of the old formats, as clients before 0.11 sent them."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", NOW_MS) if magic else b"")
    body += struct.pack(">i", -1) + struct.pack(">i", 5) + b"value"
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


CORRUPT, INVALID = {ErrorCode.CORRUPT_MESSAGE}, {ErrorCode.INVALID_RECORD}
EITHER = CORRUPT | INVALID
BAD_BATCHES: dict[str, tuple[bytes, set[ErrorCode]]] = {
    "one bit of the records": (flipped(good(), 8 * 70), CORRUPT),
    "one bit of the CRC": (flipped(good(), 8 * CRC_AT), CORRUPT),
    "one bit of the attributes": (flipped(good(), 8 * 22), CORRUPT),
    "magic 0": (old_message(0), INVALID | {ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT}),
    "magic 1": (old_message(1), INVALID | {ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT}),
    "magic 3": (with_field(16, ">b", 3), EITHER),
    "magic -1": (with_field(16, ">b", -1), EITHER),
    "more records than there are": (with_field(57, ">i", 4), INVALID),
    "fewer records than there are": (with_field(57, ">i", 2), INVALID),
    "no records": (with_field(57, ">i", 0), INVALID),
    "minus one record": (with_field(57, ">i", -1), INVALID),
    "two thousand million records": (with_field(57, ">i", 2**31 - 1), INVALID),
    "last offset delta too large": (with_field(23, ">i", 3), INVALID),
    "last offset delta negative": (with_field(23, ">i", -1), INVALID),
    "base offset not 0": (with_field(0, ">q", 5), INVALID),
    "length too small": (with_field(8, ">i", 10), EITHER),
    "length negative": (with_field(8, ">i", -1), EITHER),
    "length too large": (with_field(8, ">i", 2**31 - 1), EITHER),
    "half a batch": (bytes(good()[:80]), EITHER),
    "a few bytes": (b"\x00" * 20, EITHER),
    "two batches": (bytes(good() + good()), INVALID),
    "a batch and a bit": (bytes(good() + b"\x00"), INVALID),
    "control batch": (with_field(21, ">h", 0x20), INVALID),
    "an unknown codec": (with_field(21, ">h", 5), {ErrorCode.UNSUPPORTED_COMPRESSION_TYPE} | INVALID),
    "not gzip": (with_field(21, ">h", 1), EITHER),
    "not snappy": (with_field(21, ">h", 2), EITHER),
    "not lz4": (with_field(21, ">h", 3), EITHER),
    "not zstd": (with_field(21, ">h", 4), EITHER),
    "transactional without a producer": (with_field(21, ">h", 0x10), INVALID),
    "producer without a sequence": (with_field(43, ">q", 77), INVALID),
    "timestamp of the future": (with_field(35, ">q", 2**62), {ErrorCode.INVALID_TIMESTAMP}),
    "records of noise": (with_payload(lambda payload: b"\xff" * len(payload)), INVALID),
    "records cut short": (with_payload(lambda payload: payload[:-3]), INVALID),
    "bytes behind the records": (with_payload(lambda payload: payload + b"\x00\x00"), INVALID),
    "a record of negative length": (with_payload(lambda payload: b"\x01" + payload[1:]), INVALID),
    "a record longer than all": (with_payload(lambda payload: b"\xfe\xff\xff\xff\x0f" + payload[1:]), INVALID),
    "an endless length": (with_payload(lambda payload: b"\xff" * 11 + payload[1:]), INVALID),
    "key longer than its record": (with_payload(lambda p: p[:4] + b"\x7e" + p[5:], count=1), INVALID),
    "headers without end": (with_payload(lambda p: p[:-1] + b"\x7e", count=1), INVALID),
}


UNSEEN_FROM_OUTSIDE = {"not snappy", "key longer than its record", "headers without end"}
"""With a right CRC and right lengths: only a topic that has to look inside finds these (see records/produced.py)."""


@pytest.mark.parametrize(
    ("name", "compacted"),
    [(name, True) for name in BAD_BATCHES] + [(name, False) for name in BAD_BATCHES if name not in UNSEEN_FROM_OUTSIDE],
)
def test_bad_batch(target, neighbour, guarded, wire, name, compacted):
    """Is a bad batch answered with its error, and is nothing of it appended, on a topic that looks inside or not?"""
    batch, allowed = BAD_BATCHES[name]
    client = wire(target)
    topic = guarded
    if compacted:
        topic = f"{guarded}-c"
        assert client.create_topic(topic, cleanup_policy="compact").error_code == 0
    for version in (3, 8, 12):
        result = client.produce(topic, batch, version=version)

        assert ErrorCode(result.error_code) in allowed, result
        assert result.base_offset == -1
    assert client.list_offset(topic, -1).offset == (0 if compacted else 3)


def test_batch_of_no_bytes(target, neighbour, guarded, wire):
    """Is a partition without records refused, null as well as empty?"""
    client = wire(target)
    for records in (b"", None):
        assert client.produce(guarded, records).error_code == ErrorCode.INVALID_RECORD


def test_too_large(target, neighbour, guarded, wire):
    """Is a batch above max.message.bytes refused?"""
    batch = build_batch([NewRecord(NOW_MS, None, b"x" * (2 * MIB), ())])

    assert wire(target).produce(guarded, bytes(batch)).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_acks_0_of_a_bad_batch(target, neighbour, guarded, wire):
    """Is the connection closed, as there is no other way to tell?"""
    client = wire(target)
    client.produce(guarded, BAD_BATCHES["one bit of the CRC"][0], acks=0)

    assert client.is_closed_by_broker()


def test_one_bad_partition_of_two(target, neighbour, guarded, wire):
    """Does one bad batch of a request leave the good one of another partition alone?"""
    from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

    client = wire(target)
    topic = f"{guarded}-2"
    assert client.create_topic(topic, partitions=2).error_code == 0
    batches = (BAD_BATCHES["one bit of the CRC"][0], bytes(good()))
    data = tuple(PartitionProduceData(index=i, records=batch) for i, batch in enumerate(batches))
    request = ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=(TopicProduceData(name=topic, partition_data=data),))
    (answer,) = client.ask("Produce", 12, request).responses

    assert [row.error_code for row in answer.partition_responses] == [ErrorCode.CORRUPT_MESSAGE, 0]
    assert [client.list_offset(topic, -1, partition=partition).offset for partition in range(2)] == [0, 3]


BOMB_BYTES = 100 * MIB


def record_payload(size: int) -> bytes:
    """One record with a value of so many zeros, as it stands in a batch before it is compressed."""
    varint = bytearray()
    number = size << 1
    while number > 0x7F:
        varint.append(number & 0x7F | 0x80)
        number >>= 7
    varint.append(number)
    inside = b"\x00\x00\x00\x06key" + bytes(varint) + b"\x00" * size + b"\x00"
    length = bytearray()
    number = len(inside) << 1
    while number > 0x7F:
        length.append(number & 0x7F | 0x80)
        number >>= 7
    length.append(number)
    return bytes(length) + inside


def lz4_without_size(data: bytes) -> bytes:
    """An lz4 frame that does not say how large it is."""
    frame = cramjam.lz4.Compressor(1, content_checksum=False, block_linked=False)
    frame.compress(data)
    return bytes(frame.finish())


def zstd_without_size(data: bytes) -> bytes:
    """A zstd frame that does not say how large it is."""
    stream = cramjam.zstd.Compressor(1)
    for start in range(0, len(data), MIB):
        stream.compress(data[start : start + MIB])
    return bytes(stream.finish())


def snappy_liar(data: bytes) -> bytes:
    """Snappy that claims two gigabytes: real bombs do not fit its ratio."""
    return b"\xff\xff\xff\xff\x07" + bytes(cramjam.snappy.compress_raw(data[:1000]))[2:]


def xerial_flood(data: bytes) -> bytes:
    """Java's framing around many blocks that each say a little, and all together too much."""
    block = bytes(cramjam.snappy.compress_raw(data[:MIB]))
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + (struct.pack(">i", len(block)) + block) * 150


def gzip_liar(data: bytes) -> bytes:
    """Gzip that says at its end that it is small."""
    return zlib.compress(data, 6, 31)[:-4] + struct.pack("<I", 500)


BOMBS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", lambda data: zlib.compress(data, 9, 31)),
    "gzip that lies": ("gzip", gzip_liar),
    "lz4": ("lz4", lz4_without_size),
    "zstd": ("zstd", lambda data: bytes(cramjam.zstd.compress(data, 1))),
    "zstd without its size": ("zstd", zstd_without_size),
    "snappy": ("snappy", snappy_liar),
    "snappy blocks": ("snappy", xerial_flood),
}


@pytest.fixture(scope="module")
def bombs():
    """Each bomb as a batch of one record."""
    payload = record_payload(BOMB_BYTES)
    made = {}
    for name, (codec, compress) in BOMBS.items():
        batch = good(1)[:61] + compress(payload)
        struct.pack_into(">i", batch, 8, len(batch) - 12)
        struct.pack_into(">h", batch, 21, CODECS[codec])
        made[name] = sealed(batch)
    return made


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("settings", [{"cleanup_policy": "compact"}, {"compression_type": "uncompressed"}], ids=str)
def test_zip_bomb(target, neighbour, guarded, wire, bombs, name, settings):
    """Is a bomb refused on a topic that has to look inside, with no more memory than the limit allows?"""
    client = wire(target)
    topic = f"{guarded[:150]}-b"
    assert client.create_topic(topic, max_message_bytes=str(32 * MIB), **settings).error_code == 0
    before = target.memory().anonymous_bytes
    watch = Watch(target)
    with watch:
        result = client.produce(topic, bombs[name])

    assert result.error_code in {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE}
    assert client.list_offset(topic, -1).offset == 0
    assert watch.most - before < 64 * MIB + 2 * len(bombs[name]) + 16 * MIB


class Watch(threading.Thread):
    """Looks at a broker's memory all the while, and remembers the most there was."""

    def __init__(self, broker) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self._broker = broker
        self._ending = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._ending.set()
        self.join()

    def run(self) -> None:
        """Until told to end."""
        while not self._ending.wait(0.002):
            self.most = max(self.most, self._broker.memory().anonymous_bytes)


@pytest.mark.parametrize("name", BOMBS)
def test_zip_bomb_on_a_plain_topic(target, neighbour, guarded, wire, bombs, name):
    """Is a bomb that need not be opened harmless, also when somebody looks for a timestamp in it?"""
    client = wire(target)
    topic = f"{guarded[:150]}-b"
    assert client.create_topic(topic, max_message_bytes=str(32 * MIB)).error_code == 0
    before = target.memory().anonymous_bytes
    with Watch(target) as watch:
        result = client.produce(topic, bombs[name])
        found = client.list_offset(topic, NOW_MS)
        latest = client.list_offset(topic, -3)
        after = client.produce(topic, bytes(good()))

    assert (result.error_code, client.list_offset(topic, -1).offset) in {
        (0, 4),
        (ErrorCode.MESSAGE_TOO_LARGE, 3),
        (ErrorCode.INVALID_RECORD, 3),
    }
    assert after.error_code == 0
    assert found.error_code in {0, ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR}
    assert latest.error_code in {0, ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR}
    assert watch.most - before < 64 * MIB + 2 * len(bombs[name]) + 16 * MIB


def test_bombs_from_many(target, neighbour, guarded, bombs):
    """Do many bombs at once cost no more than the few that are opened at a time, and does all go on meanwhile?"""
    topic = f"{guarded}-c"
    with WireClient(target.port) as client:
        settings = {"max_message_bytes": str(32 * MIB), "cleanup_policy": "compact"}
        assert client.create_topic(topic, partitions=8, **settings).error_code == 0
    before = target.memory().anonymous_bytes
    clients = [WireClient(target.port) for _ in range(8)]
    codes: list[int] = []

    def throw(client: WireClient, partition: int) -> None:
        codes.extend(
            client.produce(topic, bombs["zstd without its size"], partition=partition).error_code for _ in range(3)
        )

    with Watch(target) as watch:
        threads = [threading.Thread(target=throw, args=(client, i)) for i, client in enumerate(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for client in clients:
        client.close()

    assert set(codes) == {ErrorCode.MESSAGE_TOO_LARGE}
    assert watch.most - before < 2 * 64 * MIB + 32 * MIB
    with WireClient(target.port) as client:
        assert read_values(client, topic) == []
