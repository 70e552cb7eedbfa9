"""The store of offsets: the same after any history that means the same."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.cores.groups.offset_store import OffsetStore
from headrace.model.group_records import OffsetCommitValue

PLACES = [("t", 0), ("t", 1)]
GROUPS = ["g", "h"]
PRODUCERS = [7, 8]

keys = st.tuples(st.sampled_from(GROUPS), st.sampled_from(PLACES))
events = st.one_of(
    st.tuples(st.just("put"), keys, st.integers(0, 99)),
    st.tuples(st.just("pending"), keys, st.integers(0, 99), st.sampled_from(PRODUCERS)),
    st.tuples(st.just("remove"), keys),
    st.tuples(st.just("end"), st.sampled_from(PRODUCERS), st.booleans()),
)


def replayed(history):
    """A store that has read a history."""
    store = OffsetStore()
    for event in history:
        match event:
            case ("put", (group_id, place), offset):
                store.put(group_id, place, OffsetCommitValue(offset=offset))
            case ("pending", (group_id, place), offset, producer_id):
                store.put_pending(group_id, place, OffsetCommitValue(offset=offset), producer_id)
            case ("remove", (group_id, place)):
                store.remove(group_id, place)
            case ("end", producer_id, commit):
                store.end(producer_id, commit=commit)
    return store


def offsets_of(store):
    """What is committed, without the order it was committed in."""
    return {
        (group_id, place): committed.value.offset
        for group_id in GROUPS
        for place, committed in store.of_group(group_id).items()
    }


def cleaned(history):
    """The history as a log cleaner leaves it: of plain commits of a key only what its last one or a removal says.

    What is in a transaction stays until the marker says whether it counts.
    """
    last = {event[1]: number for number, event in enumerate(history) if event[0] in {"put", "remove"}}
    return [
        event
        for number, event in enumerate(history)
        if event[0] not in {"put", "pending", "remove"} or number >= last.get(event[1], -1)
    ]


@given(st.lists(events, max_size=40))
def test_what_the_log_means(history):
    """Is an offset that of the last commit in the log that counts, whatever the order of the markers? (A21)"""
    expected, pending = {}, {}
    for number, event in enumerate(history):
        match event:
            case ("put", key, offset):
                expected[key] = (number, offset)
            case ("pending", key, offset, producer_id):
                pending[producer_id, key] = (number, offset)
            case ("remove", key):
                expected.pop(key, None)
                for producer_id in PRODUCERS:
                    pending.pop((producer_id, key), None)
            case ("end", producer_id, commit):
                ended = {key: pending.pop((each, key)) for each, key in list(pending) if each == producer_id}
                for key, value in ended.items() if commit else ():
                    expected[key] = max(expected.get(key, value), value)
    store = replayed(history)

    assert {key: offset for key, (_, offset) in expected.items()} == offsets_of(store)
    for group_id, place in [(group_id, place) for group_id in GROUPS for place in PLACES]:
        waits = any((producer_id, (group_id, place)) in pending for producer_id in PRODUCERS)

        assert waits == store.is_pending(group_id, place)


@given(st.lists(events, max_size=40))
def test_cleaning_the_log_changes_nothing(history):
    """Does a log that was cleaned of what later records replace give the same offsets?"""
    assert offsets_of(replayed(history)) == offsets_of(replayed(cleaned(history)))


@given(st.lists(events, max_size=40))
def test_nothing_is_left_behind(history):
    """Does a store hold nothing any more once all was removed and every transaction has ended?"""
    store = replayed(history)
    for group_id, place in list(store.all_places()):
        store.remove(group_id, place)
    for producer_id in PRODUCERS:
        store.end(producer_id, commit=True)

    assert OffsetStore().hard_state() == store.hard_state()


def test_topic_ids_of_a_partition():
    """Are the ids of a partition's topic found in committed and pending offsets?"""
    store = replayed([("put", ("g", ("t", 0)), 1), ("pending", ("g", ("t", 0)), 2, 7)])

    assert 1 == len(store.topic_ids("g", ("t", 0)))
    assert set() == store.topic_ids("g", ("t", 1))
    assert [("t", 0)] == store.places("g")
