"""The chain of record lengths, against a naive walk of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.records.batch import CorruptBatch
from headrace.records.build import write_varint
from headrace.records.chain import check_chain
from headrace.records.walk import read_varint


def chain(lengths: list[int]) -> bytes:
    """Records of these body lengths, with bodies that look like lengths themselves."""
    payload = bytearray()
    for length in lengths:
        write_varint(payload, length)
        payload += bytes([0x0C]) * length
    return bytes(payload)


def naive(payload: bytes, count: int) -> int | None:
    """Where the last record starts if the chain is right, looked at one by one; else None."""
    position = last = 0
    for _ in range(count):
        last = position
        try:
            length, position = read_varint(payload, position)
        except (IndexError, CorruptBatch):
            return None
        position += length
        if length < 6 or position > len(payload):
            return None
    return last if position == len(payload) else None


def checked(payload: bytes, count: int) -> int | None:
    """What the real one says, in the naive one's words."""
    try:
        return check_chain(payload, count)
    except CorruptBatch:
        return None


runs = st.lists(
    st.tuples(st.sampled_from([6, 7, 62, 63, 64, 65, 100, 8190, 8200]), st.sampled_from([1, 2, 3, 17, 40, 70, 200])),
    min_size=1,
    max_size=6,
).map(lambda pairs: [length for length, times in pairs for _ in range(times)])
mixed = st.lists(st.integers(6, 300), min_size=1, max_size=200)


@given(runs | mixed)
def test_whole_chains(lengths: list[int]) -> None:
    """Is every whole chain followed to its last record, in runs of one size and without?"""
    payload = chain(lengths)

    assert check_chain(payload, len(lengths)) == naive(payload, len(lengths))


@given(runs | mixed, st.data())
def test_broken_chains(lengths: list[int], data: st.DataObject) -> None:
    """Is a chain with a wrong byte, count or end judged as the naive walk judges it?"""
    payload = bytearray(chain(lengths))
    count = len(lengths) + data.draw(st.sampled_from([0, 0, -1, 1, 5]))
    at = data.draw(st.integers(0, len(payload) - 1))
    payload[at] = data.draw(st.sampled_from([0, 1, 2, 10, 12, 13, 0x7F, 0x80, 0x8C, 0xFF, payload[at]]))
    cut = bytes(payload[: len(payload) - data.draw(st.sampled_from([0, 0, 1, 2, 50]))])

    assert checked(cut, count) == naive(cut, count)


@pytest.mark.parametrize("length", [0, 1, 5])
def test_records_too_short_to_be_one(length: int) -> None:
    """Is a record shorter than the shortest refused, alone and behind a run?"""
    for lengths in ([length], [10] * 50 + [length], [length] * 50):
        with pytest.raises(CorruptBatch):
            check_chain(chain(lengths), len(lengths))


def test_a_length_of_a_mebibyte() -> None:
    """Are lengths of three and four bytes followed too?"""
    lengths = [9_000, 9_000, 1_100_000, 1_100_000, 7]
    payload = chain(lengths)

    assert check_chain(payload, 5) == len(payload) - 8


def test_a_length_that_never_ends() -> None:
    """Is a length of more than five bytes refused?"""
    with pytest.raises(CorruptBatch):
        check_chain(b"\xfe" + b"\xff" * 100, 1)
