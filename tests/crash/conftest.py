"""What the crash tests share: luck with a printed seed, and a broker process that is there to be killed."""

import pytest

from crash.ext4_image import Ext4Image, NoImage
from crash.victim import Victim
from seeds import chance_for


@pytest.fixture
def chance(request):
    """The luck of this test."""
    campaign = request.node.get_closest_marker("long") is not None
    return chance_for(request.node.name, campaign=campaign)


@pytest.fixture
def victim(tmp_path, image):
    """Makes a broker with the given settings, not started yet; it is gone, process and data, when the test ends.

    It needs `image`, so that the processes are gone before the images they run on.
    """
    made = []

    def make(**settings: str) -> Victim:
        made.append(Victim(tmp_path / f"broker-{len(made)}", settings=settings))
        return made[-1]

    yield make
    for broker in made:
        print(broker.output_tail())
        broker.remove()


@pytest.fixture
def image(tmp_path):
    """Mounts a small ext4 image on a broker's log dir; skips the test where that cannot be done."""
    made = []

    def mount(broker: Victim, *, megabytes: int) -> Ext4Image:
        try:
            made.append(Ext4Image(tmp_path / f"{len(made)}.ext4", broker.log_dir, megabytes=megabytes))
        except NoImage as reason:
            pytest.skip(f"no ext4 image: {reason}")
        return made[-1]

    yield mount
    for image in made:
        image.remove()
