"""The runner with queries that do what the test says."""

import itertools
from pathlib import Path

import pytest

from headrace.client.fault import NoBroker, NotAuthenticated
from headrace.pipeline import runner as module
from headrace.pipeline.fault import PipelineFault
from headrace.pipeline.file import parse_pipeline
from headrace.pipeline.runner import Runner
from headrace.pipeline.runs import Run, claimed, find_run

TEXT = """\
[pipeline]
name = "fleet"
[source.gps]
topic = "t"
schema = "a string"
[sink.one]
from = "gps"
topic = "out"
[sink.two]
from = "gps"
console = true
"""
NAMES = ["one", "two", "dead_letters.gps"]
DEAD = "Python worker exited unexpectedly (crashed)."
ABSENT = "headrace.client.fault.NoBroker: Nothing answers. Wait."


class Query:
    """A query that reports once per look, and ends as it is told."""

    def __init__(self, looks=None, error=None, offsets=(5,)):
        self.looks = looks
        self.error = error
        self.offsets = list(offsets)
        self.stopped = False
        self.reported = 0

    @property
    def isActive(self):  # noqa: N802
        return not self.stopped and (self.looks is None or self.reported < self.looks)

    status = {"isTriggerActive": False, "message": "Waiting"}  # noqa: RUF012

    def exception(self):
        return self.error

    def stop(self):
        self.stopped = True


class Stop:
    """Nobody asks to stop before so many waits."""

    def __init__(self, after=None):
        self.waits = 0
        self.after = after

    def __bool__(self):
        return self.after is not None and self.waits >= self.after

    def wait(self, _):
        self.waits += 1
        assert self.waits < 100, "the run does not end"


class Link:
    brokers = "localhost:9092"

    def __init__(self, *, missing=0, topics=("t",), refuses=False):
        self.missing = missing
        self.names = topics
        self.refuses = refuses
        self.committed = []
        self.published = []

    def topics(self):
        if self.missing > 0:
            self.missing -= 1
            raise NoBroker("Nothing answers")
        return list(self.names)

    def create(self, topics):
        self.created = list(topics)

    def commit(self, group, positions):
        self.committed.append((group, dict(positions)))

    def ends(self, places):
        if self.refuses:
            raise NoBroker("Nothing answers")
        return dict.fromkeys(places, 100)

    def publish(self, topic, documents):
        if self.refuses:
            raise NoBroker("Nothing answers")
        self.published += [(topic, key, one["batchId"]) for key, one in documents]


class Display:
    def __init__(self):
        self.said = []
        self.new = []

    def say(self, text):
        self.said.append(text)

    def progress(self, new, newest):
        self.new += new


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes a runner with fakes around it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    clock = itertools.count(1)

    def reports(query, after):
        if query.looks is not None and query.reported >= query.looks:
            return []
        offset = query.offsets[min(query.reported, len(query.offsets) - 1)]
        query.reported += 1
        stamp = f"{next(clock):09}"
        return [{"batchId": query.reported - 1, "timestamp": stamp, "sources": [{"endOffset": {"t": {"0": offset}}}]}]

    def build(link=None, stop=None):
        pipeline = parse_pipeline(TEXT, file=Path("fleet.toml"))
        run = Run(name="fleet", file="fleet.toml", brokers="b")
        link, display = link or Link(), Display()
        made = Runner(
            pipeline,
            run,
            link=link,
            display=display,
            stop=Stop() if stop is None else stop,
            reports=reports,
            now_ms=lambda: 1,
        )
        return made, link, display

    return build


def test_a_run_ends_when_all_queries_have(make):
    """Does a run whose queries end by themselves finish, with every report taken, committed and published?"""
    runner, link, display = make()
    queries = {name: Query(looks=2, offsets=(3, 8)) for name in NAMES}
    queries["two"].offsets = [2, 6]

    assert runner.supervise(queries.__getitem__) == 0
    assert find_run("fleet").state == "finished"
    assert len(display.new) == 6
    assert link.committed == [("fleet-gps", {("t", 0): 2}), ("fleet-gps", {("t", 0): 6})]
    assert ("__pipeline_progress", "fleet/dead_letters.gps", 1) in link.published


def test_lag_is_that_of_now(make):
    """Is the lag counted from where the topics end now, and unknown only where nobody can say?"""
    runner, _, display = make()
    refused, _, shown = make(link=Link(refuses=True))
    for one in (runner, refused):
        one.supervise({name: Query(looks=2, offsets=(3, 8)) for name in NAMES}.__getitem__)

    assert [92] * 3 == [progress.lag_records for progress in display.new if progress.batch_id == 1]
    assert [None] * 6 == [progress.lag_records for progress in shown.new]


def test_a_failure_ends_the_run(make):
    """Does one failed query end the run with a sentence, after the others were stopped?"""
    runner, _, _ = make()
    queries = {name: Query() for name in NAMES}
    queries["two"] = Query(looks=1, error=Exception("[CODE] It broke. SQLSTATE: 1"))

    assert runner.supervise(queries.__getitem__) == 1
    run = find_run("fleet")
    assert (run.state, run.reason) == ("failed", "Query two failed: It broke.")
    assert (queries["one"].stopped, queries["dead_letters.gps"].stopped) == (True, True)
    assert (runner.remedy, str(runner.trace)) == ("-v shows all that Spark says.", "[CODE] It broke. SQLSTATE: 1")


def test_a_dead_worker_is_replaced(make):
    """Is a query started again whose Python process died, but not for ever in the same batch?"""
    runner, _, display = make()
    lives = {name: iter([Query(looks=2)]) for name in NAMES}
    lives["one"] = iter([Query(looks=1, error=Exception(DEAD)), Query(looks=1)])
    assert runner.supervise(lambda name: next(lives[name])) == 0
    assert display.said == ["one: A Python process of Spark died in the middle of its work."]

    runner, _, display = make()
    lives = {name: iter([Query()]) for name in NAMES}
    lives["one"] = itertools.repeat(Query(looks=0, error=Exception(DEAD)))
    assert runner.supervise(lambda name: next(lives[name])) == 1
    assert len(display.said) == 3
    assert "died in the middle" in find_run("fleet").reason


def test_a_refused_login_is_not_waited_for(make):
    """Does a run end with the broker's reason when it is not let in?"""
    runner, link, _ = make()

    def refuse():
        raise NotAuthenticated("b:1 refused the login", "Check the password.")

    link.topics = refuse
    with pytest.raises(PipelineFault, match=r"b:1 refused the login\. Check the password"):
        runner.await_cluster()


def test_absent_brokers_are_waited_for(make):
    """Is a query that found no broker started again once one answers, after a message and no failure?"""
    runner, link, display = make(Link())
    lives = {name: iter([Query(looks=2)]) for name in NAMES}
    lives["one"] = iter([Query(looks=1, error=Exception(ABSENT)), Query(looks=1)])
    link.missing = 2

    assert runner.supervise(lambda name: next(lives[name])) == 0
    assert display.said == ["one: Nothing answers. Wait.", "Waiting for a broker at localhost:9092.", "It is there."]


def test_a_broker_that_goes_is_told(make, monkeypatch):
    """Is it told once that the broker has gone, and once that it is back, while the queries wait for it themselves?"""
    monkeypatch.setattr(module, "WATCH_S", 0.0)
    runner, link, display = make()
    queries = {name: Query(looks=6) for name in NAMES}
    link.missing = 3

    assert runner.supervise(queries.__getitem__) == 0
    assert display.said == ["Waiting for a broker at localhost:9092.", "It is there."]


def test_somebody_asks_to_stop(make):
    """Are all queries stopped after their batch, and the run called stopped?"""
    runner, _, _ = make(stop=Stop(after=2))
    queries = {name: Query() for name in NAMES}

    assert runner.supervise(queries.__getitem__) == 0
    assert all(query.stopped for query in queries.values())
    assert find_run("fleet").state == "stopped"


def test_a_batch_is_finished_before_the_stop(make):
    """Is a query in the middle of a batch left alone until it reports?"""
    runner, _, _ = make(stop=Stop(after=1))
    busy = Query()
    busy.status = {"isTriggerActive": True, "message": "Busy"}
    seen = []
    busy.stop = lambda: seen.append(busy.reported)
    queries = {**{name: Query() for name in NAMES}, "one": busy}
    runner.supervise(queries.__getitem__)

    assert seen == [2]  # One report while the run went on, one more before the stop.


def test_a_batch_that_never_ends_is_broken_off(make, monkeypatch):
    """Is a batch broken off when it does not end in time?"""
    monkeypatch.setattr(module, "PATIENCE_S", -1.0)
    runner, _, _ = make(stop=Stop(after=0))
    stuck = Query(looks=0)
    stuck.status = {"isTriggerActive": True, "message": "Busy"}

    assert runner.supervise({**{name: Query() for name in NAMES}, "one": stuck}.__getitem__) == 0
    assert stuck.stopped


def test_what_is_missing_is_told_and_waited_for(make):
    """Is a missing broker or topic told once, and waited for, but a topic not where the run is to end?"""
    runner, _, display = make(Link(missing=3))
    assert runner.await_cluster()
    assert display.said == ["Waiting for a broker at localhost:9092.", "It is there."]

    runner, _, display = make(Link(topics=()), Stop(after=3))
    assert not runner.await_cluster()
    assert (display.said, runner.run.state) == (["Waiting for topic 't' at localhost:9092."], "waiting")

    with pytest.raises(PipelineFault, match="There is no topic 't'"):
        make(Link(topics=()))[0].await_cluster(is_patient=False)


def test_progress_nobody_takes_is_no_failure(make):
    """Does a run go on, with one message, where progress cannot be written?"""
    runner, _, display = make(Link(refuses=True))

    assert runner.supervise({name: Query(looks=2) for name in NAMES}.__getitem__) == 0
    assert len([text for text in display.said if text.startswith("No more progress goes to")]) == 1


def test_what_came_is_not_waited_for_any_more(make):
    """Is a run that waited called starting once all is there, while Spark is not up yet?"""
    runner, link, _ = make(Link(topics=()))
    told = []

    def arrive(_):
        told.append((find_run("fleet").state, find_run("fleet").reason))
        link.names = ("t",)

    runner._stop.wait = arrive
    with claimed("fleet"):
        assert runner.await_cluster()
        assert told == [("waiting", "Waiting for topic 't' at localhost:9092.")]
        assert (find_run("fleet").state, find_run("fleet").reason) == ("starting", "")
