"""The codecs of a batch's records: none, gzip, snappy, lz4, zstd, with every output capped before it is allocated.

A few compressed bytes can claim to be gigabytes, so nothing here believes a size. Snappy says its length up front and
is measured before a byte is written. The other three decompress into a buffer of our own size; when that is too small
it grows fourfold up to the caller's limit and the work starts again, which costs an honest batch at most a third more.
A hostile one gets the limit's worth of memory, once, and an error.

What the writers in the field send, all read here: Java's snappy is xerial-framed (16 bytes of header, then blocks with
their length), librdkafka's is raw; Java's lz4 frames carry no content size, others may; zstd frames carry it or not.
What is written here is what Java can read: xerial snappy, and lz4 with independent blocks, the only kind Java takes.
"""

import mmap
import struct
from collections.abc import Iterator

import cramjam

from headrace.records.batch import CorruptBatch

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
CODECS = {name: number for number, name in enumerate(CODEC_NAMES)} | {"uncompressed": NONE}
"""Codec numbers by name; `compression.type` says "uncompressed" where clients say "none"."""

DEFAULT_LEVELS = {GZIP: 6, LZ4: 9, ZSTD: 3}
"""Kafka's defaults for compression.gzip.level (zlib's own), compression.lz4.level and compression.zstd.level."""

_LZ4_FAST, _LZ4_SLOW_FIRST = 1, 3
"""The lz4 library compresses thoroughly from level 3 on."""

Bytes = bytes | bytearray | memoryview

_OUTPUT_BYTES_MIN = 16 * 1024
_MAPPED_BYTES_MIN = 1024 * 1024
_GROWTH = 4
_BELIEVABLE_RATIO = 32
"""A declared size is used as the first guess only up to this ratio; records that shrink further are rare."""
_FULL = "failed to write whole buffer"
"""How cramjam says that the output buffer is too small, for every codec that streams into one; pinned by a test."""

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_BLOCK_LENGTH = struct.Struct(">i")
_UINT32 = struct.Struct("<I")
_UINT64 = struct.Struct("<Q")
_MAGIC = {GZIP: b"\x1f\x8b", LZ4: b"\x04\x22\x4d\x18", ZSTD: b"\x28\xb5\x2f\xfd"}
_STREAMS = {GZIP: cramjam.gzip, LZ4: cramjam.lz4, ZSTD: cramjam.zstd}


class DecompressedTooLarge(CorruptBatch):
    """Compressed records that grow beyond the limit set for them."""


def compress(codec: int, data: Bytes, level: int | None = None) -> Bytes:
    """`data` in the given codec, in the one form that every client reads."""
    chosen = DEFAULT_LEVELS.get(codec) if level is None else level
    if codec == NONE:
        return data
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(data, chosen))
    if codec == SNAPPY:
        return _compress_xerial(data)
    if codec == LZ4:
        frame = cramjam.lz4.Compressor(_lz4_level(chosen), content_checksum=False, block_linked=False)
        frame.compress(bytes(data))
        return bytes(frame.finish())
    assert codec == ZSTD, codec
    return bytes(cramjam.zstd.compress(data, chosen))


def _lz4_level(level: int | None) -> int:
    """What the lz4 library calls Kafka's level: its default is the fast way, all others are thorough."""
    return _LZ4_FAST if level is None or level == DEFAULT_LEVELS[LZ4] else max(level, _LZ4_SLOW_FIRST)


def decompress(codec: int, data: Bytes, max_bytes: int) -> Bytes:
    """The records behind `data`; DecompressedTooLarge beyond `max_bytes`, CorruptBatch if it is not of that codec."""
    if codec == NONE:
        return data
    fault = container_fault(codec, data, max_bytes)
    if fault is not None:
        raise fault
    try:
        return _decompress_snappy(data, max_bytes) if codec == SNAPPY else _decompress_stream(codec, data, max_bytes)
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"the {CODEC_NAMES[codec]} records cannot be decompressed: {error}") from None


def container_fault(codec: int, data: Bytes, max_bytes: int) -> CorruptBatch | None:
    """What a glance at the first bytes says against the data: the wrong magic, or a declared size beyond `max_bytes`.

    Takes the same time whatever the size of the data; for a produce path that must not decompress.
    """
    if codec >= len(CODEC_NAMES):
        return CorruptBatch(f"compression codec {codec} is unknown")
    magic = _MAGIC.get(codec)
    if magic is not None and bytes(data[: len(magic)]) != magic:
        return CorruptBatch(f"the records are not {CODEC_NAMES[codec]}, though the batch says so")
    declared = _declared_bytes(codec, data)
    if declared is not None and declared > max_bytes:
        return DecompressedTooLarge(
            f"the {CODEC_NAMES[codec]} records declare {declared} bytes, {max_bytes} are allowed"
        )
    return None


def _declared_bytes(codec: int, data: Bytes) -> int | None:
    """The size the data claims for itself, where its format lets it; gzip only knows it modulo 4 GiB."""
    if codec == LZ4:
        return _UINT64.unpack_from(data, 6)[0] if len(data) >= 14 and data[4] & 0x08 else None
    if codec == ZSTD:
        return _zstd_content_bytes(data)
    if codec == GZIP:
        return _UINT32.unpack_from(data, len(data) - 4)[0] if len(data) >= 18 else None
    if codec == SNAPPY and not _is_xerial(data):
        try:
            return cramjam.snappy.decompress_raw_len(data)
        except cramjam.DecompressionError:
            return None
    return None


def _zstd_content_bytes(data: Bytes) -> int | None:
    """Frame_Content_Size of a zstd frame header (RFC 8878, 3.1.1.1), if it is there."""
    if len(data) < 18:
        return None
    descriptor = data[4]
    size_flag, single_segment = descriptor >> 6, descriptor >> 5 & 1
    position = 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3]
    width = (single_segment, 2, 4, 8)[size_flag]
    if not width:
        return None
    return int.from_bytes(data[position : position + width], "little") + (256 if width == 2 else 0)


def _decompress_stream(codec: int, data: Bytes, max_bytes: int) -> Bytes:
    declared = _declared_bytes(codec, data)
    guess = len(data) * _GROWTH if declared is None else min(declared, len(data) * _BELIEVABLE_RATIO)
    capacity = min(max(guess, _OUTPUT_BYTES_MIN), max_bytes)
    while True:
        output = _room(capacity)
        try:
            size = _STREAMS[codec].decompress_into(data, output)
        except cramjam.DecompressionError as error:
            # At once: the error takes this frame along, and the next attempt must not hold the limit's worth twice.
            del output
            if _FULL not in str(error):
                raise
            if capacity >= max_bytes:
                raise DecompressedTooLarge(f"the {CODEC_NAMES[codec]} records grow beyond {max_bytes} bytes") from None
            capacity = min(capacity * _GROWTH, max_bytes)
            continue
        return output[:size]


def _room(capacity: int) -> memoryview:
    """A buffer to write into; a large one is mapped, as zeroing it would hold the interpreter for long."""
    return memoryview(bytearray(capacity) if capacity < _MAPPED_BYTES_MIN else mmap.mmap(-1, capacity))


def _is_xerial(data: Bytes) -> bool:
    return bytes(data[:8]) == _XERIAL_MAGIC


def _compress_xerial(data: Bytes) -> bytes:
    parts: list[bytes] = [_XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: Bytes, max_bytes: int) -> bytearray:
    blocks = list(_xerial_blocks(memoryview(data))) if _is_xerial(data) else [memoryview(data)]
    sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
    if sum(sizes) > max_bytes:
        raise DecompressedTooLarge(f"the snappy records declare {sum(sizes)} bytes, {max_bytes} are allowed")
    output = bytearray(sum(sizes))
    view, position = memoryview(output), 0
    for block, size in zip(blocks, sizes, strict=True):
        cramjam.snappy.decompress_raw_into(block, view[position : position + size])
        position += size
    return output


def _xerial_blocks(data: memoryview) -> Iterator[memoryview]:
    """The raw snappy blocks of a xerial stream; a header may come again where two streams were put together."""
    position, total = 0, len(data)
    while position < total:
        if data[position : position + 8] == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)
            continue
        if total - position < _BLOCK_LENGTH.size:
            raise CorruptBatch("the snappy records end inside a block's length")
        length: int = _BLOCK_LENGTH.unpack_from(data, position)[0]
        position += _BLOCK_LENGTH.size
        if not 0 < length <= total - position:
            raise CorruptBatch(f"a snappy block claims {length} bytes, {total - position} are left")
        yield data[position : position + length]
        position += length
    if position != total:
        raise CorruptBatch("the snappy records end inside the header")
