"""Runs of records in one delivery state."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headrace.cores.share_state_batches import combine
from headrace.model.share_state_records import StateBatch


def batch(first, last, state=0, count=1):
    """A batch in few words."""
    return StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)


BATCHES = st.lists(
    st.builds(
        lambda first, more, state, count: batch(first, first + more, state, count),
        st.integers(0, 20),
        st.integers(0, 6),
        st.sampled_from([0, 2, 4]),
        st.integers(1, 2),
    ),
    max_size=6,
)


def spread(batches, start):
    """Each record from `start` on with what the last batch that has it says."""
    return {
        offset: (one.delivery_state, one.delivery_count)
        for one in batches
        for offset in range(one.first_offset, one.last_offset + 1)
        if offset >= start
    }


@given(known=BATCHES, news=BATCHES, start=st.integers(0, 25))
def test_later_news_are_right(known, news, start):
    """Does each record have what was last said of it, in as few batches as can be?"""
    first = combine((), known, 0)
    result = combine(first, news, start)

    assert spread(result, 0) == spread([*known, *news], start)
    for one, other in pairwise(result):
        assert one.last_offset < other.first_offset
        assert one.last_offset + 1 < other.first_offset or (one.delivery_state, one.delivery_count) != (
            other.delivery_state,
            other.delivery_count,
        )


def test_batches_are_cut_and_joined():
    """Is a batch torn apart by a newer one in its middle, and whole again when they agree?"""
    torn = combine((batch(0, 9),), [batch(3, 5, 2)], 0)

    assert torn == (batch(0, 2), batch(3, 5, 2), batch(6, 9))
    assert combine(torn, [batch(3, 5)], 1) == (batch(1, 9),)
