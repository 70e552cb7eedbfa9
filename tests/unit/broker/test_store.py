"""The broker's disk at start: what was left by whom, and what must be true before anyone is served."""


def test_what_a_crash_left_is_flushed_before_it_is_served(desk):
    """Is a record that only the page cache had at a crash on disk before a consumer can see it?"""
    desk.create("topic", flush_on_acks_all="false")
    desk.produce("topic", 3)
    assert desk.broker.partitions.require("topic", 0).log.recovery_point == 0

    desk.crash()

    log = desk.broker.partitions.require("topic", 0).log
    assert (log.high_watermark, log.recovery_point) == (3, 3)
    desk.power_cut()
    assert desk.broker.partitions.require("topic", 0).log.log_end_offset == 3


def test_a_clean_stop_needs_no_recovery(desk):
    """Is everything on disk after a clean stop, whatever the topic asked for?"""
    desk.create("topic", flush_on_acks_all="false")
    desk.produce("topic", 3)

    desk.restart()
    assert all(log_dir.clean_shutdown for log_dir in desk.broker.store.log_dirs)
    desk.power_cut()

    assert desk.broker.partitions.require("topic", 0).log.log_end_offset == 3


def test_what_recovery_cuts_is_said(desk, caplog):
    """Does the server's log name a batch above the recovery point that rotted and was cut?"""
    desk.create("topic", flush_on_acks_all="false")
    desk.produce("topic", 3)
    path = "/data/topic-0/00000000000000000000.log"
    desk.files.flip_bit(path, desk.files.stat(path).size - 1)

    desk.crash()

    assert desk.broker.partitions.require("topic", 0).log.log_end_offset == 0
    (line,) = [record.getMessage() for record in caplog.records if "log_cut" in record.getMessage()]
    assert "topic-0" in line
    assert "CRC" in line
