"""Power cuts: disks that lose all that was not flushed, on one broker of three or on all at once."""

import pytest

from cluster_shell import BrokerGroup, _fresh_id
from headrace.broker.broker import Broker
from headrace.settings.broker import BrokerConfig
from headrace.storage.memory_files import MemoryFiles
from headrace.storage.meta_properties import MetaProperties, write_meta
from scenarios.replicated import Writer, create, partition_of, read, until_in_sync, until_led_by_another
from seeds import chance_for

pytestmark = [pytest.mark.clients, pytest.mark.slow]


class PoweredGroup(BrokerGroup):
    """Brokers whose disks are in memory, where a power cut is a call."""

    def __init__(self, brokers, name, **options):
        super().__init__(brokers, **options)
        self.disks = {node: MemoryFiles() for node in self._roles}
        self._luck = chance_for(name, campaign=False)

    def _format(self, node):
        disk, path = self.disks[node], "/data"
        if disk.stat(path) is None:
            disk.mkdir(path)
            disk.fsync_dir("/")
            write_meta(disk, path, MetaProperties(cluster_id=self.cluster_id, node_id=node, directory_id=_fresh_id()))
        return [path]

    async def _start_one(self, node):
        broker = Broker(BrokerConfig.from_properties(self._properties(node)), files=self.disks[node])
        try:
            await broker.start()
        except BaseException:
            await broker.abandon()
            raise
        self.brokers[node] = broker

    def cut_power(self, *nodes):
        """Nodes lose their power together: of what was not flushed any part may be gone."""
        for node in nodes:
            self.kill(node)
        for node in nodes:
            self.disks[node].power_cut(self._luck)


def test_acknowledged_records_survive_a_power_cut_everywhere():
    """Is everything acknowledged there when all brokers lost their power at once, and are all in sync again?"""
    with PoweredGroup(3, "everywhere") as group:
        create(group, "p")
        writer = Writer(group, "p")
        for turn in range(3):
            writer.write(*(b"%d.%d" % (turn, number) for number in range(200)))
            group.cut_power(1, 2, 3)
            group.start(1, 2, 3)
            until_in_sync(group, "p", 3)
        writer.write(b"last")

        assert [] == writer.failed
        assert sorted(writer.acked) == read(group, "p", len(writer.acked))
        assert {601} == {partition_of(group, node, "p").log.log_end_offset for node in (1, 2, 3)}


def test_leader_without_power_gives_way():
    """Is everything acknowledged there when one leader after the other loses its power amid writes?"""
    with PoweredGroup(3, "leader") as group:
        create(group, "p")
        writer = Writer(group, "p")
        for turn in range(3):
            writer.write(*(b"%d.%d" % (turn, number) for number in range(200)))
            leader = group.leader_of("p", 0)
            group.cut_power(leader)
            until_led_by_another(group, "p", leader)
            writer.write(b"meanwhile")
            group.start(leader)
            until_in_sync(group, "p", 3)

        assert [] == writer.failed
        assert sorted(writer.acked) == read(group, "p", len(writer.acked))
        assert list(range(603)) == sorted(offset for offset, _ in writer.acked)
