"""What holds in streams groups whatever happens; that the live state is the replayed one, the shell checks itself."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headrace.cores.groups.streams_group import StreamsGroup
from headrace.cores.groups.streams_member import MemberState
from headrace.cores.groups.streams_tasks import each_task
from headrace.model.errors import ErrorCode, KafkaError
from streams_shell import HEARTBEAT_MS, STATELESS, WORD_COUNT, StreamsShell, StreamsThread

MEMBERS = 4
PROCESSES = ("p0", "p1", "p0", "p2")
"""Two members are threads of one process."""

ROUNDS_TO_SETTLE = 4 * MEMBERS + 6

REFUSALS = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.INVALID_REQUEST}
"""INVALID_REQUEST is for tasks of a topic that came again with fewer partitions."""

members = st.integers(0, MEMBERS - 1)


class AnyOrder(RuleBasedStateMachine):
    """Members that come, go, fall silent and lose answers, topics that come and go, and a coordinator that restarts."""

    @initialize(
        partitions=st.integers(1, 6),
        replicas=st.sampled_from([0, 1, 2]),
        interval_ms=st.sampled_from([0, 1_000]),
        delay_ms=st.sampled_from([0, 3_000]),
        topology=st.sampled_from([STATELESS, WORD_COUNT]),
    )
    def begin(self, partitions, replicas, interval_ms, delay_ms, topology):
        """A topic, and members that have not joined."""
        own = {
            "group.streams.assignment.interval.ms": interval_ms,
            "group.streams.initial.rebalance.delay.ms": delay_ms,
            "group.streams.num.standby.replicas": replicas,
        }
        self.shell = StreamsShell(own, topics={"orders": partitions})
        self.replicas = replicas
        self.topology = topology
        self.generations = Counter()
        self.threads = [self._thread(place) for place in range(MEMBERS)]

    def _thread(self, place):
        self.generations[place] += 1
        tells = {"process_id": PROCESSES[place], "topology": self.topology}
        return StreamsThread(self.shell, f"m{place}-{self.generations[place]}", **tells)

    def _group(self):
        return self.shell.core.groups.get("g") if hasattr(self, "shell") else None

    # --- members

    @rule(place=members)
    def join(self, place):
        """Somebody new in a place that is free."""
        if self.threads[place].epoch == 0:
            self.threads[place] = self._thread(place)
            assert not isinstance(self.threads[place].join(), KafkaError)

    @rule(place=members)
    def rejoin(self, place):
        """A member begins anew under its old id."""
        if self.threads[place].epoch:
            self.threads[place].join()

    @rule(place=members, is_lost=st.booleans())
    def beat(self, place, is_lost):
        """A heartbeat of a member, whose answer may get lost."""
        thread = self.threads[place]
        if thread.epoch:
            answer = thread.beat(is_lost=is_lost)
            if isinstance(answer, KafkaError):
                assert answer.code in REFUSALS
                if answer.code is ErrorCode.INVALID_REQUEST:
                    thread.abandon()

    @rule(place=members)
    def give_up(self, place):
        """A member stops doing what it may not do any more."""
        self.threads[place].give_up()

    @rule(place=members)
    def leave(self, place):
        """A member goes."""
        if self.threads[place].epoch:
            self.threads[place].leave()

    @rule(place=members)
    def crash(self, place):
        """A member is gone without a word."""
        self.threads[place].abandon()

    @rule()
    def gather(self):
        """All places that are free are taken at once."""
        for place in range(MEMBERS):
            self.join(place)

    @rule(tidy=st.lists(st.booleans(), min_size=MEMBERS, max_size=MEMBERS))
    def go_round(self, tidy):
        """Everyone sends a heartbeat, some after giving up what they may not have any more."""
        for place, gives_up in enumerate(tidy):
            if gives_up:
                self.give_up(place)
            self.beat(place, is_lost=False)

    # --- the world

    @rule(partitions=st.integers(1, 8))
    def make_or_grow(self, partitions):
        """The source topic comes, or gets more partitions."""
        topic = self.shell.metadata.topics.get("orders")
        if topic is None:
            self.shell.create_topic("orders", partitions)
        elif partitions > len(topic.partitions):
            self.shell.grow_topic("orders", partitions)

    @rule(name=st.sampled_from(["orders", "words", "counts"]))
    def delete(self, name):
        """A topic goes; internal ones come again when somebody asks."""
        if name in self.shell.metadata.topics:
            self.shell.delete_topic(name)

    @rule(replicas=st.integers(0, 2))
    def configure(self, replicas):
        """The group is to have more or fewer copies."""
        self.replicas = replicas
        self.shell.configure_group("g", "streams.num.standby.replicas", str(replicas))

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
    def one_runs_it(self):
        """Does no task run on two members at once, of those that are members?"""
        group = self._group()
        if group is None:
            return
        runners = Counter(
            task for thread in self.threads if thread.member_id in group.members for task in thread.tasks()
        )

        assert all(count == 1 for count in runners.values()), runners

    @invariant()
    def one_directory_for_it(self):
        """Does no process have a task twice, in whatever roles, according to the books?"""
        group = self._group()
        if not isinstance(group, StreamsGroup):
            return
        places = Counter(
            (member.process_id, task)
            for member in group.members.values()
            for tasks in (member.assigned, member.pending_revocation)
            for role in tasks.by_role
            for task in each_task(role)
        )

        assert all(count == 1 for count in places.values()), places

    @invariant()
    def books_are_right(self):
        """Is nobody ahead of the group, and does each active task have its epoch?"""
        group = self._group()
        if not isinstance(group, StreamsGroup):
            return
        assert group.assignment_epoch <= group.group_epoch
        for member in group.members.values():
            assert member.member_epoch <= group.assignment_epoch
            assert (member.state is MemberState.UNREVOKED_TASKS) == bool(member.pending_revocation)
            assert all(epoch <= group.assignment_epoch for epoch in member.epochs.values())

    def teardown(self):
        """After quiet heartbeats: is everyone where it should be, everything run and copied, and does it stay so?"""
        if not hasattr(self, "shell"):
            return
        # Internal topics do not grow by themselves, so that a source that did would leave the group waiting.
        for name in ("orders", "words", "counts"):
            self.delete(name)
        self.shell.create_topic("orders", 3)
        self._settle()
        group = self._group()
        if group is None:
            return
        present = [thread for thread in self.threads if thread.epoch]
        assert {thread.member_id for thread in present} == set(group.members)
        assert group.state_name == ("Stable" if present else "Empty")
        self._check_all_is_done(present)
        before = len(self.shell.log)
        self._settle()

        assert before == len(self.shell.log), "a quiet group has changed something"

    def _settle(self):
        for _ in range(ROUNDS_TO_SETTLE):
            self.shell.advance(HEARTBEAT_MS)
            for place, thread in enumerate(self.threads):
                thread.give_up()
                self.beat(place, is_lost=False)

    def _check_all_is_done(self, present):
        names = [each.subtopology_id for each in self.topology.subtopologies]
        stateful = {each.subtopology_id for each in self.topology.subtopologies if each.state_changelog_topics}
        tasks = {(name, index) for name in names for index in range(3)} if present else set()
        running = Counter(task for thread in present for task in thread.tasks())

        assert Counter(tasks) == running

        copies = Counter(task for thread in present for task in thread.tasks("standby"))
        processes = {thread.tells["process_id"] for thread in present}
        possible = min(self.replicas, len(processes) - 1)

        assert Counter({task: possible for task in tasks if task[0] in stateful and possible > 0}) == copies
        assert all(() == thread.statuses for thread in present)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
