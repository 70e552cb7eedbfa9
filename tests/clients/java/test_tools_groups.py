"""Our tools for groups and Kafka's own, asked the same about the same live groups: what they print is the same.

Both brokers are asked: Headrace, and Apache Kafka, whose answers our tools must understand too.
"""

import pytest

from clients.confluent_members import PROTOCOLS, Member, until_share
from clients.java.live_clients import until
from clients.java.tool_pairs import ToolPair
from clients.quick_groups import QUICK_GROUPS
from headrace.testing.broker_process import HeadraceProcess
from headrace.testing.peer import KafkaPeer

CONSUMER_GROUPS = ("consumer_groups", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand")
ALL_GROUPS = ("groups", "org.apache.kafka.tools.GroupsCommand")
SHARE_GROUPS = ("share_groups", "org.apache.kafka.tools.consumer.group.ShareGroupCommand")

CLASSIC = ("group.protocol=classic", "heartbeat.interval.ms=100", "session.timeout.ms=6000")
CONSUMER = ("group.protocol=consumer",)
VIEWS = [(*view, *more) for view in ((), ("--offsets",), ("--members",), ("--state",)) for more in ((), ("--verbose",))]


@pytest.fixture(scope="module", params=[HeadraceProcess, KafkaPeer], ids=["headrace", "kafka"])
def broker(java, request, tmp_path_factory):
    """A running broker of each kind."""
    with request.param(tmp_path_factory.mktemp("tools") / "broker", settings=QUICK_GROUPS) as running:
        yield running


@pytest.fixture
def pair_of(java, broker, capsys):
    """One of our tools beside Kafka's."""
    return lambda names: ToolPair(java, broker.bootstrap, capsys, *names)


@pytest.fixture
def alike(pair_of):
    """Asks both tools and compares what they print; gives our exit code, which is 0 only if all went well."""
    return lambda names, *arguments, **options: pair_of(names).alike(*arguments, **options)


@pytest.fixture
def ours(pair_of):
    """Runs our tool; gives its exit code and what it printed."""
    return lambda names, *arguments: pair_of(names).ours(*arguments)


@pytest.fixture
def pair(members, topic, send, group):
    """A classic and a consumer group on one topic, with a member each or two, and some offsets committed."""
    name = topic(partitions=3)
    send(name, range(30), partitions=3)
    places = [f"{name}-{index}" for index in range(3)]
    classic, consumer = f"{group}-classic", f"{group}-consumer"
    first = members.start(classic, name, *CLASSIC)
    others = [
        members.start(consumer, name, *CONSUMER),
        members.start(consumer, name, *CONSUMER, "group.instance.id=seat-1"),
    ]
    members.until_share([first], places)
    members.until_share(others, places)
    members.ask(first, "commit", f"{name}-0@4", f"{name}-1@10")
    return name, {classic: [first], consumer: others}


def test_live_groups_are_described_alike(pair, alike):
    """Are offsets, members and states the same, for both protocols and all groups at once?"""
    _, live = pair

    for view in VIEWS:
        for group_id in (*live, "--nobody"):
            typed = ("--describe", "--group", group_id, *view)
            assert alike(CONSUMER_GROUPS, *typed) == int(group_id == "--nobody")
        assert alike(CONSUMER_GROUPS, "--describe", "--all-groups", *view) == 0
    for how in ((), ("--state",), ("--type",), ("--state", "stable,empty"), ("--type", "classic", "--state")):
        assert alike(CONSUMER_GROUPS, "--list", *how) == 0
    for how in ((), ("--consumer",), ("--share",), ("--group-type", "classic"), ("--protocol", "consumer")):
        assert alike(ALL_GROUPS, "--list", *how) == 0


@pytest.mark.parametrize("protocol", ["range", "cooperative", "consumer"])
def test_groups_of_librdkafka_are_described_alike(broker, topic, group, alike, protocol):
    """Are members that are no Java clients shown alike too?"""
    name = topic(partitions=4)
    pair = [Member(broker.bootstrap, group, [name], **PROTOCOLS[protocol]) for _ in range(2)]
    try:
        until_share(pair, name, 4)
        for view in VIEWS:
            assert alike(CONSUMER_GROUPS, "--describe", "--group", group, *view) == 0
    finally:
        for member in pair:
            member.close()


def test_groups_in_use_are_refused_alike(pair, alike):
    """Do both tools refuse to change a group that has members, in the same words?"""
    name, live = pair

    for group_id in live:
        where = ("--group", group_id, "--topic", name)
        assert alike(CONSUMER_GROUPS, "--reset-offsets", *where, "--to-earliest", "--execute") == 1
        assert alike(CONSUMER_GROUPS, "--delete-offsets", *where) == 1
        assert alike(CONSUMER_GROUPS, "--delete", "--group", group_id, "--group", "nobody", in_order=False) == 1


SCENARIOS = [
    ("--to-earliest",), ("--to-latest",), ("--to-current",), ("--to-offset", 5), ("--to-offset", 500),
    ("--to-datetime", "2001-01-01T00:00:00.000"), ("--to-datetime", "2170-01-01T00:00:00.000+01:00"),
    ("--to-datetime", "yesterday"), ("--to-datetime", "2001-01-01T00:00:00"), ("--by-duration", "P1D"),
    ("--by-duration", "PT0S"), ("--by-duration", "a day"),
]  # fmt: skip


def test_offsets_are_moved_alike(pair, members, alike, tmp_path):
    """Does each scenario plan the same, in both formats, for a group that was in use and one that never was?"""
    name, live = pair
    classic, new = next(iter(live)), f"{next(iter(live))}-new"
    members.close(*live[classic])

    for how in SCENARIOS:
        for scope in (("--topic", name), ("--topic", f"{name}:0,2"), ("--all-topics",)):
            for form in ((), ("--export",)):
                is_wrong = how[1:] in {("yesterday",), ("2001-01-01T00:00:00",), ("a day",)}
                typed = ("--reset-offsets", "--group", classic, *scope, *how, "--dry-run", *form)
                assert alike(CONSUMER_GROUPS, *typed) == int(is_wrong)
    both = ("--reset-offsets", "--group", classic, "--group", new, "--topic", name, "--to-offset", 3)
    # Java's order of several groups is chance where their names share a bucket.
    assert alike(CONSUMER_GROUPS, *both, "--execute", in_order=False) == 0
    assert alike(CONSUMER_GROUPS, *both, "--dry-run", "--export", in_order=False) == 0
    assert alike(CONSUMER_GROUPS, "--reset-offsets", "--group", new, "--all-topics", "--shift-by", -2) == 0
    assert alike(CONSUMER_GROUPS, "--describe", "--group", new, "--group", classic, "--verbose") == 0
    for topic in ("nowhere", "nowhere:0", f"{name}:7"):
        assert alike(CONSUMER_GROUPS, "--reset-offsets", "--group", new, "--topic", topic, "--to-latest") == 1
    plan = tmp_path / "plan.csv"
    plan.write_text(f"{name},0,2\n{name},1,300\n")
    assert alike(CONSUMER_GROUPS, "--reset-offsets", "--group", new, "--from-file", plan, "--execute") == 0
    assert alike(CONSUMER_GROUPS, "--reset-offsets", "--group", new, "--from-file", tmp_path / "no", "--dry-run") == 1


def test_offsets_are_forgotten_alike(pair, members, alike, ours):
    """Are the answers about forgotten offsets the same, for partitions and groups that are not there too?"""
    name, live = pair
    classic = next(iter(live))
    members.close(*live[classic])
    where = ("--delete-offsets", "--group")

    assert alike(CONSUMER_GROUPS, *where, classic, "--topic", f"{name}:0", "--topic", "nowhere") == 1
    assert alike(CONSUMER_GROUPS, *where, classic, "--topic", name, "--topic", f"{name}:9") == 1
    assert alike(CONSUMER_GROUPS, *where, "nobody", "--topic", name) == 1
    assert alike(CONSUMER_GROUPS, *where, classic, "--topic", name) == 0
    gone = f"Deletion of requested consumer groups ('{classic}') was successful.\n"
    assert (0, gone, "") == ours(CONSUMER_GROUPS, "--delete", "--group", classic)


@pytest.mark.parametrize("regex", ["a.*", "(", "a)", "[", "a**", "a{2000}", "[z-a]", "*", "\\8", "(?=x)", "[[:foo:]]"])
def test_regular_expressions_are_judged_alike(java, ours, regex):
    """Do both find the same fault, or none?"""
    theirs = java.run(CONSUMER_GROUPS[1], "--validate-regex", regex)

    assert theirs.out == ours(CONSUMER_GROUPS, "--validate-regex", regex)[1]


def test_share_groups_are_shown_alike(sharers, topic, group, alike, ours, send):
    """Are the same offsets, members, states, plans and refusals printed, at work and at rest?"""
    name, other = topic(partitions=3), topic()
    send(name, range(9), partitions=3)
    member = sharers.start(group, name, "share.acknowledgement.mode=explicit")
    until(
        lambda: (sharers.poll(member, within_s=0.1) and "") or ours(SHARE_GROUPS, "--list", "--state")[1],
        lambda out: f"{group} " in f"{out} " and "Stable" in out,
        "the share group is at work",
    )
    describe, reset = ("--describe", "--group", group), ("--reset-offsets", "--group", group)

    for view in ((), ("--members",), ("--state",)):
        for more in ((), ("--verbose",)):
            assert alike(SHARE_GROUPS, *describe, *view, *more) == 0
            assert alike(SHARE_GROUPS, "--describe", "--group", "nobody", *view, *more) == 1
    assert alike(SHARE_GROUPS, "--list") == alike(SHARE_GROUPS, "--list", "--state", "stable") == 0
    assert alike(SHARE_GROUPS, "--delete", "--group", group, "--group", "nobody", in_order=False) == 1
    assert alike(SHARE_GROUPS, "--delete-offsets", "--group", group, "--topic", name) == 1
    sharers.close(member)
    until(lambda: ours(SHARE_GROUPS, *describe, "--state")[1], lambda out: "Empty" in out, "the group is empty")
    for how in (("--to-earliest",), ("--to-latest",), ("--to-datetime", "2001-01-01T00:00:00.000")):
        for scope in (("--all-topics",), ("--topic", f"{name}:0,2")):
            assert alike(SHARE_GROUPS, *reset, *scope, *how, "--dry-run") == 0
    assert alike(SHARE_GROUPS, *reset, "--topic", other, "--to-latest", "--execute") == 0
    assert alike(SHARE_GROUPS, *reset, "--topic", "nowhere", "--to-latest", "--execute") == 1
    assert alike(SHARE_GROUPS, *describe, "--verbose") == alike(SHARE_GROUPS, *describe, "--members") == 0
    assert alike(SHARE_GROUPS, "--delete-offsets", "--group", "nobody", "--topic", name) == 1
    assert (0, f"Deletion of requested share groups ('{group}') was successful.\n", "") == ours(
        SHARE_GROUPS, "--delete", "--group", group
    )


def test_the_lag_of_a_share_group(java, broker, sharers, topic, group, alike, ours, send):
    """Is the lag what is not done yet, though the start offset that is written down is the one before the last answer?

    Both are Kafka's: an answer is written with the start as it was, and the records behind it that are done are counted
    off the lag; where the group begins moves with the next write.
    """
    groups = ("--bootstrap-server", broker.bootstrap, "--entity-type", "groups", "--entity-name", group)
    java.check("kafka.admin.ConfigCommand", *groups, "--alter", "--add-config", "share.auto.offset.reset=earliest")
    name, describe = topic(), ("--describe", "--group", group)

    def start_and_lag() -> tuple[str, str]:
        *_, start, lag = ours(SHARE_GROUPS, *describe)[1].split()
        return start, lag

    def shown(*expected: str) -> None:
        until(start_and_lag, lambda found: found == expected, f"start and lag are {expected}")
        assert 0 == alike(SHARE_GROUPS, *describe, "--verbose")

    for _ in range(3):
        send(name, range(3))
    member = sharers.start(group, name, "share.acknowledgement.mode=explicit", "max.poll.records=3")
    for expected in (("0", "6"), ("3", "3"), ("6", "0")):
        assert 3 == len(sharers.poll(member))
        assert [] == sharers.acknowledge(member, "ACCEPT")
        shown(*expected)
    sharers.close(member)
    shown("6", "0")
    send(name, range(1))
    shown("6", "1")
    member = sharers.start(group, name, "share.acknowledgement.mode=explicit")
    assert 1 == len(sharers.poll(member))
    assert [] == sharers.acknowledge(member, "RELEASE")
    shown("9", "1")
