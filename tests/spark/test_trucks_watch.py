"""The watch over trucks inside Spark's own test bench, without a JVM."""

import random

import pytest

from spark.trucks_oracle import need_spark, report_of

from alert_rules import Limits, Report, follow  # isort: skip - found through the oracle
from fleet import Fleet  # isort: skip
from truck import Trait, trait_of  # isort: skip

START_MS = 1_790_000_000_000


class Sent:
    """A record as a consumer would see it."""

    def __init__(self, outgoing):
        self.key = outgoing.truck_id.encode()
        self.value = outgoing.value


def reports_of(trait, hours=5):
    """The reports of one truck with a trait, and its name."""
    number = next(number for number in range(25) if trait_of(number) is trait)
    name = f"T-{number:04}"
    sent = Fleet(25, seed=3, start_ms=START_MS).until(START_MS + hours * 3_600_000)
    return name, [found for one in sent if one.truck_id == name and (found := report_of(Sent(one)))]


def packed(reports):
    """Reports of trucks, with their names, as the watch gets them: rows of lists, packed like Spark's batches are."""
    from pyarrow import RecordBatch
    from pyspark.sql import Row
    from stretches import Packing

    columns = [{"group": 7, "truck_id": name, **report._asdict()} for name, report in reports]
    batches = [RecordBatch.from_pylist(columns[begin : begin + 30]) for begin in range(0, len(columns), 30)]
    return [Row(**row) for batch in Packing(Limits())(iter(batches)) for row in batch.to_pylist()]


def ids_in(rows):
    return [row.alert_id for row in rows]


def bench():
    """Spark's test bench around the watch."""
    need_spark()
    from alerts import TruckWatch
    from pyspark.sql.streaming import TwsTester

    return TwsTester(TruckWatch(Limits()), timeMode="EventTime", eventTimeExtractor=lambda row: max(row.to_ts_ms))


def followed(name, reports):
    """What the rules say, of one truck."""
    state, expected = None, []
    for report in reports:
        state, alerts = follow(name, state, report, Limits())
        expected += [alert.alert_id for alert in alerts]
    return expected


@pytest.mark.parametrize("trait", [Trait.SPEEDS, Trait.STALLS, Trait.STRAYS, Trait.FALLS_SILENT, Trait.STUTTERS])
def test_same_alerts_however_batches_are_cut(trait):
    """Does Spark's processor, fed in random batches with the watermark between them, find what the rules find?"""
    name, reports = reports_of(trait)
    chance = random.Random(11)
    tester, found, rest = bench(), [], list(reports)
    while rest:
        size = chance.randint(1, 40)
        batch, rest = rest[:size], rest[size:]
        rows = [(name, report) for report in batch]
        chance.shuffle(rows)
        found += ids_in(tester.test(7, packed(rows)))
        # As far as the watermark may come: never past a report that is still to arrive.
        found += ids_in(tester.setWatermark(batch[-1].ts_ms - 1))

    assert sorted(followed(name, reports)) == sorted(found)


def test_trucks_of_a_group_do_not_mix():
    """Do trucks that share a state, and come in any order and repeatedly, have the alerts each would have alone?"""
    fleet = [reports_of(trait) for trait in (Trait.SPEEDS, Trait.STALLS, Trait.STRAYS, Trait.FALLS_SILENT)]
    rows = sorted(((name, report) for name, reports in fleet for report in reports), key=lambda row: row[1].ts_ms)
    chance = random.Random(12)
    tester, found = bench(), []
    for begin in range(0, len(rows), 100):
        batch = rows[begin : begin + 100]
        given = [*batch, *chance.choices(batch, k=10)]
        chance.shuffle(given)
        found += ids_in(tester.test(7, packed(given)))
        found += ids_in(tester.setWatermark(batch[-1][1].ts_ms - 1))

    expected = {one for name, reports in fleet for one in followed(name, reports)}
    assert len(found) == len(set(found))
    assert expected <= set(found)
    assert all(":silent:" in one or ":idle:" in one for one in set(found) - expected)


def test_silence_is_noticed_by_the_timer():
    """Is a truck that says nothing any more told of when the watermark has passed, and once?"""
    tester = bench()
    tester.test(7, packed(("T-1", Report(seq, START_MS + seq * 20_000, 52.0, 13.0, 70.0)) for seq in range(3)))
    last_ms = START_MS + 40_000

    assert [] == ids_in(tester.setWatermark(last_ms + 59_999))
    assert ["T-1:silent:2"] == ids_in(tester.setWatermark(last_ms + 60_001))
    assert [] == ids_in(tester.setWatermark(last_ms + 10_000_000))
