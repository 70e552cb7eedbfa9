"""Which events of a truck make alerts."""

from alert_rules import (
    ENTER,
    IDLE,
    LEAVE,
    SILENT,
    SPEEDING,
    Limits,
    Report,
    elapse,
    follow,
    wakes_at,
)
from geography import ON_CORRIDORS
from hypothesis import given
from hypothesis import strategies as st
from places import PLACES

LIMITS = Limits()
FAR_AWAY = (60.0, 5.0)
BERLIN = PLACES["Berlin"][2:]
EVERY_MS = 20_000


def report(seq, *, speed=70.0, at=BERLIN, ts_ms=None):
    return Report(seq, seq * EVERY_MS if ts_ms is None else ts_ms, *at, speed)


def run(reports, *, until_ms=None):
    """The alerts of reports, and of the time after them."""
    state, found = None, []
    for one in reports:
        state, alerts = follow("T-1", state, one, LIMITS)
        found += alerts
    if until_ms is not None:
        state, alerts = elapse("T-1", state, until_ms, LIMITS)
        found += alerts
    return found


def test_speeding_is_told_once_per_episode():
    """Is a truck that goes on speeding told of once, and again when it begins anew?"""
    alerts = run([report(seq, speed=speed) for seq, speed in enumerate((80, 100, 120, 85, 91))])

    assert ["T-1:speeding:1", "T-1:speeding:4"] == [alert.alert_id for alert in alerts]
    assert "100 km/h where 90 are allowed" == alerts[0].detail


def test_idle_is_told_after_its_time():
    """Is a truck that stands for ten minutes told of then, once, by the report it stopped with?"""
    standing = [report(seq, speed=0.0 if seq >= 3 else 70.0) for seq in range(60)]
    alerts = run(standing)

    assert [("T-1:idle:3", IDLE, 3 * EVERY_MS + 600_000)] == [(one.alert_id, one.kind, one.at_ms) for one in alerts]
    assert [] == run(standing[:33])
    assert alerts == run(standing[:33], until_ms=3 * EVERY_MS + 600_000)[:1]


def test_silence_is_told_by_timer_or_by_the_next_report():
    """Is a silent truck told of in the same words, whether a timer notices or its next report?"""
    before, after = [report(0), report(1)], report(2, ts_ms=EVERY_MS + 300_000)
    by_report = run([*before, after])

    assert [("T-1:silent:1", SILENT, EVERY_MS + 60_000)] == [(one.alert_id, one.kind, one.at_ms) for one in by_report]
    assert by_report == run(before, until_ms=EVERY_MS + 60_000)
    assert [] == run(before, until_ms=EVERY_MS + 59_999)


def test_fences_are_told_when_crossed():
    """Are fences told of that a truck enters and leaves, but not those it is first seen in?"""
    alerts = run([report(0), report(1), report(2, at=FAR_AWAY), report(3)])

    assert [(LEAVE, "Berlin"), (LEAVE, ON_CORRIDORS), (ENTER, "Berlin"), (ENTER, ON_CORRIDORS)] == [
        (alert.kind, alert.detail) for alert in alerts
    ]


def test_repeated_and_old_reports_change_nothing():
    """Does a report that was seen before, or an older one, leave the state as it is?"""
    state, _ = follow("T-1", None, report(5, speed=100), LIMITS)

    assert (state, []) == follow("T-1", state, report(5, speed=0), LIMITS)
    assert (state, []) == follow("T-1", state, report(4, speed=0), LIMITS)


def test_wakes_at_the_next_event_of_time():
    """Does a truck wake when it has been silent or idle too long, and never when all is told?"""
    driving, _ = follow("T-1", None, report(0), LIMITS)
    standing, _ = follow("T-1", None, report(0, speed=0), LIMITS)
    told_silent, _ = elapse("T-1", standing, 60_000, LIMITS)
    told_all, _ = elapse("T-1", standing, 600_000, LIMITS)

    assert [60_000, 60_000, 600_000, None] == [
        wakes_at(state, LIMITS) for state in (driving, standing, told_silent, told_all)
    ]


REPORTS = st.lists(
    st.tuples(
        st.sampled_from([20_000, 20_000, 40_000, 70_000, 700_000]),
        st.sampled_from([0.0, 70.0, 120.0]),
        st.sampled_from([BERLIN, FAR_AWAY]),
    ),
    min_size=1,
    max_size=40,
)


@given(REPORTS, st.randoms(use_true_random=False))
def test_alerts_do_not_depend_on_timers(steps, chance):
    """Are the alerts the same set, each once, whatever timers fire between two reports?"""
    reports, now_ms = [], 0
    for seq, (after_ms, speed, at) in enumerate(steps):
        now_ms += after_ms
        reports.append(report(seq, speed=speed, at=at, ts_ms=now_ms))
    state, found = None, []
    for one, following in zip(reports, [*reports[1:], None], strict=True):
        state, alerts = follow("T-1", state, one, LIMITS)
        found += alerts
        if following is not None:
            state, alerts = elapse("T-1", state, chance.randint(one.ts_ms, following.ts_ms), LIMITS)
            found += alerts

    assert sorted(run(reports)) == sorted(found)
    assert len({alert.alert_id for alert in found}) == len(found)
    assert {alert.kind for alert in found} <= {SPEEDING, IDLE, SILENT, ENTER, LEAVE}
