"""Share groups with Apache Kafka's Java share consumer (KIP-932)."""

import pytest

from clients.java.live_clients import until

CONFIGS = "kafka.admin.ConfigCommand"


@pytest.fixture
def from_the_start(java, broker, group):
    """A share group that begins with the oldest record."""
    where = ("--bootstrap-server", broker.bootstrap, "--entity-type", "groups", "--entity-name", group)
    java.check(CONFIGS, *where, "--alter", "--add-config", "share.auto.offset.reset=earliest")
    return group


@pytest.fixture
def taken(sharers):
    """Polls until so many records came, each poll's acknowledged alike; gives them in order of arrival."""

    def take(name: str, count: int, kind: str = "ACCEPT") -> list[list[object]]:
        records: list[list[object]] = []
        while len(records) < count:
            got = sharers.poll(name)
            assert got, f"only {len(records)} of {count} came"
            assert sharers.acknowledge(name, kind) == []
            records += got
        return records

    return take


EXPLICIT = "share.acknowledgement.mode=explicit"


def test_every_record_to_somebody(sharers, topic, from_the_start, send):
    """Do two consumers of one partition get every record between them, none of them twice?"""
    name = topic()
    pair = [sharers.start(from_the_start, name, EXPLICIT, "max.poll.records=10") for _ in range(2)]
    for first in range(0, 60, 10):
        send(name, range(first, first + 10))
    seen: list[list[object]] = []

    def take() -> int:
        for sharer in pair:
            seen.extend(sharers.poll(sharer, within_s=0.1))
            assert sharers.acknowledge(sharer, "ACCEPT") == []
        return len(seen)

    until(take, lambda count: count >= 60, "all records are taken")

    assert [[0, number, str(number), 1] for number in range(60)] == sorted(seen, key=lambda record: record[1])


def test_released_records_come_again(sharers, topic, from_the_start, send, taken):
    """Does a released record come back with a higher count, and a rejected one never?"""
    name = topic()
    send(name, range(3))
    sharer = sharers.start(from_the_start, name, EXPLICIT)

    first = taken(sharer, 3, "RELEASE")
    second = taken(sharer, 3, "REJECT")
    send(name, range(3, 4))
    third = taken(sharer, 1)

    assert [1, 1, 1] == [count for *_, count in first]
    assert [[0, n, str(n), 2] for n in range(3)] == second
    assert [[0, 3, "3", 1]] == third


def test_the_count_has_a_limit(sharers, topic, from_the_start, send, taken):
    """Is a record that is released again and again given up after group.share.delivery.count.limit deliveries?"""
    name = topic()
    send(name, range(1))
    sharer = sharers.start(from_the_start, name, EXPLICIT)

    counts = [taken(sharer, 1, "RELEASE")[0][3] for _ in range(5)]
    send(name, range(1, 2))

    assert [1, 2, 3, 4, 5] == counts
    assert [[0, 1, "1", 1]] == taken(sharer, 1)


def test_locks_run_out(java, broker, sharers, topic, from_the_start, send, taken):
    """Do records that one consumer took and forgot go to another when their lock runs out?"""
    name = topic()
    where = ("--bootstrap-server", broker.bootstrap, "--entity-type", "groups", "--entity-name", from_the_start)

    def lock_for(duration_ms: int) -> None:
        java.check(CONFIGS, *where, "--alter", "--add-config", f"share.record.lock.duration.ms={duration_ms}")

    lock_for(1000)
    send(name, range(2))
    forgetful = sharers.start(from_the_start, name, EXPLICIT)
    got = sharers.poll(forgetful)
    lock_for(30_000)  # who comes next has the time it needs
    other = sharers.start(from_the_start, name, EXPLICIT)

    assert [[0, 0, "0", 1], [0, 1, "1", 1]] == got
    assert [[0, 0, "0", 2], [0, 1, "1", 2]] == taken(other, 2)


def test_closing_gives_back(sharers, topic, from_the_start, send, taken):
    """Does a consumer that closes give back what it took, at once?"""
    name = topic()
    send(name, range(2))
    first = sharers.start(from_the_start, name, EXPLICIT)
    sharers.poll(first)
    sharers.close(first)
    second = sharers.start(from_the_start, name, EXPLICIT)

    assert [2, 2] == [count for *_, count in taken(second, 2)]


def test_share_group_administration(sharers, topic, from_the_start, send, taken, group_admin):
    """Can a share group be listed, described, moved and deleted?"""
    name, group = topic(), from_the_start
    send(name, range(5))
    sharer = sharers.start(group, name, EXPLICIT)
    taken(sharer, 5)

    assert group_admin("list", "type:Share")[group] == ["Share", "share", "Stable"]
    described = group_admin("describe-share", group)
    assert {"state": "Stable", "members": [{"client_id": sharer, "assignment": [f"{name}-0"]}]} == described
    assert group_admin("alter-share-offsets", group, f"{name}-0@2") == "error GroupNotEmptyException"
    assert group_admin("delete-share", group) == "error GroupNotEmptyException"
    sharers.close(sharer)
    assert group_admin("alter-share-offsets", group, f"{name}-0@2") == "ok"
    assert group_admin("share-offsets", group) == {f"{name}-0": 2}
    again = sharers.start(group, name, EXPLICIT)
    assert [2, 3, 4] == [offset for _, offset, *_ in taken(again, 3)]
    sharers.close(again)
    assert group_admin("delete-share", group) == "ok"
    assert group not in group_admin("list")


def test_kinds_do_not_mix(sharers, members, topic, from_the_start, send, taken):
    """Is an ordinary consumer refused by a share group's id?"""
    name = topic()
    send(name, range(1))
    sharer = sharers.start(from_the_start, name, EXPLICIT)
    taken(sharer, 1)
    for protocol, error in (
        ("consumer", "GroupIdNotFoundException"),
        ("classic", "InconsistentGroupProtocolException"),
    ):
        member = members.start(from_the_start, name, f"group.protocol={protocol}")

        assert error == until(lambda m=member: members.state(m)["error"], lambda seen: seen is not None, protocol)
