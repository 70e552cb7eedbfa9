"""kill -9 at any moment, under load: nothing acknowledged is lost, nothing is there twice, no offset ever changes."""

import os

import pytest

from crash.storm import SEGMENT_BYTES, Storm
from wire_client import WireClient

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("HEADRACE_KILLS", "12"))
KILLS_LONG = int(os.environ.get("HEADRACE_KILLS", "200"))
TOPICS = {"flushed": 4, "cached": 2}
"""One topic acknowledges what is on the disk, one what is in the page cache, which a killed process leaves behind."""


def create_topics(port: int) -> None:
    """Both topics, with segments that roll often."""
    for topic, partitions in TOPICS.items():
        with WireClient(port) as client:
            created = client.create_topic(
                topic,
                partitions=partitions,
                internal_segment_bytes=str(SEGMENT_BYTES),
                flush_on_acks_all=str(topic == "flushed").lower(),
            )
            assert created.error_code == 0, created


def kill_once(storm: Storm) -> str:
    """Kill the broker at a moment of chance, in a way of chance, and start it again; says which."""
    broker, chance = storm.broker, storm.chance
    way = chance.choice(("killed", "killed", "killed", "killed in its recovery", "killed in its shutdown"))
    storm.acks.wait_for_more(chance.choice((1, 30, 300, 1_500)) + chance.randrange(200))
    if way == "killed in its shutdown":
        broker.stop_and_kill(chance.uniform(0, 0.15))
    else:
        broker.kill()
    if way == "killed in its recovery":
        for _ in range(chance.randint(1, 2)):
            broker.start_and_kill(chance.uniform(0.2, 0.9))
    broker.start()
    return way


def run(victim, chance, kills: int) -> None:
    """So many kills, and the account."""
    broker = victim(**{"log.flush.offset.checkpoint.interval.ms": "200"})
    broker.start()
    create_topics(broker.port)
    with Storm(broker, chance, TOPICS) as storm:
        for number in range(kills):
            print(f"{number}: {kill_once(storm)}, {storm.acks.count} acks so far")
            storm.compare_some()
        storm.settle()
    print(f"{kills} kills, {storm.account()}")
    segments = sum(1 for topic, index in storm.places for _ in (broker.log_dir / f"{topic}-{index}").glob("*.log"))
    assert segments > 2 * len(storm.places), "no segment was ever rolled"
    assert broker.bugs() == []
    assert broker.said("damage_found") + broker.said("partition_offline") == []
    broker.stop()


def test_kill_storm(victim, chance):
    """Does a broker that is killed again and again lose, repeat or move nothing it acknowledged?"""
    run(victim, chance, KILLS)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_long_kill_storm(victim, chance):
    """The same, two hundred times: does it hold?"""
    run(victim, chance, KILLS_LONG)
