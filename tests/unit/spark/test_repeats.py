"""Records that came before: what a memory knows again, and what a stream's tasks leave out, batch by batch."""

import pickle
import random

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from headrace.client.records import TopicPartition
from headrace.records.build import NewRecord, build_batch
from headrace.spark import repeats
from headrace.spark.decoder import decode
from headrace.spark.offsets import Range
from headrace.spark.option_table import source_options
from headrace.spark.repeats import Memory, Repeats
from headrace.spark.stream_reader import StreamReader
from headrace.spark.task import KNOWN_BY

SCHEMA = StructType([StructField("offset", LongType())])
PLACE = TopicPartition("t", 0)


@pytest.fixture(autouse=True)
def forgetful(monkeypatch):
    """What a test remembers is its own."""
    monkeypatch.setattr(repeats, "_MEMORIES", type(repeats._MEMORIES)())


def columns(*records, start=0):
    """Records given as (key, value), from an offset on."""
    batch = bytearray(build_batch([NewRecord(timestamp=1, key=key, value=value) for key, value in records]))
    batch[:8] = start.to_bytes(8, "big")
    return decode(bytes(batch), start=start, stop=start + len(records), wanted=KNOWN_BY)


def new_among(records, within, cut=None):
    """The places of those that are new, given at once or cut into pieces."""
    memory, found = Memory(within, 0), []
    for start in range(0, len(records), cut or len(records)):
        piece = records[start : start + (cut or len(records))]
        found += [start + place for place in memory.new_among(columns(*piece, start=start)).nonzero()[0].tolist()]
    return found


def by_the_book(records, within):
    """The same, by looking back from every record."""
    return [at for at, one in enumerate(records) if one not in records[max(0, at - within) : at]]


def test_what_is_the_same():
    """Are key and value compared, each as a whole, with null and empty told apart?"""
    records = [
        *((b"k", b"v"), (b"kv", b""), (b"", b"kv"), (None, b"kv"), (b"kv", None), (None, None), (b"", b"")),
        *((b"k", b"v\x00"), (b"k", b"v" * 8), (b"k", b"v" * 16), (b"k", b"v" * 15 + b"w"), (b"k", b"w" + b"v" * 15)),
    ]

    assert list(range(len(records))) == new_among(records, 100)
    assert list(range(len(records))) == new_among(records + records, 100)


def test_how_far_away():
    """Does a record count again once the last one like it is further away than said?"""
    other = [(b"o", b"%d" % number) for number in range(3)]
    same = (b"k", b"v")

    assert [0, 1, 2, 3] == new_among([same, *other, same], 4)
    assert [0, 1, 2, 3, 4] == new_among([same, *other, same], 3)
    assert [0, 2] == new_among([same, same, (b"o", b""), same, same], 2)


@pytest.mark.parametrize("within", [1, 2, 7, 40])
def test_any_history(within):
    """Is it what looking back from every record finds, however the records are cut into batches?"""
    chance = random.Random(within)
    records = [(b"%d" % chance.randrange(9), b"%d" % chance.randrange(6)) for _ in range(2000)]

    assert by_the_book(records, within) == new_among(records, within)
    assert by_the_book(records, within) == new_among(records, within, cut=13)


def test_what_is_read_again():
    """Does a task look back as far as a repeat may be away, and only at what its worker does not know yet?"""
    first = Repeats(5, "query")
    assert [(Range(PLACE, 95, 100), 1)] == first.before([(Range(PLACE, 100, 103), 1)])
    first.new_among(PLACE, columns(*[(b"k", b"%d" % number) for number in range(8)], start=95))
    first.keep()

    assert [] == Repeats(5, "query").before([(Range(PLACE, 103, 110), 1)])
    assert [(Range(PLACE, 98, 103), 1)] == Repeats(5, "query").before([(Range(PLACE, 103, 110), 1)])
    assert [(Range(PLACE, 98, 103), 1)] == Repeats(5, "other").before([(Range(PLACE, 103, 110), 1)])
    assert [] == Repeats(5, "query").before([(Range(PLACE, 0, 9), 1)])


@pytest.mark.parametrize(("start", "seen"), [(104, (103, 104)), (150, (145, 150)), (90, (85, 90))])
def test_what_is_not_known(start, seen):
    """Is what came since the last task looked at, and all of it after a gap or a step back?"""
    first = Repeats(5, "query")
    first.before([(Range(PLACE, 100, 103), 1)])
    first.new_among(PLACE, columns(*[(b"k", b"%d" % number) for number in range(8)], start=95))
    first.keep()

    assert [(Range(PLACE, *seen), 1)] == Repeats(5, "query").before([(Range(PLACE, start, start + 9), 1)])


def test_memories_have_an_end(monkeypatch):
    """Does a worker forget the partitions it has not read for longest, rather than grow?"""
    monkeypatch.setattr(repeats, "REMEMBERED_MAX", 3 * Memory(5, 0).nbytes)
    for number in range(5):
        task = Repeats(5, "query")
        task.before([(Range(TopicPartition("t", number), 0, 9), 1)])
        task.keep()

    assert [2, 3, 4] == [name.place.partition for name in repeats._MEMORIES]


@pytest.fixture
def stream(shared, wire, topic):
    """A reader of the test's topic that leaves repeats out; `send` sends values to it."""
    client = wire(shared)
    client.create_topic(topic)
    given = {"kafka.bootstrap.servers": shared.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    reader = StreamReader(SCHEMA, source_options({**given, "dropRepeatsWithin": "4"}, is_stream=True))

    def send(*values):
        assert 0 == client.produce(topic, bytes(build_batch([NewRecord(1, b"k", one) for one in values]))).error_code

    yield reader, send
    reader.stop()


def read(reader, topic, start, stop):
    """The offsets that a copy of the reader, as workers have it, finds in a batch."""
    (task,) = reader.partitions({topic: {"0": start}}, {topic: {"0": stop}})
    copy, task = pickle.loads(pickle.dumps((reader, task)))
    return [number for batch in copy.read(task) for number in batch.column(0).to_pylist()]


def test_batches_of_a_stream(stream, topic):
    """Are repeats left out across batches, in a worker that knows what came before and in one that does not?"""
    reader, send = stream
    send(b"a", b"b", b"a", b"c")
    send(b"c", b"d", b"b", b"a", b"a")

    assert [0, 1, 3] == read(reader, topic, 0, 4)
    assert [5, 6] == read(reader, topic, 4, 7)
    assert [7] == read(reader, topic, 7, 9)
    repeats._MEMORIES.clear()
    assert [7] == read(reader, topic, 7, 9)
    assert [5, 6] == read(reader, topic, 4, 7)


def test_what_retention_took(stream, shared, wire, topic):
    """Is it no loss if the records before a batch are gone?"""
    reader, send = stream
    send(b"a", b"b", b"c")
    send(b"a", b"b", b"b")
    from headrace import KafkaAdmin

    with KafkaAdmin(bootstrap_servers=shared.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 2})

    assert [3, 4] == read(reader, topic, 3, 6)
