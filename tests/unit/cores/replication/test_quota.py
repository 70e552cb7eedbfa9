"""How fast replicas may be copied."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.cores.replication.quota import UNBOUNDED, Rate, ReplicationQuota


def quota(bound=1000):
    """A quota with Kafka's windows: eleven samples of a second."""
    made = ReplicationQuota(samples_max=11, sample_ms=1000)
    made.bound = bound
    return made


def test_rate_is_what_was_counted_over_the_time_since():
    """Is the rate the sum over the time since the first sample, that being a second at least?"""
    rate = Rate(samples_max=11, sample_ms=1000)

    assert rate.per_second(0) == 0.0
    rate.record(500, 100)
    assert rate.per_second(100) == 500.0
    assert rate.per_second(2100) == 250.0
    rate.record(1500, 2100)
    assert rate.per_second(4100) == 500.0


def test_old_samples_are_forgotten():
    """Does what was counted longer ago than the window count no more?"""
    rate = Rate(samples_max=11, sample_ms=1000)
    rate.record(1_000_000, 0)
    rate.record(11, 10_000)

    assert rate.per_second(10_999) > 90_000
    assert rate.per_second(11_000) == 11.0
    assert rate.per_second(21_000) == 0.0


def test_quota_is_exceeded_until_the_average_is_below_it():
    """Is a burst let through, and then waited for as long as it takes at the rate?"""
    made = quota(bound=1000)

    assert not made.is_exceeded(0)
    made.record(4000, 0)
    assert made.is_exceeded(0)
    assert made.is_exceeded(3999)
    assert not made.is_exceeded(4000)


def test_no_bound_holds_nobody_back():
    """Does a quota without a bound let everything through?"""
    made = quota(bound=UNBOUNDED)
    made.record(2**50, 0)

    assert not made.is_exceeded(0)
    assert made.wait_ms(0) == 0


def test_bound_of_nothing_waits_for_the_window():
    """Is a bound of 0 waited for until what was counted is forgotten?"""
    made = quota(bound=0)
    made.record(1, 0)

    assert made.is_exceeded(10_999)
    assert made.wait_ms(0) == 11_000
    assert not made.is_exceeded(11_000)


@given(
    records=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 100_000)), max_size=30),
    bound=st.integers(0, 50_000),
)
def test_the_wait_is_long_enough_in_the_end(records, bound):
    """Is waiting as long as told, again and again, the end of every wait within the window?"""
    made, now_ms = quota(bound=bound), 0
    for gap_ms, size in records:
        now_ms += gap_ms
        made.record(size, now_ms)
    began_ms = now_ms
    while made.is_exceeded(now_ms):
        wait_ms = made.wait_ms(now_ms)
        assert wait_ms > 0
        now_ms += wait_ms

    assert now_ms - began_ms <= 11_000 + 1
    assert made.wait_ms(now_ms) == 0


@given(steps=st.lists(st.integers(1, 200_000), min_size=1, max_size=60), bound=st.integers(1000, 100_000))
def test_whoever_waits_copies_no_faster_than_the_bound(steps, bound):
    """Is the average of a copier that asks before each step within the bound, its last step aside?"""
    made, now_ms, copied = quota(bound=bound), 0, 0
    for size in steps:
        while made.is_exceeded(now_ms):
            now_ms += made.wait_ms(now_ms)
        assert copied <= bound * max(now_ms, 1000) / 1000 + max(steps) * (now_ms / 11_000)
        made.record(size, now_ms)
        copied += size
        now_ms += 1


def test_only_listed_replicas_are_throttled():
    """Is a partition throttled where it is listed with this broker, and all are by a star?"""
    made = quota()
    made.throttle("t", ("0:1", "3:2", "4:1"), 1)

    assert [index for index in range(6) if made.is_throttled("t", index)] == [0, 4]
    assert not made.is_throttled("other", 0)
    made.throttle("t", ("*",), 1)
    assert made.is_throttled("t", 99)
    made.throttle("t", (), 1)
    assert not made.is_throttled("t", 0)
