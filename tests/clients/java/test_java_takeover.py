"""Apache Kafka starts on the files Headrace left behind, and Headrace on those of Kafka: the way is open both ways."""

import json
from pathlib import Path

import pytest

from clients.java.record_book import RecordBook, place, sample_records
from headrace.cli import storage
from headrace.testing.broker_process import BrokerProcess, HeadraceProcess
from headrace.testing.peer import KafkaPeer

TOPICS = "org.apache.kafka.tools.TopicCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
STORAGE = "kafka.tools.StorageTool"


def test_kafka_takes_over(java, tmp_path):
    """Does Apache Kafka serve every record we kept, under the same topic, and go on from there?"""
    _check_takeover(java, tmp_path, HeadraceProcess(tmp_path / "old"), KafkaPeer(tmp_path / "new"), records=2000)


@pytest.mark.parametrize("release", [(), ("--release-version", "4.0")], ids=["latest", "4.0"])
def test_headrace_takes_over(java, tmp_path, release):
    """Does Headrace serve what Kafka kept, whose metadata log begins with a transaction (KIP-868)?"""
    old = KafkaPeer(tmp_path / "old")
    old.format_options = release
    old.format()

    _check_takeover(java, tmp_path, old, HeadraceProcess(tmp_path / "new"), records=400)


def test_who_formats_and_who_starts(java, tmp_path):
    """Begins a cluster at the same levels, whichever of both formats its directory and whichever starts it?"""
    both = {"headrace": HeadraceProcess, "kafka": KafkaPeer}
    release = ("--release-version", "4.3")
    found = {}
    for formats in both:
        for starts, kind in both.items():
            broker = kind(tmp_path / f"{formats}-{starts}")
            words = ("format", "--cluster-id", "q1Sh-9_ISia_zwGINzRvyQ", "--config", str(broker.properties), *release)
            if formats == "kafka":
                java.check(STORAGE, *words)
            else:
                assert 0 == storage.main(words, "kafka-storage")
            try:
                broker.start()
                found[formats, starts] = java.check(
                    FEATURES, "--bootstrap-server", broker.bootstrap, "describe"
                ).lines()
            finally:
                broker.remove()

    finalized = {way: [line.split("FinalizedVersionLevel: ")[1].split()[0] for line in found[way]] for way in found}
    assert {("1", "1", "0", "4.3-IV0", "1", "1", "2")} == {*map(tuple, finalized.values())}


def _check_takeover(java, place: Path, old: BrokerProcess, new: BrokerProcess, *, records: int) -> None:
    """The new broker serves what the old one kept, and takes more."""
    new.properties.write_text(new.properties.read_text().replace(str(new.log_dir), str(old.log_dir)))
    book = RecordBook("kept", sample_records(records, 2))
    half = RecordBook("kept", book.records[: records // 2])
    try:
        old.start()
        java.check("Topics", old.bootstrap, "create", "kept", 2, "retention.ms=-1", "index.interval.bytes=1000")
        _send(java, old, half.write(place / "first.jsonl"))
        described = _describe(java, old)
        old.stop()
        new.start()
        taken_over = _describe(java, new)
        kept = _read(java, new)
        _send(java, new, book.write(place / "second.jsonl", first=records // 2))
        everything = _read(java, new)
    finally:
        old.remove()
        new.remove()

    assert described == taken_over
    assert half.expected() == kept
    assert book.expected() == everything


def _send(java, broker: BrokerProcess, file: Path) -> None:
    java.check("Produce", broker.bootstrap, file, "batch.size=3000", "compression.type=lz4")


def _read(java, broker: BrokerProcess) -> list[dict[str, object]]:
    printed = java.check("Read", broker.bootstrap, "beginning", "end", "kept").lines()
    return sorted(map(json.loads, printed), key=place)


def _describe(java, broker: BrokerProcess) -> list[list[str]]:
    """What kafka-topics says of the topic: id, partitions, leaders and settings."""
    output = java.check(TOPICS, "--bootstrap-server", broker.bootstrap, "--describe", "--topic", "kept").out
    return [sorted(line.replace(",", " ").split()) for line in output.splitlines()]
