"""Does a partition go in two steps, the first at once and for good?"""

import re

import pytest

from headrace.model.errors import StorageFault
from headrace.storage.deletion import DeletedLog, mark_directory
from unit.storage.samples import append, fill, open_log


def test_a_deleted_log(disk):
    """Is the directory renamed as Kafka does, are readers unharmed, writers refused, and is it gone when removed?"""
    log = open_log(disk.files, f"{disk.root}/a-topic-3")
    fill(log, 3)
    span = log.read(0, max_bytes=999, limit_offset=3)
    deleted = log.delete()

    assert re.fullmatch(r".*/a-topic-3\.[0-9a-f]{32}-delete", deleted.path)
    assert disk.files.stat(f"{disk.root}/a-topic-3") is None
    assert span.load() == bytes(span.view())
    with pytest.raises(StorageFault, match="is deleted"):
        append(log, 1)

    deleted.remove()
    deleted.remove()

    assert disk.files.listdir(disk.root) == []


def test_a_name_of_its_own(disk):
    """Can a topic of the same name be deleted again before the first is removed?"""
    paths = {open_log(disk.files, f"{disk.root}/t-0").delete().path for _ in range(3)}

    assert len(paths) == len(disk.files.listdir(disk.root)) == 3


def test_a_long_name_still_fits(disk):
    """Is the topic's name shortened so that the whole is a legal file name?"""
    name = "x" * 249 + "-12345"
    disk.files.mkdir(f"{disk.root}/{name}")
    target = mark_directory(disk.files, f"{disk.root}/{name}")
    new_name = target.rpartition("/")[2]

    assert len(new_name) == 255
    assert re.fullmatch(r"x+-12345\.[0-9a-f]{32}-delete", new_name)


def test_a_deleted_topic_does_not_come_back(memory):
    """Is the rename durable at once?"""
    log = open_log(memory, "/data/t-0")
    fill(log, 3)
    job = log.flush_job()
    job.run()
    log.delete()
    memory.power_cut()

    assert [name.endswith("-delete") for name in memory.listdir("/data")] == [True]


def test_a_removal_that_fails(memory):
    """Is a disk that refuses a StorageFault, and can it be tried again?"""
    deleted = open_log(memory, "/data/t-0").delete()
    memory.fail_next("unlink")
    with pytest.raises(StorageFault, match="Input/output"):
        deleted.remove()
    DeletedLog(memory, deleted.path).remove()

    assert memory.listdir("/data") == []
