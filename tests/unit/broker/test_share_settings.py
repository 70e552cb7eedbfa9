"""The settings of share groups."""

from headrace.broker.share_settings import offset_reset, reads_committed, share_limits
from headrace.cores.share_partition import ShareLimits
from headrace.model.metadata_records import ConfigRecord


def test_groups_own_settings(open_desk):
    """Do a group's own settings go before the broker's, as far as the broker allows?"""
    desk = open_desk({"group.share.record.lock.duration.ms": "20000"})
    for name, value in {
        "share.record.lock.duration.ms": "99999999",
        "share.delivery.count.limit": "7",
        "share.partition.max.record.locks": "1",
        "share.renew.acknowledge.enable": " FALSE",
        "share.isolation.level": "read_committed ",
        "share.auto.offset.reset": " earliest",
    }.items():
        desk.broker.metadata.replay(ConfigRecord(resource_type=32, resource_name="own", name=name, value=value))

    assert share_limits(desk.broker, "other") == ShareLimits(locks_max=2000, deliveries_max=5, lock_duration_ms=20_000)
    assert share_limits(desk.broker, "own") == ShareLimits(
        locks_max=100, deliveries_max=7, lock_duration_ms=60_000, is_renewing_allowed=False
    )
    assert [reads_committed(desk.broker, group) for group in ("other", "own")] == [False, True]
    assert [offset_reset(desk.broker, group) for group in ("other", "own")] == ["latest", "earliest"]
