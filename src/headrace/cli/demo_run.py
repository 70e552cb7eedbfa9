"""One demo from beginning to end.

The order matters. Up: broker, topics, pipeline, then those who listen, and the trucks last, so that nobody waits for
records that are long there. Down: the trucks first, then everything they sent goes through the pipeline, and only when
the account is closed the pipeline and at last the broker end.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.cli import gateways, nodes
from headrace.cli.colours import BOLD, CYAN, paint
from headrace.cli.demo_children import ChildDied, Children, wait_until
from headrace.cli.demo_lag import answers, group_lag
from headrace.cli.demo_stage import clear_state, free_ports, make_stage, pipeline_name, set_stage
from headrace.cli.interruption import Interruption
from headrace.cli.local_cluster import LocalCluster
from headrace.cli.progress import Progress
from headrace.cli.report import camel_case
from headrace.cli.session import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headrace.cli.demo_children import Child
    from headrace.cli.report import Report
    from headrace.cli.running import RunningGateway

_GATEWAY_S = 60.0
_MAP = f"{gateways.CONSOLE_PATH}fleet"
_BROKER_S, _TOPICS_S, _PIPELINE_S, _LEDGER_S, _DRAIN_S = 60.0, 60.0, 600.0, 180.0, 900.0
_BURST_AT_S = 20
_EVERY_S = 20
"""How often a truck reports, by its own clock."""
_LINE_S = 10.0
_LOOK_S = 0.5
_PATIENCE_S = 180
"""Seconds without progress after which the pipeline is not waited for any more."""
_SILENCE_S, _NOTIFY_S = 20, 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlan:
    """What was asked for."""

    trucks: int
    speedup: float
    duration_s: float | None
    burst: float | None
    burst_s: float
    seed: int
    is_headless: bool
    data: str | None
    brokers: int = 1

    @property
    def fastest(self) -> float:
        """How fast the fleet's clock runs at most."""
        return max(self.speedup, (self.burst or 0) * _EVERY_S / self.trucks)


def run_demo(plan: DemoPlan, report: Report) -> int:
    """Run it; 0 if the account is whole."""
    place = make_stage(plan.data)
    pipeline = pipeline_name(os.getpid())
    try:
        with Interruption() as interruption, Children(place, _environment(place)) as children:
            try:
                found = Demo(plan, place, pipeline, children, interruption, report).run()
            except ChildDied as error:
                raise Failure(str(error), remedy=_kept(place, plan)) from None
            except StoppedEarly:
                # Spark hears of it only once it has started, which takes long enough to wonder.
                with Progress() as progress:
                    progress.say("stopping")
                    children.end()
                report.note("Stopped before the trucks drove.")
                return interruption.exit_code
    finally:
        clear_state(pipeline, keep=place if plan.data else None)
        if plan.data is None:
            shutil.rmtree(place, ignore_errors=True)
    report.data({camel_case(name): what for name, what in found.items()})
    return 0 if found["whole"] else 1


def _environment(place: Path) -> dict[str, str]:
    """What the programs are started with: everything they log and keep stays in the demo's directory."""
    return {**os.environ, "LOG_DIR": str(place / "logs"), "PYTHONUNBUFFERED": "1", "PYSPARK_PYTHON": sys.executable}


def _kept(place: Path, plan: DemoPlan) -> str:
    return f"Its whole log is in {place}." if plan.data else "With --data DIRECTORY the logs are kept."


class StoppedEarly(Exception):
    """Somebody asked to end while there was nothing yet to account for."""


class Demo:
    """What runs, and what happens next."""

    def __init__(
        self,
        plan: DemoPlan,
        place: Path,
        pipeline: str,
        children: Children,
        interruption: Interruption,
        report: Report,
    ) -> None:
        self._plan = plan
        self._place = place
        self._children = children
        self._interruption = interruption
        self._report = report
        self._ports = free_ports(plan.brokers)
        self._bootstrap = ",".join(f"localhost:{port}" for port in self._ports)
        self._pipeline_name = pipeline
        self._watched: list[Child] = []
        self._is_driving = False

    def run(self) -> dict[str, Any]:
        """Everything, in order; what the account says."""
        set_stage(self._place, fastest=self._plan.fastest, pipeline=self._pipeline_name)
        with self._step("starting a broker" if self._plan.brokers == 1 else f"starting {self._plan.brokers} brokers"):
            brokers = self._start_brokers()
        gateway = self._start_gateway()
        with self._step("making the topics"):
            self._finish(self._start_script("topics", self._bootstrap), _TOPICS_S)
        with self._step("starting Spark and the pipeline"):
            pipeline = self._start_pipeline()
        auditor = self._start_auditor()
        notifier = self._start_script("notifier", *self._where(), "--journal", "notified.txt", may_restart=True)
        fleet = self._start_fleet()
        self._is_driving = True
        self._watched += [notifier, fleet, gateway]
        with self._step("opening the gateway"):
            self._await(lambda: _lives(gateway) and self._gateway() is not None, "the gateway to listen", _GATEWAY_S)
        self._note_pids()
        self._tell()
        dashboard = None if self._plan.is_headless else self._start_dashboard()
        self._drive(fleet, auditor)
        if dashboard is not None:
            dashboard.end()
        return self._wind_down(fleet, auditor, pipeline, notifier, [gateway, *brokers])

    # --- up

    def _start_brokers(self) -> list[Child]:
        brokers = {
            address: self._children.start(
                name, [*_headrace(), "kafka-server-start", *plan.arguments()], may_restart=True
            )
            for (name, plan), address in zip(self._broker_plans().items(), self._bootstrap.split(","), strict=True)
        }
        for address, broker in brokers.items():
            self._await(
                lambda broker=broker, address=address: _lives(broker) and answers(address),
                f"the broker on {address} to answer",
                _BROKER_S,
            )
        self._watched += brokers.values()
        return list(brokers.values())

    def _broker_plans(self) -> dict[str, nodes.NodePlan]:
        """What to start, under the names it has in the demo."""
        data = self._place / "data"
        if len(self._ports) == 1:
            return {"broker": nodes.plan_node(port=self._ports[0], data=str(data))}
        cluster = LocalCluster(data)
        cluster.make(self._ports)
        return {f"broker-{node}": cluster.plan(node) for node in cluster.nodes()}

    def _start_gateway(self) -> Child:
        words = [*self._where(), "--listen", gateways.free_url()]
        return self._children.start("gateway", [*_headrace(), "gateway", *words], may_restart=True)

    def _gateway(self) -> RunningGateway | None:
        return gateways.find_gateway(self._bootstrap)

    def _start_pipeline(self) -> Child:
        from headrace.pipeline.fault import PipelineFault
        from headrace.pipeline.runs import RUNNING, find_run

        command = [*_headrace(), "pipeline", "run", "fleet.toml", *self._where()]
        pipeline = self._children.start("pipeline", command, may_restart=True)

        def is_running() -> bool:
            try:
                run = find_run(self._pipeline_name)
            except PipelineFault:
                return not _lives(pipeline)
            return _lives(pipeline) and run.pid == pipeline.pid and run.state == RUNNING

        self._await(is_running, "the pipeline to run", _PIPELINE_S)
        self._watched.append(pipeline)
        return pipeline

    def _start_auditor(self) -> Child:
        files = ["--ledger", "ledger.json", "--report", "account.json", "--patience", str(_SILENCE_S)]
        return self._start_script("accounting", *self._where(), *files)

    def _start_fleet(self) -> Child:
        plan = self._plan
        words = ["--trucks", str(plan.trucks), "--speedup", str(plan.speedup), "--seed", str(plan.seed)]
        if plan.burst is not None:
            words += ["--rate", str(plan.burst), "--burst-at", str(_BURST_AT_S), "--burst-for", str(plan.burst_s)]
        return self._start_script("generator", *self._where(), *words, "--ledger", "sent.json")

    def _start_dashboard(self) -> Child:
        gateway = self._gateway()
        seen = f"{gateway.url}{_MAP}" if gateway is not None else ""
        note = footer(seen, self._bootstrap, self._place)
        command = [sys.executable, "dashboard.py", *self._where(), "--note", note]
        return self._children.start("dashboard", command, shows=True)

    def _start_script(self, name: str, *words: str, may_restart: bool = False) -> Child:
        return self._children.start(name, [sys.executable, f"{name}.py", *words], may_restart=may_restart)

    def _where(self) -> tuple[str, str]:
        return "--bootstrap-server", self._bootstrap

    # --- meanwhile

    def _drive(self, fleet: Child, auditor: Child) -> None:
        """Let the fleet drive until its time is over or somebody has seen enough."""
        begin = told = time.monotonic()
        while not self._interruption:
            self._watch()
            _lives(auditor)
            now = time.monotonic()
            if self._plan.duration_s is not None and now - begin >= self._plan.duration_s:
                return
            if self._plan.is_headless and now - told >= _LINE_S:
                told = now
                self._say(f"{now - begin:.0f} s: {_last_line(auditor)}")
            time.sleep(0.1)

    def _watch(self) -> bool:
        """Start again what died, so that whoever looks for a process finds the new one; whether anything had."""
        revived = False
        for child in self._watched:
            before = child.exit_code
            if child.revive():
                revived = True
                self._say(f"The {child.name} died (exit code {before}); it is started again.")
                self._note_pids()
        return revived

    def _note_pids(self) -> None:
        path = self._place / "processes.json"
        unfinished = path.with_suffix(".new")
        unfinished.write_text(json.dumps(self._children.pids()))
        unfinished.replace(path)

    def _tell(self) -> None:
        """Where everything is, and what to try."""
        name, where = nodes.typed_name(), f"--bootstrap-server {self._bootstrap}"
        say = self._say
        say("")
        say(paint(f"{self._plan.trucks} trucks drive, their clock {self._plan.speedup:g} times ours.", BOLD))
        say(f"broker     {self._bootstrap.replace(',', ', ')}")
        gateway = self._gateway()
        if gateway is not None:
            say(f"gateway    {gateway.url}")
            say(f"map        {gateway.url}{_MAP}")
            say(f"stream     curl -N {gateway.url}/stream/trucks_alerts")
        say(f"data       {self._place}")
        say(f"processes  {', '.join(f'{what} {pid}' for what, pid in self._children.pids().items())}")
        say("\nWhat to try, in another terminal:")
        for command in (
            f"{name} consume trucks_alerts {where}",
            f"{name} groups describe {self._pipeline_name}-gps {where}",
            f"{name} pipeline status {self._pipeline_name}",
            f"{name} python {self._place}/dashboard.py {where}",
            f"kill -9 {next(pid for what, pid in self._children.pids().items() if what.startswith('broker'))}",
        ):
            say("  " + paint(command, CYAN))
        which = "the" if len(self._ports) == 1 else "a"
        say(f"The last one kills {which} broker; the pipeline may be killed too: they come back and nothing is lost.")
        say(
            f"\n{'Ctrl-C ends it.' if self._plan.duration_s is None else f'It ends after {self._plan.duration_s:g} s.'}"
        )

    # --- down

    def _wind_down(
        self, fleet: Child, auditor: Child, pipeline: Child, notifier: Child, servers: list[Child]
    ) -> dict[str, Any]:
        """Stop sending, wait until all is through, then end the others in order; what the account says."""
        self._watched.remove(fleet)
        with self._step("the trucks stop, and what they sent is acknowledged"):
            fleet.ask_to_end()
            self._await(lambda: not fleet.is_alive, "the trucks to stop", _LEDGER_S)
            if fleet.exit_code != 0:
                raise ChildDied(f"The fleet ended with exit code {fleet.exit_code}:\n{fleet.last_words()}")
        with self._step("the pipeline finishes what is left"):
            self._drain()
            lag = self._lag()
            self._watched.remove(pipeline)
            pipeline.end()
        with self._step("the account is closed"):
            # Only now: whatever is missing is missing for good.
            (self._place / "sent.json").replace(self._place / "ledger.json")
            self._await(lambda: not auditor.is_alive, "the account to be closed", _DRAIN_S)
            account = self._account(auditor)
            wait_until(lambda: self._notified() >= sum(account["alerts"].values()), self._watch, timeout_s=_NOTIFY_S)
        self._watched.clear()
        with self._step("everything ends"):
            notifier.end()
            for server in servers:
                server.ask_to_end()
            for server in servers:
                server.end()
        return self._close(auditor, account | {"notified": self._notified(), "lag": lag})

    def _drain(self) -> None:
        """Wait until every query has read everything; a second Ctrl-C, or no progress for long, ends the wait."""
        self._interruption.signal = 0
        least, since = None, time.monotonic()
        while (lag := self._lag()) != 0 and not self._interruption:
            now = time.monotonic()
            if lag is not None and (least is None or lag < least):
                least, since = lag, now
            if now - since > _PATIENCE_S:
                return
            if self._watch():
                since = now
            time.sleep(_LOOK_S)

    def _lag(self) -> int | None:
        """How many records the slowest query of the pipeline has not read."""
        return group_lag(self._bootstrap, group=f"{self._pipeline_name}-gps", topic="trucks_gps")

    def _account(self, auditor: Child) -> dict[str, Any]:
        path = self._place / "account.json"
        if not path.exists():
            raise ChildDied(f"The accounting ended with exit code {auditor.exit_code}:\n{auditor.last_words()}")
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def _notified(self) -> int:
        path = self._place / "notified.txt"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def _close(self, auditor: Child, found: dict[str, Any]) -> dict[str, Any]:
        """Say what the account says."""
        line = self._report.line
        line()
        for text in auditor.log.read_text().splitlines():
            if " processed," not in text:
                line(text)
        line(f"The pipeline has {found['lag']} records left to read; {found['notified']} alerts were notified.")
        if self._plan.data:
            line(f"The lake, the logs and all topics are in {self._plan.data}.")
        return found

    # --- small things

    def _await(self, done: Any, what: str, timeout_s: float) -> None:
        if not wait_until(done, self._look, timeout_s=timeout_s):
            raise Failure(f"Waited {timeout_s:.0f} s for {what}.", remedy=_kept(self._place, self._plan))

    def _look(self) -> None:
        """Start again what died; before the fleet drives, there is nothing to wait for once somebody asked to end."""
        if self._interruption and not self._is_driving:
            raise StoppedEarly
        self._watch()

    def _finish(self, child: Child, timeout_s: float) -> None:
        if not child.wait(timeout_s) or child.exit_code != 0:
            raise ChildDied(f"The step {child.name} ended with exit code {child.exit_code}:\n{child.last_words()}")

    def _say(self, text: str) -> None:
        """A word to the person, but not into the dashboard's screen."""
        if self._plan.is_headless or "dashboard" not in self._children.pids():
            self._report.note(text)

    @contextmanager
    def _step(self, words: str) -> Iterator[None]:
        with Progress() as progress:
            progress.say(words)
            yield


def footer(seen: str, bootstrap: str, place: Path) -> str:
    """The line below the dashboard: what a narrow terminal cuts off comes last."""
    where = f"map {seen}   " if seen else ""
    return f"Ctrl-C ends everything   {where}broker {bootstrap}   data {place}"


def _headrace() -> list[str]:
    return [sys.executable, "-P", "-m", "headrace.cli"]


def _lives(child: Child) -> bool:
    """True, or ChildDied."""
    if not child.is_alive:
        raise ChildDied(f"The {child.name} ended with exit code {child.exit_code}:\n{child.last_words()}")
    return True


def _last_line(child: Child) -> str:
    lines = child.log.read_text(errors="replace").splitlines()
    return lines[-1] if lines else "nothing yet"
