"""A coordinator with streams groups, and threads of an application that do as they are told."""

from functools import partial

from consumer_shell import ConsumerShell
from group_shell import REBALANCE_MS
from headrace.cores.groups.streams import describe, heartbeat
from headrace.cores.groups.streams_commands import StreamsHeartbeat
from headrace.cores.groups.streams_tasks import NO_TASKS, Tasks, each_task
from headrace.model.errors import KafkaError
from headrace.model.streams_group_records import StreamsGroupTopologyValue, Subtopology, TopicInfo

HEARTBEAT_MS = 5_000
SESSION_MS = 45_000


def subtopology(name="0", *sources, sinks=(), repartition=(), changelogs=(), **fields):
    """A part of a topology; topics by name, repartition topics with a number of partitions if they are pairs."""
    infos = [topic if isinstance(topic, tuple) else (topic, 0) for topic in repartition]
    return Subtopology(
        subtopology_id=name,
        source_topics=sources,
        repartition_sink_topics=tuple(sinks),
        repartition_source_topics=tuple(TopicInfo(name=topic, partitions=count) for topic, count in infos),
        state_changelog_topics=tuple(TopicInfo(name=topic) for topic in changelogs),
        **fields,
    )


def topology(*subtopologies, epoch=0):
    """A topology."""
    return StreamsGroupTopologyValue(epoch=epoch, subtopologies=subtopologies)


STATELESS = topology(subtopology("0", "orders"))
WORD_COUNT = topology(
    subtopology("0", "orders", sinks=["words"]),
    subtopology("1", repartition=["words"], changelogs=["counts"]),
)


def active(**tasks):
    """Active tasks, by subtopology: `active(_0=[1, 2])`."""
    return Tasks(active={name.lstrip("_"): frozenset(partitions) for name, partitions in tasks.items()})


class StreamsShell(ConsumerShell):
    """A core with topics, driven by a test."""

    def __init__(self, settings=None, **more):
        # Assignments follow at once unless a test wants to see that they wait.
        at_once = {"group.streams.assignment.interval.ms": 0, "group.streams.initial.rebalance.delay.ms": 0}
        super().__init__({**at_once, **(settings or {})}, **more)

    def beat(self, member_id, epoch, group_id="g", **fields):
        """Send a heartbeat; the answer, or the error."""
        if epoch == 0:
            joining = {"rebalance_timeout_ms": REBALANCE_MS, "owned": NO_TASKS, "topology": STATELESS}
            fields = {**joining, "process_id": f"p-{member_id}", **fields}
        command = StreamsHeartbeat(
            **{
                "group_id": group_id,
                "member_id": member_id,
                "member_epoch": epoch,
                "client_id": "client",
                "client_host": "/127.0.0.1",
                **fields,
            }
        )
        return self.answers[self.ask(partial(heartbeat, command=command))]

    def described(self, group_id="g"):
        """A streams group as an administrator sees it."""
        return self.answers[self.ask(partial(describe, group_id=group_id))]

    def create_missing(self, answer):
        """Do as the broker does with an answer that names missing topics."""
        for topic in answer.missing:
            if topic.name not in self.metadata.topics:
                self.create_topic(topic.name, topic.partitions)


class StreamsThread:
    """A member that does as it is told: it gives up tasks it may not have any more, and says so."""

    def __init__(self, shell, member_id, group_id="g", **tells):
        self.shell = shell
        self.member_id = member_id
        self.group_id = group_id
        self.tells = {"process_id": f"p-{member_id}", "topology": STATELESS, **tells}
        self.epoch = 0
        self.owned = NO_TASKS
        self.told = NO_TASKS
        """What it may have."""
        self.said = None
        """What it last said it has."""
        self.statuses = ()

    def tasks(self, role="active"):
        """The tasks it has in a role."""
        return set(each_task(getattr(self.owned, role)))

    def join(self):
        """Come with nothing."""
        self.epoch, self.owned, self.told = 0, NO_TASKS, NO_TASKS
        return self._send(rebalance_timeout_ms=REBALANCE_MS, owned=NO_TASKS, **self.tells)

    def beat(self, *, is_lost=False, **fields):
        """Send a heartbeat and hear the answer, unless it gets lost."""
        if self.epoch == 0:
            return self.join()
        if self.owned != self.said:
            # As real members do: what has not changed since the last heartbeat is left out.
            fields = {"owned": self.owned, **fields}
        return self._send(is_lost=is_lost, **fields)

    def _send(self, *, is_lost=False, **fields):
        answer = self.shell.beat(self.member_id, self.epoch, self.group_id, **fields)
        if is_lost:
            self.said = None
            return answer
        if isinstance(answer, KafkaError):
            self.abandon()
            return answer
        self.said = fields.get("owned", self.said)
        self.epoch = answer.member_epoch
        self.statuses = tuple(status.code for status in answer.statuses)
        if answer.tasks is not None:
            self.told = answer.tasks
            # What is new is its own at once; what is not there any more it gives up in its own time.
            self.owned = _combined(self.owned, self.told, frozenset.union)
        self.shell.create_missing(answer)
        return answer

    def give_up(self):
        """Stop doing what it may not do any more."""
        self.owned = _combined(self.owned, self.told, frozenset.intersection)

    def leave(self, **fields):
        """Go for good."""
        answer = self.shell.beat(self.member_id, -1, self.group_id, **fields)
        self.abandon()
        return answer

    def abandon(self):
        """Have nothing, and be nobody."""
        self.epoch, self.owned, self.told, self.said = 0, NO_TASKS, NO_TASKS, None


def word_counters(shell, *names):
    """Threads of an application that counts words."""
    return [StreamsThread(shell, name, topology=WORD_COUNT) for name in names]


def _combined(one, other, how):
    """Two sets of tasks as one, role by role."""
    roles = []
    for mine, theirs in zip(one.by_role, other.by_role, strict=True):
        both = {name: how(mine.get(name, frozenset()), theirs.get(name, frozenset())) for name in {*mine, *theirs}}
        roles.append({name: tasks for name, tasks in both.items() if tasks})
    return Tasks(active=roles[0], standby=roles[1], warmup=roles[2])


def settle(*threads, rounds=12):
    """Let everyone give up and ask until nothing changes."""
    for _ in range(rounds):
        for thread in threads:
            thread.give_up()
            thread.beat()
