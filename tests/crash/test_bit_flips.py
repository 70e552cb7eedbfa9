"""One bit of a stopped broker's files is another: it is noticed or harmless, and nobody else suffers."""

import contextlib
import logging
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from crash.log_reader import last_offset_of, records_of
from headrace.model.errors import ErrorCode, HeadraceError
from headrace.records.batch import CorruptBatch, check_batch, split_batches
from headrace.records.build import NewRecord, build_batch
from headrace.testing import Cluster
from headrace.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from wire_client import WireClient

pytestmark = pytest.mark.slow

FLIPS = int(os.environ.get("HEADRACE_FLIPS", "50"))
FLIPS_LONG = int(os.environ.get("HEADRACE_FLIPS", "200"))
TOPICS = ("victim", "trimmed", "neighbour")
BATCHES = 90
TRIMMED = 30
FIRST_TIMESTAMP = 1_000
WHOLE_BROKER = ("meta.properties", "__cluster_metadata-0")
"""Files without which there is no telling what the rest means: the broker may refuse to start, and say why."""


class Flip(NamedTuple):
    """Which bit of which file."""

    path: str
    bit: int

    def apply(self, directory: Path) -> None:
        """Do it."""
        file = directory / self.path
        data = bytearray(file.read_bytes())
        data[self.bit // 8] ^= 1 << self.bit % 8
        file.write_bytes(data)


class Reading(NamedTuple):
    """What a consumer that checks CRCs and offsets got out of a partition."""

    values: dict[int, bytes]
    complaint: str
    """What it noticed, empty if all looked right."""


def fill(client: WireClient, topic: str) -> dict[int, bytes]:
    """Batches of a few records by an idempotent producer; the values by offset."""
    assert client.create_topic(topic, internal_segment_bytes="4000", index_interval_bytes="500").error_code == 0
    producer_id, epoch = client.new_producer_id()
    values, sequence = {}, 0
    for number in range(BATCHES):
        records = [
            NewRecord(FIRST_TIMESTAMP + number, None, b"%s/%d/%d" % (topic.encode(), number, i), ()) for i in range(3)
        ]
        more = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
        result = client.produce(topic, bytes(build_batch(records, **more)))
        assert result.error_code == 0, result
        values |= {result.base_offset + i: record.value for i, record in enumerate(records)}
        sequence += len(records)
    return values


def trim(client: WireClient, values: dict[int, bytes]) -> dict[int, bytes]:
    """Delete the first records of the trimmed topic, so that it has a line in the checkpoint of log starts."""
    wanted = DeleteRecordsPartition(partition_index=0, offset=TRIMMED)
    topic = DeleteRecordsTopic(name="trimmed", partitions=(wanted,))
    answer = client.ask("DeleteRecords", 2, DeleteRecordsRequest(topics=(topic,), timeout_ms=5_000))
    assert answer.topics[0].partitions[0].error_code == 0
    return {offset: value for offset, value in values.items() if offset >= TRIMMED}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Data of a broker that was stopped, once cleanly and once not, and what is in it."""
    clean, unclean = tmp_path_factory.mktemp("clean"), tmp_path_factory.mktemp("unclean") / "data"
    with Cluster(directory=clean) as cluster, WireClient(cluster.port) as client:
        values = {topic: fill(client, topic) for topic in TOPICS}
        values["trimmed"] = trim(client, values["trimmed"])
        # Everything is flushed and its checkpoint written: what a crash leaves now is whole.
        cluster.call(cluster.broker.housekeeping.checkpoint())
        shutil.copytree(clean, unclean)
    return {"clean": clean, "unclean": unclean}, values


def files_of(directory: Path) -> list[str]:
    """The files a bit can be flipped in, the neighbour's own aside."""
    files = (path for path in directory.rglob("*") if path.is_file() and path.stat().st_size)
    names = sorted(path.relative_to(directory).as_posix() for path in files)
    return [name for name in names if not name.startswith("neighbour-0/") and name != ".lock"]


def choose(directory: Path, chance: random.Random) -> Flip:
    """Every kind of file is as likely as any other, so that the small ones get their share."""
    names = files_of(directory)
    kinds = sorted({kind_of(name) for name in names})
    kind = chance.choice(kinds)
    name = chance.choice([name for name in names if kind_of(name) == kind])
    return Flip(name, chance.randrange(8 * (directory / name).stat().st_size))


def kind_of(name: str) -> str:
    """`victim-0/*.log` for a segment, the name itself for a checkpoint."""
    directory, _, file = name.rpartition("/")
    stem, dot, ending = file.rpartition(".")
    return f"{directory}/*.{ending}" if dot and stem.isdigit() else name


def read(port: int, topic: str) -> Reading:
    """Read a partition as a careful consumer does, up to the first thing that is not right."""
    values: dict[int, bytes] = {}
    with WireClient(port) as client:
        start, end = client.list_offset(topic, -2), client.list_offset(topic, -1)
        for found in (start, end):
            if found.error_code:
                return Reading(values, f"ListOffsets: {ErrorCode(found.error_code).name}")
        offset = start.offset
        while offset < end.offset:
            found = client.fetch(topic, offset, max_bytes=1 << 20)
            if found.error_code:
                return Reading(values, f"Fetch at {offset}: {ErrorCode(found.error_code).name}")
            before = offset
            try:
                for batch in batches_at(found.records, offset):
                    values |= {r.offset: r.value for r in records_of(batch) if r.offset >= before}
                    offset = last_offset_of(batch) + 1
            except CorruptBatch as fault:
                return Reading(values, f"a batch behind {offset}: {fault}")
            if offset == before:
                return Reading(values, f"nothing at {offset}, though the end is {end.offset}")
    return Reading(values, "")


def batches_at(data: bytes, offset: int) -> Iterator[bytes]:
    """The batches of an answer, held against their CRCs and against the offset each must begin at."""
    first = True
    for position, header in split_batches(data):
        batch = data[position : position + header.size]
        check_batch(batch)
        if header.base_offset != offset and not (first and header.base_offset < offset <= header.last_offset):
            raise CorruptBatch(f"it begins at {header.base_offset}, {offset} would be next")
        yield batch
        offset, first = header.last_offset + 1, False


def compare(cluster: Cluster, flip: Flip, values: dict[str, dict[int, bytes]], said: list[str]) -> list[str]:
    """Nothing wrong is served as if right, nothing is missing without a word, and nobody else is touched.

    Gives what readers complained of.
    """
    complaints = []
    for topic in TOPICS:
        reading, expected = read(cluster.port, topic), values[topic]
        wrong = {offset: value for offset, value in reading.values.items() if expected.get(offset, value) != value}
        assert wrong == {}, f"{flip}: served as if right"
        if is_beyond_us(flip, topic):
            continue
        if not flip.path.startswith(f"{topic}-0/"):
            assert reading == Reading(expected, ""), f"{flip}: {topic} has nothing to do with it"
        elif not reading.complaint:
            compare_lookups(cluster.port, topic, flip, expected)
        if reading.values.keys() != expected.keys():
            words = [line for line in said if f"{topic}-0" in line or flip.path in line]
            assert reading.complaint or words, f"{flip}: {topic} has {len(reading.values)} records, without a word"
        if reading.complaint:
            complaints.append(reading.complaint)
    return complaints


def compare_lookups(port: int, topic: str, flip: Flip, expected: dict[int, bytes]) -> None:
    """Does each offset, and each timestamp, lead to its record, whatever the indexes say?"""
    with WireClient(port) as client:
        for offset in list(expected)[::7]:
            found = client.fetch(topic, offset, max_bytes=1)
            records = {record.offset: record.value for record in records_of(found.records)}
            assert records.get(offset) == expected[offset], f"{flip}: offset {offset} leads to {sorted(records)}"
        for number in range(TRIMMED, BATCHES, 2):
            found = client.list_offset(topic, FIRST_TIMESTAMP + number)
            assert found.offset == 3 * number, f"{flip}: the time of {3 * number} leads to {found}"


def is_beyond_us(flip: Flip, topic: str) -> bool:
    """Whether the damage can look like the truth: Kafka's checkpoints are text without a checksum.

    A log start that became another possible number hides records, or shows deleted ones, and nothing contradicts it.
    """
    return topic == "trimmed" and flip.path == "log-start-offset-checkpoint"


@contextlib.contextmanager
def broker_words() -> Iterator[list[str]]:
    """Everything the broker logs meanwhile."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("headrace").addHandler(handler)
    try:
        yield lines
    finally:
        logging.getLogger("headrace").removeHandler(handler)


def try_flip(source: Path, directory: Path, flip: Flip, values: dict[str, dict[int, bytes]]) -> str:
    """Start a broker on a copy with one bit flipped, and compare; what became of it in a word."""
    shutil.copytree(source, directory)
    flip.apply(directory)
    cluster = Cluster(directory=directory)
    with broker_words() as said:
        try:
            cluster.start()
        except HeadraceError as reason:
            if not flip.path.startswith(WHOLE_BROKER):
                raise AssertionError(f"{flip}: the whole broker refused to start") from reason
            return "refused"
        try:
            complaints = compare(cluster, flip, values, said)
            still_works(cluster, flip)
        finally:
            cluster.stop()
    assert not any("handler_failed" in line for line in said), (flip, said)
    is_noticed = complaints or any(word in line for line in said for word in ("damage", "offline", "stray"))
    return "noticed" if is_noticed else "harmless"


def still_works(cluster: Cluster, flip: Flip) -> None:
    """Does every partition that is served take records, and give them back?"""
    with WireClient(cluster.port) as client:
        for topic in TOPICS:
            result = client.produce(topic, bytes(build_batch([NewRecord(1, None, b"new", ())])))
            if result.error_code == 0:
                found = client.fetch(topic, result.base_offset)
                assert [r.value for r in records_of(found.records)] == [b"new"], (flip, topic)
            else:
                assert flip.path.startswith(f"{topic}-0/"), (flip, topic, result)


def run(template, tmp_path: Path, chance: random.Random, flips: int) -> None:
    """So many bits, one at a time."""
    sources, values = template
    outcomes: dict[str, int] = {}
    for number in range(flips):
        stop = chance.choice(("clean", "unclean"))
        flip = choose(sources[stop], chance)
        directory = tmp_path / str(number)
        print(f"{number}: {stop}, {flip}")
        outcome = try_flip(sources[stop], directory, flip, values)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        shutil.rmtree(directory)
    print(outcomes)


def test_bit_flips(template, tmp_path, chance):
    """Is each flipped bit noticed or harmless?"""
    run(template, tmp_path, chance, FLIPS)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_long_bit_flips(template, tmp_path, chance):
    """The same, for more bits: does it hold?"""
    run(template, tmp_path, chance, FLIPS_LONG)
