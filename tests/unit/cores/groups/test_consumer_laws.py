"""What holds in consumer groups whatever happens; that the live state is the replayed one, the shell checks itself."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from consumer_shell import HEARTBEAT_MS, Consumer, ConsumerShell
from headrace.cores.groups.consumer_group import ConsumerGroup
from headrace.cores.groups.consumer_member import MemberState
from headrace.model.errors import ErrorCode, KafkaError

TOPICS = ("t1", "t2", "t3")
WANTS = (
    {"topics": ("t1",)},
    {"topics": ("t1", "t2")},
    {"topics": ("t2", "t3")},
    {"topics": None, "regex": "t[12]"},
    {"topics": ("t3",), "regex": "t.*"},
    {"topics": ()},
)
MEMBERS = 4
ROUNDS_TO_SETTLE = 3 * MEMBERS + 4

members = st.integers(0, MEMBERS - 1)


class AnyOrder(RuleBasedStateMachine):
    """Members that come, go, fall silent and lose answers, topics that come and go, and a coordinator that restarts."""

    @initialize(
        interval_ms=st.sampled_from([0, 1_000]),
        partitions=st.integers(1, 6),
        same=st.booleans(),
        assignor=st.sampled_from(["uniform", "range"]),
    )
    def begin(self, interval_ms, partitions, same, assignor):
        """A topic, and members that have not joined; perhaps all of them want the same."""
        self.shell = ConsumerShell({"group.consumer.assignment.interval.ms": interval_ms}, topics={"t1": partitions})
        self.same = same
        self.assignor = assignor
        self.generations = Counter()
        self.consumers = [self._consumer(place, 1) for place in range(MEMBERS)]

    def _consumer(self, place, wants):
        static = {"instance_id": f"i{place}"} if place == 0 else {}
        chosen = WANTS[1 if self.same else wants]
        self.generations[place] += 1
        member_id = f"m{place}-{self.generations[place]}"
        return Consumer(self.shell, member_id, server_assignor=self.assignor, **chosen, **static)

    def _group(self):
        return self.shell.core.groups.get("g")

    # --- members

    @rule(place=members, wants=st.integers(0, len(WANTS) - 1))
    def join(self, place, wants):
        """Somebody new in a place that is free."""
        if self.consumers[place].epoch == 0:
            self.consumers[place] = self._consumer(place, wants)
            answer = self.consumers[place].join()
            if isinstance(answer, KafkaError):
                assert ErrorCode.UNRELEASED_INSTANCE_ID == answer.code

    @rule(place=members, full=st.booleans(), is_lost=st.booleans())
    def beat(self, place, full, is_lost):
        """A heartbeat of a member, whose answer may get lost."""
        consumer = self.consumers[place]
        if consumer.epoch:
            answer = consumer.beat(full=full, is_lost=is_lost)
            if isinstance(answer, KafkaError):
                assert answer.code in {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID}

    @rule(place=members, wants=st.integers(0, len(WANTS) - 1))
    def change_mind(self, place, wants):
        """A member wants to read something else."""
        consumer = self.consumers[place]
        if consumer.epoch and not self.same:
            told = {"topics": (), "regex": "", **WANTS[wants]}
            consumer.wants |= {key: value if value is not None else () for key, value in told.items()}
            consumer.beat(full=True)

    @rule(place=members)
    def give_up(self, place):
        """A member stops reading what it may not own any more."""
        self.consumers[place].give_up()

    @rule(place=members, for_a_while=st.booleans())
    def leave(self, place, for_a_while):
        """A member goes."""
        consumer = self.consumers[place]
        if consumer.epoch:
            consumer.leave(-2 if for_a_while and "instance_id" in consumer.wants else -1)

    @rule(place=members)
    def crash(self, place):
        """A member is gone without a word."""
        self.consumers[place].abandon()

    @rule(wants=st.integers(0, len(WANTS) - 1))
    def gather(self, wants):
        """All places that are free are taken at once."""
        for place in range(MEMBERS):
            self.join(place, wants)

    @rule(tidy=st.lists(st.booleans(), min_size=MEMBERS, max_size=MEMBERS))
    def go_round(self, tidy):
        """Everyone sends a heartbeat, some after giving up what they may not own any more."""
        for place, gives_up in enumerate(tidy):
            if gives_up:
                self.give_up(place)
            self.beat(place, full=False, is_lost=False)

    # --- the world

    @rule(name=st.sampled_from(TOPICS), partitions=st.integers(1, 8))
    def make_or_grow(self, name, partitions):
        """A topic comes, or gets more partitions."""
        topic = self.shell.metadata.topics.get(name)
        if topic is None:
            self.shell.create_topic(name, partitions)
        elif partitions > len(topic.partitions):
            self.shell.grow_topic(name, partitions)

    @rule(name=st.sampled_from(TOPICS))
    def delete(self, name):
        """A topic goes."""
        if name in self.shell.metadata.topics:
            self.shell.delete_topic(name)

    @rule(duration_ms=st.sampled_from([10, 1_000, HEARTBEAT_MS, 20_000]))
    def wait(self, duration_ms):
        """Time passes."""
        self.shell.advance(duration_ms)

    @rule()
    def restart(self):
        """The coordinator forgets all but its log."""
        self.shell.restart()

    # --- laws

    @invariant()
    def one_owner(self):
        """Is no partition read by two members at once, of those that are members?"""
        group = self._group() if hasattr(self, "shell") else None
        if group is None:
            return
        owners = Counter(
            partition
            for consumer in self.consumers
            if consumer.member_id in group.members
            for partition in consumer.partitions
        )

        assert all(count == 1 for count in owners.values()), owners

    @invariant()
    def books_are_right(self):
        """Does nobody own more than one epoch allows, and is nobody ahead of the group?"""
        group = self._group() if hasattr(self, "shell") else None
        if not isinstance(group, ConsumerGroup):
            return
        owned = Counter(
            (topic_id, index)
            for member in group.members.values()
            for partitions in (member.assigned, member.pending_revocation)
            for topic_id, indexes in partitions.items()
            for index in indexes
        )

        assert all(count == 1 for count in owned.values())
        assert group.assignment_epoch <= group.group_epoch
        for member in group.members.values():
            assert member.member_epoch <= group.assignment_epoch
            assert (member.state is MemberState.UNREVOKED_PARTITIONS) >= bool(member.pending_revocation)

    def teardown(self):
        """After quiet heartbeats: is everyone where it should be, everything read, evenly, and does it stay so?"""
        if not hasattr(self, "shell"):
            return
        self._settle()
        group = self._group()
        if group is None:
            return
        present = [consumer for consumer in self.consumers if consumer.epoch]
        assert {consumer.member_id for consumer in present} == set(group.members)
        assert group.state_name == ("Stable" if present else "Empty")
        self._check_everything_is_read(group, present)
        before = len(self.shell.log)
        self._settle()

        assert before == len(self.shell.log), "a quiet group has changed something"

    def _settle(self):
        for _ in range(ROUNDS_TO_SETTLE):
            self.shell.advance(HEARTBEAT_MS)
            for consumer in self.consumers:
                if consumer.epoch:
                    consumer.give_up()
                    consumer.beat()

    def _check_everything_is_read(self, group, present):
        topics = self.shell.metadata.topics
        read = {name for member in group.members.values() for name in group.topics_of(member) if name in topics}
        expected = {(topics[name].topic_id, index) for name in read for index in range(len(topics[name].partitions))}
        owned = [partition for consumer in present for partition in consumer.partitions]

        assert Counter(owned) == Counter(expected)
        if self.same and self.assignor == "uniform" and present:
            loads = [len(consumer.partitions) for consumer in present]
            assert max(loads) - min(loads) <= 1


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
