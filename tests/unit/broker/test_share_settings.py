"""The settings of share groups."""

import pytest

from headrace.broker.share_settings import duration_ms, offset_reset, reads_committed, share_limits
from headrace.cores.share_partition import ShareLimits
from headrace.model.metadata_records import ConfigRecord


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT1S", 1000), ("PT0.5S", 500), ("P1DT2H3M4S", 93_784_000), ("P2D", 172_800_000), ("pt1h", 3_600_000)],
)
def test_durations(text, expected):
    """Is an ISO 8601 duration understood as Kafka does?"""
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "PT-1S", "P1Y", "PT1.S"])
def test_no_durations(text):
    """Is what is no duration refused?"""
    with pytest.raises(ValueError, match="no duration"):
        duration_ms(text)


def test_groups_own_settings(open_desk):
    """Do a group's own settings go before the broker's, as far as the broker allows?"""
    desk = open_desk({"group.share.record.lock.duration.ms": "20000"})
    for name, value in {
        "share.record.lock.duration.ms": "99999999",
        "share.delivery.count.limit": "7",
        "share.partition.max.record.locks": "1",
        "share.renew.acknowledge.enable": "false",
        "share.isolation.level": "read_committed",
        "share.auto.offset.reset": "earliest",
    }.items():
        desk.broker.metadata.replay(ConfigRecord(resource_type=32, resource_name="own", name=name, value=value))

    assert share_limits(desk.broker, "other") == ShareLimits(locks_max=2000, deliveries_max=5, lock_duration_ms=20_000)
    assert share_limits(desk.broker, "own") == ShareLimits(
        locks_max=100, deliveries_max=7, lock_duration_ms=60_000, is_renewing_allowed=False
    )
    assert [reads_committed(desk.broker, group) for group in ("other", "own")] == [False, True]
    assert [offset_reset(desk.broker, group) for group in ("other", "own")] == ["latest", "earliest"]
