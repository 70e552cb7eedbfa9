"""The cleaner's map of keys."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.storage import offset_map
from headrace.storage.offset_map import ENTRY_BYTES, OffsetMap


@given(
    st.lists(st.tuples(st.binary(max_size=20), st.integers(0, 2**62)), max_size=200), st.sampled_from([0.5, 0.9, 1.0])
)
def test_like_a_dictionary(puts: list[tuple[bytes, int]], load_factor: float) -> None:
    """Does the map answer as a dictionary would, full to the brim, for keys it has and keys it has not?"""
    expected = dict(puts)
    offsets = OffsetMap(max_bytes=10**6, load_factor=load_factor, keys_max=max(1, len(expected)))
    for key, offset in puts:
        assert offsets.put(memoryview(key), offset)

    assert offsets.count == len(expected)
    assert {key: offsets.get(key) for key in expected} == expected
    assert offsets.get(b"a key that is longer than any of those above") == -1


def test_full() -> None:
    """Is a new key refused when the memory is used up, while known keys still move on?"""
    offsets = OffsetMap(max_bytes=10 * ENTRY_BYTES, load_factor=0.9, keys_max=10**6)
    taken = [offsets.put(b"%d" % key, key) for key in range(20)]

    assert taken == [True] * 9 + [False] * 11
    assert offsets.put(b"3", 99)
    assert offsets.get(b"3") == 99
    assert offsets.get(b"12") == -1


def test_memory_is_bounded_and_not_more_than_needed() -> None:
    """Does the map take 24 bytes a key, as many as are to come and no more than allowed?"""
    tracemalloc.start()
    try:
        few = OffsetMap(max_bytes=2**30, load_factor=0.9, keys_max=1_000)
        many = OffsetMap(max_bytes=100_000, load_factor=0.9, keys_max=10**9)
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert few.count == many.count == 0
    assert used < 1_000 / 0.9 * ENTRY_BYTES + 100_000 + 2_000


def test_one_key_always_fits() -> None:
    """Is there room for a key even where nothing was granted?"""
    offsets = OffsetMap(max_bytes=0, load_factor=0.9, keys_max=5)

    assert offsets.put(b"a", 1)
    assert not offsets.put(b"b", 2)
    assert offsets.get(b"b") == -1


def test_a_hash_of_zeros_is_no_free_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is a key kept whose hash looks like an empty place?"""

    class Zeros:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        def digest(self) -> bytes:
            return bytes(16)

    monkeypatch.setattr(offset_map, "blake2b", Zeros)
    offsets = OffsetMap(max_bytes=1_000, load_factor=0.9, keys_max=5)

    assert offsets.put(b"a", 1)
    assert offsets.get(b"a") == 1
