"""Groups change from the classic to the consumer protocol and back while their members go on consuming (KIP-848)."""

import pytest

from clients.java.live_clients import until

CLASSIC = ("group.protocol=classic", "heartbeat.interval.ms=100", "session.timeout.ms=6000")
CONSUMER = ("group.protocol=consumer",)
ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "cooperative": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_upgrade_and_downgrade(members, topic, group, group_admin, send, assignor):
    """Does a live group go to the consumer protocol and back, member by member, with every record read once?"""
    name = topic(partitions=4)
    everything = [f"{name}-{n}" for n in range(4)]
    classic = (*CLASSIC, f"partition.assignment.strategy={ASSIGNORS[assignor]}")
    committing = ("enable.auto.commit=true", "auto.commit.interval.ms=100000")  # commits when it gives up or ends
    old = [members.start(group, name, *classic, *committing) for _ in range(2)]
    members.until_share(old, everything, each=2)
    send(name, range(40), partitions=4)
    members.until_received(old, 40)
    assert group_admin("list")[group] == ["Classic", "consumer", "Stable"]

    # The first member of the new kind turns the whole group, the classic ones stay in it as they are.
    new = members.start(group, name, *CONSUMER, *committing)
    members.until_share([*old, new], everything)
    mixed = group_admin("describe-consumer", group)
    assert mixed["type"] == "Consumer"
    assert [False, False, True] == sorted(member["upgraded"] for member in mixed["members"])
    send(name, range(40, 80), partitions=4)
    members.until_received([*old, new], 80)

    read = [record for member in old for record in members.records(member)]
    members.close(old[0])
    members.until_share([old[1], new], everything, each=2)
    members.close(old[1])
    members.until_share([new], everything)
    assert group_admin("list")[group] == ["Consumer", "consumer", "Stable"]

    # And back: with the last member of the new kind gone, the group is a classic one again.
    back = [members.start(group, name, *classic, *committing) for _ in range(2)]
    members.until_share([new, *back], everything)
    read += members.records(new)
    members.close(new)
    members.until_share(back, everything, each=2)
    until(lambda: group_admin("list")[group], lambda seen: seen == ["Classic", "consumer", "Stable"], "classic again")
    send(name, range(80, 120), partitions=4)
    read += members.until_received(back, 120 - len(read))

    assert sorted((number % 4, number // 4, str(number)) for number in range(120)) == sorted(r[1:] for r in read)


def test_empty_classic_group_becomes_a_consumer_group(members, topic, group, group_admin):
    """Does a classic group without members keep its offsets when it is used with the consumer protocol, and back?"""
    name = topic(partitions=2)
    for settings, kind in ((CLASSIC, "Classic"), (CONSUMER, "Consumer"), (CLASSIC, "Classic")):
        member = members.start(group, name, *settings)
        members.until_share([member], [f"{name}-0", f"{name}-1"])
        if kind == "Classic":
            assert members.ask(member, "commit", f"{name}-0@3@kept") == "ok"
        assert [3, "kept"] == members.ask(member, "committed", f"{name}-0")[f"{name}-0"]
        assert group_admin("list")[group] == [kind, "consumer", "Stable"]
        members.close(member)


def test_eager_sticky_cannot_join_with_incompatible(members, topic, group):
    """Is a classic member whose protocols no one shares refused?"""
    name = topic(partitions=1)
    first = members.start(group, name, *CLASSIC, f"partition.assignment.strategy={ASSIGNORS['range']}")
    members.until_share([first], [f"{name}-0"])
    second = members.start(
        group, name, *CLASSIC, "partition.assignment.strategy=org.apache.kafka.clients.consumer.RoundRobinAssignor"
    )

    error = until(lambda: members.state(second)["error"], lambda seen: seen is not None, "the second is refused")

    assert error == "InconsistentGroupProtocolException"
    assert members.assigned(first) == [[f"{name}-0"]]
