"""A shell around the core of the group coordinator, with a list for a log and a clock that is turned by hand.

After every step it checks what must always hold: the state is what a replay of the log gives, a refused step changed
nothing, and whoever asked is answered exactly once.
"""

from functools import partial
from itertools import count

from headrace.cores.groups.classic import describe, heartbeat, join, leave, sync
from headrace.cores.groups.classic_commands import (
    HeartbeatCommand,
    JoinCommand,
    LeaveCommand,
    LeavingMember,
    SyncCommand,
)
from headrace.cores.groups.limits import GroupLimits
from headrace.cores.groups.offsets import (
    CommitCommand,
    FetchCommand,
    FetchedTopic,
    NewOffset,
    commit,
    commit_in_transaction,
    delete_group,
    delete_offsets,
    fetch,
)
from headrace.cores.groups.shard import Groups
from headrace.cores.metadata import Metadata
from headrace.model.errors import KafkaError
from headrace.model.group_records import ClassicProtocol

NOW_MS = 1_700_000_000_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000


class GroupShell:
    """A core that is driven by a test."""

    def __init__(self, **limits):
        self.limits = GroupLimits(**limits)
        self.now_ms = NOW_MS
        self.log = []
        self.timers = {}
        self.answers = {}
        self.waiting = set()
        self._tokens = count(1)
        self._ids = count(1)
        self.core = self._fresh()
        self._carry_out(self.core.loaded(self.now_ms))

    def _fresh(self):
        return Groups(Metadata(), lambda: self.limits)

    # --- steps

    def ask(self, step):
        """Run a step; the token that its answer, or error, is found under when it comes."""
        token = next(self._tokens)
        self.waiting.add(token)
        before = self.core.hard_state()
        try:
            outcome = step(self.core, token=token, now_ms=self.now_ms)
        except KafkaError as error:
            assert before == self.core.hard_state(), "a refused step has changed something"
            self._answer(token, error)
        else:
            self._carry_out(outcome)
        return token

    def act(self, step):
        """Run a step nobody waits for."""
        outcome = step(self.core, now_ms=self.now_ms)
        self._carry_out(outcome)
        return outcome

    def _carry_out(self, outcome):
        producer_id = -1 if outcome.producer is None else outcome.producer[0]
        self.log += [(key, value, producer_id) for key, value in outcome.records]
        for key, at_ms in outcome.timers:
            self.timers.pop(key, None)
            if at_ms is not None:
                self.timers[key] = at_ms
        for token, answer in outcome.replies:
            self._answer(token, answer)
        assert self.replayed().hard_state() == self.core.hard_state()

    def _answer(self, token, answer):
        assert token in self.waiting, "answered twice, or never asked"
        self.waiting.remove(token)
        self.answers[token] = answer

    def replayed(self):
        """A fresh core that has read the log."""
        core = self._fresh()
        for entry in self.log:
            if entry[0] == "end":
                core.replay_end(entry[1], commit=entry[2])
            else:
                core.replay(*entry)
        return core

    def end_transaction(self, producer_id, *, commit):
        """Write a marker."""
        self.core.replay_end(producer_id, commit=commit)
        self.log.append(("end", producer_id, commit))
        assert self.replayed().hard_state() == self.core.hard_state()

    # --- time and failure

    def advance(self, duration_ms):
        """Let time pass, and every timer run out in its turn."""
        end_ms = self.now_ms + duration_ms
        while self.timers:
            key = min(self.timers, key=self.timers.__getitem__)
            if self.timers[key] > end_ms:
                break
            self.now_ms = max(self.now_ms, self.timers.pop(key))
            self.fire(key)
        self.now_ms = end_ms

    def fire(self, key):
        """Have one timer run out now, due or not."""
        self._carry_out(self.core.on_timer(key, self.now_ms))

    def restart(self):
        """Lose all but the log; whoever waited is told by its connection."""
        self.waiting.clear()
        self.timers.clear()
        self.core = self.replayed()
        self._carry_out(self.core.loaded(self.now_ms))

    # --- the members' words

    def join(self, group_id="g", member_id="", *, protocols=(("range", b"r"),), **fields):
        """Ask to join; the token."""
        fields.setdefault("new_member_id", f"m{next(self._ids)}")
        command = JoinCommand(
            **{
                "group_id": group_id,
                "member_id": member_id,
                "client_id": "client",
                "client_host": "/127.0.0.1",
                "session_timeout_ms": SESSION_MS,
                "rebalance_timeout_ms": REBALANCE_MS,
                "protocol_type": "consumer",
                "protocols": tuple(ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols),
                **fields,
            }
        )
        return self.ask(partial(join, command=command))

    def sync(self, member_id, generation_id, assignments=(), group_id="g", **fields):
        """Ask for an assignment; the token."""
        command = SyncCommand(
            group_id=group_id,
            member_id=member_id,
            generation_id=generation_id,
            assignments=tuple(assignments),
            **fields,
        )
        return self.ask(partial(sync, command=command))

    def heartbeat(self, member_id, generation_id, group_id="g", **fields):
        """Say that a member lives; the error code."""
        command = HeartbeatCommand(group_id=group_id, member_id=member_id, generation_id=generation_id, **fields)
        return self.error(self.ask(partial(heartbeat, command=command)))

    def leave(self, *member_ids, group_id="g", instances=()):
        """Members go; the error codes."""
        leaving = [LeavingMember(member_id=member_id) for member_id in member_ids]
        leaving += [LeavingMember(member_id=member_id, instance_id=name) for member_id, name in instances]
        token = self.ask(partial(leave, command=LeaveCommand(group_id=group_id, members=tuple(leaving))))
        answer = self.answers[token]
        return [answer.code] if isinstance(answer, KafkaError) else list(answer.errors)

    def commit(self, offsets, group_id="g", *, producer=None, **fields):
        """Commit offsets by topic and partition; the error codes, or the one for all."""
        command = CommitCommand(
            group_id=group_id,
            offsets=tuple(
                NewOffset(topic=topic, partition=partition, offset=offset)
                for (topic, partition), offset in offsets.items()
            ),
            **fields,
        )
        return self.do_commit(command, producer=producer)

    def do_commit(self, command, *, producer=None):
        """Commit what a command says; the error codes, or the one for all."""
        step = partial(commit, command=command)
        if producer is not None:
            step = partial(commit_in_transaction, command=command, producer_id=producer, producer_epoch=0)
        answer = self.answers[self.ask(step)]
        return answer.code if isinstance(answer, KafkaError) else list(answer)

    def fetch(self, *places, group_id="g", **fields):
        """Committed offsets by topic and partition, all there are if none are named; the error code where one is."""
        topics = tuple(FetchedTopic(topic=topic, partitions=(partition,)) for topic, partition in places)
        command = FetchCommand(group_id=group_id, topics=topics or None, **fields)
        answer = self.answers[self.ask(partial(fetch, command=command))]
        if isinstance(answer, KafkaError):
            return answer.code
        return {(topic, each.partition): each.error or each.offset for topic, offsets in answer for each in offsets}

    def delete_offsets(self, *places, group_id="g"):
        """Delete offsets; the error codes, or the one for all."""
        answer = self.answers[self.ask(partial(delete_offsets, group_id=group_id, places=places))]
        return answer.code if isinstance(answer, KafkaError) else list(answer)

    def delete_group(self, group_id="g"):
        """Delete a group; the error code."""
        return self.error(self.ask(partial(delete_group, group_id=group_id)))

    def describe(self, group_id="g"):
        """A group as an administrator sees it."""
        return self.answers[self.ask(partial(describe, group_id=group_id))]

    def error(self, token):
        """The error code of an answer, 0 if it is none."""
        answer = self.answers[token]
        return answer.code if isinstance(answer, KafkaError) else getattr(answer, "error", 0)

    # --- whole stories

    def settle(self, *member_ids, group_id="g", **fields):
        """New members join together and get as many bytes as assignment as their number; their ids."""
        tokens = [self.join(group_id, new_member_id=member_id, **fields) for member_id in member_ids]
        self.advance(self.limits.initial_rebalance_delay_ms * (len(tokens) + 1))
        answers = [self.answers[token] for token in tokens]
        leader = answers[0].leader
        assignments = [(member_id, f"a-{member_id}".encode()) for member_id in member_ids]
        for member_id in sorted(member_ids, key=lambda each: each == leader):
            self.sync(member_id, answers[0].generation_id, assignments if member_id == leader else (), group_id)
        return list(member_ids)
