"""Share groups at their coordinator."""

from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.cores.groups import share, share_offsets
from headrace.cores.groups.group import GroupType
from headrace.cores.groups.limits import GroupLimits
from headrace.cores.groups.shard import Groups
from headrace.cores.groups.share_commands import ShareHeartbeat
from headrace.cores.metadata import Metadata
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord

TOPICS = {"orders": UUID(int=1), "bills": UUID(int=2)}
ORDERS = TOPICS["orders"]


def add_topic(metadata, name, partitions, *, first=0):
    """Create a topic, or give it more partitions."""
    if not first:
        metadata.replay(TopicRecord(name=name, topic_id=TOPICS[name]))
    for index in range(first, partitions):
        metadata.replay(
            PartitionRecord(
                partition_id=index, topic_id=TOPICS[name], replicas=(1,), isr=(1,), leader=1, leader_epoch=0
            )
        )


@pytest.fixture
def groups():
    """A coordinator of a cluster with one topic of three partitions."""
    metadata = Metadata()
    add_topic(metadata, "orders", 3)
    return Groups(metadata, GroupLimits)


def beat(groups, member="a", epoch=0, topics=("orders",), *, now_ms=0, group="g", rack=None):
    """One heartbeat, and its answer."""
    command = ShareHeartbeat(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rack_id=rack,
        client_id="client",
        client_host="/127.0.0.1",
        topics=topics,
    )
    return answer(share.heartbeat(groups, command, "t", now_ms))


def answer(outcome):
    """The one reply of a step."""
    ((token, reply),) = outcome.replies
    assert token == "t"
    return reply


def confirm(groups, begin, group="g"):
    """Tell the group that the states it asked for were begun."""
    return share_offsets.begun(groups, group, begin.start_offsets, "t")


def join(groups, member="a", topics=("orders",), *, now_ms=0):
    """Join, have the states begun, and hear of the assignment."""
    first = beat(groups, member, topics=topics, now_ms=now_ms)
    if first.begin is not None:
        confirm(groups, first.begin)
    return beat(groups, member, first.member_epoch, None, now_ms=now_ms)


def partitions(count, topic=ORDERS):
    """All partitions of a topic."""
    return {(topic, index) for index in range(count)}


def test_partitions_are_given_out_when_their_state_was_begun(groups):
    """Is a new member told to wait until the share coordinator knows the partitions?"""
    first = beat(groups)

    assert (first.member_epoch, first.assignment) == (1, frozenset())
    assert first.begin.state_epoch == 1
    assert first.begin.start_offsets == {ORDERS: {0: -1, 1: -1, 2: -1}}
    assert beat(groups, epoch=1, topics=None).begin is None

    confirm(groups, first.begin)
    second = beat(groups, epoch=1, topics=None)

    assert (second.member_epoch, second.assignment) == (2, partitions(3))
    assert beat(groups, epoch=2, topics=None).assignment is None
    assert beat(groups, epoch=1, topics=None).assignment == partitions(3), "the answer may have been lost"


def test_state_that_could_not_be_begun_is_asked_for_again(groups):
    """Is it asked for again when it failed, and when nobody said what became of it?"""
    begin = beat(groups).begin
    assert beat(groups, epoch=1, topics=None, now_ms=29_999).begin is None
    assert beat(groups, epoch=1, topics=None, now_ms=30_000).begin.start_offsets == begin.start_offsets

    share_offsets.not_begun(groups, "g", begin.start_offsets, "t")

    assert beat(groups, epoch=1, topics=None, now_ms=30_001).begin.start_offsets == begin.start_offsets


def test_members_share_the_partitions(groups):
    """Are partitions shared out evenly, and read by several where there are more members?"""
    join(groups, "a")
    join(groups, "b", now_ms=2_000)
    sizes = []
    for member in "ab":
        epoch = groups.groups["g"].members[member].epoch
        beat(groups, member, epoch, None, now_ms=2_000)
        sizes.append(len(groups.groups["g"].members[member].assigned))

    assert sorted(sizes) == [1, 2]
    assert groups.groups["g"].members["a"].assigned | groups.groups["g"].members["b"].assigned == partitions(3)


def test_assignments_keep_their_distance(groups):
    """Does a second assignment wait until the interval is over?"""
    join(groups, "a")
    epoch = groups.groups["g"].assignment_epoch

    assert beat(groups, "b", now_ms=500).member_epoch == epoch
    assert beat(groups, "b", epoch, None, now_ms=999).assignment is None
    assert beat(groups, "b", epoch, None, now_ms=1000).assignment


def test_new_partitions_are_found(groups):
    """Are partitions that a topic got later begun and given out?"""
    epoch = join(groups).member_epoch
    add_topic(groups.metadata, "orders", 4, first=3)

    grown = beat(groups, epoch=epoch, topics=None, now_ms=2_000)

    assert grown.begin.start_offsets == {ORDERS: {3: -1}}
    confirm(groups, grown.begin)
    assert beat(groups, epoch=grown.member_epoch, topics=None, now_ms=4_000).assignment == partitions(4)


def test_deleted_topic_is_forgotten(groups):
    """Does nothing of a deleted topic stay in the group?"""
    epoch = join(groups).member_epoch
    groups.metadata.replay(RemoveTopicRecord(topic_id=ORDERS))

    told = beat(groups, epoch=epoch, topics=None, now_ms=2_000)

    assert told.assignment == frozenset()
    assert groups.groups["g"].state_topics.initialized == {}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member": " "}, "MemberId can't be empty."),
        ({"group": ""}, "GroupId can't be empty."),
        ({"rack": ""}, "RackId can't be empty."),
        ({"topics": None}, "SubscribedTopicNames must be set in first request."),
        ({"topics": ()}, "SubscribedTopicNames must be set in first request."),
        ({"epoch": -2}, "MemberEpoch is invalid."),
    ],
)
def test_senseless_heartbeat_is_refused(groups, fields, message):
    """Is a heartbeat that makes no sense refused in Kafka's words, with nothing changed?"""
    with pytest.raises(KafkaError) as caught:
        beat(groups, **fields)

    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_REQUEST, message)
    assert groups.groups == {}


@pytest.mark.parametrize(
    ("member", "epoch", "group", "code"),
    [
        ("a", 1, "other", ErrorCode.GROUP_ID_NOT_FOUND),
        ("b", 1, "g", ErrorCode.UNKNOWN_MEMBER_ID),
        ("b", -1, "g", ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", -1, "other", ErrorCode.GROUP_ID_NOT_FOUND),
        ("a", 9, "g", ErrorCode.FENCED_MEMBER_EPOCH),
    ],
)
def test_stranger_is_refused(groups, member, epoch, group, code):
    """Is a member that is none, or of another epoch, refused?"""
    join(groups)
    before = groups.hard_state()

    with pytest.raises(KafkaError) as caught:
        beat(groups, member, epoch, group=group)

    assert caught.value.code == code
    assert groups.hard_state() == before


def test_old_epoch_is_fenced(groups):
    """Is a member that comes with an epoch before the last one fenced?"""
    epoch = join(groups).member_epoch
    beat(groups, epoch=epoch, topics=("orders", "bills"), now_ms=2_000)

    with pytest.raises(KafkaError) as caught:
        beat(groups, epoch=1, topics=None, now_ms=2_000)
    assert caught.value.code == ErrorCode.FENCED_MEMBER_EPOCH


def test_group_is_limited(groups):
    """Is a member too many refused?"""
    for index in range(200):
        beat(groups, f"m{index}")

    with pytest.raises(KafkaError) as caught:
        beat(groups, "one-more")
    assert caught.value.code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_leaving_and_falling_silent(groups):
    """Is a member gone when it leaves, and when it was silent for too long, but not before?"""
    join(groups, "a")
    join(groups, "b", now_ms=5_000)
    key = ("share-session", "g", "b")

    assert groups.on_timer(key, 49_999).timers == [(key, 50_000)]
    assert set(groups.groups["g"].members) == {"a", "b"}
    groups.on_timer(key, 50_000)
    assert set(groups.groups["g"].members) == {"a"}
    assert groups.on_timer(key, 60_000).records == []

    assert beat(groups, "a", -1).member_epoch == -1
    assert (groups.groups["g"].is_empty(), groups.groups["g"].state_name) == (True, "Empty")


def test_session_is_whole_after_a_failover(groups):
    """Does every member get a whole session when the coordinator has loaded?"""
    join(groups, "a")

    assert groups.loaded(70_000).timers[-1] == (("share-session", "g", "a"), 115_000)


def test_groups_own_settings(groups):
    """Are the settings of the group itself used, as far as the broker allows?"""
    settings = {
        "group.share.session.timeout.ms": 45_000,
        "group.share.min.session.timeout.ms": 45_000,
        "group.share.max.session.timeout.ms": 60_000,
        "group.share.heartbeat.interval.ms": 5_000,
        "group.share.min.heartbeat.interval.ms": 5_000,
        "group.share.max.heartbeat.interval.ms": 15_000,
        "group.share.assignment.interval.ms": 1_000,
        "group.share.min.assignment.interval.ms": 0,
        "group.share.max.assignment.interval.ms": 15_000,
        "group.share.max.size": 200,
        "group.share.initialize.retry.interval.ms": 30_000,
    }
    configured = Groups(groups.metadata, lambda: GroupLimits(settings=settings))
    for name, value in (("share.session.timeout.ms", "99999"), ("share.heartbeat.interval.ms", "7000")):
        groups.metadata.replay(ConfigRecord(resource_type=32, resource_name="g", name=name, value=value))

    assert beat(configured).heartbeat_interval_ms == 7_000
    assert configured.groups["g"].sessions_ms == {"a": 60_000}


def test_describing(groups):
    """Is a group told of with its members, and what is no share group refused?"""
    join(groups)

    told = answer(share.describe(groups, "g", "t"))

    assert (told.state_name, told.group_epoch, told.assignment_epoch) == ("Stable", 2, 2)
    assert [(one.member_id, one.topics, len(one.assignment)) for one in told.members] == [("a", ("orders",), 3)]
    with pytest.raises(KafkaError) as caught:
        share.describe(groups, "other", "t")
    assert caught.value.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_an_empty_group_can_be_set(groups):
    """Can the offsets of a group without members be set, and those of partitions that are not there not?"""
    wanted = {"orders": {0: 5, 7: 5, 1: -3}, "bills": {0: 1}}

    result = answer(share_offsets.alter_offsets(groups, "g", wanted, "t"))

    assert (result.begin.state_epoch, result.begin.start_offsets) == (1, {ORDERS: {0: 5}})
    assert {key: error.code for key, error in result.errors.items()} == {
        ("orders", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("orders", 1): ErrorCode.INVALID_REQUEST,
        ("bills", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    confirm(groups, result.begin)
    assert groups.groups["g"].initialized == {ORDERS: {0}}


def test_offsets_of_a_group_with_members_stay(groups):
    """Are setting and deleting refused while somebody reads?"""
    join(groups)

    for refused in (
        lambda: share_offsets.alter_offsets(groups, "g", {"orders": {0: 5}}, "t"),
        lambda: share_offsets.delete_offsets(groups, "g", ["orders"], "t"),
        groups.groups["g"].check_delete,
    ):
        with pytest.raises(KafkaError) as caught:
            refused()
        assert caught.value.code == ErrorCode.NON_EMPTY_GROUP


def test_offsets_can_be_deleted(groups):
    """Are the offsets of a topic forgotten when the share coordinator has forgotten them, and asked for till then?"""
    join(groups)
    beat(groups, epoch=-1)

    for _ in range(2):
        result = answer(share_offsets.delete_offsets(groups, "g", ["orders", "bills"], "t"))
        assert result.partitions == {ORDERS: (0, 1, 2)}
        assert {name: error.code for name, error in result.errors.items()} == {
            "bills": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        }
    share_offsets.offsets_deleted(groups, "g", [ORDERS], "t")

    assert answer(share_offsets.delete_offsets(groups, "g", ["orders"], "t")).partitions == {}


def test_tombstones_leave_nothing(groups):
    """Does the log forget a group with its tombstones?"""
    join(groups)
    group = groups.groups["g"]
    assert (group.kind, group.protocol_type, group.is_subscribed_to("orders")) == (GroupType.SHARE, "share", True)

    for key, value in group.tombstones():
        groups.replay(key, value)

    assert groups.groups == {}


@pytest.mark.parametrize(
    "check",
    [lambda group: group.check_commit("a", None, 1, transactional=False), lambda group: group.check_fetch("a", 1)],
)
def test_share_groups_have_no_committed_offsets(groups, check):
    """Is committing or fetching offsets of a share group refused?"""
    join(groups)

    with pytest.raises(KafkaError) as caught:
        check(groups.groups["g"])
    assert caught.value.code == ErrorCode.GROUP_ID_NOT_FOUND


MEMBERS = st.sampled_from(["a", "b", "c"])


class Membership(RuleBasedStateMachine):
    """Whatever members do, replaying the log gives the same groups, and all partitions that can be read are read."""

    @initialize()
    def open(self):
        self.metadata = Metadata()
        add_topic(self.metadata, "orders", 2)
        add_topic(self.metadata, "bills", 1)
        self.groups = Groups(self.metadata, GroupLimits)
        self.log = []
        self.now_ms = 0
        self.begins = []

    def run_step(self, step):
        """Take a step; the reply, or None if it was refused."""
        before = self.groups.hard_state()
        try:
            outcome = step()
        except KafkaError:
            assert self.groups.hard_state() == before
            return None
        self.log += outcome.records
        return outcome.replies[0][1] if outcome.replies else None

    @rule(
        member=MEMBERS,
        epoch=st.sampled_from(["join", "own", "leave", "wrong"]),
        topics=st.sampled_from([None, ("orders",), ("bills", "orders"), ("missing",)]),
    )
    def heartbeat(self, member, epoch, topics):
        group = self.groups.groups.get("g")
        known = group.members.get(member) if group is not None else None
        number = {"join": 0, "own": known.epoch if known else 1, "leave": -1, "wrong": 99}[epoch]
        command = ShareHeartbeat(
            group_id="g",
            member_id=member,
            member_epoch=number,
            rack_id=None,
            client_id="c",
            client_host="h",
            topics=topics,
        )
        reply = self.run_step(lambda: share.heartbeat(self.groups, command, "t", self.now_ms))
        if reply is not None and reply.begin is not None:
            self.begins.append(reply.begin)

    @rule(works=st.booleans())
    def begin(self, works):
        if self.begins:
            step = share_offsets.begun if works else share_offsets.not_begun
            begin = self.begins.pop()
            self.run_step(lambda: step(self.groups, "g", begin.start_offsets, "t"))

    @rule(passed_ms=st.integers(1, 50_000))
    def wait(self, passed_ms):
        self.now_ms += passed_ms
        for member in "abc":
            self.run_step(lambda member=member: self.groups.on_timer(("share-session", "g", member), self.now_ms))

    @rule(offset=st.integers(-1, 3))
    def alter(self, offset):
        self.run_step(lambda: share_offsets.alter_offsets(self.groups, "g", {"orders": {0: offset}}, "t"))

    @rule()
    def delete(self):
        result = self.run_step(lambda: share_offsets.delete_offsets(self.groups, "g", ["orders"], "t"))
        if result is not None:
            self.run_step(lambda: share_offsets.offsets_deleted(self.groups, "g", result.partitions, "t"))

    @invariant()
    def replayed_is_lived(self):
        again = Groups(self.metadata, GroupLimits)
        for key, value in self.log:
            again.replay(key, value)
        assert again.hard_state() == self.groups.hard_state()

    @invariant()
    def only_what_has_a_state_is_read(self):
        group = self.groups.groups.get("g")
        if group is None or group.assignment_epoch != group.group_epoch:
            return
        wanted = {
            (TOPICS[name], index)
            for name in group.subscribed_topics
            if name in TOPICS
            for index in group.initialized.get(TOPICS[name], ())
        }
        assert set().union(*group.targets.values()) == wanted


TestMembership = Membership.TestCase
