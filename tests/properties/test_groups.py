"""Do groups keep their word, whatever their members do, in whatever order, and whenever the coordinator is lost?

Members join, sync, send heartbeats, commit, leave and fall silent; transactions begin and end; time passes; the
coordinator is lost and comes back. The shell checks after every step that the state is what a replay of the log gives
and that nobody is answered twice. Beside it a plain dictionary follows the committed offsets.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from group_shell import GroupShell
from headrace.cores.groups.classic_commands import Joined, Synced
from headrace.cores.groups.classic_group import ClassicState
from headrace.model.errors import ErrorCode, KafkaError

PLACES = (("t", 0), ("u", 0))
PRODUCERS = (7, 8)
RETENTION_MS = 100_000
CHECK_MS = 20_000


def subscription(*topics):
    """A consumer's metadata, in the form its protocol type says."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


PROTOCOLS = (
    (("range", subscription("t")),),
    (("range", subscription("u")), ("sticky", subscription("t"))),
    (("sticky", subscription("t")), ("range", subscription("t", "u"))),
    (("range", b"unreadable"),),
)

protocol_lists = st.sampled_from(PROTOCOLS)
places = st.sampled_from(PLACES)
producers = st.sampled_from(PRODUCERS)
numbers = st.integers(0, 5)
"""Which one of several; taken modulo their number."""


class WatchedShell(GroupShell):
    """Holds the laws of expiry whenever offsets expire."""

    def fire(self, key):
        """Before anything expires, note what must not."""
        group = self.core.groups.get("g")
        if key[0] != "offset-expiry" or group is None:
            super().fire(key)
            return
        offsets = self.core.offsets
        kept = {
            place
            for place, committed in offsets.of_group("g").items()
            if group.is_subscribed_to(place[0])
            or offsets.is_pending("g", place)
            or self.now_ms - max(committed.value.commit_timestamp, empty_since(group)) < RETENTION_MS
        }
        is_alive = bool(group.members)
        super().fire(key)

        assert kept <= set(offsets.of_group("g"))
        assert "g" in self.core.groups or not (is_alive or offsets.places("g"))


def empty_since(group):
    """When a group that had members lost its last; the beginning of time if it has some, or never had any."""
    return group.state_timestamp_ms if group.is_empty() and group.protocol_type else 0


class GroupMachine(RuleBasedStateMachine):
    """A group on a coordinator that is lost now and then."""

    @initialize(members_max=st.sampled_from([1, 3, 3, 6]), delay_ms=st.sampled_from([0, 3_000]))
    def start(self, members_max, delay_ms):
        self.shell = WatchedShell(
            members_max=members_max,
            initial_rebalance_delay_ms=delay_ms,
            offsets_retention_ms=RETENTION_MS,
            offsets_retention_check_interval_ms=CHECK_MS,
        )
        self.members_max = members_max
        self.ids = [""]
        self.asked = {}
        """Tokens of joins and syncs, with their member id and generation, until their answers have been seen."""
        self.committed = {}
        self.pending = {}
        """By producer: what its transaction committed."""
        self.commits = 0

    @property
    def group(self):
        """The group, if it is there."""
        return self.shell.core.groups.get("g")

    @property
    def members(self):
        """Its members."""
        return list(self.group.members.values()) if self.group else []

    @property
    def generation_id(self):
        """Its generation."""
        return self.group.generation_id if self.group else 1

    def do_join(self, member_id="", **fields):
        self.asked[self.shell.join("g", member_id, **fields)] = (member_id, 0)

    def do_sync(self, member_id, generation_id):
        assignments = [(each.member_id, f"{generation_id}:{each.member_id}".encode()) for each in self.members]
        self.asked[self.shell.sync(member_id, generation_id, assignments)] = (member_id, generation_id)

    @rule(
        new=st.integers(0, 2), protocols=protocol_lists, static=st.booleans(), sync=st.sampled_from([True, True, False])
    )
    def settle(self, new, protocols, static, sync):
        """What chance alone brings about too seldom: all members, and some new ones, join and perhaps sync."""
        for number in range(new):
            self.do_join(protocols=protocols, instance_id=f"i{number}" if static else None)
        for member in self.members:
            if member.join_token is None and member.member_id in self.group.members:
                same = [(each.name, each.metadata) for each in member.protocols]
                self.do_join(member.member_id, instance_id=member.instance_id, protocols=same)
        self.shell.advance(4_000)
        if sync and self.group and self.group.state is ClassicState.COMPLETING_REBALANCE:
            for member_id in sorted(self.group.members, key=lambda each: each == self.group.leader_id):
                self.do_sync(member_id, self.generation_id)

    @rule(duration_ms=st.sampled_from([1, 1_000, 1_000, 5_000, 30_000]))
    def advance(self, duration_ms):
        self.shell.advance(duration_ms)

    @rule(seldom=st.integers(0, 2))
    def restart(self, seldom):
        if not seldom:
            self.shell.restart()
            self.asked.clear()

    # --- what must hold

    @invariant()
    def answers_make_sense(self):
        """Nobody is given what was meant for another, or for another generation, unless it took another's place."""
        for token in [token for token in self.asked if token in self.shell.answers]:
            member_id, generation_id = self.asked.pop(token)
            answer = self.shell.answers[token]
            if isinstance(answer, Joined):
                if answer.member_id and answer.member_id not in self.ids:
                    self.ids.append(answer.member_id)
                if answer.error is ErrorCode.NONE:
                    assert answer.generation_id > 0
                    assert bool(answer.members) <= (answer.leader == answer.member_id)
            elif isinstance(answer, Synced):
                generation, _, owner = answer.assignment.decode().partition(":")
                is_static = any(each.member_id == member_id and each.instance_id for each in self.members)
                assert generation in ("", str(generation_id))
                assert owner in ("", member_id) or is_static
            else:
                assert isinstance(answer, KafkaError)

    @invariant()
    def one_generation_owns(self):
        """All who own something got it in the same generation, and it is the one that the log knows."""
        if self.group is None:
            return
        generations = {each.assignment.partition(b":")[0] for each in self.members if each.assignment}
        stored = self.group.stored
        assert len(generations) <= 1
        if self.group.is_empty() and stored is not None:
            assert () == stored.members
        if self.group.state is ClassicState.STABLE:
            assert stored.generation == self.generation_id
            assert [each.member_id for each in stored.members] == [each.member_id for each in self.members]
            assert [each.assignment for each in stored.members] == [each.assignment for each in self.members]

    @invariant()
    def who_waits_is_known(self):
        """Whoever waits is in exactly one member, so that an answer will come."""
        tokens = [token for each in self.members for token in (each.join_token, each.sync_token) if token is not None]
        assert sorted(tokens) == sorted(self.shell.waiting)
        if self.group:
            assert self.group.state is ClassicState.PREPARING_REBALANCE or not self.group.awaiting_join
            assert self.group.state is ClassicState.COMPLETING_REBALANCE or not any(
                each.sync_token for each in self.members
            )

    @invariant()
    def books_agree(self):
        """The counters of a group are what a count gives, and it has no more members than it may."""
        group = self.group
        if group is None:
            return
        assert group.awaiting_join == sum(each.join_token is not None for each in self.members)
        assert group.static_ids == {each.instance_id: each.member_id for each in self.members if each.instance_id}
        assert list(group.members) == [each.member_id for each in self.members]
        assert (group.leader_id in group.members) == bool(group.members)
        assert group.is_empty() <= (not group.members)
        if group.state in {ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE}:
            assert group.pending_sync <= set(group.members)
            assert 0 < len(group.members) <= self.members_max

    @invariant()
    def offsets_are_kept(self):
        """What was committed is there until it was deleted or its time was over; nothing else ever is."""
        offsets = self.shell.core.offsets.of_group("g")
        for place in PLACES:
            if place in offsets:
                assert self.committed[place] == offsets[place].value.offset
            else:
                # If it was there, it has expired: the shell has watched that its time was over.
                self.committed.pop(place, None)


class MemberMachine(GroupMachine):
    """Members do what they want."""

    @rule(
        number=numbers,
        protocols=protocol_lists,
        instance_id=st.sampled_from([None, None, None, "i0", "i1"]),
        known=st.sampled_from([False, False, True]),
        rebalance_ms=st.sampled_from([1_000, 60_000]),
    )
    def join(self, number, protocols, instance_id, known, rebalance_ms):
        self.do_join(
            self.ids[number % len(self.ids)],
            protocols=protocols,
            instance_id=instance_id,
            needs_known_member_id=known,
            rebalance_timeout_ms=rebalance_ms,
        )

    @rule(number=numbers, generation=st.integers(-1, 0))
    def sync(self, number, generation):
        self.do_sync(self.ids[number % len(self.ids)], self.generation_id + generation)

    @rule(number=numbers)
    def heartbeat(self, number):
        self.shell.heartbeat(self.ids[number % len(self.ids)], self.generation_id)

    @rule(number=numbers)
    def leave(self, number):
        self.shell.leave(self.ids[number % len(self.ids)])

    @rule(number=numbers)
    def leave_while_waiting(self, number):
        waiting = [each.member_id for each in self.members if each.sync_token or each.join_token]
        if waiting:
            self.shell.leave(waiting[number % len(waiting)])

    @rule(number=numbers)
    def follower_syncs(self, number):
        followers = [each.member_id for each in self.members if each.member_id != self.group.leader_id]
        if followers:
            self.do_sync(followers[number % len(followers)], self.generation_id)

    @rule(number=numbers, skip=st.booleans())
    def static_member_returns(self, number, skip):
        static = [each for each in self.members if each.instance_id]
        if static:
            member = static[number % len(static)]
            same = [(each.name, each.metadata) for each in member.protocols]
            self.do_join(protocols=same, instance_id=member.instance_id, can_skip_assignment=skip)

    @rule(number=numbers)
    def fire_a_timer_early(self, number):
        timers = [key for key in self.shell.timers if key[0] != "offset-expiry"]
        if timers:
            key = timers[number % len(timers)]
            del self.shell.timers[key]
            self.shell.fire(key)


class OffsetMachine(GroupMachine):
    """A group that commits, in transactions and without, while members come and go."""

    @rule(place=places, number=numbers, plain=st.booleans())
    def commit(self, place, number, plain):
        self.commits += 1
        member = self.members[number % len(self.members)] if self.members else None
        who = {} if plain or member is None else {"member_id": member.member_id, "generation_id": self.generation_id}
        if self.shell.commit({place: self.commits}, **who) == [0]:
            self.committed[place] = self.commits

    @rule(place=places, producer=producers)
    def commit_in_transaction(self, place, producer):
        self.commits += 1
        assert [0] == self.shell.commit({place: self.commits}, producer=producer)
        self.pending.setdefault(producer, {})[place] = self.commits

    @rule(producer=producers, commit=st.booleans())
    def end_transaction(self, producer, commit):
        self.shell.end_transaction(producer, commit=commit)
        for place, offset in self.pending.pop(producer, {}).items():
            if commit:
                # Offsets are numbered as they are committed, so that the larger one was written later.
                self.committed[place] = max(self.committed.get(place, 0), offset)

    @rule(place=places)
    def delete_offset(self, place):
        if self.shell.delete_offsets(place) == [0]:
            self.forget(place)

    @rule(seldom=st.integers(0, 2))
    def delete_group(self, seldom):
        if not seldom and self.shell.delete_group() == 0:
            for place in PLACES:
                self.forget(place)

    def forget(self, place):
        self.committed.pop(place, None)
        for pending in self.pending.values():
            pending.pop(place, None)

    @rule()
    def all_leave(self):
        self.shell.leave(*(each.member_id for each in self.members))

    @rule(beats=st.integers(1, 6))
    def live_on(self, beats):
        """All members send heartbeats for a while."""
        for _ in range(5 * beats):
            for each in self.members:
                self.shell.heartbeat(each.member_id, self.generation_id)
            self.shell.advance(5_000)


MemberMachine.TestCase.settings = settings(stateful_step_count=40, max_examples=settings().max_examples * 2)
OffsetMachine.TestCase.settings = settings(stateful_step_count=30, max_examples=settings().max_examples * 2)
TestMembers = MemberMachine.TestCase
TestOffsets = OffsetMachine.TestCase
