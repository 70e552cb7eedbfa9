"""What holds in groups whose members speak either protocol and come and go in any order."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from consumer_shell import Consumer, ConsumerShell
from headrace.cores.groups.classic_commands import Joined
from headrace.cores.groups.classic_group import ClassicGroup
from headrace.cores.groups.consumer_group import ConsumerGroup
from headrace.cores.groups.consumer_protocol import (
    Subscription,
    read_assignment,
    write_assignment,
    write_subscription,
)
from headrace.model.errors import ErrorCode, KafkaError

PLACES = 4
ROUNDS_TO_SETTLE = 30

places = st.integers(0, PLACES - 1)


class EagerConsumer:
    """A consumer of the classic protocol that gives up all before it joins; if it leads, it deals out in turn."""

    def __init__(self, shell, member_id):
        self.shell = shell
        self.member_id = member_id
        self.generation_id = -1
        self.owned = set()
        self.is_here = False
        self._join_token = self._sync_token = None

    @property
    def partitions(self):
        """What it owns, as pairs of topic id and number."""
        return {(self.shell.topic_id("orders"), index) for index in self.owned}

    def join(self):
        """Come with nothing, and wait."""
        self.owned, self.is_here, self._sync_token = set(), True, None
        metadata = write_subscription(Subscription(topics=("orders",)), version=1)
        # A group that does not know the id takes one that has none, as a restarted client does.
        group = self.shell.core.groups.get("g")
        known = group is not None and self.member_id in group.members
        self._join_token = self.shell.join(
            member_id=self.member_id if known else "",
            new_member_id=self.member_id,
            protocols=[("range", metadata)],
        )

    def beat(self):
        """Do what comes next: hear an answer, ask for the assignment, or say that it lives."""
        if not self.is_here:
            return
        if self._join_token is not None:
            self._hear_join()
        elif self._sync_token is not None:
            self._hear_sync()
        else:
            error = self.shell.heartbeat(self.member_id, self.generation_id)
            if error:
                self.join()

    def _hear_join(self):
        answer = self.shell.answers.get(self._join_token)
        if answer is None:
            return
        self._join_token = None
        if not isinstance(answer, Joined) or answer.error:
            self.join()
            return
        self.generation_id = answer.generation_id
        names = sorted(member.member_id for member in answer.members)
        count = len(self.shell.metadata.topics["orders"].partitions)
        shares = [
            (name, write_assignment({"orders": range(place, count, len(names))}, version=1))
            for place, name in enumerate(names)
        ]
        self._sync_token = self.shell.sync(self.member_id, self.generation_id, shares)
        self._hear_sync()

    def _hear_sync(self):
        answer = self.shell.answers.get(self._sync_token)
        if answer is None:
            return
        self._sync_token = None
        if isinstance(answer, KafkaError):
            self.join()
        else:
            self.owned = set(read_assignment(answer.assignment).partitions.get("orders", ()))

    def leave(self):
        """Go."""
        self.shell.leave(self.member_id)
        self.abandon()

    def give_up(self):
        """It has no other way than to join again."""

    def abandon(self):
        """Own nothing, and be silent."""
        self.owned, self.is_here = set(), False


class EitherProtocol(RuleBasedStateMachine):
    """Members of both protocols, and a coordinator that restarts."""

    @initialize(partitions=st.integers(1, 6), policy=st.sampled_from(["bidirectional", "upgrade"]))
    def begin(self, partitions, policy):
        """A topic, and nobody who reads it."""
        self.shell = ConsumerShell(
            {"group.consumer.migration.policy": policy},
            topics={"orders": partitions},
            initial_rebalance_delay_ms=0,
        )
        self.policy = policy
        self.names = Counter()
        self.members = {}

    def _name(self, place):
        self.names[place] += 1
        return f"m{place}-{self.names[place]}"

    def _is_here(self, member):
        return member.is_here if isinstance(member, EagerConsumer) else bool(member.epoch)

    @rule(place=places, is_new=st.booleans())
    def join(self, place, is_new):
        """Somebody comes to a place that is free."""
        member = self.members.get(place)
        if member is not None and self._is_here(member):
            return
        kind = Consumer if is_new else EagerConsumer
        self.members[place] = kind(self.shell, self._name(place))
        answer = self.members[place].join()
        if isinstance(answer, KafkaError):
            # A classic group in its first moments has no protocol yet that could be read, or is between two.
            assert ErrorCode.GROUP_ID_NOT_FOUND == answer.code

    @rule(order=st.permutations(range(PLACES)), tidy=st.booleans())
    def go_round(self, order, tidy):
        """Everyone does what comes next."""
        for place in order:
            self.beat(place, tidy)

    @rule(place=places, tidy=st.booleans())
    def beat(self, place, tidy):
        """A member does what comes next."""
        member = self.members.get(place)
        if member is not None and self._is_here(member):
            if tidy:
                member.give_up()
            member.beat()

    @rule(place=places, silently=st.booleans())
    def leave(self, place, silently):
        """A member goes, with or without a word."""
        member = self.members.get(place)
        if member is not None and self._is_here(member):
            member.abandon() if silently else member.leave()

    @rule(duration_ms=st.sampled_from([1, 3_000, 8_000]))
    def wait(self, duration_ms):
        """Time passes."""
        self.shell.advance(duration_ms)

    @rule()
    def restart(self):
        """The coordinator forgets all but its log; who waited asks again."""
        self.shell.restart()
        for member in self.members.values():
            if isinstance(member, EagerConsumer) and member.is_here:
                member.join()

    @invariant()
    def one_owner(self):
        """Is no partition read by two members at once, of those that are members?"""
        group = self.shell.core.groups.get("g") if hasattr(self, "shell") else None
        if group is None:
            return
        owners = Counter(
            partition
            for member in self.members.values()
            if member.member_id in group.members
            for partition in member.partitions
        )

        assert all(count == 1 for count in owners.values()), owners

    def teardown(self):
        """After quiet rounds: is everything read once, by a group of the kind that its members make it?"""
        if not hasattr(self, "shell"):
            return
        for _ in range(ROUNDS_TO_SETTLE):
            self.shell.advance(3_000)
            for place in range(PLACES):
                self.beat(place, tidy=True)
        present = [member for member in self.members.values() if self._is_here(member)]
        group = self.shell.core.groups.get("g")
        if not present or group is None:
            return
        topic = self.shell.metadata.topics["orders"]
        expected = {(topic.topic_id, index) for index in range(len(topic.partitions))}

        assert Counter(expected) == Counter(partition for member in present for partition in member.partitions)
        assert {member.member_id for member in present} == set(group.members)
        if any(isinstance(member, Consumer) for member in present):
            assert isinstance(group, ConsumerGroup)
        elif self.policy == "bidirectional":
            assert isinstance(group, ClassicGroup)


TestEitherProtocol = EitherProtocol.TestCase
TestEitherProtocol.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
