"""Members of a group come, go and die, and so does the broker: every record is processed, only what was open twice."""

import os

import pytest

from crash.churn import BROKER_SETTINGS, PROTOCOLS, SESSION_S, Churn
from headrace.testing.kafka_jars import PeerUnavailable, kafka_jars
from headrace.testing.peer import KafkaPeer
from wire_client import WireClient

pytestmark = [pytest.mark.slow, pytest.mark.clients]

MEMBERS = 20
EVENTS = int(os.environ.get("HEADRACE_CHURN", "14"))
EVENTS_LONG = int(os.environ.get("HEADRACE_CHURN", "150"))
BROKER_KILL_EVERY = 6
PARTITIONS = 24
STRICT_S = SESSION_S + 2.0
"""After one disturbance. In a burst it may be twice the session: a member that dies when it has just asked to join
counts as joined, and is missed only when the generation it never saw has begun."""
GENEROUS_S = 30.0
"""On a machine that does other things too, a member may be late for reasons of its own."""


def disturb(churn: Churn) -> str:
    """One thing happens to the group: a member comes, goes or dies, and the group is never far from full."""
    if len(churn.members) < MEMBERS - 4 or (len(churn.members) < MEMBERS and churn.chance.random() < 0.5):
        churn.join()
        return "join"
    way = churn.chance.choice(("leave", "kill"))
    getattr(churn, way)()
    return way


def run(churn: Churn, events: int, *, settle_s: float, bursts: bool) -> None:
    """So many disturbances, each with time to settle after it unless they come in bursts; then the account."""
    with WireClient(churn.broker.port) as client:
        assert client.create_topic(churn.topic, partitions=churn.partitions).error_code == 0
    with churn:
        for _ in range(MEMBERS):
            churn.join()
        churn.wait_until_owned(within_s=4 * GENEROUS_S)
        for number in range(events):
            if number % BROKER_KILL_EVERY == BROKER_KILL_EVERY // 2:
                churn.kill_broker()
            way = disturb(churn)
            if not bursts or churn.chance.random() < 0.4:
                churn.wait_until_owned(within_s=4 * GENEROUS_S)
                way += ", settled"
            print(f"{number}: {way}, {len(churn.members)} members")
        churn.settle(within_s=4 * GENEROUS_S)
    print(churn.account(settle_s=settle_s))
    assert all(churn.counts.values()), "something never happened"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_churn(victim, chance, protocol):
    """Is every record processed, and nothing repeated but what was not committed, while members and broker die?"""
    broker = victim(**BROKER_SETTINGS)
    broker.start()
    run(Churn(broker, chance, protocol=protocol, partitions=PARTITIONS), EVENTS, settle_s=GENEROUS_S, bursts=True)
    assert broker.bugs() == []
    broker.stop()


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("bursts", [False, True], ids=["one by one", "in bursts"])
@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_long_churn(victim, chance, protocol, bursts):
    """The same for minutes, and is every partition owned again within the session timeout and two seconds?"""
    broker = victim(**BROKER_SETTINGS)
    broker.start()
    churn = Churn(broker, chance, protocol=protocol, partitions=PARTITIONS)
    run(churn, EVENTS_LONG, settle_s=STRICT_S + (SESSION_S if bursts else 0.0), bursts=bursts)
    assert broker.bugs() == []
    broker.stop()


@pytest.mark.long
@pytest.mark.java
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_churn_of_kafka(tmp_path, chance, protocol):
    """Does Apache Kafka pass what Headrace has to pass, so that a failure is the broker's and not the test's?"""
    try:
        kafka_jars()
    except PeerUnavailable as reason:
        pytest.skip(str(reason))
    with KafkaPeer(tmp_path / "kafka", settings={**BROKER_SETTINGS, "broker.session.timeout.ms": "2000"}) as broker:
        run(Churn(broker, chance, protocol=protocol, partitions=PARTITIONS), EVENTS, settle_s=GENEROUS_S, bursts=True)
