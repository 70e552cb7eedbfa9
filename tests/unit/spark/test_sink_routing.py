"""Rows fall into partitions as Java's producer puts them, in order; the same rows have the same fingerprint."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.partitioners import partition_of
from headrace.spark.fingerprint import Fingerprint
from headrace.spark.producing import BLOCK_BYTES, blocks
from headrace.spark.routing import HEADERS_TYPE, route, rows_of
from headrace.spark.sink_columns import BadColumns, SinkColumns
from headrace.spark.topic_leaders import NoTopic

NOW_MS = 1_790_000_000_000
COUNTS = {"a": 3, "b": 5, "one": 1}
keys = st.one_of(st.none(), st.binary(max_size=6))


def routed(block, columns, topic="", sticky=0):
    found = route(block, columns, topic=topic, count_of=COUNTS.__getitem__, sticky=sticky, now_ms=NOW_MS)
    return [(place, rows.keys.to_pylist(), rows.values.to_pylist()) for place, rows in found]


@given(st.lists(st.tuples(keys, st.sampled_from(sorted(COUNTS)), st.one_of(st.none(), st.just(0))), max_size=60))
def test_every_row_in_its_partition(sent):
    """Is every row in the partition of its wish or else of its key, once, in the order it came?"""
    sticky = 7
    block = pa.record_batch(
        [
            pa.array([key for key, _, _ in sent], pa.binary()),
            pa.array([str(number) for number in range(len(sent))]),
            pa.array([topic for _, topic, _ in sent], pa.string()),
            pa.array([wish for _, _, wish in sent], pa.int32()),
        ],
        names=["key", "value", "topic", "partition"],
    )
    expected = {}
    for number, (key, topic, wish) in enumerate(sent):
        by_key = sticky % COUNTS[topic] if key is None else partition_of(key, COUNTS[topic])
        place = (topic, by_key if wish is None else wish)
        expected.setdefault(place, []).append((key, b"%d" % number))

    found = routed(block, SinkColumns(key=0, value=1, topic=2, partition=3), sticky=sticky)

    assert expected == {place: list(zip(keys, values, strict=True)) for place, keys, values in found}
    assert len(found) == len(expected)


def test_the_option_names_the_topic():
    """Do all rows go to the topic of the option, with keys and without a key column?"""
    block = pa.record_batch([pa.array(["x", "y"])], names=["value"])

    assert [(("one", 0), [None, None], [b"x", b"y"])] == routed(block, SinkColumns(value=0), topic="one")


def test_a_row_without_topic():
    """Is a row that does not say where it goes a sentence?"""
    block = pa.record_batch([pa.array(["x", "y"]), pa.array(["a", None])], names=["value", "topic"])

    with pytest.raises(BadColumns, match="A row has no topic"):
        routed(block, SinkColumns(value=0, topic=1))


@pytest.mark.parametrize("wish", [-1, 3, 2**31 - 1])
def test_a_partition_that_is_not_there(wish):
    """Is a wish that cannot be met refused, also one that is -1?"""
    block = pa.record_batch([pa.array(["x"]), pa.array([wish], pa.int32())], names=["value", "partition"])

    with pytest.raises(NoTopic, match=f"no partition {wish}"):
        routed(block, SinkColumns(value=0, partition=1), topic="a")


def test_columns_as_records_want_them():
    """Are text, times before 1970, headers and nulls what a record can have?"""
    times = [datetime(2026, 11, 16, 5, 0, 0, 123_456, UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), None]
    block = pa.record_batch(
        [
            pa.array(["v", None, ""]),
            pa.array(times, pa.timestamp("us", "Europe/Berlin")),
            pa.array([[{"key": "h", "value": b"1"}], [], None], HEADERS_TYPE),
        ],
        names=["value", "timestamp", "headers"],
    )
    rows = rows_of(block, SinkColumns(value=0, timestamp=1, headers=2), now_ms=NOW_MS)

    assert [b"v", None, b""] == rows.values.to_pylist()
    assert [None] * 3 == rows.keys.to_pylist()
    assert [1_794_805_200_123, -1, NOW_MS] == rows.timestamps_ms.to_pylist()
    assert [[{"key": "h", "value": b"1"}], [], None] == rows.headers.to_pylist()
    assert len(rows) == 3


def fingerprint(*parts):
    found = Fingerprint()
    for part in parts:
        found.add(pa.array([key for key, _ in part], pa.binary()), pa.array([value for _, value in part], pa.binary()))
    return found.number


@given(st.lists(st.tuples(keys, keys), max_size=20), st.randoms(use_true_random=False), st.integers(0, 20))
def test_fingerprints(rows, chance, cut):
    """Have the same rows the same fingerprint in any order and any pieces, and others (nearly always) another?"""
    shuffled = list(rows)
    chance.shuffle(shuffled)

    assert fingerprint(rows) == fingerprint(shuffled) == fingerprint(rows[:cut], rows[cut:])
    assert fingerprint(rows) != fingerprint([*rows, (b"k", b"v")])
    if rows:
        assert fingerprint(rows) != fingerprint(rows[1:])


def test_a_slice_has_only_its_own_bytes():
    """Does the fingerprint of a slice leave out what the buffers hold besides?"""
    values = pa.array([b"aa", b"bb", b"cc"])
    found = Fingerprint()
    found.add(values.slice(1, 1), values.slice(2, 1))

    assert fingerprint([(b"bb", b"cc")]) == found.number


def test_small_batches_become_blocks():
    """Are many small pieces joined up to a size, none lost and empty ones left out?"""
    piece = pa.record_batch([pa.array([b"x" * 1000] * 1000)], names=["value"])
    pieces = [piece, piece.slice(0, 0)] * 20

    found = list(blocks(iter(pieces)))

    assert 20_000 == sum(block.num_rows for block in found)
    assert len(found) == 3
    assert all(block.nbytes >= BLOCK_BYTES for block in found[:-1])
    assert [] == list(blocks(iter([piece.slice(0, 0)])))
