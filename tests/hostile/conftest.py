"""What the hostile tests share: a broker process to be attacked, with an honest client next to every attack."""

import pytest

from headrace.records.build import NewRecord, build_batch
from headrace.testing.broker_process import HeadraceProcess
from hostile.neighbour import Neighbour, read_values
from seeds import chance_for
from wire_client import WireClient


@pytest.fixture
def chance(request):
    """The luck of this test."""
    campaign = request.node.get_closest_marker("long") is not None
    return chance_for(request.node.name, campaign=campaign)


@pytest.fixture(scope="session")
def target(tmp_path_factory):
    """A broker as a process of its own, so that its memory can be looked at."""
    with HeadraceProcess(tmp_path_factory.mktemp("target")) as broker:
        yield broker


@pytest.fixture
def neighbour(target, topic):
    """An honest client that is at work all the while, and is asked at the end whether it was disturbed."""
    with Neighbour(target.port, f"neighbour-{topic}"[:200]) as neighbour:
        yield neighbour


@pytest.fixture
def guarded(target, topic):
    """A topic with a few records; at the end exactly those must be in it, and the broker must have had no bug."""
    values = [b"one", b"two", b"three"]
    with WireClient(target.port) as client:
        assert client.create_topic(topic).error_code == 0
        for value in values:
            assert client.produce(topic, bytes(build_batch([NewRecord(1, None, value, ())]))).error_code == 0
    bugs_before = bugs(target)
    yield topic
    with WireClient(target.port) as client:
        assert read_values(client, topic) == values, "something was appended, or is gone"
    assert bugs(target) == bugs_before, target.output_tail()


def bugs(broker: HeadraceProcess) -> int:
    """How often the broker said that something went wrong inside it."""
    text = broker.output.read_text(errors="replace")
    return text.count("handler_failed") + text.count("Traceback")
