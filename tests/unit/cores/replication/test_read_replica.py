"""Which replica a consumer should read from (KIP-392)."""

import pytest

from headrace.cores.replication.read_replica import THE_LEADER, preferred_read_replica


def choose(scene, *, rack="b", offset=1, racks=None):
    """Ask the leader, broker 1, where to read."""
    return preferred_read_replica(
        scene.leader,
        leader_id=1,
        client_rack=rack,
        fetch_offset=offset,
        racks={1: "a", 2: "b", 3: "b"} if racks is None else racks,
        now_ms=100,
    )


@pytest.fixture
def scene(lead):
    """A leader with three records and followers level with it."""
    made = lead()
    made.append(3)
    made.fetch(2, 3)
    made.fetch(3, 3)
    return made


def test_the_furthest_in_the_rack(scene):
    """Is it the furthest replica of the consumer's rack, then the one caught up last, then the highest id?"""
    assert choose(scene) == 3
    scene.now_ms = 50
    scene.fetch(2, 3)
    assert choose(scene) == 2
    scene.append()
    scene.fetch(3, 4)
    assert choose(scene) == 3


@pytest.mark.parametrize(
    ("rack", "racks"),
    [("", None), ("c", None), ("a", {1: "a", 2: "a"}), ("b", {1: "a"})],
    ids=["no rack", "nobody there", "the leader is there", "not reachable"],
)
def test_the_leader_itself(scene, rack, racks):
    """Is the consumer left with the leader where nobody else is better?"""
    assert choose(scene, rack=rack, racks=racks) == THE_LEADER


def test_only_who_has_it(scene):
    """Is a replica passed over that does not have the offset any more, or not yet?"""
    scene.fetch(2, 3, log_start_offset=2)
    scene.fetch(3, 0)

    assert choose(scene, offset=1) == THE_LEADER
    assert choose(scene, offset=2) == 2


def test_only_in_sync(scene, registration):
    """Is a replica outside the ISR passed over?"""
    scene.leader.update(registration(isr=(1, 2), partition_epoch=8), 0)

    assert choose(scene) == 2
