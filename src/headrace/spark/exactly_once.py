"""Every row of a streaming query in its topics once: how tasks and driver make one batch of many transactions.

Each task writes its rows in a transaction of its own, under an id made of the query's and the task's number, and
leaves it open. The driver then

1. *prepares*: adds to every transaction a note "batch n is written" (an offset of a group named after the id), which
   also shows that the transaction is still open;
2. *decides*: notes in one place, the group named after the query, which transactions make up batch n;
3. *commits* them, one after the other.

When anything dies before the decision, the batch is written anew: its tasks' ids are the same, so that taking them up
aborts what was begun and fences whoever still writes. When anything dies after it, the batch is not written again: the
transactions of the decision are committed by whoever comes next, with the identities it names. That works for as long
as a transaction may stay open. One that was aborted meanwhile (its own note is missing) is written again by its task;
that task must then have the same rows as the first time, which is checked by their fingerprint.

So the driver's word is one append to one log, whether rows fall into the same tasks when a batch is repeated matters
only if a query was down longer than `kafka.transaction.timeout.ms` right after a decision, and then it is noticed.

What it does not cover: notes live as long as other offsets of groups without members (`offsets.retention.minutes`, a
week). A query that died within a commit and comes back after that writes the whole batch again. A new checkpoint is a
new query with new names: it writes everything again that it reads again, and what the old one left open keeps readers
of committed records waiting until it times out. With speculative execution two attempts of a task fence each other:
nothing is written twice, but batches fail; leave it off.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from headrace.client.fault import ClientFault
from headrace.model.errors import ErrorCode, HeadraceError, KafkaError
from headrace.spark.decision import NOTHING, Decision, Part, parts_of, read_decision, write_decision
from headrace.spark.producer_identity import Identity
from headrace.spark.transactions import Coordinators, Note

OFFSETS_TOPIC = "__consumer_offsets"
"""Where notes are for queries whose rows name their topics: it is there as soon as there are groups."""

_OVER = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)
"""How an EndTxn is refused that comes too late: the transaction was committed or aborted before."""


class BatchLost(ClientFault):
    """A batch was written in part, and the rest cannot be added as things are."""


class Opening(Enum):
    """How a task begins."""

    WRITE = auto()
    SKIP = auto()
    """The batch was decided before, and this task's part of it is committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The names under which a query writes."""

    prefix: str
    query_id: str
    topic: str
    """Where its notes are."""

    @property
    def group(self) -> str:
        """Whose offset is the number of the next batch to decide."""
        return f"{self.prefix}-{self.query_id}"

    def transactional_id(self, task: int) -> str:
        """A task's; the group of the same name has the number of the next batch to commit."""
        return f"{self.group}-{task}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What a task did for a batch; its transaction is open if there is a part."""

    query: Query
    batch_id: int
    task: int
    rows: int
    is_skipped: bool = False
    part: Part = NOTHING

    @property
    def identity(self) -> Identity:
        """Who may end the transaction."""
        return _identity(self.query, self.task, self.part)


class TaskSide:
    """What a task asks before and after it writes."""

    def __init__(self, coordinators: Coordinators, query: Query, *, task: int, batch_id: int) -> None:
        self._coordinators = coordinators
        self._query = query
        self._task = task
        self._batch_id = batch_id
        self._expected: int | None = None

    def open(self) -> Opening:
        """Whether the rows are to be written; a transaction that is decided is committed here and now."""
        decided = self._coordinators.read_note(self._query.group, self._query.topic)
        _check_age(self._batch_id, decided)
        if decided.offset == self._batch_id + 1:
            part = read_decision(decided.text).part_of(self._task)
            if part.is_empty or finish(self._coordinators, self._query, self._task, part, self._batch_id):
                return Opening.SKIP
            self._expected = part.fingerprint
        elif is_committed(self._coordinators, self._query, self._task, self._batch_id):
            # Somebody removed or overtook the decision; what is committed is committed all the same.
            return Opening.SKIP
        return Opening.WRITE

    def take_up(self) -> Identity:
        """The identity to write with; whoever had it before is fenced."""
        return self._coordinators.identify(self._query.transactional_id(self._task))

    def check(self, fingerprint: int) -> None:
        """Refuse rows other than those this task's part of the batch was decided with."""
        if self._expected is not None and fingerprint != self._expected:
            raise _layout_fault(self._batch_id, f"task {self._task} now has other rows than then")


class DriverSide:
    """What the driver does when all tasks are done, or when they are not."""

    def __init__(self, coordinators: Coordinators) -> None:
        self._coordinators = coordinators

    def commit(self, contributions: Sequence[Contribution], batch_id: int) -> None:
        """Prepare, decide and commit a batch; or complete one that was decided before."""
        written = [one for one in contributions if not one.part.is_empty]
        if not any(one.is_skipped for one in contributions):
            if written:
                self._decide(contributions[0].query, _fresh(contributions), written, batch_id)
            return
        query = contributions[0].query
        decided = self._coordinators.read_note(query.group, query.topic)
        if decided.offset == batch_id + 1:
            decision = read_decision(decided.text)
            _check_rows(decision, contributions, batch_id)
            for one in written:
                decision = decision.with_part(one.task, one.part)
        else:
            decision = _fresh(contributions)
        if written:
            self._decide(query, decision, written, batch_id)
        for task in range(len(contributions), len(decision.parts)):
            # It had more tasks the first time, and nobody has looked after these yet.
            part = decision.part_of(task)
            if not part.is_empty and not finish(self._coordinators, query, task, part, batch_id):
                raise _layout_fault(batch_id, f"there is no task {task} any more")

    def abort(self, contributions: Sequence[Contribution], batch_id: int, *, tasks: int) -> None:
        """Abort what `tasks` tasks have begun, so that readers need not wait for it; unless it was decided."""
        if not contributions:
            return
        query = contributions[0].query
        # Spark aborts also what failed while it was being committed.
        if self._coordinators.read_note(query.group, query.topic).offset <= batch_id:
            abandon_all(self._coordinators, query, contributions, tasks=tasks)

    def _decide(self, query: Query, decision: Decision, written: Sequence[Contribution], batch_id: int) -> None:
        text = write_decision(decision)
        for one in written:
            try:
                self._coordinators.add_note(
                    one.identity, query.transactional_id(one.task), query.topic, Note(batch_id + 1)
                )
            except KafkaError as error:
                raise BatchLost(
                    f"The transaction of task {one.task} was over before batch {batch_id} was complete "
                    f"({error.code.name})",
                    "Nothing of it was committed; if the batch took longer than kafka.transaction.timeout.ms, raise "
                    "that, or make batches smaller.",
                ) from error
        self._coordinators.write_note(query.group, query.topic, Note(batch_id + 1, text))
        for one in written:
            if not finish(self._coordinators, query, one.task, one.part, batch_id):
                raise BatchLost(
                    f"The transaction of task {one.task} was aborted while batch {batch_id} was being committed",
                    "Start the query again: it writes this part again.",
                )


def finish(coordinators: Coordinators, query: Query, task: int, part: Part, batch_id: int) -> bool:
    """Commit a decided transaction; False if it was aborted, which its missing note shows."""
    try:
        coordinators.end(_identity(query, task, part), commit=True)
    except KafkaError as error:
        if error.code not in _OVER:
            raise
        return is_committed(coordinators, query, task, batch_id)
    return True


def is_committed(coordinators: Coordinators, query: Query, task: int, batch_id: int) -> bool:
    """Whether a task's own note says that its part of a batch is committed."""
    transactional_id = query.transactional_id(task)
    try:
        note = coordinators.read_note(transactional_id, query.topic)
    except KafkaError as error:
        if error.code is not ErrorCode.UNSTABLE_OFFSET_COMMIT:
            raise
        # A transaction was prepared, and its driver died before it decided: nobody but us will end it. One that is just
        # being committed is waited for here, and found committed.
        coordinators.identify(transactional_id)
        note = coordinators.read_note(transactional_id, query.topic)
    return note.offset > batch_id


def abandon(coordinators: Coordinators, identity: Identity) -> None:
    """Abort a transaction if that can be done; if not, it is aborted when its time is up."""
    with contextlib.suppress(HeadraceError):
        coordinators.end(identity, commit=False)


def abandon_all(coordinators: Coordinators, query: Query, contributions: Sequence[Contribution], *, tasks: int) -> None:
    """Abort what tasks have begun, also of those that did not live to tell: taking up their ids does it."""
    told = {one.task: one for one in contributions}
    for task in range(tasks):
        if task not in told:
            with contextlib.suppress(HeadraceError):
                coordinators.identify(query.transactional_id(task))
        elif not told[task].part.is_empty:
            abandon(coordinators, told[task].identity)


def _identity(query: Query, task: int, part: Part) -> Identity:
    return Identity(producer_id=part.producer_id, epoch=part.epoch, transactional_id=query.transactional_id(task))


def _fresh(contributions: Sequence[Contribution]) -> Decision:
    return Decision(
        rows=sum(one.rows for one in contributions),
        parts=parts_of([(one.task, one.part) for one in contributions], tasks=len(contributions)),
    )


def _layout_fault(batch_id: int, what: str) -> BatchLost:
    return BatchLost(
        f"Batch {batch_id} was committed in part before its transactions ran out of time, and {what}",
        "Run the query with as many tasks (cores, shuffle partitions, maxTasks) as then, or once with "
        "exactlyOnce=false, which writes the whole batch again.",
    )


def _check_age(batch_id: int, decided: Note) -> None:
    if decided.offset > batch_id + 1:
        raise BatchLost(
            f"This is batch {batch_id} of a query that has written batch {decided.offset - 1} before",
            "Its checkpoint is older than what it wrote: use the newer one, or a new one with startingOffsets.",
        )


def _check_rows(decision: Decision, contributions: Sequence[Contribution], batch_id: int) -> None:
    rows = sum(one.rows for one in contributions)
    if rows != decision.rows:
        raise BatchLost(
            f"Batch {batch_id} was written with {decision.rows} rows and is repeated with {rows}",
            "Was the checkpoint or the query changed? With exactlyOnce=false the batch is written as it is now.",
        )
