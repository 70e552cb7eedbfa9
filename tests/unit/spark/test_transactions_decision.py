"""The note of a decided batch: what is written can be read, fits, and is recognised when it is somebody else's."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.decision import (
    NOTE_BYTES_MAX,
    NOTHING,
    BadNote,
    Decision,
    Part,
    TooManyTasks,
    read_decision,
    write_decision,
)

parts = st.one_of(
    st.just(NOTHING),
    st.builds(
        Part,
        producer_id=st.integers(0, 2**50),
        epoch=st.integers(0, 2**15 - 1),
        fingerprint=st.integers(0, 2**32 - 1),
    ),
)
decisions = st.builds(Decision, rows=st.integers(0, 2**40), parts=st.lists(parts, max_size=100).map(tuple))


@given(decisions)
def test_round_trip(decision):
    """Is what is read what was written?"""
    assert read_decision(write_decision(decision)) == decision


@given(st.text(max_size=200))
def test_foreign_notes(text):
    """Is a note of somebody else's refused in one sentence, whatever it says?"""
    with contextlib.suppress(BadNote):
        read_decision("1" + text)
    with pytest.raises(BadNote):
        read_decision("2" + text)
    with pytest.raises(BadNote):
        read_decision("")


def test_how_many_tasks_fit():
    """Do two hundred tasks fit beside an offset, long after the first producer ids, and is too many a sentence?"""
    part = [Part(producer_id=5_000_000 + 7 * n, epoch=30_000, fingerprint=2**32 - 1 - n) for n in range(2000)]

    assert len(write_decision(Decision(rows=10**9, parts=tuple(part[:400])))) <= NOTE_BYTES_MAX
    with pytest.raises(TooManyTasks, match=r"2000 tasks.*coalesce"):
        write_decision(Decision(rows=10**9, parts=tuple(part)))
