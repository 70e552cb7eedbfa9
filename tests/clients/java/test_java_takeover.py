"""Apache Kafka starts on the files Headrace left behind, and everything is there: the way out is open."""

import json
from pathlib import Path

from clients.java.record_book import RecordBook, place, sample_records
from headrace.testing.broker_process import BrokerProcess, HeadraceProcess
from headrace.testing.peer import KafkaPeer

TOPICS = "org.apache.kafka.tools.TopicCommand"


def test_kafka_takes_over(java, tmp_path):
    """Does Apache Kafka serve every record we kept, under the same topic, and go on from there?"""
    old = HeadraceProcess(tmp_path / "old")
    new = KafkaPeer(tmp_path / "new")
    new.properties.write_text(new.properties.read_text().replace(str(new.log_dir), str(old.log_dir)))
    book = RecordBook("kept", sample_records(2000, 2))
    half = RecordBook("kept", book.records[:1000])
    try:
        old.start()
        settings = ("retention.ms=-1", "index.interval.bytes=1000")
        java.check("Topics", old.bootstrap, "create", "kept", 2, *settings)
        _send(java, old, half.write(tmp_path / "first.jsonl"))
        described = _describe(java, old)
        old.stop()
        new.start()
        taken_over = _describe(java, new)
        kept = _read(java, new)
        _send(java, new, book.write(tmp_path / "second.jsonl", first=1000))
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
