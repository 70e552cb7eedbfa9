"""Which transactions hold back a read_committed reader."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.cores.unstable_offsets import STABLE, UnstableOffsets


def test_nothing_is_unstable_at_first() -> None:
    """Is the first unstable offset beyond everything, and an end without a beginning nothing?"""
    offsets = UnstableOffsets()

    assert offsets.first == STABLE
    assert offsets.end(1, 5) is None
    assert offsets.ended == []


def test_loading() -> None:
    """Are open transactions known in the order of their first offsets, whatever order they are loaded in?"""
    offsets = UnstableOffsets()
    offsets.begin(9, 1)
    offsets.load([(30, 1), (10, 2), (20, 3)])

    assert offsets.first == 10
    assert offsets.end(2, 40) == (10, 20)
    assert offsets.end(3, 41) == (20, 30)
    assert offsets.end(1, 42) == (30, 43)
    assert offsets.end(9, 43) is None


@given(st.lists(st.tuples(st.sampled_from(["write", "end", "advance"]), st.integers(1, 4)), max_size=60))
def test_against_the_rule(steps: list[tuple[str, int]]) -> None:
    """Is the first unstable offset always the least of those that are open or ended above the high watermark?"""
    offsets = UnstableOffsets()
    open_: dict[int, int] = {}
    ended: list[tuple[int, int]] = []
    high_watermark = 0
    for offset, (what, number) in enumerate(steps):
        if what == "write" and number not in open_:
            open_[number] = offset
            offsets.begin(number, offset)
        elif what == "end" and number in open_:
            first = open_.pop(number)
            ended.append((first, offset))
            assert offsets.end(number, offset) == (first, min(open_.values(), default=offset + 1))
        elif what == "advance":
            high_watermark = max(high_watermark, offset - number)
            offsets.advance(high_watermark)
        unsafe = [first for first, last in ended if last >= high_watermark]

        assert offsets.first == min([*unsafe, *open_.values()], default=STABLE)
