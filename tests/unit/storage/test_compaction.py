"""What is left of one batch."""

import struct
from typing import Any

import pytest

from headrace.records.batch import (
    CONTROL,
    DELETE_HORIZON,
    BatchHeader,
    check_batch,
    patch_offsets,
    read_header,
    seal,
)
from headrace.records.build import NewRecord, assemble, build_batch
from headrace.records.compression import CODEC_NAMES, CODECS
from headrace.records.control import AbortedTransaction, EndTransactionMarker, build_end_marker, read_end_marker
from headrace.records.walk import walk
from headrace.storage.cleaned_transactions import CleanedTransactions
from headrace.storage.compaction import Compaction
from headrace.storage.offset_map import OffsetMap

DAY = 86_400_000
NOW = 10 * DAY


def compaction(newest: dict[bytes, int], *, end_offset: int = 10**6, now_ms: int = NOW, **options: Any) -> Compaction:
    """A round that knows these keys."""
    offsets = OffsetMap(max_bytes=10**6, load_factor=0.9, keys_max=1_000)
    for key, offset in newest.items():
        offsets.put(key, offset)
    settings: dict[str, Any] = {
        "last_offsets": {},
        "last_epochs": {},
        "transactions": CleanedTransactions([]),
        "max_decompressed_bytes": 10**6,
        "breathe": lambda: None,
    }
    return Compaction(
        offsets=offsets, end_offset=end_offset, now_ms=now_ms, delete_retention_ms=DAY, **settings | options
    )


def batch(values: list[tuple[bytes | None, bytes | None]], **options: Any) -> bytearray:
    """Records 1 ms apart, from offset 100 on, by a producer."""
    producer = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 50, "leader_epoch": 3}
    records = [NewRecord(1_000 + index, key, value, [("h", key)]) for index, (key, value) in enumerate(values)]
    return build_batch(records, base_offset=100, **producer | options)


def left(round_: Compaction, data: bytearray, *, is_last: bool = False) -> bytearray | None:
    """What a round leaves of a batch, checked."""
    result = round_.compact(read_header(data), memoryview(data), is_last=is_last)
    if result is None:
        return None
    check_batch(bytearray(result))
    return bytearray(result)


def contents(data: bytearray) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """Offset, timestamp, key and value of each record."""
    return [
        (r.offset, r.timestamp, None if r.key is None else bytes(r.key), None if r.value is None else bytes(r.value))
        for r in walk(data)
    ]


def unchanging(header: BatchHeader) -> tuple[int, ...]:
    """What compaction must never change in a batch."""
    return (
        header.base_offset,
        header.last_offset,
        header.leader_epoch,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.last_sequence,
    )


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_superseded_records_go(codec: str) -> None:
    """Do exactly the records stay that are the last of their key, all else about them as it was?"""
    data = batch([(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4")], codec=codec)
    kept = left(compaction({b"a": 102, b"b": 500}), data)
    assert kept is not None
    header = read_header(kept)

    assert contents(kept) == [(102, 1_002, b"a", b"3"), (103, 1_003, b"c", b"4")]
    assert [record.headers for record in walk(kept)] == [(("h", b"a"),), (("h", b"c"),)]
    assert unchanging(header) == unchanging(read_header(data))
    assert (header.record_count, header.codec, header.max_timestamp) == (2, CODECS[codec], 1_003)


def test_the_greatest_timestamp_follows_the_records() -> None:
    """Is max timestamp that of the records that are left, and the broker's own kept where it set it?"""
    values: list[tuple[bytes | None, bytes | None]] = [(b"a", b"1"), (b"b", b"2")]
    own = left(compaction({b"b": 500}), batch(values))
    stamped = left(compaction({b"b": 500}), batch(values, log_append_time_ms=77))

    assert own is not None
    assert read_header(own).max_timestamp == 1_000
    assert stamped is not None
    assert contents(stamped) == [(100, 77, b"a", b"1")]


def test_an_untouched_batch_is_the_same_bytes() -> None:
    """Is a batch of which nothing goes copied as it is?"""
    data = batch([(b"a", b"1"), (b"b", b"2")], codec="zstd")

    assert left(compaction({b"a": 100}), data) == data


def test_records_without_a_key_go() -> None:
    """Is a record without a key dropped, as a compacted topic has no use for it?"""
    kept = left(compaction({}), batch([(None, b"1"), (b"b", b"2"), (b"", b"3")]))

    assert kept is not None
    assert [offset for offset, *_ in contents(kept)] == [101, 102]


def test_nothing_left() -> None:
    """Does a batch without records go, unless it is the last of its producer or of the segment?"""
    data = batch([(b"a", b"1"), (b"a", b"2")], codec="lz4")
    newest = {b"a": 500}

    assert left(compaction(newest), data) is None
    assert left(compaction(newest, last_offsets={7: 99, 8: 101}), data) is None
    for kept in (left(compaction(newest, last_offsets={7: 101}), data), left(compaction(newest), data, is_last=True)):
        assert kept is not None
        header = check_batch(kept)
        assert len(kept) == 61
        assert unchanging(header) == unchanging(read_header(data))
        assert (header.record_count, header.codec, header.max_timestamp) == (0, 0, 1_001)


def test_an_emptied_batch_goes_when_it_may() -> None:
    """Is a header without records dropped later, when its producer has moved on?"""
    emptied = left(compaction({b"a": 500}), batch([(b"a", b"1")]), is_last=True)
    assert emptied is not None

    assert left(compaction({}), emptied) is None
    assert left(compaction({}, last_offsets={7: 100}), emptied) == emptied


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_a_tombstone_gets_a_horizon_then_goes(codec: str) -> None:
    """Does a tombstone stay for delete.retention.ms from its first cleaning on, its neighbours' times unharmed?"""
    data = batch([(b"a", None), (b"b", b"2")], codec=codec)
    first = left(compaction({b"a": 100}), data)
    assert first is not None
    header = read_header(first)

    assert header.delete_horizon_ms == NOW + DAY
    assert contents(first) == contents(data)
    assert unchanging(header) == unchanging(read_header(data))
    assert left(compaction({}, now_ms=NOW + DAY - 1), first) == first
    later = left(compaction({}, now_ms=NOW + DAY), first)
    assert later is not None
    assert contents(later) == [(101, 1_001, b"b", b"2")]
    assert read_header(later).delete_horizon_ms == NOW + DAY


def test_a_superseded_tombstone_goes_at_once() -> None:
    """Is a tombstone of a key that was written again of no use to anybody?"""
    kept = left(compaction({b"a": 500}), batch([(b"a", None), (b"b", b"2")]))

    assert kept is not None
    assert contents(kept) == [(101, 1_001, b"b", b"2")]
    assert read_header(kept).delete_horizon_ms is None


def test_beyond_the_map_nothing_changes() -> None:
    """Does a batch the map does not know keep everything, and a tombstone there get no horizon?"""
    data = batch([(b"a", None), (b"a", b"2")])

    assert left(compaction({b"a": 500}, end_offset=101), data) == data


ABORTED = AbortedTransaction(7, 100, 110, 111)
"""The transaction of the batch that `batch` makes."""


def marker(*, committed: bool, offset: int = 110) -> bytearray:
    """The end of that transaction."""
    return build_end_marker(
        EndTransactionMarker(committed, 3, 5_000), producer_id=7, producer_epoch=1, base_offset=offset
    )


def aborting(**options: Any) -> Compaction:
    """A round over a log in which that transaction was aborted."""
    return compaction({}, transactions=CleanedTransactions([ABORTED]), **options)


def test_committed_records_are_like_others() -> None:
    """Does a transactional tombstone get a horizon, and go when it is superseded?"""
    tombstone = batch([(b"a", None)], transactional=True)
    result = left(compaction({}), tombstone)

    assert result is not None
    assert read_header(result).delete_horizon_ms == NOW + DAY
    assert left(compaction({b"a": 500}), tombstone) is None


def test_aborted_records_go_at_once() -> None:
    """Is nothing of an aborted batch left but its header where that is needed, even beyond the map?"""
    data = batch([(b"a", b"1"), (b"b", None)], transactional=True)
    emptied = left(aborting(last_offsets={7: 101}), data)

    assert left(aborting(), data) is None
    assert left(aborting(end_offset=50), data) is None
    assert emptied is not None
    assert contents(emptied) == []
    assert read_header(emptied).is_transactional


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_stays_with_its_transaction(committed: bool) -> None:
    """Does a marker stay as it is while a batch of its transaction is met, and is an abort noted for the index?"""
    round_ = compaction({}) if committed else aborting()
    left(round_, batch([(b"a", b"1")], transactional=True))
    end = marker(committed=committed)

    assert left(round_, end) == end
    assert round_.transactions.retained == ([] if committed else [ABORTED])


@pytest.mark.parametrize("committed", [True, False])
def test_a_lonely_marker_gets_a_horizon_then_goes(committed: bool) -> None:
    """Does a marker whose transaction is gone stay for delete.retention.ms, with its time and epoch, and then go?"""
    end = marker(committed=committed)
    dated = left(compaction({}), end)

    assert dated is not None
    assert read_header(dated).delete_horizon_ms == NOW + DAY
    assert read_end_marker(dated) == read_end_marker(end)
    assert unchanging(read_header(dated)) == unchanging(read_header(end))
    assert left(compaction({}, now_ms=NOW + DAY - 1), dated) == dated
    assert left(compaction({}, now_ms=NOW + DAY), dated) is None
    assert left(compaction({}, now_ms=NOW + DAY), dated, is_last=True) == dated


def test_a_marker_that_is_its_producers_last_word() -> None:
    """Does the marker with the newest epoch of a producer stay, where nothing else tells of that producer?"""
    dated = left(compaction({}), marker(committed=True))
    assert dated is not None

    assert left(compaction({}, now_ms=NOW + DAY, last_epochs={7: 1}), dated) == dated
    assert left(compaction({}, now_ms=NOW + DAY, last_epochs={7: 2}), dated) is None


def test_the_next_transaction_is_not_the_aborted_one() -> None:
    """Do the batches before and behind an aborted transaction of the same producer stay, even if its marker rots?"""
    round_ = aborting()
    early = batch([(b"a", b"1")], transactional=True)
    patch_offsets(early, 0, base_offset=90, leader_epoch=3)
    late = batch([(b"a", b"3")], transactional=True)
    patch_offsets(late, 0, base_offset=111, leader_epoch=3)

    assert left(round_, early) == early
    assert left(round_, batch([(b"a", b"2")], transactional=True)) is None
    rotten = _rotten(marker(committed=False))
    assert round_.compact(read_header(rotten), memoryview(rotten), is_last=False) == rotten
    assert left(round_, late) == late


def test_an_emptied_marker_goes() -> None:
    """Does a control batch go that another cleaner emptied, and one of another kind stay?"""
    emptied = assemble(read_header(marker(committed=True))._replace(record_count=0), b"")
    leader_change = batch([(b"\x00\x00\x00\x02", b"\x00" * 6)], control=True)

    assert left(compaction({}), emptied) is None
    assert left(compaction({}), leader_change) == leader_change


def test_who_supersedes() -> None:
    """Do plain and committed batches take part in the map, and aborted and control batches not?"""
    committed, aborted = CleanedTransactions([]), CleanedTransactions([ABORTED])
    for options, transactions, expected in (
        ({}, aborted, 101),
        ({"transactional": True}, committed, 101),
        ({"transactional": True}, aborted, -1),
        ({"control": True}, committed, -1),
    ):
        data = batch([(b"a", b"1"), (b"a", b"2")], **options)
        round_ = compaction({})

        assert round_.map_batch(read_header(data), memoryview(data), 0, transactions)
        assert round_.offsets.get(b"a") == expected


def test_mapping() -> None:
    """Are keys noted from the first dirty offset on, until there is no more room?"""
    data = batch([(b"a", b"1"), (b"b", b"1"), (None, b"1"), (b"c", b"1")], codec="gzip")
    round_ = compaction({})

    assert round_.map_batch(read_header(data), memoryview(data), 101, round_.transactions)
    assert [round_.offsets.get(key) for key in (b"a", b"b", b"c")] == [-1, 101, 103]
    small = compaction({})
    small.offsets = OffsetMap(max_bytes=48, load_factor=0.5, keys_max=9)
    assert not small.map_batch(read_header(data), memoryview(data), 0, small.transactions)


def test_many_records_let_others_run() -> None:
    """Does a big batch not hold the interpreter from its first record to its last?"""
    breaths: list[int] = []
    data = batch([(b"%d" % index, b"1") for index in range(1_000)])
    round_ = compaction({}, breathe=lambda: breaths.append(1))
    round_.map_batch(read_header(data), memoryview(data), 0, round_.transactions)
    mapped = len(breaths)
    left(round_, data)

    assert mapped == 3
    assert len(breaths) == 6


def _rotten(data: bytearray) -> bytearray:
    data[-3] ^= 1
    return data


def _hollow(data: bytearray) -> bytearray:
    """A right CRC around records that are none."""
    data[61:] = b"\xff" * (len(data) - 61)
    seal(data)
    return data


def _bomb(data: bytearray) -> bytearray:
    return batch([(b"a", bytes(10**6 + 1))], codec="zstd")


@pytest.mark.parametrize("harm", [_rotten, _hollow, _bomb])
def test_what_cannot_be_read_stays(harm: Any) -> None:
    """Is a harmed, nonsensical or too large batch kept byte for byte, counted, and never sealed with a new CRC?"""
    data = harm(batch([(b"a", b"1"), (b"a", b"2")]))
    round_ = compaction({b"a": 500})

    assert round_.map_batch(read_header(data), memoryview(data), 0, round_.transactions)
    assert round_.compact(read_header(data), memoryview(data), is_last=False) == data
    assert round_.unreadable_batches == 1


def test_kafkas_form_of_a_horizon() -> None:
    """Lie flag and horizon where KIP-534 puts them: attribute bit 6, and the base timestamp?"""
    kept = left(compaction({}), batch([(b"a", None)]))
    assert kept is not None

    assert struct.unpack_from(">h", kept, 21)[0] == DELETE_HORIZON == 0x40
    assert struct.unpack_from(">q", kept, 27)[0] == NOW + DAY
    assert not struct.unpack_from(">h", kept, 21)[0] & CONTROL
