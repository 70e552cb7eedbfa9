"""What a share group was told stays so when its broker goes and comes back (KIP-932)."""

import pytest

from clients.java.live_clients import ShareMembers
from clients.quick_groups import QUICK_GROUPS

EXPLICIT = "share.acknowledgement.mode=explicit"
CONFIGS = "kafka.admin.ConfigCommand"


@pytest.fixture
def broker(java, new_broker, tmp_path):
    """A broker of the test's own, to be stopped and killed."""
    with new_broker(tmp_path / "broker", **QUICK_GROUPS) as running:
        yield running


def taken(sharers: ShareMembers, name: str, count: int) -> list[list[object]]:
    """Poll until so many records came; all are accepted."""
    records: list[list[object]] = []
    while len(records) < count:
        got = sharers.poll(name)
        assert got, f"only {len(records)} of {count} came"
        assert sharers.acknowledge(name, "ACCEPT") == []
        records += got
    return records


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_group_goes_on_after_a_restart(java, broker, topic, group, sharers, send, how):
    """Does a share group get what it did not accept, counted on, and nothing of the rest, after a restart?

    The consumer from before goes on by itself, too (R23).
    """
    where = ("--bootstrap-server", broker.bootstrap, "--entity-type", "groups", "--entity-name", group)
    java.check(CONFIGS, *where, "--alter", "--add-config", "share.auto.offset.reset=earliest")
    name = topic()
    send(name, range(10))
    old = sharers.start(group, name, EXPLICIT)
    accepted = taken(sharers, old, 10)
    send(name, range(10, 15))
    released = set()
    while len(released) < 5:
        released |= {offset for _, offset, *_ in sharers.poll(old)}
        assert sharers.acknowledge(old, "RELEASE") == []

    broker.stop() if how == "stop" else broker.kill()
    broker.start()
    after = taken(sharers, old, 5)
    sharers.close(old)
    send(name, range(15, 20))
    rest = taken(sharers, sharers.start(group, name, EXPLICIT), 5)

    assert list(range(10)) == [offset for _, offset, *_ in accepted]
    assert list(range(10, 15)) == sorted(offset for _, offset, *_ in after)
    assert all(count >= 2 for *_, count in after), "the deliveries before the restart count"
    assert list(range(15, 20)) == [offset for _, offset, *_ in rest]
