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


def row_of(report):
    from pyspark.sql import Row

    return Row(**report._asdict())


def bench():
    """Spark's test bench around the watch."""
    need_spark()
    from alerts import TruckWatch
    from pyspark.sql.streaming import TwsTester

    return TwsTester(TruckWatch(Limits()), timeMode="EventTime", eventTimeExtractor=lambda row: row.ts_ms)


@pytest.mark.parametrize("trait", [Trait.SPEEDS, Trait.STALLS, Trait.STRAYS, Trait.FALLS_SILENT, Trait.STUTTERS])
def test_same_alerts_however_batches_are_cut(trait):
    """Does Spark's processor, fed in random batches with the watermark between them, find what the rules find?"""
    name, reports = reports_of(trait)
    state, expected = None, []
    for report in reports:
        state, alerts = follow(name, state, report, Limits())
        expected += [alert.alert_id for alert in alerts]
    chance = random.Random(11)
    tester, found, rest = bench(), [], list(reports)
    while rest:
        size = chance.randint(1, 40)
        batch, rest = rest[:size], rest[size:]
        rows = [row_of(report) for report in batch]
        chance.shuffle(rows)
        found += [row.alert_id for row in tester.test(name, rows)]
        # As far as the watermark may come: never past a report that is still to arrive.
        found += [row.alert_id for row in tester.setWatermark(batch[-1].ts_ms - 1)]

    assert sorted(expected) == sorted(found)


def test_silence_is_noticed_by_the_timer():
    """Is a truck that says nothing any more told of when the watermark has passed, and once?"""
    tester = bench()
    tester.test("T-1", [row_of(Report(seq, START_MS + seq * 20_000, 52.0, 13.0, 70.0)) for seq in range(3)])
    last_ms = START_MS + 40_000

    assert [] == tester.setWatermark(last_ms + 59_999)
    assert ["T-1:silent:2"] == [row.alert_id for row in tester.setWatermark(last_ms + 60_001)]
    assert [] == tester.setWatermark(last_ms + 10_000_000)
