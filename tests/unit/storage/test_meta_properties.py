"""Do a log dir and a partition say whose they are, in Kafka's words?"""

from uuid import UUID

import pytest

from headrace.storage.corruption import CorruptLog
from headrace.storage.meta_properties import MetaProperties, read_meta, read_topic_id, write_meta, write_topic_id

META = MetaProperties("MkU3OEVBNTcwNTJENDM2Qg", 1, UUID(int=2**100 + 5))


def put(memory, name, data):
    memory.open(f"/data/{name}", create=True).pwrite(data, 0)


def test_meta_written_and_read(disk):
    """Does the identity come back, and is there none before?"""
    assert read_meta(disk.files, disk.root) is None

    write_meta(disk.files, disk.root, META)

    assert read_meta(disk.files, disk.root) == META


def test_meta_of_kafka(memory):
    """Is a file as Kafka writes it understood: comments, escapes, any order?"""
    put(memory, "meta.properties", b"#\n#Sun Nov 15\ncluster.id=a\\:b\\=c\nversion=1\nnode.id = 3\n")

    assert read_meta(memory, "/data") == MetaProperties("a:b=c", 3, None)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"version=1\nnode.id=1\n", "no 'cluster.id'"),
        (b"version=0\ncluster.id=x\nbroker.id=1\n", "version 0"),
        (b"version=1\ncluster.id=x\nnode.id=-1\n", "'-1' is not a number"),
        (b"version=1\ncluster.id=x\nnode.id=1\ndirectory.id=short\n", "base64"),
        (b"\xff\xfe", "not text"),
        (b"", "no 'version'"),
    ],
)
def test_bad_meta(memory, data, reason):
    """Does a bad file say what is wrong with it?"""
    put(memory, "meta.properties", data)
    with pytest.raises(CorruptLog, match=reason):
        read_meta(memory, "/data")


def test_topic_id_written_and_read(disk):
    """Does the topic id come back in Kafka's form, and is there none before?"""
    assert read_topic_id(disk.files, disk.root) is None

    write_topic_id(disk.files, disk.root, UUID(int=1))

    assert disk.files.read(f"{disk.root}/partition.metadata") == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    assert read_topic_id(disk.files, disk.root) == UUID(int=1)


@pytest.mark.parametrize("data", [b"", bytes(40), b"version: 0\nto", b"version: 0\ntopic_id: AAAA"])
def test_topic_id_that_a_power_cut_took(memory, data):
    """Is a file that was named but never flushed, or only in part, no topic id, rather than an error?"""
    put(memory, "partition.metadata", data)

    assert read_topic_id(memory, "/data", expected=UUID(int=1)) is None


@pytest.mark.parametrize(
    "data",
    [b"\xff", b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", b"version: 0\ntopic_id: x"],
)
def test_bad_topic_id(memory, data):
    """Is a bad file named rather than guessed at?"""
    put(memory, "partition.metadata", data)
    with pytest.raises(CorruptLog, match=r"/data/partition\.metadata"):
        read_topic_id(memory, "/data", expected=UUID(int=1))
