"""Share groups over several brokers: what was acknowledged stays so, whichever of the brokers concerned dies."""

from itertools import groupby

import pytest
from confluent_kafka import ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from clients.libraries import Deadline
from cluster_shell import BrokerGroup
from headrace.cores.share_state import coordinator_key
from scenarios.cluster_clients import QUICK, WAIT_S, coordinator_of, create, written

pytestmark = [pytest.mark.clients, pytest.mark.slow]

COUNT = 60
GROUP = "s"


@pytest.fixture
def group():
    """Three nodes, and a share group that begins at the beginning."""
    with BrokerGroup(3, settings={"group.share.record.lock.duration.ms": "15000"}) as group:
        admin = AdminClient({"bootstrap.servers": group.bootstrap, **QUICK})
        begin = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.GROUP, GROUP, incremental_configs=[begin])
        (altered,) = admin.incremental_alter_configs([resource]).values()
        altered.result(WAIT_S)
        yield group


class Reader:
    """A member of a share group: what it got, and what it was told to be acknowledged."""

    def __init__(self, group):
        self.got = []
        self.acknowledged = set()
        self.failures = 0
        self._consumer = ShareConsumer({"bootstrap.servers": group.bootstrap, "group.id": GROUP, **QUICK})
        self._consumer.subscribe(["a"])

    def read(self, count):
        """Read and acknowledge until so many records are acknowledged."""
        deadline = Deadline(2 * WAIT_S)
        while len(self.acknowledged) < count:
            deadline.check(f"{count} records, {len(self.acknowledged)} are done, {self.failures} failed")
            messages = [each for each in self._consumer.poll(0.2) if each.error() is None]
            places = [(each.partition(), each.offset()) for each in messages]
            again = self.acknowledged.intersection(places)
            assert not again, again
            self.got += [int(each.value()) for each in messages]
            self._acknowledge(places)

    def _acknowledge(self, places):
        results = {place.partition: error for place, error in self._consumer.commit_sync(WAIT_S).items()}
        for partition, each in groupby(sorted(places), key=lambda place: place[0]):
            if partition in results and results[partition] is None:
                self.acknowledged.update(each)
            else:
                print(partition, results)
                self.failures += 1

    def close(self):
        """Leave."""
        self._consumer.close()


def share_coordinator_of(group):
    """The broker that keeps the delivery state of the first partition."""
    topic_id = group.ask(group.controller, lambda broker: broker.metadata.topics["a"].topic_id)
    return coordinator_of(group, "share_state", coordinator_key((GROUP, topic_id, 0)))


WHO = {
    "leader": lambda group: group.leader_of("a", 0),
    "share coordinator": share_coordinator_of,
    "group coordinator": lambda group: coordinator_of(group, "groups", GROUP),
}


@pytest.mark.parametrize("who", WHO)
def test_a_share_group_outlives_a_broker(group, who):
    """Is every record delivered, and none again once its acknowledgement was confirmed, when a broker is killed?"""
    create(group, "a")
    written(group, "a", range(COUNT))
    reader = Reader(group)
    reader.read(COUNT)
    group.kill(WHO[who](group))
    written(group, "a", range(COUNT, 2 * COUNT))
    reader.read(2 * COUNT)
    reader.close()

    assert set(reader.got) == set(range(2 * COUNT))
