"""Batches made of transactions, with a cluster that is only a ledger: everything dies everywhere, rows are counted."""

import itertools
from collections import Counter
from dataclasses import dataclass, field

import pytest

from headrace.model.errors import ErrorCode, KafkaError
from headrace.spark.decision import Part
from headrace.spark.exactly_once import BatchLost, Contribution, DriverSide, Opening, Query, TaskSide
from headrace.spark.producer_identity import Identity
from headrace.spark.transactions import Note

QUERY = Query(prefix="p", query_id="q", topic="t")
BATCHES = ([["a", "b"], ["c"]], [["d"], ["e", "f"]], [[], ["g"]])
"""What three batches have for two tasks each."""
OTHER_LAYOUT = {
    1: lambda rows: [[row for part in rows for row in part]],
    2: lambda rows: rows,
    3: lambda rows: [*rows[1:], rows[0][:1], rows[0][1:]],
}


class Killed(BaseException):
    """The process that asked is gone."""


@dataclass
class Transaction:
    epoch: int = -1
    state: str = "empty"
    rows: list[str] = field(default_factory=list)
    notes: dict[str, Note] = field(default_factory=dict)


class Ledger:
    """What coordinators and partitions would know; dies with its caller at a step that was named before."""

    def __init__(self, deaths=()):
        self.committed = []
        self.notes = {}
        self.transactions = {}
        self._deaths = list(deaths)
        self._steps = 0

    def _step(self, act):
        """Carry out one request; the caller may die before it arrives or before it is answered."""
        self._steps += 1
        if self._deaths and self._steps > self._deaths[0][0]:
            (_, is_done), *self._deaths = self._deaths
            self._steps = 0
            if is_done:
                act()
            raise Killed
        return act()

    def identify(self, transactional_id):
        return self._step(lambda: self.take_up(transactional_id))

    def take_up(self, transactional_id):
        """As InitProducerId: what is open is aborted, and whoever opened it fenced."""
        found = self.transactions.setdefault(transactional_id, Transaction())
        self.transactions[transactional_id] = Transaction(epoch=found.epoch + 1)
        return Identity(
            producer_id=sorted(self.transactions).index(transactional_id),
            epoch=found.epoch + 1,
            transactional_id=transactional_id,
        )

    def _of(self, identity):
        found = self.transactions[identity.transactional_id]
        if identity.epoch != found.epoch:
            raise KafkaError(ErrorCode.PRODUCER_FENCED, "")
        return found

    def write(self, identity, rows):
        def act():
            found = self._of(identity)
            found.state = "ongoing"
            found.rows += rows

        self._step(act)

    def add_note(self, identity, group, topic, note):
        def act():
            found = self._of(identity)
            if found.state != "ongoing":
                raise KafkaError(ErrorCode.INVALID_TXN_STATE, "")
            found.notes[group] = note

        self._step(act)

    def end(self, identity, *, commit):
        def act():
            found = self._of(identity)
            if found.state == "ongoing":
                found.state = "committed" if commit else "aborted"
                if commit:
                    self.committed += found.rows
                    self.notes |= found.notes
            elif found.state != ("committed" if commit else "aborted"):
                raise KafkaError(ErrorCode.INVALID_TXN_STATE, "")

        self._step(act)

    def read_note(self, group, topic):
        """As OffsetFetch of stable offsets: one that an open transaction may change is not told."""

        def act():
            if any(found.state == "ongoing" and group in found.notes for found in self.transactions.values()):
                raise KafkaError(ErrorCode.UNSTABLE_OFFSET_COMMIT, "")
            return self.notes.get(group, Note())

        return self._step(act)

    def write_note(self, group, topic, note):
        self._step(lambda: self.notes.update({group: note}))

    # --- what happens while nobody asks

    def time_out(self):
        """Every open transaction is aborted, as when a query is down for long."""
        for found in self.transactions.values():
            if found.state == "ongoing":
                found.state, found.epoch = "aborted", found.epoch + 1

    def wake_a_zombie(self):
        """A task that everybody had forgotten takes up its id again."""
        if QUERY.transactional_id(0) in self.transactions:
            self.take_up(QUERY.transactional_id(0))

    def lose_the_decision(self):
        """Somebody deletes the query's group."""
        self.notes.pop(QUERY.group, None)


def write_task(ledger, rows, *, task, batch_id):
    side = TaskSide(ledger, QUERY, task=task, batch_id=batch_id)
    if side.open() is Opening.SKIP:
        return Contribution(query=QUERY, batch_id=batch_id, task=task, rows=len(rows), is_skipped=True)
    fingerprint = hash(frozenset(rows)) & 0xFFFFFFFF
    if not rows:
        side.check(fingerprint)
        return Contribution(query=QUERY, batch_id=batch_id, task=task, rows=0)
    identity = side.take_up()
    ledger.write(identity, rows)
    side.check(fingerprint)
    part = Part(producer_id=identity.producer_id, epoch=identity.epoch, fingerprint=fingerprint)
    return Contribution(query=QUERY, batch_id=batch_id, task=task, rows=len(rows), part=part)


def run(ledger, layout=lambda rows: rows, between=lambda ledger: None, first=lambda rows: rows):
    """All batches, each again until it is through; what is asked after a death is asked by somebody new.

    `first` says how rows fall into tasks at first, `layout` how they do after a death.
    """
    deaths = 0
    for batch_id, rows in enumerate(BATCHES):
        parts = first(rows)
        while True:
            try:
                contributions = [
                    write_task(ledger, part, task=task, batch_id=batch_id) for task, part in enumerate(parts)
                ]
                DriverSide(ledger).commit(contributions, batch_id)
                break
            except Killed:
                deaths += 1
                between(ledger)
                parts = layout(rows)
    return deaths


def every_row_once(ledger):
    return Counter(ledger.committed) == Counter(itertools.chain.from_iterable(itertools.chain(*BATCHES)))


STEPS = 35
DEATHS = [(step, is_done) for step in range(STEPS) for is_done in (False, True)]


def test_without_deaths():
    """Is every row there once when nothing dies, and is the number of steps what the other tests go through?"""
    ledger = Ledger()
    run(ledger)

    assert every_row_once(ledger)
    assert ledger._steps == STEPS


@pytest.mark.parametrize("event", ["nothing", "time_out", "wake_a_zombie", "lose_the_decision"])
@pytest.mark.parametrize("death", DEATHS, ids=str)
def test_one_death(death, event):
    """Is every row there once, wherever everything dies, whatever happens before it comes back?"""
    ledger = Ledger([death])

    assert run(ledger, between=lambda ledger: getattr(ledger, event, lambda: None)()) == 1
    assert every_row_once(ledger), ledger.committed


@pytest.mark.slow
def test_two_deaths():
    """The same when everything dies once more while it recovers: anywhere, in any combination?"""
    for first, second in itertools.product(DEATHS, DEATHS):
        for event in (Ledger.time_out, Ledger.wake_a_zombie, lambda ledger: None):
            ledger = Ledger([first, second])
            run(ledger, between=event)
            assert every_row_once(ledger), (first, second, ledger.committed)


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_another_layout(tasks):
    """May rows fall into other tasks, more or fewer, when a batch is repeated in time?"""
    for first, second in itertools.product(DEATHS, DEATHS):
        ledger = Ledger([first, second])
        run(ledger, layout=OTHER_LAYOUT[tasks])
        assert every_row_once(ledger), (first, second, ledger.committed)


@pytest.mark.parametrize("tasks", [1, 3])
def test_another_layout_too_late(tasks):
    """If transactions ran out of time as well: is a batch that cannot be completed refused, and nothing there twice?"""
    refused = []
    for death in DEATHS:
        ledger = Ledger([death])
        try:
            run(ledger, layout=OTHER_LAYOUT[tasks], between=Ledger.time_out)
        except BatchLost as fault:
            refused.append(str(fault))
            assert max(Counter(ledger.committed).values(), default=1) == 1
        else:
            assert every_row_once(ledger), (death, ledger.committed)
    assert refused
    assert all("as many tasks" in said and "exactlyOnce=false" in said for said in refused)


def test_abort_leaves_what_is_decided():
    """Spark aborts a batch whose commit failed: does what was decided stay open, to be committed later?"""
    for step, is_done in DEATHS[:30]:
        ledger = Ledger([(step, is_done)])
        contributions = []
        try:
            for task, rows in enumerate(BATCHES[0]):
                contributions.append(write_task(ledger, rows, task=task, batch_id=0))
            DriverSide(ledger).commit(contributions, 0)
        except Killed:
            DriverSide(ledger).abort(contributions, 0, tasks=2)
        # In another layout what was aborted after its decision could not be written again.
        run(ledger, first=OTHER_LAYOUT[3])

        assert every_row_once(ledger), (step, is_done, ledger.committed)


@pytest.mark.parametrize("told", [[0, 1], [0], [1]])
def test_abort_frees_readers(told):
    """Is nothing left open when a batch is aborted before its decision, also of tasks that died untold?"""
    ledger = Ledger()
    contributions = [write_task(ledger, rows, task=task, batch_id=0) for task, rows in enumerate(BATCHES[0])]
    DriverSide(ledger).abort([contributions[task] for task in told], 0, tasks=2)

    assert "ongoing" not in {found.state for found in ledger.transactions.values()}
    assert ledger.committed == []


def test_a_late_transaction_is_noticed_before_the_decision():
    """A transaction that was aborted while others were still written: is nothing of the batch committed?"""
    ledger = Ledger()
    contributions = [write_task(ledger, rows, task=task, batch_id=0) for task, rows in enumerate(BATCHES[0])]
    ledger.time_out()

    with pytest.raises(BatchLost, match=r"kafka\.transaction\.timeout\.ms"):
        DriverSide(ledger).commit(contributions, 0)
    assert ledger.committed == []
    assert QUERY.group not in ledger.notes


def test_an_older_checkpoint():
    """Is a checkpoint refused that is older than what its query wrote, before anything is written?"""
    ledger = Ledger()
    run(ledger)
    committed = list(ledger.committed)

    with pytest.raises(BatchLost, match=r"batch 1 of a query that has written batch 2 before.*older"):
        TaskSide(ledger, QUERY, task=0, batch_id=1).open()
    assert ledger.committed == committed


def test_a_batch_with_other_rows():
    """A batch that was committed comes again with more rows, as from a changed checkpoint: is that said?"""
    ledger = Ledger()
    run(ledger)
    contributions = [write_task(ledger, rows, task=task, batch_id=2) for task, rows in enumerate([["g"], ["h", "i"]])]

    with pytest.raises(BatchLost, match="written with 1 rows and is repeated with 3"):
        DriverSide(ledger).commit(contributions, 2)
