"""A run of a pipeline, from the first look for a broker to the last state it leaves behind.

The runner starts a query per sink, looks at all of them every second, and ends when they have ended, when one has
failed, or when somebody asks. A query that failed because no broker answered is started again from its checkpoint as
soon as one does; any other failure ends the run with one sentence, after the other queries have finished their batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from headrace.client.fault import BadOption, NotAuthenticated
from headrace.model.errors import HeadraceError
from headrace.pipeline.cluster_link import ClusterLink, is_read_by, written_by
from headrace.pipeline.declaration import Pipeline
from headrace.pipeline.display import Display
from headrace.pipeline.failure import SparkTrace, is_death, is_passing, remedy_of, sentence_of, text_of, trace_of
from headrace.pipeline.fault import PipelineFault
from headrace.pipeline.graph import query_names, sources_of_query
from headrace.pipeline.progress import Positions, QueryProgress, Tracker, slowest
from headrace.pipeline.runs import FAILED, FINISHED, RUNNING, STARTING, STOPPED, WAITING, Run, save_run
from headrace.pipeline.settings import STATE_COUNTING
from headrace.pipeline.stop_request import StopRequest

if TYPE_CHECKING:
    Starter = Callable[[str], "Query"]

LOOK_S = 1.0
PATIENCE_S = 60.0
"""How long a batch may take to end once somebody asked to stop; then it is broken off, and done again next time."""
WATCH_S = 5.0
"""How often is looked whether the broker is still there."""
_BEGIN_S = 0.1
_DEATHS_MAX = 3
"""How often a query is started again after a Python process of its died, without a batch done between."""
_RESTARTS_MAX = 100
"""How often a query is started again after no broker answered, before something else must be wrong."""


class Query(Protocol):
    """What the runner uses of Spark's StreamingQuery."""

    @property
    def isActive(self) -> bool:  # noqa: N802
        """Whether it goes on."""

    @property
    def status(self) -> Mapping[str, Any]:
        """What it does just now."""

    def exception(self) -> Exception | None:
        """Why it failed, if it did."""

    def stop(self) -> None:
        """End it."""


class Runner:
    """One run."""

    def __init__(
        self,
        pipeline: Pipeline,
        run: Run,
        *,
        link: ClusterLink,
        display: Display,
        stop: StopRequest,
        reports: Callable[[Any, str], list[dict[str, Any]]],
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        """`reports` gives what Spark has reported of a query since a point in time."""
        self.run = run
        self._pipeline = pipeline
        self._link = link
        self._display = display
        self._stop = stop
        self._reports = reports
        self._now_ms = now_ms
        self._queries: dict[str, Query] = {}
        counts_state = pipeline.spark.get(STATE_COUNTING, "true") != "false"
        self._trackers = {
            name: Tracker(pipeline.name, name, counts_state=counts_state) for name in query_names(pipeline)
        }
        self._seen: dict[str, str] = {}
        self._newest: dict[str, QueryProgress] = {}
        self._committed: dict[str, Positions] = {}
        self._restarts = 0
        self._deaths: dict[tuple[str, str], int] = {}
        self.remedy = ""
        """What to do about the failure that ended the run."""
        self.trace: SparkTrace | None = None
        """All that was said about it."""
        self._watched_s = time.monotonic()
        self._is_publishing = bool(pipeline.progress_topic)

    # --- before the queries

    def await_cluster(self, *, is_patient: bool = True) -> bool:
        """Wait until a broker answers and has the topics; False if somebody asked to stop meanwhile."""
        told = ""
        while not self._stop:
            missing = self._missing()
            if not missing:
                if told:
                    self._display.say("It is there.")
                    # Spark takes its time to start, or a query to start again; nobody is waited for meanwhile.
                    self._tell(STARTING)
                self._create_topics()
                return True
            if not is_patient and missing.startswith("topic"):
                raise PipelineFault(f"There is no {missing}.", "Create it, or mend the name in the file.")
            if missing != told:
                told = missing
                self._tell(WAITING, f"Waiting for {missing}.")
                self._display.say(self.run.reason)
            self._stop.wait(LOOK_S)
        return False

    def _create_topics(self) -> None:
        """Create what is written to and not there, also where brokers create no topics on their own."""
        there = self._link.topics()
        wanted = {name: parts for name, parts in written_by(self._pipeline).items() if name not in there}
        try:
            self._link.create(wanted)
        except HeadraceError as error:
            # Whoever may not create topics may still write to them; if not, the sink says so.
            self._display.say(f"Topics that are not there could not be created: {error}")

    def _missing(self) -> str:
        """What is not there yet, in words; nothing if all is."""
        try:
            topics = self._link.topics()
        except (NotAuthenticated, BadOption) as refused:
            # Waiting does not make a password right.
            raise PipelineFault(f"{refused.problem}.", refused.remedy) from refused
        except HeadraceError:
            return f"a broker at {self._link.brokers}"
        for source in self._pipeline.sources.values():
            wanted = [source.pattern] if source.pattern else source.topics
            for name in wanted:
                if not (any(is_read_by(source, one) for one in topics) if source.pattern else name in topics):
                    return f"topic '{name}' at {self._link.brokers}"
        return ""

    def group_starts(self) -> dict[str, str]:
        """Where the sources begin that begin where their group stands."""
        wanted = [source for source in self._pipeline.sources.values() if source.starting == "group"]
        return {source.name: self._link.starts_of(source) for source in wanted}

    def end_unstarted(self) -> int:
        """Somebody asked to stop before anything had begun; the exit code."""
        self._tell(STOPPED)
        return 0

    # --- the queries

    def supervise(self, start: Starter) -> int:
        """Run all queries to their end; the exit code."""
        try:
            for name in query_names(self._pipeline):
                self._queries[name] = start(name)
                self._await_begin(self._queries[name])
            self._tell(RUNNING)
            while self._queries and not self._stop:
                self._stop.wait(LOOK_S)
                self._look()
                self._watch_broker()
                if not self._take_ends(start):
                    return 1
        finally:
            self._finish_batches()
        self._tell(STOPPED if self._stop else FINISHED)
        return 0

    def _await_begin(self, query: Query) -> None:
        """Wait until a query is under way: each starts Python processes, and all at once are too slow for Spark."""
        deadline = time.monotonic() + PATIENCE_S
        while query.isActive and not self._stop and time.monotonic() < deadline:
            if "nitializing" not in query.status["message"]:
                return
            self._stop.wait(_BEGIN_S)

    def _take_ends(self, start: Starter) -> bool:
        """Go on without the queries that ended; False ends the run."""
        ended = [name for name, query in self._queries.items() if not query.isActive]
        if ended:
            self._look()  # They may have reported once more before they ended.
        return all(self._take_end(name, start) for name in ended)

    def _take_end(self, name: str, start: Starter) -> bool:
        """A query ended: by itself, for want of a broker, or for good; False ends the run."""
        error = self._queries.pop(name).exception()
        if error is None:
            return True
        text = text_of(error)
        if (is_passing(text) or self._is_first_death(name, text)) and self._restarts < _RESTARTS_MAX:
            self._restarts += 1
            self._display.say(f"{name}: {sentence_of(text)}")
            if self.await_cluster():
                self._tell(RUNNING)
                self._queries[name] = start(name)
            return True
        self.remedy, self.trace = remedy_of(text), trace_of(error)
        self._tell(FAILED, f"Query {name} failed: {sentence_of(text)}")
        return False

    def _is_first_death(self, name: str, text: str) -> bool:
        """Whether a Python process died, and not again and again in the same batch."""
        key = (name, self._seen.get(name, ""))
        self._deaths[key] = self._deaths.get(key, 0) + is_death(text)
        return is_death(text) and self._deaths[key] <= _DEATHS_MAX

    def _finish_batches(self) -> None:
        """Let every query finish the batch it is in, then stop it; all of them at the same time."""
        deadline = time.monotonic() + PATIENCE_S
        begun = {name: self._seen.get(name) for name in self._queries}
        waiting = dict(self._queries)
        while waiting:
            self._look()
            for name, query in list(waiting.items()):
                done = self._seen.get(name) != begun[name] or not query.status["isTriggerActive"]
                if done or not query.isActive or time.monotonic() > deadline:
                    query.stop()
                    del waiting[name]
            time.sleep(0.05 if waiting else 0)
        self._look()
        self._queries.clear()

    def _watch_broker(self) -> None:
        """Tell when the broker has gone, and when it is back; the queries wait for it on their own for a while."""
        if time.monotonic() - self._watched_s < WATCH_S:
            return
        try:
            self._link.topics()
            is_absent = False
        except HeadraceError:
            is_absent = True
        self._watched_s = time.monotonic()
        if is_absent != (self.run.state == WAITING):
            told = f"Waiting for a broker at {self._link.brokers}." if is_absent else ""
            self._tell(WAITING if is_absent else RUNNING, told)
            self._display.say(told or "It is there.")

    # --- looking

    def _look(self) -> None:
        """Take what was reported since the last look, and hand it on."""
        self._see_ends()
        new = []
        for name, query in self._queries.items():
            for report in self._reports(query, self._seen.get(name, "")):
                self._seen[name] = report["timestamp"]
                self._newest[name] = self._trackers[name].take(report, now_ms=self._now_ms())
                new.append(self._newest[name])
        newest = [self._newest[name] for name in self._trackers if name in self._newest]
        self._display.progress(new, newest)
        if new:
            self._save()
            self._commit()
            self._publish(new)

    def _see_ends(self) -> None:
        """Let the trackers know where the topics end by now."""
        places = {place for tracker in self._trackers.values() for place in tracker.positions}
        try:
            ends = self._link.ends(places) if places else {}
        except HeadraceError:
            return  # What Spark reports is older, and better than nothing.
        for tracker in self._trackers.values():
            tracker.see(ends, now_ms=self._now_ms())

    def _commit(self) -> None:
        """Show in each source's group how far all queries that read it are."""
        for name, source in self._pipeline.sources.items():
            readers = [query for query in self._trackers if name in sources_of_query(self._pipeline, query)]
            places = slowest([self._trackers[query].positions for query in readers])
            places = {place: offset for place, offset in places.items() if is_read_by(source, place[0])}
            if places and places != self._committed.get(name):
                try:
                    self._link.commit(source.group, places)
                except HeadraceError:
                    continue  # The checkpoint counts; the group shows it again with the next batch.
                self._committed[name] = places

    def _publish(self, new: list[QueryProgress]) -> None:
        if not self._is_publishing:
            return
        documents = [(f"{one.pipeline}/{one.query}", one.document()) for one in new]
        try:
            self._link.publish(self._pipeline.progress_topic, documents)
        except HeadraceError as error:
            self._is_publishing = False
            self._display.say(f"No more progress goes to {self._pipeline.progress_topic}: {error}")

    # --- how the run stands

    def _tell(self, state: str, reason: str = "") -> None:
        self.run = replace(self.run, state=state, reason=reason)
        self._save()

    def _save(self) -> None:
        self.run = replace(self.run, queries=[one.document() for one in self._newest.values()])
        save_run(self.run)


def spark_reports(query: Any, after: str) -> list[dict[str, Any]]:
    """What Spark has reported of a query after a time, the oldest first; only the new reports leave the JVM.

    By time and not by batch: a query that has nothing to do reports under the number of the batch to come.
    """
    found: list[dict[str, Any]] = []
    recent = query._jsq.recentProgress()  # noqa: SLF001  pyspark's own way fetches all hundred each time.
    for place in range(len(recent) - 1, -1, -1):
        if recent[place].timestamp() <= after:
            break
        found.append(json.loads(recent[place].json()))
    return found[::-1]
