"""What the crash tests share: luck with a printed seed, and a broker process that is there to be killed."""

import shutil

import pytest

from crash.small_disk import Ext4Image, NoImage, SmallDisk
from crash.victim import Victim
from seeds import chance_for


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
