"""Batches made of transactions on a real broker: what the ledger of the other tests claims about coordinators."""

import pyarrow as pa
import pytest

from headrace.client.fault import BadOption
from headrace.model.errors import ErrorCode, KafkaError
from headrace.spark.exactly_once import OFFSETS_TOPIC, Contribution, DriverSide, Opening, Query, TaskSide
from headrace.spark.links import links_to
from headrace.spark.option_table import sink_options
from headrace.spark.producer_settings import producer_settings
from headrace.spark.sending import NotWritten
from headrace.spark.sink_columns import SinkColumns
from headrace.spark.task_writing import TaskWriting
from headrace.spark.transactions import Coordinators, Note
from spark.committed import read_committed
from wire_client import WireClient

TASKS = 2


class Job:
    """A query's tasks and driver, without Spark."""

    def __init__(self, cluster, topic, *, query="q", notes=None, **properties):
        given = {"kafka.bootstrap.servers": cluster.bootstrap, "topic": topic, "exactlyOnce": "true"}
        given |= {f"kafka.{name.replace('_', '.')}": value for name, value in properties.items()}
        self.options = sink_options(given)
        self.settings = producer_settings(self.options)
        self.coordinators = Coordinators(links_to(self.options.connection), self.settings)
        self.query = Query(prefix=topic, query_id=query, topic=notes or topic)
        self.driver = DriverSide(self.coordinators)
        self._cluster, self._topic = cluster, topic
        with WireClient(cluster.port) as client:
            client.create_topic(topic)

    def write(self, task, batch_id, values):
        side = TaskSide(self.coordinators, self.query, task=task, batch_id=batch_id)
        told = {"query": self.query, "batch_id": batch_id, "task": task}
        if side.open() is Opening.SKIP:
            return Contribution(**told, rows=len(values), is_skipped=True)
        writing = TaskWriting(self.options, self.settings, SinkColumns(value=0), task=task)
        block = pa.record_batch([pa.array(values)], names=["value"])
        rows, part = writing.exactly_once(iter([block]), side)
        return Contribution(**told, rows=rows, part=part)

    def batch(self, batch_id):
        return [self.write(task, batch_id, [f"{batch_id}/{task}"]) for task in range(TASKS)]

    def seen(self):
        return sorted(one.value.decode() for one in read_committed(self._cluster.bootstrap, self._topic, 1))


@pytest.mark.parametrize("notes", [None, OFFSETS_TOPIC])
def test_batches(shared, topic, notes):
    """Are batches seen when they are committed, not before, and only once when they come again?"""
    job = Job(shared, topic, notes=notes)
    for batch_id in range(3):
        contributions = job.batch(batch_id)
        assert len(job.seen()) == TASKS * batch_id
        job.driver.commit(contributions, batch_id)
        job.driver.commit(job.batch(batch_id), batch_id)

    assert [f"{batch_id}/{task}" for batch_id in range(3) for task in range(TASKS)] == job.seen()
    assert job.coordinators.read_note(job.query.group, job.query.topic).offset == 3


def test_a_decision_is_carried_out_by_whoever_comes(shared, topic):
    """The driver died after its decision: do the tasks that come again commit what is open, and not write again?"""
    job = Job(shared, topic)
    contributions = job.batch(0)
    dying = Coordinators(links_to(job.options.connection), job.settings)
    dying.end = lambda identity, *, commit: (_ for _ in ()).throw(RuntimeError("died"))
    with pytest.raises(RuntimeError, match="died"):
        DriverSide(dying).commit(contributions, 0)
    assert [] == job.seen()

    again = job.batch(0)
    assert all(one.is_skipped for one in again)
    job.driver.commit(again, 0)

    assert ["0/0", "0/1"] == job.seen()


def test_nobody_waits_for_a_driver_that_died(shared, topic):
    """The driver died when all was prepared and nothing decided: is the batch written anew at once?"""
    job = Job(shared, topic)
    contributions = job.batch(0)
    dying = Coordinators(links_to(job.options.connection), job.settings)
    dying.write_note = lambda group, topic, note: (_ for _ in ()).throw(RuntimeError("died"))
    with pytest.raises(RuntimeError, match="died"):
        DriverSide(dying).commit(contributions, 0)

    again = job.batch(0)
    assert not any(one.is_skipped for one in again)
    job.driver.commit(again, 0)

    assert ["0/0", "0/1"] == job.seen()


def test_a_zombie_is_fenced(shared, topic):
    """Is a task that was replaced refused when it goes on, and what it wrote never seen?"""
    job = Job(shared, topic)
    side = TaskSide(job.coordinators, job.query, task=0, batch_id=0)
    side.open()
    zombie = side.take_up()
    writing = TaskWriting(job.options, job.settings, SinkColumns(value=0), task=0)
    contributions = [job.write(0, 0, ["good"])]

    with pytest.raises(NotWritten, match="Another attempt of this task has taken over"):
        writing.in_transaction(iter([pa.record_batch([pa.array(["bad"])], names=["value"])]), zombie)
    job.driver.commit(contributions, 0)

    assert ["good"] == job.seen()


def test_ending_twice(shared, topic):
    """Is a transaction that was committed committed when one asks again, and aborted never after that?"""
    job = Job(shared, topic)
    (one,) = contributions = [job.write(0, 0, ["a"])]
    job.driver.commit(contributions, 0)
    job.coordinators.end(one.identity, commit=True)

    with pytest.raises(KafkaError) as refused:
        job.coordinators.end(one.identity, commit=False)
    assert refused.value.code is ErrorCode.INVALID_TXN_STATE
    assert ["a"] == job.seen()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["refuse", "drop_reply"])
@pytest.mark.parametrize("step", ["AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "OffsetCommit", "EndTxn"])
def test_requests_that_are_lost(cluster, topic, step, kind):
    """Is every step asked again when it or its answer is lost, without harm?"""
    job = Job(cluster, topic, request_timeout_ms="300")
    job.driver.commit(job.batch(0), 0)
    cluster.fail_next(step, kind)
    job.driver.commit(job.batch(1), 1)

    assert ["0/0", "0/1", "1/0", "1/1"] == job.seen()


def test_notes_are_kept_apart_from_transactions(shared, topic):
    """Is a group that nobody has written to without a note, and one that was written to with the last one?"""
    job = Job(shared, topic)
    assert job.coordinators.read_note("nobody", topic) == Note()
    for number in range(2):
        job.coordinators.write_note(f"{topic}-notes", topic, Note(number, f"text {number}"))

    assert job.coordinators.read_note(f"{topic}-notes", topic) == Note(1, "text 1")


@pytest.fixture
def headrace_settings():
    """Brokers that allow transactions less time than is asked for."""
    return {"transaction.max.timeout.ms": "100000"}


def test_a_broker_that_allows_less_time(cluster, topic):
    """Is less asked for where a broker allows less, unless the user said how much?"""
    Job(cluster, topic).driver.commit(Job(cluster, topic).batch(0), 0)

    with pytest.raises(BadOption, match=r"transaction\.timeout\.ms=200000 is more.*transaction\.max\.timeout\.ms"):
        Job(cluster, topic, transaction_timeout_ms="200000").batch(1)
