"""The Java admin client lists, describes, changes and deletes groups."""

import pytest

from clients.java.live_clients import until

CLASSIC = ("group.protocol=classic", "heartbeat.interval.ms=100", "session.timeout.ms=6000")
CONSUMER = ("group.protocol=consumer",)
by_protocol = pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER], ids=["classic", "consumer"])


@by_protocol
def test_list_with_filters(members, topic, group, group_admin, protocol):
    """Is a group listed with its type and state, by every filter that fits, and by none that does not?"""
    name = topic()
    member = members.start(group, name, *protocol)
    members.until_share([member], [f"{name}-0"])
    kind = "Classic" if protocol is CLASSIC else "Consumer"
    other = "Consumer" if protocol is CLASSIC else "Classic"

    assert group_admin("list")[group] == [kind, "consumer", "Stable"]
    for matching in (f"type:{kind}", "state:Stable", "protocol:consumer"):
        assert group in group_admin("list", matching), matching
    for other_filter in (f"type:{other}", "state:Empty", "protocol:connect"):
        assert group not in group_admin("list", other_filter), other_filter

    members.close(member)
    assert group not in group_admin("list", "state:Stable")
    assert group_admin("list", "state:Empty", f"type:{kind}")[group] == [kind, "consumer", "Empty"]


def test_describe_classic(members, topic, group, group_admin):
    """Is a classic group described with state, assignor and members, by both ways to ask?"""
    name = topic(partitions=2)
    member = members.start(group, name, *CLASSIC, "group.instance.id=here")
    members.until_share([member], [f"{name}-0", f"{name}-1"])

    as_consumer = group_admin("describe-consumer", group)
    as_classic = group_admin("describe-classic", group)

    (described,) = as_consumer["members"]
    assert described["id"].startswith("here-")
    assert {**described, "id": "x"} == {
        "id": "x",
        "instance": "here",
        "client_id": member,
        "host": "/127.0.0.1",
        "assignment": [f"{name}-0", f"{name}-1"],
        "target": None,
        "epoch": None,
        "upgraded": None,
    }
    assert {**as_consumer, "members": []} == {
        "type": "Classic",
        "state": "Stable",
        "assignor": "range",
        "simple": False,
        "coordinator": 1,
        "epoch": None,
        "target_epoch": None,
        "members": [],
    }
    assert (as_classic["state"], as_classic["protocol"], as_classic["protocol_data"]) == ("Stable", "consumer", "range")
    assert as_classic["members"] == as_consumer["members"]


def test_describe_consumer(members, topic, group, group_admin):
    """Is a consumer group described with epochs, targets and members?"""
    name = topic(partitions=2)
    pair = [members.start(group, name, *CONSUMER) for _ in range(2)]
    held = members.until_share(pair, [f"{name}-0", f"{name}-1"], each=1)

    described = until(
        lambda: group_admin("describe-consumer", group), lambda seen: seen["state"] == "Stable", "the group is stable"
    )

    assert {**described, "members": [], "epoch": 0, "target_epoch": 0} == {
        "type": "Consumer",
        "state": "Stable",
        "assignor": "uniform",
        "simple": False,
        "coordinator": 1,
        "epoch": 0,
        "target_epoch": 0,
        "members": [],
    }
    assert described["epoch"] == described["target_epoch"] == members.state(pair[0])["generation"]
    assert dict(zip(pair, held, strict=True)) == {
        member["client_id"]: member["assignment"] for member in described["members"]
    }
    for member in described["members"]:
        assert member["target"] == member["assignment"]
        assert (member["host"], member["epoch"], member["upgraded"]) == ("/127.0.0.1", described["epoch"], True)
        assert member["id"] == members.state(member["client_id"])["member_id"]


def test_unknown_group(group, group_admin):
    """Is what is asked of a group that is not there answered as Kafka does?"""
    assert group_admin("describe-consumer", group) == "error GroupIdNotFoundException"
    assert group_admin("describe-classic", group) == "error GroupIdNotFoundException"
    assert group_admin("delete", group) == "error GroupIdNotFoundException"
    assert group_admin("delete-offsets", group, "none-0") == "error GroupIdNotFoundException"
    assert group_admin("offsets", group) == {}
    assert group not in group_admin("list")


@by_protocol
def test_offsets_of_a_group(members, topic, group, group_admin, protocol):
    """Can offsets be listed, altered and deleted while nobody uses them, and only then?"""
    name = topic(partitions=3)
    member = members.start(group, name, *protocol)
    members.until_share([member], [f"{name}-{n}" for n in range(3)])
    members.ask(member, "commit", f"{name}-0@4@note", f"{name}-1@5")

    assert group_admin("offsets", group) == {f"{name}-0": [4, "note"], f"{name}-1": [5, ""]}
    assert group_admin("alter-offsets", group, f"{name}-0@1") == "error UnknownMemberIdException"
    assert group_admin("delete-offsets", group, f"{name}-0") == "error GroupSubscribedToTopicException"
    assert group_admin("delete", group) == "error GroupNotEmptyException"
    members.close(member)

    assert group_admin("alter-offsets", group, f"{name}-0@1", f"{name}-2@6@new") == "ok"
    assert group_admin("delete-offsets", group, f"{name}-1") == "ok"
    assert group_admin("offsets", group) == {f"{name}-0": [1, ""], f"{name}-2": [6, "new"]}
    assert group_admin("delete", group) == "ok"
    assert group_admin("offsets", group) == {}
    assert group not in group_admin("list")


def test_group_of_offsets_only(topic, group, group_admin):
    """Is a group that somebody only committed offsets for a simple one, and empty?"""
    name = topic()
    assert group_admin("alter-offsets", group, f"{name}-0@2") == "ok"

    described = group_admin("describe-classic", group)

    assert group_admin("list")[group] == ["Classic", "", "Empty"]
    assert (described["state"], described["simple"], described["members"]) == ("Empty", True, [])
    assert group_admin("delete-offsets", group, f"{name}-0") == "ok"


def test_alter_offsets_of_an_unknown_topic(group, group_admin):
    """Is an offset for a topic that does not exist refused?"""
    assert group_admin("alter-offsets", group, "nowhere-0@2") == "error UnknownTopicOrPartitionException"


def test_remove_static_member(members, topic, group, group_admin):
    """Can a static member be removed by its instance id, so that the others take over, and all at once?"""
    name = topic(partitions=2)
    one, two = (members.start(group, name, *CLASSIC, f"group.instance.id={which}") for which in ("one", "two"))
    members.until_share([one, two], [f"{name}-0", f"{name}-1"], each=1)
    members.close(two)

    assert group_admin("remove-members", group, "two") == "ok"
    members.until_share([one], [f"{name}-0", f"{name}-1"])
    assert group_admin("remove-members", group, "nobody") == "error UnknownMemberIdException"
    members.close(one)
    assert group_admin("remove-members", group) == "ok"
    assert group_admin("describe-consumer", group)["state"] == "Empty"


def test_deleted_topic_takes_its_offsets(members, topic, group, group_admin, java, broker):
    """When a topic is deleted, do the offsets committed for it go too?"""
    gone, kept = topic(), topic()
    group_admin("alter-offsets", group, f"{gone}-0@2", f"{kept}-0@3")

    java.check("Topics", broker.bootstrap, "delete", gone)

    until(lambda: group_admin("offsets", group), lambda seen: seen == {f"{kept}-0": [3, ""]}, "its offsets go")
