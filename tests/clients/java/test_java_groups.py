"""Apache Kafka's Java consumer in groups, of the classic and of the consumer protocol."""

import pytest

RANGE = "partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor"
COOPERATIVE = "partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
# Heartbeats carry the news of a rebalance, so classic members send them often.
CLASSIC = ("group.protocol=classic", "heartbeat.interval.ms=100", "session.timeout.ms=6000")
CONSUMER = ("group.protocol=consumer",)

KINDS = {
    "range": (*CLASSIC, RANGE),
    "cooperative": (*CLASSIC, COOPERATIVE),
    "uniform": (*CONSUMER, "group.remote.assignor=uniform"),
    "remote-range": (*CONSUMER, "group.remote.assignor=range"),
}
by_kind = pytest.mark.parametrize("kind", KINDS)


def partitions(topic: str, number: int) -> list[str]:
    """The names of a topic's partitions."""
    return [f"{topic}-{index}" for index in range(number)]


@by_kind
def test_one_two_three_and_back(members, topic, group, kind):
    """Do members share the partitions evenly as they come, and take over as they go (R22)?"""
    name = topic(partitions=6)
    everything = partitions(name, 6)

    first = members.start(group, name, *KINDS[kind])
    members.until_share([first], everything)
    second = members.start(group, name, *KINDS[kind])
    members.until_share([first, second], everything, each=3)
    third = members.start(group, name, *KINDS[kind])
    members.until_share([first, second, third], everything, each=2)
    members.close(second)
    members.until_share([first, third], everything, each=3)
    members.close(first)
    members.until_share([third], everything)


@by_kind
def test_every_record_once(members, topic, group, send, kind):
    """Does a group that commits go on where it stopped, across a change of its members, none lost or repeated (R22)?"""
    name = topic(partitions=4)
    send(name, range(100), partitions=4)
    first = members.start(group, name, *KINDS[kind])
    members.until_received([first], 100)
    assert members.ask(first, "commit") == "ok"

    second = members.start(group, name, *KINDS[kind])
    members.until_share([first, second], partitions(name, 4), each=2)
    send(name, range(100, 200), partitions=4)
    seen = members.until_received([first, second], 200)

    assert [(name, n % 4, n // 4, str(n)) for n in sorted(range(200), key=lambda n: (n % 4, n))] == seen


@by_kind
def test_commits_are_kept(members, topic, group, kind):
    """Are committed offsets and their notes there for the next member, and null where nothing was committed (R23)?"""
    name = topic(partitions=3)
    one, two, three = partitions(name, 3)
    first = members.start(group, name, *KINDS[kind])
    members.until_share([first], [one, two, three])
    assert members.ask(first, "commit", f"{one}@7@a note", f"{two}@9") == "ok"
    members.close(first)

    second = members.start(group, name, *KINDS[kind])
    members.until_share([second], [one, two, three])

    assert {one: [7, "a note"], two: [9, ""], three: None} == members.ask(second, "committed", one, two, three)


def test_cooperative_keeps_what_stays(members, topic, group):
    """In a cooperative rebalance, does a member give up only what moves away?"""
    name = topic(partitions=4)
    first = members.start(group, name, *KINDS["cooperative"])
    members.until_share([first], partitions(name, 4))
    second = members.start(group, name, *KINDS["cooperative"])
    _, moved = members.until_share([first, second], partitions(name, 4), each=2)

    revoked = [event for event in members.state(first)["events"] if event.startswith("revoked")]

    assert [f"revoked {' '.join(moved)}"] == revoked
    assert [] == [event for event in members.state(first)["events"] if event.startswith("lost")]


def test_range_of_two_topics(members, topic, group, group_admin):
    """Does the range assignor give each member the same partition numbers of all topics, in both protocols?"""
    one, two = topic(partitions=2), topic(partitions=2)
    for kind in ("range", "remote-range"):
        where = f"{group}-{kind}"
        pair = [members.start(where, f"{one},{two}", *KINDS[kind]) for _ in range(2)]
        held = members.until_share(pair, [*partitions(one, 2), *partitions(two, 2)], each=2)

        assert [[f"{one}-0", f"{two}-0"], [f"{one}-1", f"{two}-1"]] == sorted(held)


@pytest.mark.parametrize("kind", ["range", "uniform"])
def test_static_member_comes_back(members, java, topic, group, kind):
    """Does a static member that left without a word get its partitions back, without a rebalance for the others?"""
    name = topic(partitions=4)
    first = members.start(group, name, *KINDS[kind], "group.instance.id=one")
    second = members.start(group, name, *KINDS[kind], "group.instance.id=two")
    before = members.until_share([first, second], partitions(name, 4), each=2)
    events = members.state(first)["events"]

    members.close(second)  # static members do not leave when they close
    again = members.start(group, name, *KINDS[kind], "group.instance.id=two")
    after = members.until_share([first, again], partitions(name, 4), each=2)

    assert before == after
    assert events == members.state(first)["events"]


def test_second_of_the_same_instance_id(members, topic, group):
    """Of two classic members with one instance id, is the older one told that it was fenced?"""
    name = topic(partitions=2)
    first = members.start(group, name, *KINDS["range"], "group.instance.id=one")
    members.until_share([first], partitions(name, 2))
    second = members.start(group, name, *KINDS["range"], "group.instance.id=one")

    members.until_share([second], partitions(name, 2))
    _until_error(members, first, "FencedInstanceIdException")


def test_second_of_the_same_instance_id_in_the_consumer_protocol(members, topic, group):
    """Of two consumer-protocol members with one instance id, is the newer one refused while the older one lives?"""
    name = topic(partitions=2)
    first = members.start(group, name, *KINDS["uniform"], "group.instance.id=one")
    members.until_share([first], partitions(name, 2))
    second = members.start(group, name, *KINDS["uniform"], "group.instance.id=one")

    _until_error(members, second, "UnreleasedInstanceIdException")
    assert [partitions(name, 2)] == members.assigned(first)


@pytest.mark.parametrize("kind", ["cooperative", "uniform"])
def test_pattern(members, topic, group, java, broker, kind):
    """Does a member that follows a pattern get the topics there are, those that come, and no others (KIP-848)?"""
    prefix = f"seen-{kind}"
    java.check("Topics", broker.bootstrap, "create", f"{prefix}-1", 2)
    java.check("Topics", broker.bootstrap, "create", f"un{prefix}", 1)
    how = "regex" if kind == "cooperative" else "re2"
    quick = "metadata.max.age.ms=200"  # a classic consumer looks for new topics by itself
    member = members.start(group, f"{how}:{prefix}-.*", *KINDS[kind], quick)

    members.until_share([member], partitions(f"{prefix}-1", 2))
    java.check("Topics", broker.bootstrap, "create", f"{prefix}-2", 1)
    members.until_share([member], [*partitions(f"{prefix}-1", 2), f"{prefix}-2-0"])


def test_bad_pattern(members, group, topic):
    """Is a pattern that is none refused by the broker as such?"""
    member = members.start(group, "re2:broken(", *CONSUMER)

    _until_error(members, member, "InvalidRegularExpression")


@pytest.mark.parametrize("kind", ["range", "uniform"])
def test_new_partitions_are_found(members, topic, group, java, broker, kind):
    """Does a group take up partitions that a topic gets later?"""
    name = topic(partitions=1)
    member = members.start(group, name, *KINDS[kind], "metadata.max.age.ms=200")
    members.until_share([member], partitions(name, 1))

    alter = ("--bootstrap-server", broker.bootstrap, "--alter", "--topic", name, "--partitions", 3)
    java.check("org.apache.kafka.tools.TopicCommand", *alter)

    members.until_share([member], partitions(name, 3))


def test_unknown_remote_assignor(members, topic, group):
    """Is an assignor that the broker does not have refused?"""
    member = members.start(group, topic(), *CONSUMER, "group.remote.assignor=fancy")

    _until_error(members, member, "UnsupportedAssignorException")


@by_kind
def test_a_member_that_stops_polling_is_left_behind(members, topic, group, kind):
    """When a member goes away without leaving, do the others get its partitions after its time-out?"""
    name = topic(partitions=2)
    settings = [s for s in KINDS[kind] if "timeout" not in s]
    if kind in {"range", "cooperative"}:
        settings.append("session.timeout.ms=1000")
    else:
        # The session of this group ends after a second; the default of this broker is longer.
        members._java.check(
            "kafka.admin.ConfigCommand", "--bootstrap-server", members._bootstrap, "--alter", "--entity-type", "groups",
            "--entity-name", group, "--add-config", "consumer.session.timeout.ms=1000",
        )  # fmt: skip
    first = members.start(group, name, *settings)
    second = members.start(group, name, *settings)
    members.until_share([first, second], partitions(name, 2), each=1)

    members._run("close", second, "remain")
    members._live.discard(second)

    members.until_share([first], partitions(name, 2))


def _until_error(members, name: str, error: str) -> None:
    from clients.java.live_clients import until

    assert error == until(lambda: members.state(name)["error"], lambda seen: seen is not None, f"{name} fails")
