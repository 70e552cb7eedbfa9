"""Reports that say nothing new are left out, and nothing is different for it."""

from random import Random

from alert_rules import Limits, Report, follow, go_to
from fleet import Fleet
from hypothesis import given
from hypothesis import strategies as st
from msgspec import DecodeError, Struct, json
from places import PLACES
from pyarrow import RecordBatch, float64, int32, int64, schema, string
from stretches import Packing, Stretch

LIMITS = Limits()
ROW = schema(
    [("group", int32()), ("truck_id", string()), ("seq", int64()), ("ts_ms", int64()), ("lat", float64()),
     ("lon", float64()), ("speed_kmh", float64())]
)  # fmt: skip
BERLIN, ROAD, NOWHERE = PLACES["Berlin"][2:], (52.3, 11.0), (60.0, 5.0)
EVERY_MS = 20_000


def packed(batches):
    """What becomes of batches of reports, each with its group and truck before it."""
    rows = [
        [dict(zip(ROW.names, (group, truck, *report), strict=True)) for group, truck, report in one] for one in batches
    ]
    return [batch.to_pylist() for batch in Packing(LIMITS)(RecordBatch.from_pylist(one, schema=ROW) for one in rows)]


def stretches_of(batches):
    """The stretches of all batches, each with its truck before it, in the order in which they are followed."""
    rows = [row for batch in packed(batches) for row in batch]
    return sorted(
        one for row in rows for one in zip(row["truck_id"], *(row[name] for name in Stretch._fields), strict=True)
    )


def followed_one_by_one(reports):
    """The states that reports leave, and their alerts."""
    states, found = {}, []
    for truck, report in sorted(reports):
        states[truck], alerts = follow(truck, states.get(truck), report, LIMITS)
        found += alerts
    return states, found


def followed_by_stretches(batches):
    """The same of what is left of them."""
    states, found = {}, []
    for truck, seq, ts_ms, lat, lon, speed_kmh, *last in stretches_of(batches):
        state, alerts = follow(truck, states.get(truck), Report(seq, ts_ms, lat, lon, speed_kmh), LIMITS)
        states[truck] = go_to(state, *last)
        found += alerts
    return states, found


def test_groups_become_rows():
    """Does every group of a batch become one row with its reports and no others, and an empty batch none?"""
    reports = [(number % 3 * 10, f"T-{number}", Report(number, 0, *ROAD, 70.0)) for number in range(7)]

    assert [
        [(0, ["T-0", "T-3", "T-6"], [0, 3, 6]), (10, ["T-1", "T-4"], [1, 4]), (20, ["T-2", "T-5"], [2, 5])],
        [],
        [(0, ["T-0"], [0])],
    ] == [
        [(row["group"], row["truck_id"], row["to_seq"]) for row in batch]
        for batch in packed([reports, [], reports[:1]])
    ]


def test_a_drive_is_one_stretch():
    """Is a truck that just drives handed on as its first and its last report, repeated ones left out?"""
    drive = [(0, "T-1", Report(seq, seq * EVERY_MS, *ROAD, 70.0)) for seq in (0, 1, 1, 2, 3)]

    assert [("T-1", 0, 0, *ROAD, 70.0, 3, 3 * EVERY_MS, *ROAD)] == stretches_of([drive])


def test_a_missing_number_ends_a_stretch():
    """Is a report that another batch may hold not passed over, as it may be the one that says something?"""
    drive = [("T-1", Report(seq, seq * EVERY_MS, *ROAD, 120.0 if seq == 2 else 70.0)) for seq in range(5)]
    batches = [[(0, *one) for one in drive if one[1].seq != 2], [(0, *drive[2])]]

    assert [0, 2, 3] == [one[1] for one in stretches_of(batches)]
    assert followed_one_by_one(drive) == followed_by_stretches(batches)


REPORTS = st.lists(
    st.tuples(
        st.sampled_from([EVERY_MS, EVERY_MS, EVERY_MS, 59_999, 60_000, 700_000]),
        st.sampled_from([0.0, 2.9, 3.0, 70.0, 70.0, 70.0, 90.0, 120.0]),
        st.sampled_from([ROAD, ROAD, ROAD, BERLIN, NOWHERE]),
        st.sampled_from([1, 1, 1, 2]),
    ),
    min_size=1,
    max_size=60,
)


@given(st.lists(REPORTS, min_size=1, max_size=3), st.integers(0, 2**32), st.booleans())
def test_nothing_is_different(trucks, seed, is_shuffled):
    """Are states and alerts those of following every report, however batches are cut, repeated and shuffled?"""
    chance, reports = Random(seed), []
    for number, steps in enumerate(trucks):
        now_ms = seq = 0
        for after_ms, speed, at, step in steps:
            now_ms += after_ms
            reports.append((f"T-{number}", Report(seq := seq + step, now_ms, *at, speed)))
    sent = reports + chance.choices(reports, k=5)
    if is_shuffled:
        chance.shuffle(sent)
    else:
        sent.sort(key=lambda one: one[1].ts_ms)
    cuts = sorted(chance.choices(range(len(sent) + 1), k=3))
    pieces = [sent[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    batches = [[(7, truck, report) for truck, report in piece] for piece in pieces]

    assert followed_one_by_one(reports) == followed_by_stretches(batches)


class Sighting(Struct):
    """What a report of the fleet holds."""

    seq: int
    lat: float
    lon: float
    speed_kmh: float


def test_most_reports_say_nothing_new():
    """Is a batch of the example's fleet handed on as less than half of its reports?"""
    start_ms = 1_790_000_000_000
    rows = []
    for number, one in enumerate(Fleet(100, seed=1, start_ms=start_ms).until(start_ms + 20 * EVERY_MS)):
        try:
            at = json.decode(one.value or b"", type=Sighting)
        except DecodeError:
            continue
        rows.append(
            (0, one.truck_id, Report(at.seq, start_ms + number * EVERY_MS // 100, at.lat, at.lon, at.speed_kmh))
        )

    assert len(rows) > 1900
    assert len(stretches_of([rows])) < len(rows) / 4
