"""The plug is pulled: what was acknowledged is on the disk, with its offset and its topic."""

import os

import pytest

from crash.storm import SEGMENT_BYTES, Storm
from wire_client import WireClient

pytestmark = pytest.mark.slow

CUTS = int(os.environ.get("HEADRACE_CUTS", "3"))
CUTS_LONG = int(os.environ.get("HEADRACE_CUTS", "20"))
TOPICS = {"first": 3, "second": 1}


def run(victim, image, chance, cuts: int) -> None:
    """Cut, mount, start, compare; so many times."""
    broker = victim(**{"log.flush.offset.checkpoint.interval.ms": "200"})
    disk = image(broker, megabytes=256)
    broker.start()
    created = {}
    for topic, partitions in TOPICS.items():
        created[topic] = create_topic(broker.port, topic, partitions)
    with Storm(broker, chance, TOPICS) as storm:
        for number in range(cuts):
            storm.acks.wait_for_more(chance.choice((1, 100, 1_000)) + chance.randrange(200))
            created[f"extra-{number}"] = create_topic(broker.port, f"extra-{number}", 2)
            storm.acks.wait_for_more(chance.randrange(30))
            broker.freeze()
            disk.cut_power()
            broker.kill()
            disk.unmount()
            disk.mount()
            broker.start()
            with WireClient(broker.port) as client:
                assert {topic: client.describe_topic(topic).topic_id for topic in created} == created
            storm.compare_some()
            print(f"{number}: {storm.acks.count} acks so far")
        storm.settle()
    print(f"{cuts} cuts, {storm.account()}")
    assert broker.bugs() == []
    assert broker.said("damage_found") + broker.said("partition_offline") == []
    broker.stop()


def create_topic(port: int, name: str, partitions: int):
    """Create a topic; its id."""
    with WireClient(port) as client:
        result = client.create_topic(name, partitions=partitions, internal_segment_bytes=str(SEGMENT_BYTES))
        assert result.error_code == 0, result
        return result.topic_id


def test_power_cuts(victim, image, chance):
    """Does a power cut take nothing that was acknowledged?"""
    run(victim, image, chance, CUTS)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_long_power_cuts(victim, image, chance):
    """The same, twenty times: does it hold?"""
    run(victim, image, chance, CUTS_LONG)
