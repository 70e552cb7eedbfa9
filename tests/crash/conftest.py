"""What the crash tests share: luck with a printed seed, and a broker process that is there to be killed."""

import shutil

import pytest

from crash.cluster_nodes import NODES, Node, Nodes
from crash.small_disk import Ext4Image, NoImage, SmallDisk
from crash.victim import Victim
from network_hosts import Hosts, NoHosts
from seeds import chance_for

DISK_MEGABYTES = 512


@pytest.fixture
def chance(request):
    """The luck of this test."""
    campaign = request.node.get_closest_marker("long") is not None
    return chance_for(request.node.name, campaign=campaign)


@pytest.fixture
def victim(tmp_path, mounted):
    """Makes a broker with the given settings, not started yet; it is gone, process and data, when the test ends.

    It needs `mounted`, so that the processes are gone before the disks they run on.
    """
    made = []

    def make(**settings: str) -> Victim:
        made.append(Victim(tmp_path / f"broker-{len(made)}", settings=settings))
        return made[-1]

    yield make
    for broker in made:
        if broker.output.exists():
            print(broker.output_tail())
        broker.remove()


@pytest.fixture
def nodes(tmp_path):
    """A cluster of three nodes, each a process, up and running; gone, processes and data, when the test ends."""
    yield from _running(Nodes(tmp_path / "nodes"))


def _running(made: Nodes):
    try:
        made.start()
        yield made
    finally:
        print(made.tails())
        made.remove()


@pytest.fixture
def hosts():
    """A host for each node and one for clients, which the test is on; skips where there can be none."""
    try:
        made = Hosts(len(NODES))
    except NoHosts as reason:
        pytest.skip(f"no hosts: {reason}")
    try:
        with made.client.entered():
            yield made
    finally:
        made.remove()


@pytest.fixture
def distant_nodes(tmp_path, hosts):
    """A cluster like `nodes`, each node on a host of its own."""
    yield from _running(Nodes(tmp_path / "nodes", hosts))


@pytest.fixture
def mounted():
    """Remembers what is mounted, and unmounts it when the test ends, however it ends."""
    disks: list[SmallDisk] = []
    yield disks
    for disk in disks:
        disk.remove()


@pytest.fixture
def image(tmp_path, mounted):
    """Mounts a small ext4 image on a broker's log dir; skips the test where that cannot be done."""

    def mount(broker: Victim, *, megabytes: int) -> Ext4Image:
        try:
            disk = Ext4Image(tmp_path / f"{len(mounted)}.ext4", broker.log_dir, megabytes=megabytes)
        except NoImage as reason:
            pytest.skip(f"no ext4 image: {reason}")
        mounted.append(disk)
        return disk

    return mount


@pytest.fixture
def powered_nodes(tmp_path, image):
    """A cluster like `nodes`, each with a disk of its own, and the disks by node; skips where there can be none."""
    disks: dict[int, Ext4Image] = {}

    def plug_in(node: Node) -> None:
        disks[node.node_id] = image(node, megabytes=DISK_MEGABYTES)

    for made in _running(Nodes(tmp_path / "nodes", prepare=plug_in)):
        yield made, disks


@pytest.fixture
def small_disk(tmp_path, mounted):
    """Mounts something small on a broker's log dir, an image or else memory; skips the test where neither can be."""

    def mount(broker: Victim, *, megabytes: int) -> SmallDisk:
        try:
            disk: SmallDisk = Ext4Image(tmp_path / f"{len(mounted)}.ext4", broker.log_dir, megabytes=megabytes)
        except NoImage:
            shutil.rmtree(broker.log_dir, ignore_errors=True)
            try:
                disk = SmallDisk(broker.log_dir, megabytes=megabytes)
            except NoImage as reason:
                pytest.skip(f"no small disk: {reason}")
        mounted.append(disk)
        return disk

    return mount
