"""Does a log dir know how it was left, and whose it is?"""

import errno
from contextlib import suppress
from random import Random
from uuid import UUID

import pytest

from headrace.model.errors import StorageFault
from headrace.storage.corruption import CorruptLog
from headrace.storage.log_dir import LogDir
from headrace.storage.memory_files import MemoryFiles
from headrace.storage.meta_properties import MetaProperties
from headrace.storage.offset_checkpoint import read_offsets, write_offsets
from unit.storage.samples import CONFIG, Journal, append, fill, flush, open_log, read_all

TOPIC_ID = UUID(int=2**90)


def load(log_dir, names=None, **options):
    return log_dir.load(
        log_dir.log_names() if names is None else names,
        config_for=lambda name: CONFIG,
        producers_for=lambda name: Journal(),
        now_ms=0,
        **options,
    )


def create(log_dir, name):
    return log_dir.create_log(name, topic_id=TOPIC_ID, config=CONFIG, producers=Journal(), now_ms=0)


@pytest.fixture
def root(disk):
    """A log dir's path, not yet made."""
    return f"{disk.root}/deep/logs"


def test_only_one_process(disk, root):
    """Is a log dir that is in use refused, until it is closed?"""
    log_dir = LogDir.open(disk.files, root)
    with pytest.raises(StorageFault, match="in use by another process"):
        LogDir.open(disk.files, root)
    log_dir.close(0)
    LogDir.open(disk.files, root).abandon()
    LogDir.open(disk.files, root)


def test_a_clean_stop(disk, root):
    """Is a clean stop remembered once, with everything flushed and checkpointed?"""
    log_dir = LogDir.open(disk.files, root)

    assert not log_dir.clean_shutdown

    fill(create(log_dir, "a-0"), 30)
    create(log_dir, "a.b_c-1")

    assert log_dir.close(0) == {}
    assert disk.files.read(f"{root}/recovery-point-offset-checkpoint") == b"0\n2\na 0 30\na.b_c 1 0\n"

    log_dir = LogDir.open(disk.files, root)
    report = load(log_dir)

    assert log_dir.clean_shutdown
    assert report.failed == {}
    assert read_all(log_dir.logs["a-0"]) == list(range(30))
    assert log_dir.topic_id("a.b_c-1") == TOPIC_ID

    log_dir.abandon()

    assert not LogDir.open(disk.files, root).clean_shutdown


def test_a_clean_stop_while_a_log_moves_away(disk, root):
    """Is a stop clean although one of the logs was just deleted, and is nobody told of a failure?"""
    log_dir = LogDir.open(disk.files, root)
    for name in ("kept-0", "gone-0"):
        fill(create(log_dir, name), 3)
    log_dir.logs["gone-0"].delete()

    assert log_dir.close(0) == {}
    assert LogDir.open(disk.files, root).clean_shutdown


def test_an_unclean_stop(disk, root):
    """Are many partitions recovered, in threads, with progress, from their checkpoints?"""
    log_dir = LogDir.open(disk.files, root)
    for i in range(12):
        fill(create(log_dir, f"t-{i}"), 20 + i)
    flush(log_dir.logs["t-3"])
    log_dir.write_checkpoints()
    log_dir.abandon()
    log_dir = LogDir.open(disk.files, root)
    steps = []
    report = load(log_dir, threads=3, on_progress=lambda done, total, name: steps.append((done, total, name)))

    assert not log_dir.clean_shutdown
    assert {name: log.log_end_offset for name, log in report.logs.items()} == {f"t-{i}": 20 + i for i in range(12)}
    assert {name: log.recovery_point for name, log in report.logs.items() if log.recovery_point} == {"t-3": 23}
    assert [step[:2] for step in steps] == [(i + 1, 12) for i in range(12)]


def test_no_clean_mark_for_what_was_never_recovered(disk, root):
    """After an unclean stop, does a start that did not open every partition leave them for the next to recover?"""
    log_dir = LogDir.open(disk.files, root)
    fill(create(log_dir, "t-0"), 5)
    fill(create(log_dir, "t-1"), 5)
    log_dir.abandon()
    for names in ([], ["t-0"]):
        log_dir = LogDir.open(disk.files, root)
        load(log_dir, names)
        log_dir.close(0)

        assert not log_dir.clean_shutdown

    log_dir = LogDir.open(disk.files, root)
    load(log_dir)
    log_dir.close(0)

    assert LogDir.open(disk.files, root).clean_shutdown


def test_one_bad_partition(disk, root):
    """Is a partition that cannot be read reported, with its neighbours served?"""
    log_dir = LogDir.open(disk.files, root)
    for name in ("bad-0", "good-0"):
        fill(create(log_dir, name), 5)
        flush(log_dir.logs[name])
    log_dir.write_checkpoints()
    log_dir.abandon()
    disk.files.open(f"{root}/bad-0/{0:020d}.log").pwrite(b"\x09", 16)
    log_dir = LogDir.open(disk.files, root)
    report = load(log_dir, threads=2)

    assert list(report.logs) == ["good-0"]
    assert isinstance(report.failed["bad-0"], CorruptLog)


def test_a_start_offset_is_kept(disk, root):
    """Does a log start where DeleteRecords put it, after a crash too, once it is checkpointed?"""
    log_dir = LogDir.open(disk.files, root)
    log = create(log_dir, "t-0")
    fill(log, 10)
    log.advance_start_offset(4)
    log_dir.write_checkpoints()
    log_dir.abandon()
    log_dir = LogDir.open(disk.files, root)
    load(log_dir)

    assert log_dir.logs["t-0"].log_start_offset == 4


def test_deleted_partitions(disk, root):
    """Is a deleted partition no longer listed, its remains found after a restart, its checkpoint not inherited?"""
    log_dir = LogDir.open(disk.files, root)
    fill(create(log_dir, "t-0"), 10)
    flush(log_dir.logs["t-0"])
    log_dir.write_checkpoints()
    log_dir.delete_log("t-0")
    log = create(log_dir, "t-0")
    append(log, 1)

    assert (log.log_start_offset, log.log_end_offset, log.findings) == (0, 1, [])

    log_dir.abandon()
    log_dir = LogDir.open(disk.files, root)

    assert log_dir.log_names() == ["t-0"]

    for deleted in log_dir.deleted_logs():
        deleted.remove()

    assert log_dir.deleted_logs() == []


def test_the_cleaners_mark_goes_with_its_log(disk, root):
    """Is a deleted log, a new one of an old name, or one cut below its mark forgotten by the cleaner's checkpoint?"""
    path = f"{root}/cleaner-offset-checkpoint"
    log_dir = LogDir.open(disk.files, root)
    write_offsets(disk.files, path, {"a-0": 5, "b-0": 5, "c-0": 2, "d-0": 3})
    create(log_dir, "a-0")
    assert read_offsets(disk.files, path) == {"b-0": 5, "c-0": 2, "d-0": 3}
    for name in ("b-0", "c-0", "d-0"):
        fill(create(log_dir, name), 5)
    write_offsets(disk.files, path, {"b-0": 5, "c-0": 2, "d-0": 3})
    log_dir.delete_log("b-0")
    log_dir.truncate(log_dir.logs["c-0"], 2)
    log_dir.truncate(log_dir.logs["d-0"], 2)

    assert read_offsets(disk.files, path) == {"c-0": 2}


def test_names_that_are_no_partitions(disk, root):
    """Are other files and directories not taken for partitions?"""
    log_dir = LogDir.open(disk.files, root)
    for name in (
        "t-0",
        "t-00",
        "t-",
        "-0",
        "t-x",
        "t-99999999999",
        "lost+found",
        "a b-0",
        "t-0.0123-stray",
        "__cluster-5",
    ):
        disk.files.mkdir(f"{root}/{name}")
    disk.files.mkdir(f"{root}/t-1.{'0' * 32}-delete")

    assert log_dir.log_names() == ["__cluster-5", "t-0"]


def test_identity(disk, root):
    """Is the log dir's identity written and found again?"""
    log_dir = LogDir.open(disk.files, root)

    assert log_dir.meta is None

    log_dir.write_meta(MetaProperties("cluster", 1, UUID(int=2**99)))
    log_dir.close(0)

    assert LogDir.open(disk.files, root).meta == MetaProperties("cluster", 1, UUID(int=2**99))


def test_a_bad_identity(memory):
    """Is a log dir whose identity cannot be read refused, and left unlocked?"""
    memory.open("/data/meta.properties", create=True).pwrite(b"version=7", 0)
    for _ in range(2):
        with pytest.raises(CorruptLog, match=r"meta\.properties"):
            LogDir.open(memory, "/data")


def test_a_bad_checkpoint(disk, root):
    """Is a useless checkpoint reported, and everything recovered without it?"""
    log_dir = LogDir.open(disk.files, root)
    fill(create(log_dir, "t-0"), 10)
    log_dir.close(0)
    disk.files.open(f"{root}/recovery-point-offset-checkpoint", create=True).pwrite(b"\x00\x01", 0)
    disk.files.unlink(f"{root}/.kafka_cleanshutdown")
    log_dir = LogDir.open(disk.files, root)
    load(log_dir)

    assert "recovery-point-offset-checkpoint" in log_dir.findings[0].path
    assert read_all(log_dir.logs["t-0"]) == list(range(10))


def test_no_clean_mark_after_a_fault(memory):
    """Is a stop during which a log could not be flushed not called clean?"""
    log_dir = LogDir.open(memory, "/data")
    fill(create(log_dir, "t-0"), 3)
    fill(create(log_dir, "u-0"), 3)
    memory.fail_next("fsync", errno.EIO, path_contains="t-0")
    failed = log_dir.close(0, threads=1)

    assert list(failed) == ["t-0"]
    assert not LogDir.open(memory, "/data").clean_shutdown


def test_the_clean_mark_is_gone_for_good(memory):
    """Does a power cut after the start leave no mark of the clean stop before?"""
    LogDir.open(memory, "/data").close(0)
    memory.power_cut()

    assert LogDir.open(memory, "/data").clean_shutdown

    memory.power_cut()

    assert not LogDir.open(memory, "/data").clean_shutdown


def test_truncation_lowers_the_checkpoint_first(memory):
    """After a truncation and new appends that a power cut tears, is the log not taken for harmed?"""
    log_dir = LogDir.open(memory, "/data")
    log = create(log_dir, "t-0")
    fill(log, 20)
    flush(log)
    log_dir.write_checkpoints()
    log_dir.truncate(log, 10)
    fill(log, 5)
    memory.power_cut()
    log_dir = LogDir.open(memory, "/data")
    report = load(log_dir)

    assert report.failed == {}
    assert log_dir.logs["t-0"].findings == []
    assert log_dir.logs["t-0"].log_end_offset >= 10


def test_space(disk, root):
    """Does the log dir know the room on its volume?"""
    assert LogDir.open(disk.files, root).space().usable > 0


def test_a_disk_that_refuses(memory):
    """Is every failure of the disk a StorageFault?"""
    memory.fail_next("mkdir")
    with pytest.raises(StorageFault):
        LogDir.open(memory, "/data/x")
    memory.fail_next("read", path_contains="meta.properties")
    with pytest.raises(StorageFault):
        LogDir.open(memory, "/data/x")
    log_dir = LogDir.open(memory, "/data/x")
    memory.fail_next("listdir")
    with pytest.raises(StorageFault):
        log_dir.log_names()
    memory.fail_next("rename")
    with pytest.raises(StorageFault):
        log_dir.write_checkpoints()
    memory.fail_next("create", path_contains="partition.metadata")
    with pytest.raises(StorageFault):
        create(log_dir, "t-0")
    memory.fail_next("write")
    with pytest.raises(StorageFault):
        log_dir.write_meta(MetaProperties("c", 1, None))


def test_a_directory_that_is_a_file(disk, root):
    """Is a file where a partition should be a partition that cannot be served?"""
    log_dir = LogDir.open(disk.files, root)
    disk.files.open(f"{root}/t-0", create=True)
    report = load(log_dir)

    assert list(report.failed) == ["t-0"]
    with pytest.raises(StorageFault):
        open_log(disk.files, f"{root}/t-0")


@pytest.mark.parametrize("torn", [b"\xff\xfe", b"version: 0\ntopic_id: AA\xc3"])
def test_a_name_torn_before_the_first_flush(memory, torn):
    """Does a partition that never flushed a record open with garbage for its name, and one that did not?"""
    log_dir = LogDir.open(memory, "/data/logs")
    create(log_dir, "new-0")
    used = create(log_dir, "used-0")
    used.assign_epoch(3, 0)
    append(used, 1)
    flush(used)
    for name in ("new-0", "used-0"):
        memory.open(f"/data/logs/{name}/partition.metadata", create=True).pwrite(torn, 0)

    assert log_dir.topic_id("new-0", expected=TOPIC_ID) is None
    with pytest.raises(CorruptLog, match="is not text"):
        log_dir.topic_id("used-0", expected=TOPIC_ID)


class _Cut(Exception):
    """The power goes."""


@pytest.mark.parametrize("operation", range(12))
def test_a_power_cut_in_the_first_flush(operation):
    """Can a partition be opened wherever in its first flush the power went, whatever the disk made of it?"""
    for seed in range(60):
        memory = MemoryFiles()
        memory.mkdir("/data/logs")
        memory.fsync_dir("/")
        memory.fsync_dir("/data")
        log = create(LogDir.open(memory, "/data/logs"), "new-0")
        log.assign_epoch(3, 0)
        append(log, 1)
        left = iter(range(operation))

        def before(_operation, _path, left=left):
            if next(left, None) is None:
                raise _Cut

        memory.before = before
        with suppress(_Cut):
            flush(log)
        memory.before = None
        memory.power_cut(Random(seed))
        if memory.stat("/data/logs/new-0") is not None:
            assert LogDir.open(memory, "/data/logs").topic_id("new-0", expected=TOPIC_ID) in (None, TOPIC_ID)
