"""The checker of group histories: it must find each broken promise, and nothing in a history that breaks none."""

import pytest

from headrace.testing.group_history import Event, What, check, gaps, owners

SETTLE_S = 5.0


def told(*rows: tuple) -> list[Event]:
    """Events of partition 0, one second apart unless a row begins with a time."""
    events = []
    at_s = 0.0
    for row in rows:
        at_s, rest = (row[0], row[1:]) if isinstance(row[0], float) else (at_s + 1, row)
        who, what, *offset = rest
        events.append(Event(at_s, who, what, 0, *offset))
    return events


def names(*rows: tuple) -> list[str]:
    """The names of what is found."""
    return [violation.name for violation in check(told(*rows), settle_s=SETTLE_S)]


def commit(who: str, offset: int) -> tuple[tuple, tuple]:
    """A commit that is answered."""
    return (who, What.COMMITTING, offset), (who, What.COMMITTED, offset)


PRODUCED = [("p", What.PRODUCED, offset) for offset in range(4)]
A_BEGINS = (
    *PRODUCED,
    ("a", What.ASSIGNED),
    ("a", What.PROCESSED, 0),
    ("a", What.PROCESSED, 1),
    *commit("a", 2),
    ("a", What.PROCESSED, 2),
    ("a", What.GONE),
    ("b", What.ASSIGNED),
)


def test_sound_history():
    """Is nothing found where a member dies and the next one repeats only what was not committed?"""
    assert names(*A_BEGINS, ("b", What.PROCESSED, 2), ("b", What.PROCESSED, 3), *commit("b", 4)) == []


def test_unanswered_commit():
    """May the next member begin at a commit that was tried, whether or not it was answered?"""
    dies = (*A_BEGINS[:-2], ("a", What.COMMITTING, 3), ("a", What.GONE), ("b", What.ASSIGNED))

    assert names(*dies, ("b", What.PROCESSED, 3)) == []
    assert names(*dies, ("b", What.PROCESSED, 2), ("b", What.PROCESSED, 3)) == []


BROKEN = {
    "never processed": ((*A_BEGINS, ("b", What.PROCESSED, 2)), ["unprocessed"]),
    "begun behind every commit": ((*A_BEGINS, ("b", What.PROCESSED, 3)), ["skipped"]),
    "begun before a commit": (
        (*A_BEGINS, *(("b", What.PROCESSED, offset) for offset in (1, 2, 3))),
        ["repeated"],
    ),
    "left out while owned": (
        (*A_BEGINS, ("b", What.PROCESSED, 2), ("b", What.PROCESSED, 4), ("c", What.PROCESSED, 3)),
        ["skipped", "skipped"],
    ),
    "back while owned": (
        (*A_BEGINS, *(("b", What.PROCESSED, offset) for offset in (2, 3, 2))),
        ["went-back"],
    ),
    "an old member commits": (
        (*A_BEGINS, ("b", What.PROCESSED, 2), ("b", What.PROCESSED, 3), *commit("b", 4), *commit("z", 1)),
        ["commit-back"],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_promises(name):
    """Is each broken promise called by its name?"""
    rows, expected = BROKEN[name]

    assert names(*rows) == expected


def test_unowned_for_too_long():
    """Is a partition missed that nobody owns for longer than allowed, at the end of the history too?"""
    gone = (("a", What.ASSIGNED), (10.0, "a", What.GONE))

    assert names(*gone, (14.9, "b", What.ASSIGNED)) == []
    assert names(*gone, (15.1, "b", What.ASSIGNED)) == ["unowned"]
    assert names(*gone, (15.1, "history", What.END)) == ["unowned"]


def test_disturbances_start_the_clock_again():
    """Does a gap count from the last disturbance in it, and is one that lasted too long before it still found?"""
    gone = (("a", What.ASSIGNED), (10.0, "a", What.GONE))

    assert names(*gone, (14.0, "c", What.JOINED), (18.0, "b", What.ASSIGNED)) == []
    assert names(*gone, (16.0, "c", What.JOINED), (18.0, "b", What.ASSIGNED)) == ["unowned"]


def test_broker_that_is_down():
    """Is the time without a broker nobody's fault, and the time after it counted from its return?"""
    gone = (("a", What.ASSIGNED), (10.0, "a", What.REVOKED), (11.0, "broker", What.BROKER_DOWN))
    back = (*gone, (30.0, "broker", What.BROKER_UP))

    assert names(*back, (34.0, "b", What.ASSIGNED)) == []
    assert names(*back, (36.0, "b", What.ASSIGNED)) == ["unowned"]


def test_owners_and_gaps():
    """Does ownership end with a revocation, a loss or a death, and is a gap as long as it was?"""
    events = told(("a", What.ASSIGNED), ("b", What.ASSIGNED), ("a", What.LOST), ("b", What.GONE), ("c", What.ASSIGNED))

    assert {0: {"c"}} == owners(events)
    assert [1.0] == [gap.seconds for gap in gaps(events)]
    assert {} == owners(told(("a", What.ASSIGNED), ("a", What.REVOKED)))
