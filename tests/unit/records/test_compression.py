"""The codecs: everything the field writes is read, and no few bytes become many."""

import contextlib
import gzip
import struct
import tracemalloc

import aiokafka.codec
import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.records.batch import CorruptBatch
from headrace.records.compression import (
    _FULL,
    CODEC_NAMES,
    CODECS,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    DecompressedTooLarge,
    compress,
    container_fault,
    decompress,
)

MIB = 1024 * 1024
TEXT = b"".join(b"line %d of the text; " % index for index in range(10_000))
COMPRESSED = [GZIP, SNAPPY, LZ4, ZSTD]
ids = CODEC_NAMES.__getitem__


def bomb(codec: int) -> bytes:
    """64 MiB of zeros, built in pieces so that the test itself stays small."""
    if codec == SNAPPY:
        block = bytes(cramjam.snappy.compress_raw(bytes(32 * 1024)))
        return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + (struct.pack(">i", len(block)) + block) * 2048
    writer = {GZIP: cramjam.gzip, LZ4: cramjam.lz4, ZSTD: cramjam.zstd}[codec].Compressor(9)
    for _ in range(64):
        writer.compress(bytes(MIB))
    return bytes(writer.finish())


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(range(5)), st.binary(max_size=3_000), st.integers(1, 300))
def test_round_trip(codec: int, data: bytes, times: int) -> None:
    """Does data come back from every codec, of any size and however well it shrinks?"""
    assert data * times == decompress(codec, compress(codec, data * times), len(data) * times)


@pytest.mark.parametrize("codec", COMPRESSED, ids=ids)
@pytest.mark.parametrize("size", [0, 1, 16 * 1024, 16 * 1024 + 1, 65_536, 300_000])
def test_the_limit_is_exact(codec: int, size: int) -> None:
    """Is output of exactly the limit fine and one byte more too large?"""
    packed = compress(codec, bytes(size))

    assert bytes(size) == decompress(codec, packed, size)
    if size:
        with pytest.raises(DecompressedTooLarge):
            decompress(codec, packed, size - 1)


@pytest.mark.parametrize("codec", COMPRESSED, ids=ids)
def test_a_bomb_takes_no_more_than_the_limit(codec: int) -> None:
    """Does a bomb of 64 MiB end in an error after at most the allowed MiB of memory?"""
    packed = bomb(codec)
    tracemalloc.start()
    try:
        with pytest.raises(DecompressedTooLarge):
            decompress(codec, packed, MIB)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 1.5 * MIB


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD], ids=ids)
def test_bombs_are_bombs(codec: int) -> None:
    """Do the bombs above grow enough to be worth the name, 100 times and up to thousands?"""
    assert len(bomb(codec)) * 100 < 64 * MIB


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD], ids=ids)
def test_how_the_library_says_full(codec: int) -> None:
    """Does the library still say in the words we look for that its output buffer is too small?"""
    library = {GZIP: cramjam.gzip, LZ4: cramjam.lz4, ZSTD: cramjam.zstd}[codec]
    with pytest.raises(cramjam.DecompressionError, match=_FULL):
        library.decompress_into(compress(codec, TEXT), bytearray(100))


@pytest.mark.parametrize("codec", COMPRESSED, ids=ids)
def test_damage_is_corrupt(codec: int) -> None:
    """Is damaged data of any kind a CorruptBatch, and never another exception?"""
    packed = compress(codec, TEXT)
    for bad in (b"", packed[:1], packed[:10], packed[: len(packed) // 2], packed[:-1], bytes(100), TEXT[:100]):
        with pytest.raises(CorruptBatch):
            decompress(codec, bad, 10 * MIB)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(COMPRESSED), st.binary(max_size=200), st.integers(0, 400), st.integers(1, 255))
def test_noise_never_escapes(codec: int, noise: bytes, at: int, flip: int) -> None:
    """Does noise, and good data with one wrong byte, end in data within the limit or in CorruptBatch?"""
    packed = bytearray(compress(codec, TEXT[:400]))
    packed[at % len(packed)] ^= flip
    for data in (noise, bytes(packed), bytes(packed[:20]) + noise):
        with contextlib.suppress(CorruptBatch):
            assert len(decompress(codec, data, MIB)) <= MIB


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codecs(codec: int) -> None:
    """Is a codec nobody has defined refused?"""
    with pytest.raises(CorruptBatch):
        decompress(codec, b"abc", 100)


def test_what_aiokafka_writes() -> None:
    """Do we read what aiokafka's codecs write?"""
    assert decompress(GZIP, aiokafka.codec.gzip_encode(TEXT), MIB) == TEXT
    assert decompress(SNAPPY, aiokafka.codec.snappy_encode(TEXT), MIB) == TEXT
    assert decompress(LZ4, aiokafka.codec.lz4_encode(TEXT), MIB) == TEXT
    assert decompress(ZSTD, aiokafka.codec.zstd_encode(TEXT), MIB) == TEXT


def test_what_aiokafka_reads() -> None:
    """Does aiokafka read what our codecs write?"""
    assert aiokafka.codec.gzip_decode(compress(GZIP, TEXT)) == TEXT
    assert aiokafka.codec.snappy_decode(compress(SNAPPY, TEXT)) == TEXT
    assert aiokafka.codec.lz4_decode(compress(LZ4, TEXT)) == TEXT
    assert aiokafka.codec.zstd_decode(compress(ZSTD, TEXT)) == TEXT


def test_lz4_is_what_java_takes() -> None:
    """Has our lz4 frame independent blocks of 64 KiB, without which Java's reader gives up?"""
    frame = compress(LZ4, TEXT)

    assert frame[4] >> 6 == 1
    assert frame[4] & 0x20
    assert frame[5] == 0x40


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("checksum", [True, False])
def test_every_lz4_frame_is_read(linked: bool, checksum: bool) -> None:
    """Do we read lz4 frames with and without linked blocks and checksums?"""
    writer = cramjam.lz4.Compressor(1, content_checksum=checksum, block_linked=linked)
    writer.compress(TEXT)

    assert decompress(LZ4, bytes(writer.finish()), MIB) == TEXT


def test_raw_snappy_is_read() -> None:
    """Do we read snappy as librdkafka writes it, without Java's framing?"""
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), MIB) == TEXT


def test_joined_xerial_streams_are_read() -> None:
    """Do we read two xerial streams put together, as Java does?"""
    assert decompress(SNAPPY, bytes(compress(SNAPPY, TEXT)) * 2, MIB) == TEXT + TEXT


def test_joined_gzip_members_are_read() -> None:
    """Do we read more than one gzip member, as Java does?"""
    assert decompress(GZIP, gzip.compress(TEXT) + gzip.compress(b"tail"), MIB) == TEXT + b"tail"


def test_zstd_of_unknown_size_is_read() -> None:
    """Do we read zstd frames without a content size, as a streaming writer makes them?"""
    writer = cramjam.zstd.Compressor(3)
    writer.compress(TEXT)

    assert decompress(ZSTD, bytes(writer.finish()), MIB) == TEXT


@pytest.mark.parametrize("block", [b"", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x7f\xff\xff\xff", b"\x00\x00"])
def test_xerial_block_lengths_are_distrusted(block: bytes) -> None:
    """Is a block length that is cut, negative, zero or too long refused?"""
    header = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    if not block:
        assert decompress(SNAPPY, header, MIB) == b""
        return
    with pytest.raises(CorruptBatch):
        decompress(SNAPPY, header + block, MIB)


@pytest.mark.parametrize("codec", COMPRESSED, ids=ids)
def test_the_glance(codec: int) -> None:
    """Does the cheap look pass honest data and stop a declared size beyond the limit where the format declares one?"""
    raw = bytes(cramjam.snappy.compress_raw(TEXT)) if codec == SNAPPY else bytes(compress(codec, TEXT))

    assert container_fault(codec, raw, len(TEXT)) is None
    if codec != LZ4:
        assert isinstance(container_fault(codec, raw, len(TEXT) - 1), DecompressedTooLarge)
    if codec != SNAPPY:
        assert isinstance(container_fault(codec, b"nonsense" + raw, MIB), CorruptBatch)


def test_lz4_that_declares_its_size() -> None:
    """Is the content size of an lz4 frame, where there is one, believed as a reason to refuse?"""
    frame = b"\x04\x22\x4d\x18\x68\x40" + struct.pack("<Q", 2**40) + bytes(8)

    assert isinstance(container_fault(LZ4, frame, MIB), DecompressedTooLarge)


@pytest.mark.parametrize("size", [100, 300, 70_000])
@pytest.mark.parametrize("streamed", [True, False])
def test_zstd_declared_sizes(size: int, streamed: bool) -> None:
    """Is the content size read right in each width zstd writes it in, and where it is missing?"""
    if streamed:
        writer = cramjam.zstd.Compressor(3)
        writer.compress(TEXT[:size])
        frame = bytes(writer.finish())
    else:
        frame = bytes(cramjam.zstd.compress(TEXT[:size], 3))

    assert container_fault(ZSTD, frame, size) is None
    assert (container_fault(ZSTD, frame, size - 1) is None) == streamed


def test_names() -> None:
    """Do names and numbers of the codecs fit Kafka's?"""
    assert CODECS == {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4, "uncompressed": 0}
    assert decompress(NONE, compress(NONE, b"as it is"), 100) == b"as it is"


def test_default_lz4_is_the_fast_one():
    """Does lz4 at Kafka's default level compress the fast way, as Kafka does, and any other level more thoroughly?"""
    data = b"".join(b"%d;%d|" % (n * n, n % 97) for n in range(20_000))
    fast = [len(compress(LZ4, data, level)) for level in (None, 9)]
    thorough = [len(compress(LZ4, data, level)) for level in (1, 8, 10, 17)]

    assert fast[0] == fast[1]
    assert max(thorough) < fast[0]
